"""Mars rover: drive to the goal soon, past rocks on which it may be wrecked.

    4 x 4    S . # G        8 x 8    S . . . . . . .
             . . # .                 . # # . . # # .
             . . . .                 . . # . . . # .
             . . . .                 . . . . # . . .
                                     . # . . # . # .
                                     . # # . . . # .
                                     . . . . # . . .
                                     . . . . # . . G

The rover starts at S and moves up, right, down or left; with probability `slip` = 0.2 it goes in any of the four
directions or stays, all with equal chances. Driving into a rock (#) wrecks it for the rest of the episode; at the goal
the episode is over. Loss scenarios, charged for every step that begins before the goal, in a wreck too:

    0  soon     1
    1  dusk     (k + 1) / n_steps in step k: late steps cost more
    2  shade    1 in the upper half of the map, 1/2 elsewhere

One constraint: the probability of being wrecked, at most 0.07 in an episode of 16 steps (0.25 in 30 on the 8 x 8 map).

References: C. Tessler, D. J. Mankowitz, S. Mannor, "Reward constrained policy optimization", ICLR 2019 (the rover). K.
Brantley, M. Dudík, T. Lykouris, S. Miryoosefi, M. Simchowitz, A. Slivkins, W. Sun, "Constrained episodic reinforcement
learning in concave-convex and knapsack settings", NeurIPS 2020 (tabular, 4 x 4 and 8 x 8, perturbed moves). The maps,
the numbers and the scenarios are this package's.
"""

import numpy as np

from tightrope.arguments import number, shown, whole
from tightrope.errors import InvalidInputError
from tightrope.problems.base import Problem
from tightrope.problems.constraints import NoiseChoice
from tightrope.problems.losses import LossChoice
from tightrope.problems.suite.grid import DIRECTIONS, cell_names, cells_marked, grid_moves, merge_rows
from tightrope.problems.unroll import unroll

MAPS = {
    4: ("S.#G", "..#.", "....", "...."),
    8: ("S.......", ".##..##.", "..#...#.", "....#...", ".#..#.#.", ".##...#.", "....#...", "....#..G"),
}

#: Steps of an episode, and the probability of a wreck that is allowed.
DEFAULTS = {4: (16, 0.07), 8: (30, 0.25)}


def mars_rover(
    *,
    size: int = 4,
    n_steps: int | None = None,
    slip: float = 0.2,
    budget: float | None = None,
    losses: LossChoice = "fixed",
    noise: NoiseChoice = "none",
) -> Problem:
    """The map of `size` 4 or 8; `n_steps` and `budget` are those of the map unless given."""
    if not isinstance(size, int) or size not in MAPS:
        raise InvalidInputError(f"size is {shown(size)}; there is a map of size {' and '.join(map(str, MAPS))}")
    default_steps, default_budget = DEFAULTS[size]
    n_steps = default_steps if n_steps is None else whole(n_steps, "n_steps", at_least=1)
    budget = default_budget if budget is None else number(budget, "budget", 0, 1)
    lines = MAPS[size]
    [start], [goal] = cells_marked(lines, "S"), cells_marked(lines, "G")
    rocks = np.array(cells_marked(lines, "#"))

    rows, P = grid_moves(size, size, slip=number(slip, "slip", 0, 1))
    # rocks become one state, the wreck, in which nothing can be done
    wreck = size * size
    driving = ~np.isin(rows[:, 0], rocks)
    rows[np.isin(rows[:, 2], rocks), 2] = wreck
    rows, P, _ = merge_rows(rows[driving], P[driving], 0.0)
    rows, P = np.concatenate([rows, [(wreck, 0, wreck)]]), np.append(P, 1.0)
    layout = unroll(rows, P, n_steps=n_steps, start=start, terminal=[goal])

    upper = np.arange(wreck + 1) < size * (size // 2)
    return Problem.from_units(
        name="mars-rover",
        mdp=layout.mdp,
        ties=layout.ties,
        scenarios=[
            layout.lay_out(lambda s, a, s_next, step: 1.0),
            layout.lay_out(lambda s, a, s_next, step: (step + 1) / n_steps),
            layout.lay_out(lambda s, a, s_next, step: np.where(upper[s], 1.0, 0.5)),
        ],
        losses=losses,
        loss_unit="steps",
        uses=[layout.lay_out(lambda s, a, s_next, step: (s != wreck) & (s_next == wreck))],
        noise=noise,
        budgets=[budget],
        constraint_names=("wreck",),
        state_names=layout.state_names([*cell_names(size, size), "wreck"]),
        action_names=DIRECTIONS,
    )
