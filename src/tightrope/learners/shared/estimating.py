"""What learners of stochastic costs have in common: visits counted, costs averaged, with bandit feedback.

The publications have costs in [0, 1] that depend on the pair (s,a), here losses and constraints lie in [-1, 1] and may
depend on where the step leads. So f and g enter as (f + 1)/2 and (g + 1)/2, budgets as (c + L)/2, and what is averaged
over the visits of a pair is an estimate of its mean Σ_s' P(s'|s,a) (f(s,a,s') + 1)/2. Multipliers are the same in both
units; the slack of a policy is half of what it is outside. A pair belongs to one step of an episode, so the published
SAH is n_pairs and S²AH is n_tuples. Of δ a third each is for losses, constraints and transitions: 6/δ = 2 · 3/δ.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope.confidence import Counts
from tightrope.learners.base import COUNTS, BanditEpisode, LearnerBase, require, require_confidence
from tightrope.planning.extended_lp import Box
from tightrope.space import FloatArray, LayeredSpace


class Estimates(NamedTuple):
    """What is known of each pair after its visits."""

    N: NDArray[np.int64]  # (n_pairs,)
    M: NDArray[np.int64]  # (n_tuples,)
    costs: FloatArray  # (1 + I, n_pairs) averages: of the loss, then of each constraint; 0 without visits


class EstimatingLearner(LearnerBase):
    """Counts, and sums of what was met at each pair.

    Its `observe` does its work inside `_counting`, and there assigns only once nothing can go wrong any more.
    """

    feedback = "bandit"
    carries: ClassVar[tuple[str, ...]] = ("observed", *COUNTS, "cost_sum")

    def __init__(
        self, space: LayeredSpace, budgets: ArrayLike, *, episodes: int, level: float, radius_scale: float
    ) -> None:
        super().__init__(space, budgets, episodes=episodes)
        require_confidence(level, radius_scale)
        self.level, self.radius_scale = level, radius_scale
        self.counts = Counts(space)
        self.cost_sum = np.zeros((1 + len(self.budgets), space.n_pairs))
        self.alpha = (self.budgets + space.n_layers) / 2  #: (I,) the budgets for constraints in [0, 1]
        self._pair_of_tuple = space.expand_to_tuples(np.arange(space.n_pairs))

    @contextmanager
    def _counting(self, episode: BanditEpisode) -> Iterator[None]:
        """Count the episode, undone if what follows fails."""
        path, losses, g = self._bandit(episode)
        counts, before = self.counts, self.cost_sum
        self.cost_sum = before.copy()
        self.cost_sum[:, self._pair_of_tuple[path]] += (np.vstack([losses, g]) + 1) / 2
        counts.add(path)
        try:
            yield
        except BaseException:
            counts.add(path, times=-1)
            self.cost_sum = before
            raise
        if counts.epoch_is_over(path):
            counts.start_epoch()
        self.observed += 1

    def _estimates(self) -> Estimates:
        """The averages so far."""
        N, M = self.counts.totals()
        return Estimates(N, M, self.cost_sum / np.maximum(1, N))

    def _cost_radius(self, N: NDArray[np.int64]) -> FloatArray:
        """β^c(s,a) = √(2 log(6 SAH max(1, I) K / δ) / max(1, N)) (Hoeffding), times the scale."""
        log_term = np.log(6 * self.space.n_pairs * max(1, len(self.budgets)) * self.episodes / self.level)
        radius: FloatArray = self.radius_scale * np.sqrt(2 * log_term / np.maximum(1, N))
        return radius

    def _box(self, estimates: Estimates) -> Box:
        """P̂ ± β^p with log(6 S²AH K / δ) (empirical Bernstein), β^p times the scale."""
        log_term = float(np.log(6 * self.space.n_tuples * self.episodes / self.level))
        return Box.of_counts(self.space, estimates.N, estimates.M, log_term, self.radius_scale)

    @property
    def epoch(self) -> int:
        """How often some pair's count doubled, as UCPD counts epochs."""
        return self.counts.epoch

    @property
    def settings(self) -> dict[str, float | str]:
        return super().settings | {"level": self.level, "radius_scale": self.radius_scale}


def largest_multiplier(space: LayeredSpace, slack: float) -> float:
    """ρ = L / γ >= Σ_i λ*_i, γ = slack / 2 the Slater constant for constraints in [0, 1]; 0 without budgets."""
    require(slack > 0, f"slack is {slack:.6g}; a policy strictly within the budgets is needed (Slater's condition)")
    return 2 * space.n_layers / slack
