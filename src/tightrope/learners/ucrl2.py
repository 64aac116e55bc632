"""UCRL2 in its episodic layered form (Jaksch, Ortner & Auer 2010, Figure 1).

In every epoch, which begins after t − 1 steps in all, with N(s,a) visits so far and losses ℓ in [0, 1]:
1. P̂ and ℓ̂ are the frequencies and the average losses so far. Plausible are all models and mean losses with
   ‖P(·|s,a) − P̂(·|s,a)‖₁ <= sqrt(14 |S_{k(s)+1}| log(2|S||A|t/δ) / max(1, N(s,a))),
   |ℓ(s,a) − ℓ̂(s,a)| <= sqrt(7 log(2|S||A|t/δ) / (2 max(1, N(s,a)))).
2. Play the policy that is the best for the plausible model that allows the least loss, in every episode of the epoch:
   one pass of extended value iteration, with the least plausible losses.
3. The epoch ends with the episode in which some pair's count inside the epoch reaches its count before it (and 1).

Feedback: bandit. Needs to know: the space. Budgets are not looked at. Made for losses whose mean does not change.
Where we depart from the publication: it has rewards and an endless, communicating process, so its value iteration runs
until it converges and its epochs end at once, not with an episode; it has |S| successors and log(2|A|t/δ) where layers
give |S_{k+1}| successors, and log(2|S||A|t/δ) then leaves the same probability δ; losses here are ℓ = (f + 1)/2; the
loss of a step may depend on the state it leads to, and ℓ(s,a) is its mean.
"""

import numpy as np
from numpy.typing import ArrayLike

from tightrope.arithmetic import log
from tightrope.confidence import Counts, L1Ball, frequencies
from tightrope.learners.base import BanditEpisode, sums_of
from tightrope.learners.parameters import NOT_NEGATIVE, PROBABILITY, carried, parameter
from tightrope.learners.shared.counting import CountingLearner
from tightrope.model import Policy
from tightrope.planning.extended_values import optimistic_policy
from tightrope.space import FloatArray


class UCRL2(CountingLearner):
    """Optimistic planning in epochs: stochastic losses, unknown dynamics, no budgets.

    Parameters
    ----------
    space, budgets : what is known beforehand; the budgets are not looked at.
    episodes : T; it changes nothing.
    level : δ, the probability that the model or a mean loss may leave its confidence set.
    radius_scale : multiplies both confidence radii; 1 is the published one.
    """

    name = "ucrl2"
    reference = "Jaksch, Ortner, Auer: Near-optimal regret bounds for reinforcement learning (JMLR 2010)"
    constants = "declared departure"
    feedback = "bandit"

    level: float = parameter(PROBABILITY, default=0.01)
    radius_scale: float = parameter(NOT_NEGATIVE, default=1.0)
    total_loss: FloatArray = carried()
    policy: Policy = carried()

    def __post_init__(self) -> None:
        super().__post_init__()
        self.total_loss = np.zeros(self.space.n_pairs)
        self._width = self.space.next_layer_size
        self.policy = self._plan(self.counts, self.total_loss, 1)

    def observe(self, episode: BanditEpisode) -> None:
        """Line 3, then lines 1 and 2 if that ended the epoch."""
        path, losses, _ = self._read(episode)
        total_loss = self.total_loss.copy()
        total_loss[self.space.pair_of_tuple[path]] += (losses + 1) / 2
        counts, epoch_is_over = self.counts.after(path)
        policy = self.policy
        if epoch_is_over:
            counts = counts.next_epoch()
            policy = self._plan(counts, total_loss, (self.observed + 1) * self.space.n_layers + 1)
        self._learn(counts=counts, total_loss=total_loss, policy=policy)

    def plausible(self, counts: Counts, total_loss: FloatArray, t: int) -> tuple[L1Ball, FloatArray]:
        """Line 1: the ball of models, and the least plausible loss of every pair; all is, for one never visited."""
        space, (N, M) = self.space, counts.laws
        log_term = log(2 * space.n_states * space.n_actions * t / self.level)
        eps = self.radius_scale * np.sqrt(14 * self._width * log_term / np.maximum(1, N))
        visits, seen = np.maximum(1, counts.N), counts.N > 0
        eps_loss = self.radius_scale * np.sqrt(7 * log_term / (2 * visits))
        least = np.where(seen, np.maximum(0.0, total_loss / visits - eps_loss), 0.0)
        return L1Ball(center=frequencies(space, N, M), radius=np.where(N > 0, eps, np.inf)), least

    def _plan(self, counts: Counts, total_loss: FloatArray, t: int) -> Policy:
        """Lines 1 and 2."""
        ball, least = self.plausible(counts, total_loss, t)
        return optimistic_policy(self.space, ball, self.space.expand_to_tuples(least))

    def bounds(self) -> dict[str, tuple[ArrayLike, ArrayLike]]:
        return super().bounds() | {"total_loss": sums_of(self.counts.totals()[0])}
