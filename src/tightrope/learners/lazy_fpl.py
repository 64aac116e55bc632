"""Lazy FPL: follow the perturbed leader in phases, with the model known (Yu, Mannor & Shimkin 2009).

In every phase m of τ_m = ⌈m^(1/3 − ε)⌉ episodes, with losses ℓ in [0, 1] and R their sum before it:
1. Draw n(s,a), independent and uniform between 0 and b, for every pair.
2. Play the best policy for R − n in all episodes of the phase: dynamic programming.

It plans only as often as there are phases, about T^(3/4) times, and needs no horizon.

Feedback: full information. Needs to know: the space, the model and random numbers of its own. Budgets are not looked
at.
Where we depart from the publication: losses here are ℓ = (f + 1)/2. It has an endless, ergodic process, in which a
phase must last for a policy to show what it is worth, and regret of order T^(3/4 + ε); here a policy shows it in an
episode, phases only save planning, and its linear program is dynamic programming. We have not seen its law of n. Ours
balances the bound of Kalai and Vempala (2005), D b + R A M / b for M decisions that differ by D at most, on losses up
to R and of size A: with N pairs, D = 2L, R = τL, A = τN and M = t/τ up to episode t, so that b = √(τ_m t N / 2) in a
phase that begins with episode t.
"""

import math
from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tightrope.arithmetic import power
from tightrope.learners.base import Episode, LearnerBase, sums_of
from tightrope.learners.parameters import NOT_NEGATIVE, SHARE, carried, parameter
from tightrope.model import LayeredMDP, Policy
from tightrope.planning.hindsight import best_policy
from tightrope.space import FloatArray

#: What a power may be above a whole number by rounding.
ROUNDING = 1e-9


class LazyFPL(LearnerBase):
    """Follow the perturbed leader in phases: adversarial losses, known dynamics, no budgets.

    Parameters
    ----------
    space, budgets : what is known beforehand; the budgets are not looked at.
    episodes : T; it changes nothing.
    model : the true one.
    rng : where perturbations are drawn from.
    phase_exponent : 1/3 − ε, how phases grow; by default ε = 0.
    perturbation_scale : multiplies b; 1 is ours.
    """

    name = "lazy-fpl"
    reference = (
        "Yu, Mannor, Shimkin: Markov decision processes with arbitrary reward processes (Mathematics of Operations "
        "Research 2009)"
    )
    constants = "balanced by us"
    plans = False
    needs = ("model", "rng")
    learns_from = "any"

    model: LayeredMDP
    rng: np.random.Generator
    phase_exponent: float = parameter(SHARE, default=1 / 3)
    perturbation_scale: float = parameter(NOT_NEGATIVE, default=1.0)
    total_loss: FloatArray = carried()
    draws: np.random.Generator = carried()
    policy: Policy = carried()
    phase: int = carried()  #: m
    played: int = carried()  #: episodes of the phase

    def __post_init__(self) -> None:
        super().__post_init__()
        self.total_loss, self.draws = np.zeros(self.space.n_tuples), deepcopy(self.rng)
        self.phase, self.played = 1, 0
        self.policy = self._lead(self.total_loss, self.draws, 1, 1)

    def observe(self, episode: Episode) -> None:
        """Add up; at the end of a phase lines 1 and 2 for the next."""
        _, f, _ = self._read(episode)
        total_loss, played = self.total_loss + (f + 1) / 2, self.played + 1
        changes: dict[str, Any] = {"played": played}
        if played >= self.phase_length(self.phase):
            draws, phase = deepcopy(self.draws), self.phase + 1
            policy = self._lead(total_loss, draws, phase, self.observed + 2)
            changes = {"played": 0, "phase": phase, "draws": draws, "policy": policy}
        self._learn(total_loss=total_loss, **changes)

    def phase_length(self, phase: int) -> int:
        """τ_m."""
        length: int = math.ceil(power(phase, self.phase_exponent) - ROUNDING)
        return length

    def width(self, phase: int, first: int) -> float:
        """b of a phase that begins with this episode."""
        return self.perturbation_scale * math.sqrt(self.phase_length(phase) * first * self.space.n_pairs / 2)

    def _lead(self, total_loss: FloatArray, draws: np.random.Generator, phase: int, first: int) -> Policy:
        """Lines 1 and 2."""
        n = draws.uniform(0, self.width(phase, first), self.space.n_pairs)
        return best_policy(self.model, total_loss - self.space.expand_to_tuples(n))[1]

    def bounds(self) -> dict[str, tuple[ArrayLike, ArrayLike]]:
        ended = self.observed - self.played  # episodes of phases that ended, one each at the least
        longest = self.phase_length(self.phase) - 1 if self.phase > 0 else 0
        return super().bounds() | {
            "total_loss": sums_of(self.observed),
            "phase": (1, 1 + max(0, ended)),
            "played": (0, min(self.observed, longest)),
        }
