"""Constraint functions g_1^t, …, g_I^t by name: the laws that they are drawn from, around the mean of a problem.

`noise.py` holds the laws.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from tightrope.arguments import check_options, shown, text, unknown
from tightrope.errors import InvalidInputError
from tightrope.problems.constraints.noise import (
    Bernoulli,
    BetaNoise,
    CorrelatedNoise,
    Deterministic,
    Replay,
    ScaledNoise,
    checked_mean,
    replay,
)
from tightrope.space import FloatArray

__all__ = [
    "NOISES",
    "Bernoulli",
    "BetaNoise",
    "Constraints",
    "CorrelatedNoise",
    "Deterministic",
    "NoiseChoice",
    "Replay",
    "ScaledNoise",
    "checked_mean",
    "largest_factor",
    "make_constraints",
]


@runtime_checkable
class Constraints(Protocol):
    """The law of the constraint functions."""

    @property
    def mean(self) -> FloatArray:
        """(I, n_tuples) g_i, the expectation of g_i^t."""
        ...

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """(I, n_tuples) g^t for one episode; receivers never write to it."""
        ...


#: What `noise=` understands: each is made of a problem's mean and options of its own.
NOISES: dict[str, Callable[..., Constraints]] = {
    **{kind.name: kind for kind in (Deterministic, ScaledNoise, CorrelatedNoise, BetaNoise, Bernoulli)},
    Replay.name: replay,
}

#: A name, a name with options ({"name": "scaled", "spread": 0.5}), or a law of one's own.
NoiseChoice = str | Mapping[str, Any] | Constraints


def make_constraints(choice: NoiseChoice, mean: ArrayLike) -> Constraints:
    """The law of the constraints that `choice` asks for, around a problem's mean (I, n_tuples)."""
    if isinstance(choice, str):
        choice = {"name": choice}
    if not isinstance(choice, Mapping):
        if isinstance(choice, Constraints) and not isinstance(choice, type):
            return choice
        raise InvalidInputError(
            f"noise is {shown(choice)}; expected a name ({', '.join(sorted(NOISES))}), "
            "a table with a name and options, or an object with a mean and a method sample(rng)"
        )
    options = {text(key, "an option of noise"): value for key, value in choice.items()}
    name = options.pop("name", None)
    if not isinstance(name, str) or name not in NOISES:
        raise unknown("there is no noise", name, NOISES)
    check_options(f"the noise {name!r}", NOISES[name], options)
    return NOISES[name](mean, **options)


def largest_factor(choice: NoiseChoice) -> float:
    """By how much a draw of this noise can exceed the largest entry of its mean; 1 for a law of one's own."""
    if not isinstance(choice, str | Mapping):
        return 1.0
    return float(getattr(make_constraints(choice, np.zeros((1, 1))), "largest_factor", 1.0))
