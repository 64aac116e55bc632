"""Confidence rules: functions from counts to a confidence set.

The rules of Jin et al. and of the paper hold for a given horizon. Those derived from `Anytime` hold at all times at
once, so they need no horizon, and a set may be renewed at any time. They share one argument (`core/anytime.hpp`): with
probability at least 1 − ζ every pair satisfies, after every visit,

    KL(P̂‖p) <= r = ( log(1/δ) + log ML(M) − log KT(M) ) / N,      δ = ζ / laws,

where laws is the number of pairs with more than one successor, or the number of different distributions among them if
that is known. Only declared successors count. A pair without visits, or with one successor, is unconstrained.

`KLPointwise` holds for one question about one pair, not at all times; it needs no horizon either.
"""

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tightrope import core
from tightrope.arguments import EXTREME, real, shown, whole
from tightrope.arguments.arrays import floats
from tightrope.arithmetic import log
from tightrope.confidence.counts import checked_counts, frequencies
from tightrope.confidence.sets import Box, ConfidenceSet, KLBall, L1Ball
from tightrope.errors import InvalidInputError
from tightrope.model import LayeredMDP
from tightrope.space import FloatArray, LayeredSpace


def check_episodes(episodes: int) -> None:
    """Raise `InvalidInputError` unless `episodes` is a positive whole number."""
    whole(episodes, "episodes", 1)


def check_level(level: float, scale: float) -> None:
    """Raise `InvalidInputError` unless `level` is a probability and `scale` a finite factor of at least 0."""
    zeta, factor = real(level), real(scale)
    if zeta is None or not 1 / EXTREME <= zeta < 1:
        raise InvalidInputError(f"level is {shown(level)}; it is a probability of at least {1 / EXTREME:g} and below 1")
    if factor is None or not 0 <= factor <= EXTREME:
        raise InvalidInputError(f"scale is {shown(scale)}; it must not be negative, and at most {EXTREME:g}")


class ConfidenceRule(Protocol):
    """A function from the visits of every pair (N) and tuple (M) to a confidence set; it does not keep the arrays."""

    def __call__(self, space: LayeredSpace, N: NDArray[np.int64], M: NDArray[np.int64]) -> ConfidenceSet: ...


@dataclass(frozen=True, kw_only=True)
class Planned:
    """The parameters of rules that hold for a given number of episodes."""

    episodes: int  #: T
    level: float  #: the probability that the true model may leave a set: ζ, δ
    scale: float = 1.0  #: multiplies every radius; 1 is the published one

    def __post_init__(self) -> None:
        check_episodes(self.episodes)
        check_level(self.level, self.scale)


@dataclass(frozen=True, kw_only=True)
class PaperRadius(Planned):
    """The paper's L1 ball around the counted frequencies, eq. (confidence-interval):

        ε(s,a) = sqrt( 2 |S_{k(s)+1}| log((T+1)|S||A|/ζ) / max(1, N(s,a)) ),

    with the true model in every ball of every epoch with probability at least 1 − ζ. An unvisited pair has no
    frequencies and is left free, as the ball of radius > 1 around 0 would.

    >>> visits, moves = np.array([4, 3, 1]), np.array([3, 1, 3, 1])  # of the pairs and tuples of a small space
    >>> PaperRadius(episodes=100, level=0.05)(LayeredSpace.dense([1, 2, 1], 1), visits, moves).radius.round(2).tolist()
    [3.0, 2.45, 4.24]
    """

    def __call__(self, space: LayeredSpace, N: NDArray[np.int64], M: NDArray[np.int64]) -> L1Ball:
        N, M = checked_counts(space, N, M)
        log_term = log((self.episodes + 1) * space.n_states * space.n_actions / self.level)
        with np.errstate(over="ignore"):  # a scale of 1e308 leaves all pairs free
            radius = self.scale * np.sqrt(2 * space.next_layer_size * log_term / np.maximum(1, N))
        radius[N == 0] = np.inf
        return L1Ball(center=frequencies(space, N, M), radius=radius)


@dataclass(frozen=True, kw_only=True)
class BernsteinBox(Planned):
    """A box around the counted frequencies P̂, narrow where P̂ is small (Jin et al. 2020, equation 5):

        |p(s') − P̂(s')| <= 2 sqrt( P̂(s') log(T|S||A|/δ) / max(1, N(s,a)−1) ) + 14 log(T|S||A|/δ) / (3 max(1, N(s,a)−1)),

    with the true model in every box of every epoch with probability at least 1 − 4δ. An unvisited pair is left free.

    >>> visits, moves = np.array([4000, 3000, 1000]), np.array([3000, 1000, 3000, 1000])
    >>> box = BernsteinBox(episodes=100, level=0.05)(LayeredSpace.dense([1, 2, 1], 1), visits, moves)
    >>> box.lower.round(2).tolist(), box.upper.round(2).tolist()
    ([0.66, 0.19, 0.88, 0.77], [0.84, 0.31, 1.0, 1.0])
    """

    def __call__(self, space: LayeredSpace, N: NDArray[np.int64], M: NDArray[np.int64]) -> Box:
        N, M = checked_counts(space, N, M)
        P_hat = frequencies(space, N, M)
        log_term = log(self.episodes * space.n_states * space.n_actions / self.level)
        share = space.expand_to_tuples(log_term / np.maximum(1, N - 1))
        with np.errstate(over="ignore"):
            radius = self.scale * (2 * np.sqrt(P_hat * share) + 14 / 3 * share)
        radius[space.expand_to_tuples(N == 0)] = 1.0
        return Box(lower=np.maximum(0.0, P_hat - radius), upper=np.minimum(1.0, P_hat + radius))


@dataclass(frozen=True, kw_only=True, eq=False)
class KnownModel:
    """The set that contains the true model only: known dynamics.

    Parameters
    ----------
    transitions : (n_tuples,) the true transition probabilities.

    Examples
    --------
    >>> space = LayeredSpace.dense([1, 2, 1], 1)
    >>> known = KnownModel(transitions=np.array([0.9, 0.1, 1.0, 1.0]))
    >>> known(space, np.zeros(3, dtype=int), np.zeros(4, dtype=int)).radius.tolist()
    [0.0, 0.0, 0.0]
    """

    transitions: FloatArray = field(repr=False)

    def __post_init__(self) -> None:
        floats(self.transitions, "transitions", ("n_tuples",))

    def __call__(self, space: LayeredSpace, N: NDArray[np.int64], M: NDArray[np.int64]) -> L1Ball:
        return L1Ball(center=LayeredMDP(space, self.transitions).transitions, radius=np.zeros(space.n_pairs))


#: From this KL radius on a pair is left free: up to 1 − 1/e of p could be at successors that were never seen.
WIDE = 1.0


@dataclass(frozen=True, kw_only=True)
class Anytime:
    """The level, the scale and the radii that all anytime rules share."""

    level: float  #: ζ
    scale: float = 1.0  #: multiplies every r; 1 is what holds
    laws: int | None = (
        None  #: the number of distributions that share ζ; None: the number of pairs with more than one successor
    )

    def __post_init__(self) -> None:
        check_level(self.level, self.scale)
        if self.laws is not None:
            whole(self.laws, "laws", 1)

    def _log_inverse(self, space: LayeredSpace) -> float:
        """The logarithm log(1/δ)."""
        laws = np.count_nonzero(space.successors_per_pair > 1) if self.laws is None else self.laws
        return log(max(laws, 1) / self.level)

    def _radii(self, space: LayeredSpace, N: NDArray[np.int64], M: NDArray[np.int64]) -> FloatArray:
        """(n_pairs,) r, times scale."""
        N, M = checked_counts(space, N, M)
        radius: FloatArray = core.kl_radii(space.native, N, M, self._log_inverse(space), self.scale)
        return radius


@dataclass(frozen=True, kw_only=True)
class KLRadius(Anytime):
    """The KL ball of radius r. From r = 1 on it restricts little, and the pair is left free."""

    def __call__(self, space: LayeredSpace, N: NDArray[np.int64], M: NDArray[np.int64]) -> KLBall:
        radius = self._radii(space, N, M)
        return KLBall(center=frequencies(space, N, M), radius=np.where(radius < WIDE, radius, np.inf))


@dataclass(frozen=True, kw_only=True)
class KLRadiusL1(Anytime):
    """The L1 ball of radius sqrt(2 r), which contains the KL ball (Pinsker)."""

    def __call__(self, space: LayeredSpace, N: NDArray[np.int64], M: NDArray[np.int64]) -> L1Ball:
        return L1Ball(center=frequencies(space, N, M), radius=np.sqrt(2 * self._radii(space, N, M)))


@dataclass(frozen=True, kw_only=True)
class KLBounds(Anytime):
    """An interval for every successor, from the KL ball of its indicator (two outcomes); the successors share δ."""

    def __call__(self, space: LayeredSpace, N: NDArray[np.int64], M: NDArray[np.int64]) -> Box:
        N, M = checked_counts(space, N, M)
        return Box(*core.kl_bounds(space.native, N, M, self._log_inverse(space), self.scale))


@dataclass(frozen=True, kw_only=True)
class KLBoundsL1(Anytime):
    """The intervals of `KLBounds` and the L1 ball of `KLRadiusL1`, at half the level each."""

    def __call__(self, space: LayeredSpace, N: NDArray[np.int64], M: NDArray[np.int64]) -> Box:
        box = KLBounds(level=self.level / 2, scale=self.scale, laws=self.laws)(space, N, M)
        ball = KLRadiusL1(level=self.level / 2, scale=self.scale, laws=self.laws)(space, N, M)
        return Box(box.lower, box.upper, ball)


@dataclass(frozen=True, kw_only=True)
class KLPointwise:
    """The KL ball of radius log(1/ζ) / N, for one question at a time.

    For two successors, after a given number of visits, the law lies within each end of the ball with probability at
    least 1 − ζ (Chernoff): about √(2 log(1/ζ)) standard errors. It does not hold for all functions of the successor,
    pairs and times at once, as `KLRadius` does, and is many times smaller. A pair without visits is left free.

    >>> visits, moves = np.array([400, 300, 100]), np.array([300, 100, 300, 100])
    >>> KLPointwise(level=0.35)(LayeredSpace.dense([1, 2, 1], 1), visits, moves).radius.round(4).tolist()
    [0.0026, inf, inf]
    """

    level: float  #: ζ
    scale: float = 1.0  #: multiplies every radius

    def __post_init__(self) -> None:
        check_level(self.level, self.scale)

    def __call__(self, space: LayeredSpace, N: NDArray[np.int64], M: NDArray[np.int64]) -> KLBall:
        N, M = checked_counts(space, N, M)
        radius = self.scale * log(1 / self.level) / np.maximum(1, N)
        free = (N == 0) | (space.successors_per_pair == 1) | (radius >= WIDE)
        return KLBall(center=frequencies(space, N, M), radius=np.where(free, np.inf, radius))


#: Confidence rules by name. Each takes a subset of the arguments (episodes, level, scale, laws).
CONFIDENCE_RULES: dict[str, type[Any]] = {
    "paper": PaperRadius,
    "kl": KLRadius,
    "kl-l1": KLRadiusL1,
    "kl-box": KLBounds,
    "kl-l1-box": KLBoundsL1,
    "kl-pointwise": KLPointwise,
}

#: Every rule of this package: those that a checkpoint may contain.
RULE_TYPES: tuple[type, ...] = (BernsteinBox, KnownModel, *CONFIDENCE_RULES.values())
