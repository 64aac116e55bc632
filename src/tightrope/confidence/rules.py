"""Confidence rules: which set the counts make."""

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tightrope.arguments.arrays import floats
from tightrope.arithmetic import log
from tightrope.confidence.anytime import KLBounds, KLBoundsL1, KLRadius, KLRadiusL1
from tightrope.confidence.counts import checked_counts, frequencies
from tightrope.confidence.levels import check_episodes, check_level
from tightrope.confidence.sets import Box, ConfidenceSet, L1Ball
from tightrope.model import LayeredMDP
from tightrope.space import FloatArray, LayeredSpace


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
        check_episodes(self.episodes)
        check_level(self.level, self.scale)

    def __call__(self, space: LayeredSpace, N: NDArray[np.int64], M: NDArray[np.int64]) -> L1Ball:
        N, M = checked_counts(space, N, M)
        log_term = log((self.episodes + 1) * space.n_states * space.n_actions / self.level)
        with np.errstate(over="ignore"):  # a scale of 1e308 is one that leaves all free
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
        check_episodes(self.episodes)
        check_level(self.level, self.scale)

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
    """The set is one point, the true model: the setting of known dynamics."""

    transitions: FloatArray = field(repr=False)

    def __post_init__(self) -> None:
        floats(self.transitions, "transitions", ("n_tuples",))

    def __call__(self, space: LayeredSpace, N: NDArray[np.int64], M: NDArray[np.int64]) -> L1Ball:
        return L1Ball(center=LayeredMDP(space, self.transitions).transitions, radius=np.zeros(space.n_pairs))


#: Confidence rules by name; each is made from those of (episodes, level, scale, laws) that it has.
CONFIDENCE_RULES: dict[str, type[Any]] = {
    "paper": PaperRadius,
    "kl": KLRadius,
    "kl-l1": KLRadiusL1,
    "kl-box": KLBounds,
    "kl-l1-box": KLBoundsL1,
}

#: Every rule of ours: what a checkpoint may hold.
RULE_TYPES: tuple[type, ...] = (BernsteinBox, KnownModel, *CONFIDENCE_RULES.values())
