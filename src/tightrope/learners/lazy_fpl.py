"""Lazy FPL: follow the perturbed leader in phases, with the model known (Yu, Mannor & Shimkin 2009).

In every phase m of τ_m = ⌈m^(1/3 − ε)⌉ episodes, with losses ℓ in [0, 1] and R their sum before it:
1. Draw n(s,a), independent and uniform between 0 and b, for every pair.
2. Play the best policy for R − n in all episodes of the phase: dynamic programming.

It plans once per phase, about T^(3/4) times, and needs no horizon.

Feedback: full information. Needs to know: the space, the model and random numbers of its own. Budgets are ignored.
Where we depart from the publication: losses here are ℓ = (f + 1)/2. It has an infinite, ergodic process, in which the
cost of a policy shows only over a long phase, and regret of order T^(3/4 + ε); here an episode shows it, phases only
save planning, and its linear program becomes dynamic programming. We had no access to its distribution of n. Ours
balances the bound of Kalai and Vempala (2005), D b + R A M / b for M decisions that differ by at most D, on losses up
to R and of size A: with N pairs, D = 2L, R = τL, A = τN and M = t/τ up to episode t, so that b = √(τ_m t N / 2) in a
phase that begins with episode t.
"""

import math
from copy import deepcopy

import numpy as np

from tightrope.arithmetic import power
from tightrope.learners.base import LearnerBase, Offer, Seen
from tightrope.learners.parameters import NOT_NEGATIVE, SHARE, parameter
from tightrope.model import LayeredMDP, Policy
from tightrope.planning.hindsight import best_policy
from tightrope.space import FloatArray
from tightrope.storage.state import State, numbers, part, state

#: The rounding error of a power that is a whole number.
ROUNDING = 1e-9


@state
class LazyFPLState(State):
    """The state of lazy FPL between two episodes."""

    total_loss: FloatArray = numbers(least=-1e-3)  #: (n_tuples,) R
    draws: np.random.Generator = part()
    policy: Policy = part()
    phase: int = numbers(least=1)  #: m
    played: int = numbers(least=0)  #: episodes of the phase


class LazyFPL(LearnerBase[LazyFPLState]):
    """Follow the perturbed leader in phases: adversarial losses, known dynamics, no budgets.

    Parameters
    ----------
    space, budgets : the space and the budgets, which have no effect.
    episodes : T; it has no effect.
    model : the true one.
    rng : the generator of the perturbations.
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

    def configure(self) -> None:
        """Do nothing: no attributes follow from the parameters."""

    def initial(self) -> LazyFPLState:
        total_loss, draws = np.zeros(self.space.n_tuples), deepcopy(self.rng)
        policy = self._lead(total_loss, draws, 1, 1)
        return LazyFPLState(total_loss=total_loss, draws=draws, policy=policy, phase=1, played=0)

    def offer(self, state: LazyFPLState) -> Offer:
        return Offer(state.policy, np.zeros(len(self.budgets)))

    def step(self, state: LazyFPLState, seen: Seen) -> LazyFPLState:
        """Return the next state: add the loss, and at the end of a phase lines 1 and 2 for the next phase."""
        total_loss, played, phase = state.total_loss + (seen.loss + 1) / 2, state.played + 1, state.phase
        draws, policy = state.draws, state.policy
        if played >= self.phase_length(phase):
            draws, phase, played = deepcopy(draws), phase + 1, 0
            policy = self._lead(total_loss, draws, phase, state.observed + 2)
        return LazyFPLState(
            observed=state.observed + 1, total_loss=total_loss, draws=draws, policy=policy, phase=phase, played=played
        )

    def phase_length(self, phase: int) -> int:
        """Return the length τ_m of a phase."""
        length: int = math.ceil(power(phase, self.phase_exponent) - ROUNDING)
        return length

    def width(self, phase: int, first: int) -> float:
        """Return the width b of a phase that begins with this episode."""
        return self.perturbation_scale * math.sqrt(self.phase_length(phase) * first * self.space.n_pairs / 2)

    def _lead(self, total_loss: FloatArray, draws: np.random.Generator, phase: int, first: int) -> Policy:
        """Draw a perturbation and plan (lines 1 and 2)."""
        n = draws.uniform(0, self.width(phase, first), self.space.n_pairs)
        return best_policy(self.model, total_loss - self.space.expand_to_tuples(n))[1]
