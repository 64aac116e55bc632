"""The game of Mannor, Tsitsiklis and Yu: its costs change half way, and no learner keeps both regret and budget.

One step, two actions. Nature plays a column, which determines the rewards (negative losses) and the costs, with a
budget of 0 per episode:

                first column     second column
    risk        1, cost −1       1, cost 1
    care        0, cost −1      −1, cost −1

By default nature plays the second column for `turn` episodes, then the first for `turn` episodes, and so on. Let x be
the share of risk in the first `turn` episodes.

- After `turn` episodes the average cost is 2x − 1, a violation if risk was taken in more than half of them.
- After 2 `turn` episodes, risk in every episode has average cost 0 and reward 1, which is the best policy in hindsight.
  A learner that took care in a share 1 − x of the first half earns at most 2x `turn` of 2 `turn`, for any second half.

So violation(turn) ≥ (2x − 1) turn and regret(2 turn) ≥ 2 (1 − x) turn: for any x and any learner, one of the two is at
least a third of the episodes by then. The best policy within the budget of every episode mixes both actions evenly; a
learner can approach that one.

Reference: S. Mannor, J. N. Tsitsiklis, J. Y. Yu, "Online learning with sample path constraints", Journal of Machine
Learning Research 10, 2009, section 3: the game, its reward in hindsight 1/2 + 1/(2q) − q where the second column has a
share q ≥ 1/2, and 1 where it has less, and that no strategy attains it. The two phases and their arithmetic are ours.
"""

import numpy as np

from tightrope.arguments import whole
from tightrope.model import LayeredMDP
from tightrope.problems.base import Problem
from tightrope.problems.constraints import NoiseChoice
from tightrope.problems.constraints.changing import in_turn
from tightrope.problems.losses import LossChoice, Switching
from tightrope.space import LayeredSpace

#: Rewards and costs of risk and care, a row for each column of the game, in the order in which they come.
REWARDS = ((1.0, -1.0), (1.0, 0.0))
COSTS = ((1.0, -1.0), (-1.0, -1.0))


def mannor_game(*, turn: int = 500, losses: LossChoice | None = None, noise: NoiseChoice | None = None) -> Problem:
    """The columns change every `turn` episodes. With other losses or noise, costs are those of the second column."""
    turn = whole(turn, "turn", at_least=1)
    space = LayeredSpace.dense([1, 1], 2)
    return Problem.from_units(
        name="mannor-game",
        mdp=LayeredMDP(space, np.ones(2)),
        scenarios=-np.array(REWARDS),
        losses={"name": "switching", "period": turn} if losses is None else losses,
        uses=COSTS[:1],
        noise=in_turn(np.array(COSTS)[:, None], lambda rows: Switching(rows, period=turn)) if noise is None else noise,
        budgets=[0.0],
        constraint_names=("cost",),
        action_names=("risk", "care"),
    )
