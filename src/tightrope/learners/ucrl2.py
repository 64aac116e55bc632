"""UCRL2 in its episodic layered form (Jaksch, Ortner & Auer 2010, Figure 1).

In every epoch, which begins after t − 1 steps in all, with N(s,a) visits so far and losses ℓ in [0, 1]:
1. P̂ and ℓ̂ are the frequencies and the average losses so far. Plausible are all models and mean losses with
   ‖P(·|s,a) − P̂(·|s,a)‖₁ <= sqrt(14 |S_{k(s)+1}| log(2|S||A|t/δ) / max(1, N(s,a))),
   |ℓ(s,a) − ℓ̂(s,a)| <= sqrt(7 log(2|S||A|t/δ) / (2 max(1, N(s,a)))).
2. Play the policy that is the best for the plausible model that allows the least loss, in every episode of the epoch:
   one pass of extended value iteration, with the least plausible losses.
3. The epoch ends with the episode in which some pair's count inside the epoch reaches its count before it (and 1).

Feedback: bandit. Needs to know: the space. Budgets are ignored. Made for losses whose mean does not change.
Where we depart from the publication: it has rewards and an endless, communicating process, so its value iteration runs
until it converges and its epochs may end at any step; its radius has |S| and log(2|A|t/δ), where layers need only
|S_{k+1}| and log(2|S||A|t/δ) for the same δ; losses here are ℓ = (f + 1)/2; the loss of a step may depend on the next
state, and ℓ(s,a) is its mean.
"""

import numpy as np

from tightrope.arithmetic import log
from tightrope.confidence import Counts, L1Ball, frequencies
from tightrope.learners.base import Offer, Seen
from tightrope.learners.parameters import NOT_NEGATIVE, PROBABILITY, parameter
from tightrope.learners.shared.counting import CountingLearner, CountingState
from tightrope.model import Policy
from tightrope.planning.dynamic_programming import optimistic_policy
from tightrope.space import FloatArray
from tightrope.storage.state import numbers, part, state


@state
class UCRL2State(CountingState):
    """The state of UCRL2 between two episodes."""

    total_loss: FloatArray = numbers(least=-1e-3)  #: (n_pairs,)
    policy: Policy = part()


class UCRL2(CountingLearner[UCRL2State]):
    """Optimistic planning in epochs: stochastic losses, unknown dynamics, no budgets.

    Parameters
    ----------
    space, budgets : the space and the budgets, which have no effect.
    episodes : T; it has no effect.
    level : δ, the probability that the model or a mean loss may leave its confidence set.
    radius_scale : multiplies both confidence radii; 1 is the published one.
    """

    name = "ucrl2"
    reference = "Jaksch, Ortner, Auer: Near-optimal regret bounds for reinforcement learning (JMLR 2010)"
    constants = "declared departure"
    feedback = "bandit"

    level: float = parameter(PROBABILITY, default=0.01)
    radius_scale: float = parameter(NOT_NEGATIVE, default=1.0)

    def configure(self) -> None:
        self._width = self.space.next_layer_size

    def initial(self) -> UCRL2State:
        counts, zeros = Counts(self.space, self.ties), np.zeros(self.space.n_pairs)
        return UCRL2State(counts=counts, total_loss=zeros, policy=self._plan(counts, zeros, 1))

    def offer(self, state: UCRL2State) -> Offer:
        return Offer(state.policy, np.zeros(len(self.budgets)), state.counts.epoch)

    def step(self, state: UCRL2State, seen: Seen) -> UCRL2State:
        """Return the next state (line 3, then lines 1 and 2 if that ended the epoch)."""
        t, total_loss, policy = state.observed + 1, state.total_loss.copy(), state.policy
        total_loss[self.space.pair_of_tuple[seen.path]] += (seen.loss + 1) / 2
        counts = state.counts.counted(seen.path)
        if counts.epoch != state.counts.epoch:
            policy = self._plan(counts, total_loss, t * self.space.n_layers + 1)
        return UCRL2State(observed=t, counts=counts, total_loss=total_loss, policy=policy)

    def plausible(self, counts: Counts, total_loss: FloatArray, t: int) -> tuple[L1Ball, FloatArray]:
        """Return the ball of models, and the least plausible loss of every pair (line 1); 0 for an unvisited pair."""
        space, (N, M) = self.space, counts.laws
        log_term = log(2 * space.n_states * space.n_actions * t / self.level)
        eps = self.radius_scale * np.sqrt(14 * self._width * log_term / np.maximum(1, N))
        visits, seen = np.maximum(1, counts.N), counts.N > 0
        eps_loss = self.radius_scale * np.sqrt(7 * log_term / (2 * visits))
        least = np.where(seen, np.maximum(0.0, total_loss / visits - eps_loss), 0.0)
        return L1Ball(center=frequencies(space, N, M), radius=np.where(N > 0, eps, np.inf)), least

    def _plan(self, counts: Counts, total_loss: FloatArray, t: int) -> Policy:
        """Return the plan of lines 1 and 2."""
        ball, least = self.plausible(counts, total_loss, t)
        return optimistic_policy(self.space, ball, self.space.expand_to_tuples(least))
