"""Constraint functions g_1^t, …, g_I^t: drawn for every episode, independent and identically distributed.

Assumption 2 asks for Σ_i max |g_i^t| ≤ 1 in every episode; a mean with which a draw could break it is
refused.
"""

from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from tightrope.errors import InvalidInputError
from tightrope.problems.options import number
from tightrope.space import FloatArray

#: How far rounding may carry a sum of bounds past its limit.
BOUND_TOLERANCE = 1e-9


class Constraints(Protocol):
    """The law of the constraint functions."""

    @property
    def mean(self) -> FloatArray:
        """(I, n_tuples) g_i, the expectation of g_i^t."""
        ...

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """(I, n_tuples) g^t for one episode; receivers never write to it."""
        ...


class Deterministic:
    """g^t = mean in every episode."""

    def __init__(self, mean: ArrayLike) -> None:
        self.mean = checked_mean(mean, largest_factor=1.0)

    def sample(self, rng: np.random.Generator) -> FloatArray:
        return self.mean

    def __repr__(self) -> str:
        return f"Deterministic({len(self.mean)} constraints)"


class ScaledNoise:
    """g_i^t = ξ_i^t · mean_i, with ξ_i^t uniform on [1 − spread, 1 + spread], independent over i and t."""

    def __init__(self, mean: ArrayLike, spread: float) -> None:
        self.spread = number(spread, "spread", 0, 1)
        self.mean = checked_mean(mean, largest_factor=1 + self.spread)

    def sample(self, rng: np.random.Generator) -> FloatArray:
        xi = rng.uniform(1 - self.spread, 1 + self.spread, size=(len(self.mean), 1))
        return xi * self.mean

    def __repr__(self) -> str:
        return f"ScaledNoise({len(self.mean)} constraints, spread={self.spread})"


def checked_mean(mean: ArrayLike, largest_factor: float) -> FloatArray:
    """A copy of `mean`, (I, n_tuples), finite, Σ_i max |mean_i| · largest_factor ≤ 1."""
    g = np.array(mean, dtype=np.float64, order="C")
    if g.ndim != 2 or g.shape[1] == 0:
        raise InvalidInputError(f"the constraints' mean has shape {g.shape}; expected (n_constraints, n_tuples)")
    if not np.isfinite(g).all():
        i, j = np.unravel_index(int(np.argmin(np.isfinite(g))), g.shape)
        raise InvalidInputError(f"the mean of constraint {i} is {g[i, j]} at tuple {j}; every entry must be finite")
    total = np.abs(g).max(axis=1).sum() * largest_factor
    if total > 1 + BOUND_TOLERANCE:
        raise InvalidInputError(
            f"the constraints can reach {total:.6g} in sum (each at its largest entry, noise included); "
            f"at most 1 is allowed: divide the means and the budgets by {total:.6g}"
        )
    return g
