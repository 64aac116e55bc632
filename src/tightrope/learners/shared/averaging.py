"""What learners of stochastic costs have in common: visits counted, costs averaged, with bandit feedback.

The publications have costs in [0, 1] that depend on the pair (s,a), here losses and constraints lie in [-1, 1] and may
depend on where the step leads. So f and g enter as (f + 1)/2 and (g + 1)/2, budgets as (c + L)/2, and what is averaged
over the visits of a pair is an estimate of its mean Σ_s' P(s'|s,a) (f(s,a,s') + 1)/2. Multipliers are the same in both
units; the slack of a policy is half of what it is outside. A pair belongs to one step of an episode, so the published
SAH is n_pairs and S²AH is n_tuples.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope.confidence import Counts
from tightrope.learners.base import BanditEpisode
from tightrope.learners.carrying import sums_of
from tightrope.learners.parameters import carried
from tightrope.learners.shared.counting import CountingLearner
from tightrope.space import FloatArray


class Estimates(NamedTuple):
    """What is known of each pair after its visits, and of its law after those of all pairs that are tied to it."""

    visits: NDArray[np.int64]  # (n_pairs,)
    N: NDArray[np.int64]  # (n_pairs,) of all that share its law
    M: NDArray[np.int64]  # (n_tuples,)
    costs: FloatArray  # (1 + I, n_pairs) averages: of the loss, then of each constraint; 0 without visits


class Sums(NamedTuple):
    """What was counted and added up."""

    counts: Counts
    cost_sum: FloatArray  # (1 + I, n_pairs) of what was met at each pair: the loss, then each constraint

    def estimates(self) -> Estimates:
        """The averages so far."""
        visits, _ = self.counts.totals()
        return Estimates(visits, *self.counts.laws_so_far, self.cost_sum / np.maximum(1, visits))


class AveragingLearner(CountingLearner):
    """Counts, and sums of what was met at each pair. Its `observe` begins with `_sums_after`."""

    feedback = "bandit"

    cost_sum: FloatArray = carried()

    def __post_init__(self) -> None:
        super().__post_init__()
        self.cost_sum = np.zeros((1 + len(self.budgets), self.space.n_pairs))
        self.alpha = (self.budgets + self.space.n_layers) / 2  #: (I,) the budgets for constraints in [0, 1]

    @property
    def sums(self) -> Sums:
        """Those so far."""
        return Sums(self.counts, self.cost_sum)

    def _sums_after(self, episode: BanditEpisode) -> Sums:
        """Those with one more episode; a new epoch begins where one ends."""
        return self._sums_with(*self._read(episode))

    def _sums_with(self, path: NDArray[np.int64], losses: FloatArray, g: FloatArray) -> Sums:
        """The same, of an episode that was read."""
        cost_sum = self.cost_sum.copy()
        cost_sum[:, self.space.pair_of_tuple[path]] += (np.vstack([losses, g]) + 1) / 2
        return Sums(self._counted(path), cost_sum)

    def bounds(self) -> dict[str, tuple[ArrayLike, ArrayLike]]:
        return super().bounds() | {"cost_sum": sums_of(self.counts.totals()[0])}
