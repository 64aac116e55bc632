"""Gymnasium's Frozen Lake on a budget of falls (extra `gymnasium`).

Cross the ice from S to G in n_steps steps; a move has the intended direction with probability 1/3, else one of the two
sides. A hole ends the episode, and so does the goal. Loss scenarios, for each move (the default, `fixed`, is the
first, Gymnasium's own reward with its sign changed):

    0  prize    −1 for reaching the goal
    1  hurry    −1 for reaching the goal, 0.05 for every move
    2  cold     0.05 for every move

Falls into a hole are limited to `budget` per episode, on average. In the scenarios with a loss per move, falling is the
fastest way to end an episode. At the defaults (4x4 map, 20 steps, 0.03 falls, 211 states), for the best policy (among
equals, the one with the least use):

    scenario   no budget: loss   falls    within it: loss   multiplier
    0                   -0.199   0.094             -0.130         4.20
    1                    0.197   0.947              0.813         5.61
    2                    0.233   0.971              0.943         1.41
    mean                 0.131   0.947              0.542         3.74

Walking into the wall never leads to a fall, so 0.03 is also the slack (Slater).

Reference: M. Towers et al., "Gymnasium: a standard interface for reinforcement learning environments",
arXiv:2407.17032. The budget and scenarios 1 and 2 are this package's.
"""

from tightrope.arguments import instance, number, unknown, whole
from tightrope.errors import missing
from tightrope.problems.base import Problem
from tightrope.problems.constraints import NoiseChoice
from tightrope.problems.gym import problem_from_gym
from tightrope.problems.losses import LossChoice

#: The loss of a move in the scenarios with a loss per move.
PACE = 0.05


def frozen_lake(
    *,
    map_name: str = "4x4",
    slippery: bool = True,
    n_steps: int = 20,
    budget: float = 0.03,
    losses: LossChoice = "fixed",
    noise: NoiseChoice = "none",
) -> Problem:
    """Gymnasium's map "4x4" or "8x8", at most `budget` falls an episode on average."""
    try:
        from gymnasium.envs.toy_text.frozen_lake import MAPS, FrozenLakeEnv
    except ImportError as error:
        raise missing("gymnasium", extra="gymnasium") from error
    if not isinstance(map_name, str) or map_name not in MAPS:
        raise unknown("there is no map", map_name, MAPS)
    env = FrozenLakeEnv(map_name=map_name, is_slippery=instance(slippery, "slippery", bool))
    cells = [cell for row in MAPS[map_name] for cell in row]
    width = len(MAPS[map_name][0])

    def hurry(state: int, action: int, next_state: int) -> float:
        return PACE - (cells[next_state] == "G")

    return problem_from_gym(
        env,
        name="frozen-lake",
        n_steps=whole(n_steps, "n_steps", at_least=1),
        cost={"falls": lambda state, action, next_state: float(cells[next_state] == "H")},
        budgets={"falls": number(budget, "budget", 0, 1)},
        scenarios=[hurry, lambda state, action, next_state: PACE],
        losses=losses,
        noise=noise,
        state_names=[f"row {s // width}, column {s % width}" for s in range(len(cells))],
        action_names=("left", "down", "right", "up"),
    )
