"""What the learner knows of the dynamics: counts, epochs, and confidence sets around the counted frequencies.

A confidence set answers one question for every pair (s,a) (`kernels/sets.py`); the projection needs nothing else of
it. A confidence *rule* makes a set out of counts, once per epoch.
"""

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope.errors import InvalidInputError
from tightrope.kernels.paths import count_path, epoch_is_over
from tightrope.kernels.sets import L1Data
from tightrope.layout import Layout
from tightrope.model import SUM_TOLERANCE, LayeredMDP, flat
from tightrope.space import FloatArray, LayeredSpace


class ConfidenceSet(Protocol):
    """A set of conditionals for every pair."""

    def lay_out(self, layout: Layout) -> Any:
        """The set as a NamedTuple of arrays whose type has a kernel registered with `kernels.sets.answers`."""

    def check(self, space: LayeredSpace) -> None:
        """Refuse a space that the set does not fit."""

    def violation(self, space: LayeredSpace, theta: FloatArray) -> float:
        """The most by which a conditional of `theta` leaves the set, over the pairs with mass."""


class L1Ball:
    """‖p(·|s,a) − center(·|s,a)‖₁ <= radius(s,a). A radius of 2 or more, or inf, leaves the pair free."""

    def __init__(self, center: ArrayLike, radius: ArrayLike) -> None:
        self.center = np.require(np.asarray(center, dtype=np.float64), requirements=["C", "W"])
        self.radius = np.require(np.asarray(radius, dtype=np.float64), requirements=["C", "W"])

    def lay_out(self, layout: Layout) -> L1Data:
        return L1Data(layout.spread(self.center), np.where(self.radius < 2, self.radius, np.inf))

    def check(self, space: LayeredSpace) -> None:
        flat(self.center, space.n_tuples, "center")
        if self.radius.shape != (space.n_pairs,):
            raise InvalidInputError(f"radius has shape {self.radius.shape}; expected ({space.n_pairs},)")
        totals = space.sum_over_successors(self.center)
        smallest = np.minimum.reduceat(self.center, space.csr.pair_ptr[:-1])
        wrong = (np.abs(totals - 1) > SUM_TOLERANCE) | (smallest < 0)
        for bad, words in (
            (~(self.radius >= 0), "radius is {radius}; it must be 0 or more (inf leaves the pair free)"),
            (
                wrong & (self.radius < 2),
                "center is no distribution (sum {total:.12g}, smallest entry {smallest:.3g})",
            ),
        ):
            if bad.any():
                i = int(np.argmax(bad))
                s, a = space.pairs[i]
                what = words.format(radius=self.radius[i], total=totals[i], smallest=smallest[i])
                raise InvalidInputError(f"state {s}, action {a}: {what}")

    def violation(self, space: LayeredSpace, theta: FloatArray) -> float:
        p = LayeredMDP.from_occupancy(space, theta).transitions
        distance = space.sum_over_successors(np.abs(p - self.center))
        visited = space.sum_over_successors(theta) > 0
        return float(np.max(distance - self.radius, initial=0.0, where=visited & (self.radius < 2)))


class Counts:
    """How often each pair and tuple was visited: before the epoch (N, M) and inside it (n, m)."""

    def __init__(self, space: LayeredSpace) -> None:
        self.space = space
        self.N = np.zeros(space.n_pairs, dtype=np.int64)
        self.M = np.zeros(space.n_tuples, dtype=np.int64)
        self.n = np.zeros(space.n_pairs, dtype=np.int64)
        self.m = np.zeros(space.n_tuples, dtype=np.int64)
        self.epoch = 1
        self._pair_of_tuple = space.expand_to_tuples(np.arange(space.n_pairs, dtype=np.int32))

    def add(self, path: NDArray[np.int64], times: int = 1) -> None:
        """Count one episode, given the tuple index of each of its steps; times = -1 takes it back."""
        count_path(self._pair_of_tuple, path, times, self.n, self.m)

    def epoch_is_over(self, path: NDArray[np.int64]) -> bool:
        """Whether `path`, just counted, took some pair to n >= max(1, N): as often inside the epoch as before it."""
        over: bool = epoch_is_over(self._pair_of_tuple, path, self.N, self.n)
        return over

    def totals(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Visits of every pair and every tuple so far, the epoch included."""
        return self.N + self.n, self.M + self.m

    def start_epoch(self) -> None:
        """Fold the counts of the epoch in."""
        self.N, self.M = self.totals()
        self.n[:] = 0
        self.m[:] = 0
        self.epoch += 1


class ConfidenceRule(Protocol):
    """Makes a confidence set out of the visits of every pair (N) and every tuple (M)."""

    def __call__(self, space: LayeredSpace, N: NDArray[np.int64], M: NDArray[np.int64]) -> ConfidenceSet: ...


@dataclass(frozen=True, kw_only=True)
class PaperRadius:
    """The paper's L1 ball around the counted frequencies, eq. (confidence-interval):

        ε(s,a) = sqrt( 2 |S_{k(s)+1}| log((T+1)|S||A|/ζ) / max(1, N(s,a)) ),

    with the true model in every ball of every epoch with probability at least 1 − ζ. An unvisited pair has no
    frequencies and is left free, as the ball of radius > 1 around 0 would.
    """

    episodes: int  #: T
    level: float  #: ζ
    scale: float = 1.0  #: multiplies every radius; 1 is the paper's

    def __post_init__(self) -> None:
        for holds, otherwise in (
            (self.episodes >= 1, f"episodes is {self.episodes}; at least one is needed"),
            (0 < self.level < 1, f"level is {self.level}; ζ is a probability strictly between 0 and 1"),
            (0 <= self.scale < np.inf, f"scale is {self.scale}; it must be finite and not negative"),
        ):
            if not holds:
                raise InvalidInputError(otherwise)

    def __call__(self, space: LayeredSpace, N: NDArray[np.int64], M: NDArray[np.int64]) -> L1Ball:
        visits = np.maximum(1, N)
        width = np.asarray(space.layer_sizes)[space.layer_of_pair + 1]
        log_term = np.log((self.episodes + 1) * space.n_states * space.n_actions / self.level)
        radius = self.scale * np.sqrt(2 * width * log_term / visits)
        return L1Ball(center=M / space.expand_to_tuples(visits), radius=np.where(N > 0, radius, np.inf))


@dataclass(frozen=True, kw_only=True, eq=False)
class KnownModel:
    """The set is one point, the true model: the setting of known dynamics."""

    transitions: FloatArray = field(repr=False)

    def __call__(self, space: LayeredSpace, N: NDArray[np.int64], M: NDArray[np.int64]) -> L1Ball:
        return L1Ball(center=LayeredMDP(space, self.transitions).transitions, radius=np.zeros(space.n_pairs))


#: Confidence rules by name; each is made from (episodes, level, scale).
CONFIDENCE_RULES: dict[str, type[PaperRadius]] = {"paper": PaperRadius}
