"""Q-learning with upper confidence bounds, Hoeffding bonus (Jin, Allen-Zhu, Bubeck & Jordan 2018, Algorithm 1).

With losses ℓ = (f + 1)/2 and H = L steps; at first Q(s,a) = 0 everywhere. In every episode:
1. Play the action with the least Q(s,a).
2. At every pair (s,a) of the path, now visited k times, with the next state s' and V from before the episode:
   Q(s,a) ← (1 − α_k) Q(s,a) + α_k (ℓ + V(s') − b_k), α_k = (H + 1)/(H + k), b_k = c √(H³ ι / k).
3. V(s) = max{0, min_a Q(s,a)}, 0 at the last state.

It keeps the number of visits, but no model. Regret is of order √(H⁴ S A T) for T = H K steps.

The publication has ι = log(SAT/p) and c "an absolute constant". Here c = 1 and ι = log(2SAT/p), which its proof allows:
the targets ℓ + V(s') lie in an interval of length H and Σ_i (α_k^i)² <= 2H/k, so that by Azuma and Hoeffding their
weighted mean is off by at most √(H² (2H/k) log(2SAT/p) / 2) = b_k; this holds for losses that are random, too.

Feedback: bandit. Needs to know: the space and the number of episodes K. Budgets are ignored. Made for losses
whose mean does not change.
What the layered form changes: a pair belongs to one step, so Q_h(s,a) is Q(s,a) and SAT is the number of pairs times K.
Rewards are 1 − ℓ, and values are clipped at the number of remaining steps rather than H, which for losses is Q >= 0.
"""

import numpy as np
from numpy.typing import NDArray

from tightrope.arithmetic import log
from tightrope.learners.base import LearnerBase, Offer, Seen
from tightrope.learners.parameters import NOT_NEGATIVE, PROBABILITY, parameter
from tightrope.planning.dynamic_programming import greedy, least_values
from tightrope.space import FloatArray
from tightrope.storage.state import State, numbers, state


@state
class QLearningState(State):
    """The state of Q-learning."""

    visits: NDArray[np.int64] = numbers(least=0)  #: (n_pairs,)
    values: FloatArray = numbers()  #: (n_pairs,) Q


class QLearningUCB(LearnerBase[QLearningState]):
    """Q-learning with a bonus for rarely visited pairs: stochastic losses, no model, no budgets.

    Parameters
    ----------
    space, budgets : the space and the budgets, which have no effect.
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

    def configure(self) -> None:
        iota = log(2 * self.space.n_pairs * self.episodes / self.level)
        self._first_bonus = self.radius_scale * float(np.sqrt(self.space.n_layers**3 * iota))

    def initial(self) -> QLearningState:
        n = self.space.n_pairs
        return QLearningState(visits=np.zeros(n, dtype=np.int64), values=np.zeros(n))

    def offer(self, state: QLearningState) -> Offer:
        """Return the next policy (line 1)."""
        return Offer(greedy(self.space, state.values), np.zeros(len(self.budgets)))

    def step(self, state: QLearningState, seen: Seen) -> QLearningState:
        """Return the next state (line 2)."""
        path, losses, _, _ = seen
        space, visits, Q, H = self.space, state.visits.copy(), state.values.copy(), self.space.n_layers
        V, pairs = np.maximum(least_values(space, Q), 0.0), space.pair_of_tuple[path]
        visits[pairs] += 1
        k = visits[pairs]
        rate, bonus = (H + 1) / (H + k), self._first_bonus / np.sqrt(k)
        target = (losses + 1) / 2 + V[space.csr.successor[path]] - bonus
        Q[pairs] = (1 - rate) * Q[pairs] + rate * target
        return QLearningState(observed=state.observed + 1, visits=visits, values=Q)
