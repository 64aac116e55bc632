"""UCBVI-BF: upper confidence bound value iteration, Bernstein-Freedman bonus (Azar, Osband & Munos 2017, Algorithm 4).

In every episode t, with N(s,a) and N(s') visits so far, H = L steps and ι = log(5|S||A|HT/δ):
1. P̂ and ℓ̂ are the frequencies and the average losses so far, V = 0 at the last state.
2. From the last layer to the first, at every pair that was visited: Q(s,a) = max{Q of the episode before, 0, ℓ̂(s,a) +
   Σ_s' P̂(s'|s,a) V(s') − b(s,a)}, V(s) = min_a Q(s,a), with the bonus
   b = sqrt(8 ι Var_P̂(V)/N) + 14 H ι/(3N) + sqrt(8 Σ_s' P̂(s') min{100² H³|S|²|A| ι²/N(s'), H²}/N) + sqrt(ι/(2N)).
3. Play the action with the least Q(s,a); Q is 0 at first and at pairs never visited.

Feedback: bandit. Needs to know: the space and the number of episodes T. Budgets are ignored. Made for losses
whose mean does not change.
Where we depart from the publication: it knows the rewards, here losses ℓ = (f + 1)/2 are estimated by averages, for
which the last term of b (Hoeffding) is added; values are clipped at the number of remaining steps rather than H (Q >=
0); steps into the last state have that last term only.
"""

import numpy as np

from tightrope import core
from tightrope.arithmetic import log
from tightrope.confidence import Counts
from tightrope.learners.base import Offer, Seen
from tightrope.learners.parameters import NOT_NEGATIVE, PROBABILITY, parameter
from tightrope.learners.shared.counting import CountingLearner, CountingState
from tightrope.model import Policy
from tightrope.planning.dynamic_programming import deterministic
from tightrope.space import FloatArray
from tightrope.storage.state import numbers, part, state


@state
class UCBVIState(CountingState):
    """The state of UCBVI between two episodes."""

    total_loss: FloatArray = numbers(least=-1e-3)  #: (n_pairs,)
    values: FloatArray = numbers()  #: (n_pairs,) Q
    policy: Policy = part()


class UCBVI(CountingLearner[UCBVIState]):
    """Value iteration with a bonus for the unseen: stochastic losses, unknown dynamics, no budgets.

    It plans after every episode, so every episode is an epoch.

    Parameters
    ----------
    space, budgets : the space and the budgets, which have no effect.
    episodes : T, the number of episodes that the parameters are set for.
    level : δ, the probability that some value may not be optimistic.
    radius_scale : multiplies the bonus; 1 is the published one.
    """

    name = "ucbvi"
    reference = "Azar, Osband, Munos: Minimax regret bounds for reinforcement learning (ICML 2017)"
    constants = "declared departure"
    feedback = "bandit"

    level: float = parameter(PROBABILITY, default=0.01)
    radius_scale: float = parameter(NOT_NEGATIVE, default=1.0)

    def configure(self) -> None:
        H, S, A = self.space.n_layers, self.space.n_states, self.space.n_actions
        self._iota = log(5 * S * A * H * self.episodes / self.level)
        self._rare = 100.0**2 * H**3 * S**2 * A * self._iota**2

    def initial(self) -> UCBVIState:
        counts, zeros = Counts(self.space, self.ties), np.zeros(self.space.n_pairs)
        values, policy = self._plan(counts, zeros, zeros)
        return UCBVIState(counts=counts, total_loss=zeros, values=values, policy=policy)

    def offer(self, state: UCBVIState) -> Offer:
        return Offer(state.policy, np.zeros(len(self.budgets)), state.counts.epoch)

    def step(self, state: UCBVIState, seen: Seen) -> UCBVIState:
        """Return the next state: count, then lines 1 to 3 for the next episode."""
        total_loss = state.total_loss.copy()
        total_loss[self.space.pair_of_tuple[seen.path]] += (seen.loss + 1) / 2
        counts = state.counts.after(seen.path)[0].next_epoch()
        values, policy = self._plan(counts, total_loss, state.values)
        return UCBVIState(
            observed=state.observed + 1, counts=counts, total_loss=total_loss, values=values, policy=policy
        )

    def _plan(self, counts: Counts, total_loss: FloatArray, before: FloatArray) -> tuple[FloatArray, Policy]:
        """Return Q, given that of the last episode, and the policy that minimises it (lines 1 to 3)."""
        Q, best = core.bonus_values(
            self.space.native, counts.N, *counts.laws, total_loss, self._iota, self._rare, self.radius_scale, before
        )
        return Q, deterministic(self.space, best)
