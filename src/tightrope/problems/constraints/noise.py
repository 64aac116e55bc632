"""Constraints that are drawn: the g^t are independent and have one distribution.

Each distribution here has exactly the given mean, and `largest_factor`, the largest entry of a draw as a multiple of
the largest entry of the mean. Assumption 2 requires Σ_i max |g_i^t| ≤ 1 in every episode; a mean with which a draw
could exceed this is refused.
"""

from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from tightrope.arguments import number
from tightrope.arguments.arrays import floats
from tightrope.errors import InvalidInputError
from tightrope.space import FloatArray
from tightrope.units import BOUND_TOLERANCE


@runtime_checkable
class Constraints(Protocol):
    """The distribution of the constraint functions of an episode."""

    @property
    def mean(self) -> FloatArray:
        """(I, n_tuples) g_i, the expectation of g_i^t."""
        ...

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """Return g^t, (I, n_tuples), for one episode; callers do not write to it."""
        ...


class Noise:
    """A distribution around `mean`; no entry of a constraint exceeds `largest_factor` times its largest mean."""

    name: ClassVar[str]

    def __init__(self, mean: ArrayLike, largest_factor: float) -> None:
        self.mean = checked_mean(mean, largest_factor)
        self.largest_factor = largest_factor

    def __repr__(self) -> str:
        options = {name: value for name, value in vars(self).items() if isinstance(value, float)}
        options.pop("largest_factor")
        shown = "".join(f", {name}={value}" for name, value in options.items())
        return f"{type(self).__name__}({len(self.mean)} constraints{shown})"


class Deterministic(Noise):
    """The mean itself in every episode."""

    name = "none"

    def __init__(self, mean: ArrayLike) -> None:
        super().__init__(mean, largest_factor=1.0)

    def sample(self, rng: np.random.Generator) -> FloatArray:
        return self.mean


class ScaledNoise(Noise):
    """Each constraint times a uniform number around 1, the same for the whole episode.

    g_i^t = ξ_i^t · mean_i, with ξ_i^t uniform on [1 − spread, 1 + spread], independent over i and t.
    """

    name = "scaled"

    def __init__(self, mean: ArrayLike, *, spread: float = 0.25) -> None:
        self.spread = number(spread, "spread", 0, 1)
        super().__init__(mean, largest_factor=1 + self.spread)

    def sample(self, rng: np.random.Generator) -> FloatArray:
        xi = rng.uniform(1 - self.spread, 1 + self.spread, size=(len(self.mean), 1))
        return xi * self.mean


class CorrelatedNoise(Noise):
    """Like scaled noise, with correlated constraints.

    With probability `correlation` all ξ_i^t of an episode are the same uniform number, else they are independent. Each
    is uniform on [1 − spread, 1 + spread], and the correlation of any two is `correlation`.
    """

    name = "correlated"

    def __init__(self, mean: ArrayLike, *, spread: float = 0.25, correlation: float = 0.8) -> None:
        self.spread = number(spread, "spread", 0, 1)
        self.correlation = number(correlation, "correlation", 0, 1)
        super().__init__(mean, largest_factor=1 + self.spread)

    def sample(self, rng: np.random.Generator) -> FloatArray:
        xi = rng.uniform(1 - self.spread, 1 + self.spread, size=(len(self.mean), 1))
        if rng.random() < self.correlation:
            xi[1:] = xi[:1]
        return xi * self.mean


class BetaNoise(Noise):
    """Each constraint times a skewed random number: mostly below the mean, occasionally far above it.

    g_i^t = height · β_i^t · mean_i, with β_i^t ~ Beta(concentration / height, concentration (1 − 1 / height)), whose
    mean is 1 / height; independent over i and t. As the concentration falls, draws approach either 0 or the height.
    """

    name = "beta"

    def __init__(self, mean: ArrayLike, *, height: float = 3.0, concentration: float = 3.0) -> None:
        self.height = number(height, "height", 1.1, 100)
        self.concentration = number(concentration, "concentration", 0.01, 1e6)
        super().__init__(mean, largest_factor=self.height)

    def sample(self, rng: np.random.Generator) -> FloatArray:
        a = self.concentration / self.height
        beta = rng.beta(a, self.concentration - a, size=(len(self.mean), 1))
        return (self.height * beta) * self.mean


class Bernoulli(Noise):
    """Zero or a large cost at every tuple: rare large costs instead of frequent small ones.

    With h_i = height · max |mean_i|, g_i^t(s,a,s') is h_i times the sign of the mean with probability
    |mean_i(s,a,s')| / h_i and else 0, independent over constraints, tuples and episodes.
    """

    name = "bernoulli"

    def __init__(self, mean: ArrayLike, *, height: float = 2.0) -> None:
        self.height = number(height, "height", 1, 100)
        super().__init__(mean, largest_factor=self.height)
        h = self.height * np.abs(self.mean).max(axis=1, keepdims=True, initial=0.0)
        self._all = np.sign(self.mean) * h
        self._chance = np.abs(self.mean) / np.where(h > 0, h, 1.0)

    def sample(self, rng: np.random.Generator) -> FloatArray:
        hit = rng.random(self.mean.shape) < self._chance
        g: FloatArray = hit * self._all
        return g


class Replay(Noise):
    """A recorded table, (K, I, n_tuples): each episode has one of its K rows, drawn with equal probability.

    The mean is the average of the rows. Rows are in the units of the learner, with Σ_i max |g_i| ≤ 1 in each.
    """

    name = "replay"

    def __init__(self, table: ArrayLike) -> None:
        rows = checked_rows(table)
        super().__init__(rows.mean(axis=0), largest_factor=1.0)
        self.table = rows

    def sample(self, rng: np.random.Generator) -> FloatArray:
        g: FloatArray = self.table[rng.integers(len(self.table))]
        return g


def replay(mean: ArrayLike, *, table: ArrayLike) -> Replay:
    """A recorded table, (n_records, I, n_tuples), instead of the problem's own constraints."""
    return Replay(table)


def checked_mean(mean: ArrayLike, largest_factor: float) -> FloatArray:
    """Return a copy of `mean`, (I, n_tuples), after checking that Σ_i max |mean_i| · largest_factor ≤ 1."""
    g = floats(mean, "the constraints' mean", ("n_constraints", "n_tuples")).copy()
    if g.shape[1] == 0:
        raise InvalidInputError(f"the constraints' mean has shape {g.shape}; expected (n_constraints, n_tuples)")
    if not np.isfinite(g).all():
        i, j = np.unravel_index(int(np.argmin(np.isfinite(g))), g.shape)
        raise InvalidInputError(f"the mean of constraint {i} is {g[i, j]} at tuple {j}; every entry must be finite")
    total = np.abs(g).max(axis=1).sum() * largest_factor
    if total > 1 + BOUND_TOLERANCE:
        raise InvalidInputError(
            f"the largest entries of the constraints, noise included, sum to {total:.6g}; "
            f"at most 1 is allowed: divide the means and the budgets by {total:.6g}"
        )
    return g


def checked_rows(table: ArrayLike) -> FloatArray:
    """Return a copy of `table`, (K, I, n_tuples), after checking that it has rows, each within Assumption 2."""
    rows = floats(table, "the table of constraints", ("n_records", "n_constraints", "n_tuples")).copy()
    if len(rows) == 0:
        raise InvalidInputError("the table of constraints has no records; at least one is needed")
    for k, row in enumerate(rows):
        try:
            checked_mean(row, largest_factor=1.0)
        except InvalidInputError as error:
            raise InvalidInputError(f"record {k} of the constraints: {error}") from error
    return rows
