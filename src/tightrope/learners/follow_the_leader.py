"""Follow the leader: plan on averages as if they were exact, without optimism or caution; a point of reference.

In every episode t:
1. Count the trajectory; add f^t and g^t to the sums.
2. If the number of episodes grew by the share `growth` since the last plan: play the solution of the hindsight LP for
the
   frequencies P̂ (uniform for a pair never visited), the average loss and the average constraints. If P̂ cannot meet the
   budgets, play the policy with the least excess.

It never returns to an action that looked bad once, and an alternating adversary keeps it one step behind: regret may
be linear in T.

Feedback: full information. Needs to know: the space and the budgets.
"""

import numpy as np

from tightrope.confidence import Counts
from tightrope.errors import InfeasibleError
from tightrope.learners.base import Offer, Seen
from tightrope.learners.needs import most_slack_policy
from tightrope.learners.parameters import NOT_NEGATIVE, parameter
from tightrope.learners.shared.counting import CountingLearner, CountingState
from tightrope.model import LayeredMDP, Policy
from tightrope.planning.hindsight import solve_cmdp
from tightrope.space import FloatArray
from tightrope.storage.state import numbers, part, state


@state
class LeaderState(CountingState):
    """The state of follow the leader."""

    total_loss: FloatArray = numbers()  #: (n_tuples,)
    total_constraints: FloatArray = numbers()  #: (I, n_tuples)
    policy: Policy = part()
    multipliers: FloatArray = numbers(least=0)  #: (I,) of the last linear program
    planned_at: int = numbers(least=0, written_as="_planned_at")  #: the episode of the last program


class FollowTheLeader(CountingLearner[LeaderState]):
    """Plans on averages as if they were exact, without optimism: a point of reference.

    Parameters
    ----------
    space, budgets : the space and (I,) the limits per episode.
    episodes : T; it has no effect.
    growth : solve an LP whenever the number of episodes has grown by this share; 0 solves one after every episode.
    """

    name = "follow-the-leader"
    plans = False
    reference = "none"

    growth: float = parameter(NOT_NEGATIVE, default=0.01)

    def configure(self) -> None:
        """Set no attributes: none depends on the parameters."""

    def initial(self) -> LeaderState:
        space, n = self.space, len(self.budgets)
        return LeaderState(
            counts=Counts(space, self.ties),
            total_loss=np.zeros(space.n_tuples),
            total_constraints=np.zeros((n, space.n_tuples)),
            policy=Policy.uniform(space),
            multipliers=np.zeros(n),
            planned_at=0,
        )

    def offer(self, state: LeaderState) -> Offer:
        return Offer(state.policy, state.multipliers, state.counts.epoch)

    def step(self, state: LeaderState, seen: Seen) -> LeaderState:
        """Return the next state (lines 1 and 2)."""
        t, counts = state.observed + 1, state.counts.counted(seen.path)
        f, g = state.total_loss + seen.loss, state.total_constraints + seen.constraints
        policy, multipliers, planned_at = state.policy, state.multipliers, state.planned_at
        if t >= (1 + self.growth) * planned_at:
            P_hat = LayeredMDP.from_occupancy(self.space, counts.laws_so_far[1])
            policy, multipliers = _leader(P_hat, f / t, g / t, self.budgets)
            planned_at = t
        return LeaderState(
            observed=t, counts=counts, total_loss=f, total_constraints=g,
            policy=policy, multipliers=multipliers, planned_at=planned_at,
        )  # fmt: skip


def _leader(mdp: LayeredMDP, f: FloatArray, g: FloatArray, c: FloatArray) -> tuple[Policy, FloatArray]:
    """Return the best policy for the model and its multipliers; without one, the policy with the least excess."""
    try:
        answer = solve_cmdp(mdp, f, g, c)
    except InfeasibleError:
        return most_slack_policy(mdp, g, c), np.zeros(len(c))
    return answer.policy, answer.multipliers
