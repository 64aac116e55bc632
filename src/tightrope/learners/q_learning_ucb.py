"""Q-learning with upper confidence bounds, Hoeffding bonus (Jin, Allen-Zhu, Bubeck & Jordan 2018, Algorithm 1).

With losses ℓ = (f + 1)/2 and H = L steps; at first Q(s,a) = 0 everywhere. In every episode:
1. Play the action with the least Q(s,a).
2. At every pair (s,a) of the path, now visited k times, with the state s' that it led to and V of before the episode:
   Q(s,a) ← (1 − α_k) Q(s,a) + α_k (ℓ + V(s') − b_k), α_k = (H + 1)/(H + k), b_k = c √(H³ ι / k).
3. V(s) = max{0, min_a Q(s,a)}, 0 at the last state.

Nothing is counted but visits and no model is kept. Regret is of order √(H⁴ S A T) for T = H K steps.

The publication has ι = log(SAT/p) and c "an absolute constant". Here c = 1 and ι = log(2SAT/p), which its proof allows:
the targets ℓ + V(s') lie in an interval of length H and Σ_i (α_k^i)² <= 2H/k, so that by Azuma and Hoeffding their
weighted mean is off by at most √(H² (2H/k) log(2SAT/p) / 2) = b_k; this holds for losses that are random, too.

Feedback: bandit. Needs to know: the space and the number of episodes K. Budgets are not looked at. Made for losses
whose mean does not change.
What the layered form changes: a pair belongs to one step, so Q_h(s,a) is Q(s,a) and SAT is the number of pairs times K.
Rewards are 1 − ℓ, and values are held against the steps that are left rather than H, which is Q >= 0 of losses.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope.arithmetic import log
from tightrope.learners.base import BanditEpisode, LearnerBase, sums_of
from tightrope.learners.parameters import NOT_NEGATIVE, PROBABILITY, carried, parameter
from tightrope.planning.policies import greedy, least_values
from tightrope.space import FloatArray


class QLearningUCB(LearnerBase):
    """Q-learning with a bonus for what was tried seldom: stochastic losses, no model, no budgets.

    Parameters
    ----------
    space, budgets : what is known beforehand; the budgets are not looked at.
    episodes : K, the number of episodes that the bonus is set for.
    level : p, the probability that some value may not be optimistic.
    radius_scale : c, which multiplies the bonus; with 1 the proof holds.
    """

    name = "q-learning-ucb"
    reference = "Jin, Allen-Zhu, Bubeck, Jordan: Is Q-learning provably efficient? (NeurIPS 2018)"
    constants = "balanced by us"
    feedback = "bandit"
    learns_from = "any"

    level: float = parameter(PROBABILITY, default=0.01)
    radius_scale: float = parameter(NOT_NEGATIVE, default=1.0)
    visits: NDArray[np.int64] = carried()
    values: FloatArray = carried()  #: Q

    def __post_init__(self) -> None:
        super().__post_init__()
        iota = log(2 * self.space.n_pairs * self.episodes / self.level)
        self._first_bonus = self.radius_scale * float(np.sqrt(self.space.n_layers**3 * iota))
        self.visits = np.zeros(self.space.n_pairs, dtype=np.int64)
        self.values = np.zeros(self.space.n_pairs)
        self._restored()

    def observe(self, episode: BanditEpisode) -> None:
        """Line 2, and line 1 for the next episode."""
        path, losses, _ = self._read(episode)
        space, visits, Q, H = self.space, self.visits.copy(), self.values.copy(), self.space.n_layers
        V, pairs = np.maximum(least_values(space, Q), 0.0), space.pair_of_tuple[path]
        visits[pairs] += 1
        k = visits[pairs]
        rate, bonus = (H + 1) / (H + k), self._first_bonus / np.sqrt(k)
        target = (losses + 1) / 2 + V[space.csr.successor[path]] - bonus
        Q[pairs] = (1 - rate) * Q[pairs] + rate * target
        self._learn(visits=visits, values=Q, policy=greedy(space, Q))

    def bounds(self) -> dict[str, tuple[ArrayLike, ArrayLike]]:
        least, most = sums_of(self.space.n_layers)
        return super().bounds() | {"visits": (0, self.observed), "values": (least - self._first_bonus, most)}

    def _restored(self) -> None:
        self.policy = greedy(self.space, self.values)
