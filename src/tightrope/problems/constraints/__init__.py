"""Constraint functions g_1^t, …, g_I^t by name: what is used from episode to episode, around the mean of a problem.

`noise.py` holds the laws that they are drawn from, `changing.py` the sequences that follow none.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tightrope.arguments import named
from tightrope.model import LayeredMDP, Policy
from tightrope.problems.constraints.changing import CHANGING, ChangingConstraints, Chased, Regulator
from tightrope.problems.constraints.noise import (
    Bernoulli,
    BetaNoise,
    Constraints,
    CorrelatedNoise,
    Deterministic,
    Replay,
    ScaledNoise,
    checked_mean,
    replay,
)
from tightrope.space import FloatArray

__all__ = [
    "CHANGING",
    "CONSTRAINTS",
    "NOISES",
    "Bernoulli",
    "BetaNoise",
    "ChangingConstraints",
    "Constraints",
    "CorrelatedNoise",
    "Deterministic",
    "Draws",
    "NoiseChoice",
    "Regulator",
    "Replay",
    "ScaledNoise",
    "checked_mean",
    "largest_factor",
    "make_constraints",
]


class Draws:
    """One play of a law: every episode a draw of its own."""

    def __init__(self, law: Constraints, rng: np.random.Generator) -> None:
        self.law, self.rng = law, rng

    def constraints(self, episode: int) -> FloatArray:
        return self.law.sample(self.rng)

    def watch(self, policy: Policy) -> None:
        """Look away."""


#: The laws: each is made of a problem's mean and options of its own.
NOISES: dict[str, Callable[..., Constraints]] = {
    **{kind.name: kind for kind in (Deterministic, ScaledNoise, CorrelatedNoise, BetaNoise, Bernoulli)},
    Replay.name: replay,
}

#: All that `noise=` understands.
CONSTRAINTS: dict[str, Callable[..., Constraints]] = {**NOISES, **CHANGING}

#: A name, a name with options ({"name": "scaled", "spread": 0.5}), or constraints of one's own.
NoiseChoice = str | Mapping[str, Any] | Constraints


def make_constraints(choice: NoiseChoice, mean: ArrayLike, mdp: LayeredMDP | None = None) -> Constraints:
    """The constraints that `choice` asks for, around a problem's mean (I, n_tuples); `mdp` for those that look."""
    if isinstance(choice, Constraints) and not isinstance(choice, type):
        return choice
    own = "an object with a mean and a method sample(rng)"
    kind, options = named(choice, "noise", CONSTRAINTS, "noise", own)
    return kind(mean, mdp, **options) if kind is Chased else kind(mean, **options)


def largest_factor(choice: NoiseChoice) -> float:
    """By how much a draw of this noise can exceed the largest entry of its mean; 1 for a law of one's own."""
    if not isinstance(choice, str | Mapping):
        return 1.0
    return float(getattr(make_constraints(choice, np.zeros((1, 1))), "largest_factor", 1.0))
