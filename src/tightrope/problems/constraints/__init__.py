"""Constraint functions g_1^t, …, g_I^t of each episode, by name, around the mean of a problem.

`noise.py` has the distributions that they are drawn from, `changing.py` the sequences that change in time.
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
    """The constraints of one run, drawn independently for every episode."""

    def __init__(self, law: Constraints, rng: np.random.Generator) -> None:
        self.law, self.rng = law, rng

    def constraints(self, episode: int) -> FloatArray:
        """Return g^t, (I, n_tuples)."""
        return self.law.sample(self.rng)

    def watch(self, policy: Policy) -> None:
        """Do nothing: draws do not depend on the policy."""


#: The distributions: each is called with a problem's mean and its options.
NOISES: dict[str, Callable[..., Constraints]] = {
    **{kind.name: kind for kind in (Deterministic, ScaledNoise, CorrelatedNoise, BetaNoise, Bernoulli)},
    Replay.name: replay,
}

#: Every name that `noise=` accepts.
CONSTRAINTS: dict[str, Callable[..., Constraints]] = {**NOISES, **CHANGING}

#: A name, a name with options ({"name": "scaled", "spread": 0.5}), or an object with the methods of `Constraints`.
NoiseChoice = str | Mapping[str, Any] | Constraints


def make_constraints(choice: NoiseChoice, mean: ArrayLike, mdp: LayeredMDP | None = None) -> Constraints:
    """Return constraints around the mean of a problem.

    Parameters
    ----------
    choice : a name in `CONSTRAINTS`, a mapping with a name and options, or constraints, which are returned as given.
    mean : (I, n_tuples) the mean.
    mdp : the true model; needed by constraints that depend on the policies played ("chaser").

    Raises
    ------
    InvalidInputError : if the name or an option is unknown, or a draw could break Assumption 2.

    Examples
    --------
    >>> make_constraints({"name": "scaled", "spread": 0.5}, [[0.25, 0.5]]).mean
    array([[0.25, 0.5 ]])
    """
    if isinstance(choice, Constraints) and not isinstance(choice, type):
        return choice
    own = "an object with a mean and a method sample(rng)"
    kind, options = named(choice, "noise", CONSTRAINTS, "noise", own)
    return kind(mean, mdp, **options) if kind is Chased else kind(mean, **options)


def largest_factor(choice: NoiseChoice) -> float:
    """Return the largest entry of a draw, as a multiple of the largest entry of the mean; 1 for objects."""
    if not isinstance(choice, str | Mapping):
        return 1.0
    return float(getattr(make_constraints(choice, np.zeros((1, 1))), "largest_factor", 1.0))
