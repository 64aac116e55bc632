"""What the learner knows of the dynamics: counts, epochs, and confidence sets around the counted frequencies.

A confidence set is what may be true of every pair (s,a); how the projection works with one is in `projection/sets.py`.
A confidence *rule* makes a set out of counts, once per epoch.
"""

from copy import copy
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope.errors import InvalidInputError
from tightrope.kernels import counting
from tightrope.kernels.balls import are_balls
from tightrope.model import SUM_TOLERANCE, LayeredMDP, flat
from tightrope.space import FloatArray, LayeredSpace
from tightrope.ties import Ties


class ConfidenceSet(Protocol):
    """A set of conditionals for every pair. To project on sets of a new kind, see `projection/sets.py`."""

    def free(self, space: LayeredSpace) -> NDArray[np.bool_]:
        """(n_pairs,) which pairs may have any conditional at all; these are solved for together."""

    def check(self, space: LayeredSpace) -> None:
        """Refuse a space that the set does not fit."""

    def violation(self, space: LayeredSpace, theta: FloatArray) -> float:
        """The most by which a conditional of `theta` leaves the set, over the pairs with mass."""


class L1Ball:
    """‖p(·|s,a) − center(·|s,a)‖₁ <= radius(s,a). A radius of 2 or more, or inf, leaves the pair free."""

    def __init__(self, center: ArrayLike, radius: ArrayLike) -> None:
        self.center = np.require(np.asarray(center, dtype=np.float64), requirements=["C", "W"])
        self.radius = np.require(np.asarray(radius, dtype=np.float64), requirements=["C", "W"])

    def free(self, space: LayeredSpace) -> NDArray[np.bool_]:
        return self.radius >= 2

    def check(self, space: LayeredSpace) -> None:
        flat(self.center, space.n_tuples, "center")
        if self.radius.shape != (space.n_pairs,):
            raise InvalidInputError(f"radius has shape {self.radius.shape}; expected ({space.n_pairs},)")
        if are_balls(space.csr.pair_ptr, self.center, self.radius, SUM_TOLERANCE):
            return
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


class Box:
    """lower <= p(s'|s,a) <= upper; given a ball, whose center must be within the bounds, p lies in that too."""

    def __init__(self, lower: ArrayLike, upper: ArrayLike, ball: L1Ball | None = None) -> None:
        self.lower = np.require(np.asarray(lower, dtype=np.float64), requirements=["C", "W"])
        self.upper = np.require(np.asarray(upper, dtype=np.float64), requirements=["C", "W"])
        self.ball = ball

    def free(self, space: LayeredSpace) -> NDArray[np.bool_]:
        anything = np.logical_and.reduceat((self.lower <= 0) & (self.upper >= 1), space.csr.pair_ptr[:-1])
        return anything if self.ball is None else anything & self.ball.free(space)

    def check(self, space: LayeredSpace) -> None:
        lower, upper = flat(self.lower, space.n_tuples, "lower"), flat(self.upper, space.n_tuples, "upper")
        wrong = [((lower < 0) | (lower > upper), "lower is {:.12g} and upper {:.12g}; expected 0 <= lower <= upper")]
        if self.ball is not None:
            self.ball.check(space)
            center = np.where(space.expand_to_tuples(self.ball.radius < 2), self.ball.center, lower)
            wrong.append(((center < lower) | (center > upper), "the ball's center is outside {:.12g}..{:.12g}"))
        for bad, words in wrong:
            if bad.any():
                j = int(np.argmax(bad))
                s, a, s_next = space.tuples[j]
                raise InvalidInputError(f"tuple ({s}, {a}, {s_next}): {words.format(lower[j], upper[j])}")
        least, most = space.sum_over_successors(lower), space.sum_over_successors(upper)
        empty = (least > 1 + SUM_TOLERANCE) | (most < 1 - SUM_TOLERANCE)
        if empty.any():
            i = int(np.argmax(empty))
            s, a = space.pairs[i]
            sums = f"{least[i]:.12g} and {most[i]:.12g}"
            raise InvalidInputError(f"state {s}, action {a}: no distribution is within the bounds, which sum to {sums}")

    def violation(self, space: LayeredSpace, theta: FloatArray) -> float:
        p = LayeredMDP.from_occupancy(space, theta).transitions
        visited = space.expand_to_tuples(space.sum_over_successors(theta) > 0)
        outside = np.max(np.maximum(self.lower - p, p - self.upper), initial=0.0, where=visited)
        return float(outside) if self.ball is None else max(float(outside), self.ball.violation(space, theta))


class Counts:
    """How often each pair and tuple was visited: before the epoch (N, M) and inside it (n, m; 32 bits are enough).

    Counts do not change: one more episode, or a new epoch, makes new ones.
    """

    def __init__(self, space: LayeredSpace, ties: Ties | None = None, growth: float = 1.0) -> None:
        self.space = space
        self.ties = ties  #: pairs that share one law: the rule of epochs is about laws
        self.growth = growth  #: an epoch ends when some count has grown by this share
        self.N = np.zeros(space.n_pairs, dtype=np.int64)
        self.M = np.zeros(space.n_tuples, dtype=np.int64)
        self.epoch = 1
        self._begin_epoch()

    def _begin_epoch(self) -> None:
        self.n = np.zeros(self.space.n_pairs, dtype=np.int32)
        self.m = np.zeros(self.space.n_tuples, dtype=np.int32)
        self._count_laws()

    def _count_laws(self) -> None:
        """What follows from the counts of pairs: those of laws, before the epoch and inside it."""
        if self.ties is not None:
            self._law_N, self._law_n = self.ties.visits(self.N), self.ties.visits(self.n)

    def after(self, path: NDArray[np.int64]) -> "tuple[Counts, bool]":
        """These counts and one more episode, given the tuple of each of its steps; and whether that ends the epoch.

        It does when some pair (or law) was visited as often inside the epoch as before it, and once: n >= max(1, N),
        or growth · N in place of N; and when an epoch has counted a pair 2³¹ − 1 times.
        """
        counts, pair_ptr = copy(self), self.space.csr.pair_ptr
        counts.n, counts.m = np.empty_like(self.n), np.empty_like(self.m)
        over: bool = counting.count(pair_ptr, path, self.N, self.n, self.m, self.growth, counts.n, counts.m)
        if self.ties is not None:
            counts._law_n = self._law_n.copy()
            over = counting.count_laws(pair_ptr, path, self.ties.law, self._law_N, self.growth, counts._law_n)
        return counts, over

    def next_epoch(self) -> "Counts":
        """The counts of the epoch folded in."""
        counts = copy(self)
        counts.N, counts.M = self.totals()
        counts.epoch = self.epoch + 1
        counts._begin_epoch()
        return counts

    def totals(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Visits of every pair and every tuple so far, the epoch included."""
        return self.N + self.n, self.M + self.m

    @property
    def laws(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Visits of every pair and every tuple, and of all that are tied to it, before the epoch."""
        return (self.N, self.M) if self.ties is None else self.ties.pooled(self.N, self.M)

    @property
    def laws_so_far(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The same, the epoch included."""
        return self.totals() if self.ties is None else self.ties.pooled(*self.totals())

    def state(self) -> dict[str, Any]:
        """All of it."""
        return {"N": self.N, "M": self.M, "n": self.n, "m": self.m, "epoch": self.epoch}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `state` gave; counts that no path can have left are refused."""
        for visits, moves in (("N", "M"), ("n", "m")):
            added_up = np.add.reduceat(state[moves], self.space.csr.pair_ptr[:-1])
            if (state[moves] < 0).any() or not np.array_equal(added_up, state[visits]):
                raise InvalidInputError(f"the counts {visits} and {moves} contradict each other")
        if state["epoch"] < 1:
            raise InvalidInputError(f"the epoch is {state['epoch']}; the first is 1")
        vars(self).update(state)
        self._count_laws()


def frequencies(space: LayeredSpace, N: NDArray[np.int64], M: NDArray[np.int64]) -> FloatArray:
    """(n_tuples,) P̂(s'|s,a) = M(s,a,s') / max(1, N(s,a)): zeros for a pair without visits."""
    P_hat = np.empty(space.n_tuples)
    counting.frequencies(space.csr.pair_ptr, N, M, P_hat)
    return P_hat


class ConfidenceRule(Protocol):
    """Makes a confidence set out of the visits of every pair (N) and every tuple (M), which it does not keep."""

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
        _check_rule(self.episodes, self.level, self.scale)

    def __call__(self, space: LayeredSpace, N: NDArray[np.int64], M: NDArray[np.int64]) -> L1Ball:
        log_term = np.log((self.episodes + 1) * space.n_states * space.n_actions / self.level)
        radius = self.scale * np.sqrt(2 * space.next_layer_size * log_term / np.maximum(1, N))
        radius[N == 0] = np.inf
        return L1Ball(center=frequencies(space, N, M), radius=radius)


@dataclass(frozen=True, kw_only=True)
class BernsteinBox:
    """A box around the counted frequencies P̂, narrow where P̂ is small (Jin et al. 2020, eq. 5):

        |p(s') − P̂(s')| <= 2 sqrt( P̂(s') log(T|S||A|/δ) / max(1, N(s,a)−1) ) + 14 log(T|S||A|/δ) / (3 max(1, N(s,a)−1)),

    with the true model in every box of every epoch with probability at least 1 − 4δ. An unvisited pair is left free.
    """

    episodes: int  #: T
    level: float  #: δ
    scale: float = 1.0  #: multiplies every radius; 1 is the paper's

    def __post_init__(self) -> None:
        _check_rule(self.episodes, self.level, self.scale)

    def __call__(self, space: LayeredSpace, N: NDArray[np.int64], M: NDArray[np.int64]) -> Box:
        P_hat = frequencies(space, N, M)
        log_term = np.log(self.episodes * space.n_states * space.n_actions / self.level)
        share = space.expand_to_tuples(log_term / np.maximum(1, N - 1))
        radius = self.scale * (2 * np.sqrt(P_hat * share) + 14 / 3 * share)
        radius[space.expand_to_tuples(N == 0)] = 1.0
        return Box(lower=np.maximum(0.0, P_hat - radius), upper=np.minimum(1.0, P_hat + radius))


@dataclass(frozen=True, kw_only=True, eq=False)
class KnownModel:
    """The set is one point, the true model: the setting of known dynamics."""

    transitions: FloatArray = field(repr=False)

    def __call__(self, space: LayeredSpace, N: NDArray[np.int64], M: NDArray[np.int64]) -> L1Ball:
        return L1Ball(center=LayeredMDP(space, self.transitions).transitions, radius=np.zeros(space.n_pairs))


#: Confidence rules by name; each is made from (episodes, level, scale).
CONFIDENCE_RULES: dict[str, type[PaperRadius]] = {"paper": PaperRadius}

#: Every rule of ours: what a checkpoint may hold.
RULE_TYPES: tuple[type, ...] = (PaperRadius, BernsteinBox, KnownModel)


def _check_rule(episodes: int, level: float, scale: float) -> None:
    for holds, otherwise in (
        (episodes >= 1, f"episodes is {episodes}; at least one is needed"),
        (0 < level < 1, f"level is {level}; it is a probability strictly between 0 and 1"),
        (0 <= scale < np.inf, f"scale is {scale}; it must be finite and not negative"),
    ):
        if not holds:
            raise InvalidInputError(otherwise)
