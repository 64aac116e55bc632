"""Rules whose sets hold at all times at once, and so need no horizon and may be renewed at any time.

They share one argument (`core/anytime.hpp`): with probability at least 1 − ζ every pair has, after every visit,

    KL(P̂‖p) <= r = ( log(1/δ) + log ML(M) − log KT(M) ) / N,      δ = ζ / laws,

where laws is the number of pairs with more than one successor, or of different laws among them if that is known. Only
declared successors count. A pair without visits, or with one successor, is left free: there is nothing to bound.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tightrope import core
from tightrope.arguments import whole
from tightrope.arithmetic import log
from tightrope.confidence.counts import checked_counts, frequencies
from tightrope.confidence.levels import check_level
from tightrope.confidence.sets import Box, KLBall, L1Ball
from tightrope.space import FloatArray, LayeredSpace

#: The KL radius from which on a ball is no longer worth its price: 1 − 1/e of p may then be where nothing was seen.
WIDE = 1.0


@dataclass(frozen=True, kw_only=True)
class Anytime:
    """What the rules have in common."""

    level: float  #: ζ
    scale: float = 1.0  #: multiplies every r; 1 is what holds
    laws: int | None = None  #: among how many laws ζ is shared; None: the pairs with more than one successor

    def __post_init__(self) -> None:
        check_level(self.level, self.scale)
        if self.laws is not None:
            whole(self.laws, "laws", 1)

    def _log_inverse(self, space: LayeredSpace) -> float:
        """log(1/δ)."""
        laws = np.count_nonzero(space.successors_per_pair > 1) if self.laws is None else self.laws
        return log(max(laws, 1) / self.level)

    def _radii(self, space: LayeredSpace, N: NDArray[np.int64], M: NDArray[np.int64]) -> FloatArray:
        """(n_pairs,) r, times scale."""
        N, M = checked_counts(space, N, M)
        radius: FloatArray = core.kl_radii(space.native, N, M, self._log_inverse(space), self.scale)
        return radius


@dataclass(frozen=True, kw_only=True)
class KLRadius(Anytime):
    """The KL ball of radius r itself; from r = 1 on it bounds little, and the pair is left free."""

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
    """An interval for every successor by itself, which happens or does not: r of two outcomes, δ shared among them."""

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
