"""Follow the leader: plan on averages as if they were the truth. No optimism, no caution: a point of reference.

In every episode t:
1. Count the trajectory; add f^t and g^t to the sums.
2. If the number of episodes grew by the share `growth` since the last plan: play the answer of the hindsight LP for the
   frequencies P̂ (uniform for a pair never visited), the average loss and the average constraints. If P̂ cannot meet the
   budgets, play the policy that comes nearest to it.

It never tries what looked bad once, and an adversary that alternates keeps it one step behind: regret may grow like T.

Feedback: full information. Needs to know: the space and the budgets.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tightrope.errors import InfeasibleError
from tightrope.learners.base import Episode
from tightrope.learners.carrying import sums_of
from tightrope.learners.needs import most_slack_policy
from tightrope.learners.parameters import NOT_NEGATIVE, carried, parameter
from tightrope.learners.shared.counting import CountingLearner
from tightrope.model import LayeredMDP, Policy
from tightrope.planning.hindsight import solve_cmdp
from tightrope.space import FloatArray


class FollowTheLeader(CountingLearner):
    """Plans on averages as if they were the truth, without optimism: a point of reference.

    Parameters
    ----------
    space, budgets : what is known beforehand.
    episodes : T; it changes nothing.
    growth : plan anew when the number of episodes grew by this share; 0 plans after every episode, an LP each.
    """

    name = "follow-the-leader"
    plans = False
    reference = "none"

    growth: float = parameter(NOT_NEGATIVE, default=0.01)
    total_loss: FloatArray = carried()
    total_constraints: FloatArray = carried()
    multipliers: FloatArray = carried()
    policy: Policy = carried()
    _planned_at: int = carried()

    def __post_init__(self) -> None:
        super().__post_init__()
        self.total_loss = np.zeros(self.space.n_tuples)
        self.total_constraints = np.zeros((len(self.budgets), self.space.n_tuples))
        self.policy = Policy.uniform(self.space)
        self._planned_at = 0

    def observe(self, episode: Episode) -> None:
        """Lines 1 and 2."""
        path, f, g = self._read(episode)
        t = self.observed + 1
        counts = self._counted(path)
        total_loss, total_constraints = self.total_loss + f, self.total_constraints + g
        changes: dict[str, Any] = {}
        if t >= (1 + self.growth) * self._planned_at:
            P_hat = LayeredMDP.from_occupancy(self.space, counts.laws_so_far[1])
            policy, multipliers = _leader(P_hat, total_loss / t, total_constraints / t, self.budgets)
            changes = {"policy": policy, "multipliers": multipliers, "_planned_at": t}
        self._learn(counts=counts, total_loss=total_loss, total_constraints=total_constraints, **changes)

    def bounds(self) -> dict[str, tuple[ArrayLike, ArrayLike]]:
        totals = sums_of(self.observed, least=-1)
        return super().bounds() | {
            "total_loss": totals,
            "total_constraints": totals,
            "multipliers": (0, np.inf),
            "_planned_at": (0, self.observed),
        }


def _leader(mdp: LayeredMDP, f: FloatArray, g: FloatArray, c: FloatArray) -> tuple[Policy, FloatArray]:
    """The best policy for the model and its multipliers; without one within the budgets, the nearest to them."""
    try:
        answer = solve_cmdp(mdp, f, g, c)
    except InfeasibleError:
        return most_slack_policy(mdp, g, c), np.zeros(len(c))
    return answer.policy, answer.multipliers
