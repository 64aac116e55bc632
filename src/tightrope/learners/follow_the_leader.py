"""Follow the leader: plan on averages as if they were the truth. No optimism, no caution: a point of reference.

In every episode t:
1. Count the trajectory; add f^t and g^t to the sums.
2. If the number of episodes grew by the share `growth` since the last plan: play the answer of the hindsight LP for the
   frequencies P̂ (uniform for a pair never visited), the average loss and the average constraints. If P̂ cannot meet the
   budgets, play the policy that comes nearest to it.

It never tries what looked bad once, and an adversary that alternates keeps it one step behind: regret may grow like T.

Feedback: full information. Needs to know: the space and the budgets.
"""

import numpy as np
from numpy.typing import ArrayLike

from tightrope.confidence import Counts
from tightrope.errors import InfeasibleError
from tightrope.learners.base import COUNTS, Episode, LearnerBase, require_not_negative
from tightrope.learners.needs import most_slack_policy
from tightrope.model import LayeredMDP, Policy
from tightrope.planning.hindsight import solve_cmdp
from tightrope.space import FloatArray, LayeredSpace


class FollowTheLeader(LearnerBase):
    """Plans on averages as if they were the truth, without optimism: a point of reference.

    Parameters
    ----------
    space, budgets : what is known beforehand.
    episodes : T; it changes nothing.
    growth : plan anew when the number of episodes grew by this share; 0 plans after every episode, an LP each.
    """

    name = "follow-the-leader"
    reference = "none"
    carries = ("observed", *COUNTS, "total_loss", "total_constraints", "multipliers", "policy", "_planned_at")

    def __init__(self, space: LayeredSpace, budgets: ArrayLike, *, episodes: int, growth: float = 0.01) -> None:
        super().__init__(space, budgets, episodes=episodes)
        require_not_negative(growth=growth)
        self.growth = growth
        self.counts = Counts(space)
        self.total_loss = np.zeros(space.n_tuples)
        self.total_constraints = np.zeros((len(self.budgets), space.n_tuples))
        self._planned_at = 0
        self.policy = Policy.uniform(space)

    def observe(self, episode: Episode) -> None:
        """Lines 1 and 2."""
        path, f, g = self._full(episode)
        t = self.observed + 1
        total_loss, total_constraints = self.total_loss + f, self.total_constraints + g
        if t >= (1 + self.growth) * self._planned_at:
            visits = self.counts.totals()[1]
            visits[path] += 1
            P_hat = LayeredMDP.from_occupancy(self.space, visits)
            self.policy, self.multipliers = _leader(P_hat, total_loss / t, total_constraints / t, self.budgets)
            self._planned_at = t
        self.counts.add(path)
        if self.counts.epoch_is_over(path):
            self.counts.start_epoch()
        self.total_loss, self.total_constraints = total_loss, total_constraints
        self.observed = t

    def _restored(self) -> None:
        """Nothing more to do."""

    @property
    def epoch(self) -> int:
        """How often some pair's count doubled, as UCPD counts epochs."""
        return self.counts.epoch

    @property
    def settings(self) -> dict[str, float | str]:
        return super().settings | {"growth": self.growth}


def _leader(mdp: LayeredMDP, f: FloatArray, g: FloatArray, c: FloatArray) -> tuple[Policy, FloatArray]:
    """The best policy for the model and its multipliers; without one within the budgets, the nearest to them."""
    try:
        answer = solve_cmdp(mdp, f, g, c)
    except InfeasibleError:
        return most_slack_policy(mdp, g, c), np.zeros(len(c))
    return answer.policy, answer.multipliers
