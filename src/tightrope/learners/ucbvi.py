"""UCBVI-BF: upper confidence bound value iteration, Bernstein-Freedman bonus (Azar, Osband & Munos 2017, Algorithm 4).

In every episode t, with N(s,a) and N(s') visits so far, H = L steps and ι = log(5|S||A|HT/δ):
1. P̂ and ℓ̂ are the frequencies and the average losses so far, V = 0 at the last state.
2. From the last layer to the first, at every pair that was visited: Q(s,a) = max{Q of the episode before, 0, ℓ̂(s,a) +
   Σ_s' P̂(s'|s,a) V(s') − b(s,a)}, V(s) = min_a Q(s,a), with the bonus
   b = sqrt(8 ι Var_P̂(V)/N) + 14 H ι/(3N) + sqrt(8 Σ_s' P̂(s') min{100² H³|S|²|A| ι²/N(s'), H²}/N) + sqrt(ι/(2N)).
3. Play the action with the least Q(s,a); Q is 0 at first and at pairs never visited.

Feedback: bandit. Needs to know: the space and the number of episodes T. Budgets are not looked at. Made for losses
whose mean does not change.
Where we depart from the publication: it knows the rewards, here losses ℓ = (f + 1)/2 are averages of what was met, and
the last term of b (Hoeffding) is for them; values are held against the steps that are left rather than H (Q >= 0); the
steps into the last state, where nothing follows, have that last term only.
"""

import numpy as np
from numpy.typing import ArrayLike

from tightrope.confidence import Counts
from tightrope.learners.base import COUNTS, BanditEpisode, LearnerBase, require_confidence
from tightrope.learners.kernels.bonus_values import bonus_values
from tightrope.planning.extended_values import deterministic
from tightrope.space import FloatArray, IntArray, LayeredSpace


class UCBVI(LearnerBase):
    """Value iteration with a bonus for the unseen: stochastic losses, unknown dynamics, no budgets.

    Parameters
    ----------
    space, budgets : what is known beforehand; the budgets are not looked at.
    episodes : T, the number of episodes that the parameters are set for.
    level : δ, the probability that some value may not be optimistic.
    radius_scale : multiplies the bonus; 1 is the published one.
    """

    name = "ucbvi"
    reference = "Azar, Osband, Munos: Minimax regret bounds for reinforcement learning (ICML 2017)"
    feedback = "bandit"
    carries = ("observed", *COUNTS, "total_loss", "values", "policy")

    def __init__(
        self,
        space: LayeredSpace,
        budgets: ArrayLike,
        *,
        episodes: int,
        level: float = 0.01,
        radius_scale: float = 1.0,
    ) -> None:
        super().__init__(space, budgets, episodes=episodes)
        require_confidence(level, radius_scale)
        self.level = level
        self.radius_scale = radius_scale
        H, S, A = space.n_layers, space.n_states, space.n_actions
        self._iota = float(np.log(5 * S * A * H * episodes / level))
        self._rare = 100.0**2 * H**3 * S**2 * A * self._iota**2
        self.counts = Counts(space)
        self.total_loss = np.zeros(space.n_pairs)
        self.values = np.zeros(space.n_pairs)  #: Q
        self._pair_of_tuple = space.expand_to_tuples(np.arange(space.n_pairs))
        self.policy = deterministic(space, self._plan(self.values, self.total_loss))

    def observe(self, episode: BanditEpisode) -> None:
        """Count, then lines 1 to 3 for the next episode."""
        path, losses, _ = self._bandit(episode)
        total_loss, values = self.total_loss.copy(), self.values.copy()
        total_loss[self._pair_of_tuple[path]] += (losses + 1) / 2

        self.counts.add(path)
        try:
            policy = deterministic(self.space, self._plan(values, total_loss))
        except BaseException:  # an interrupt, too, must not leave half an episode behind
            self.counts.add(path, times=-1)
            raise

        self.counts.start_epoch()
        self.policy, self.values, self.total_loss = policy, values, total_loss
        self.observed += 1

    def _plan(self, values: FloatArray, total_loss: FloatArray) -> IntArray:
        """Lines 1 to 3: the best pair of every state; writes `values`."""
        space = self.space
        V, best = np.empty(space.n_states), np.empty(space.n_states - 1, dtype=np.int64)
        N, M = self.counts.totals()
        bonus_values(space.csr, N, M, total_loss, self._iota, self._rare, self.radius_scale, values, V, best)
        return best

    def _restored(self) -> None:
        """Nothing more to do."""

    @property
    def epoch(self) -> int:
        """One for every episode: it plans anew after each."""
        return self.counts.epoch

    @property
    def settings(self) -> dict[str, float | str]:
        return super().settings | {"level": self.level, "radius_scale": self.radius_scale}
