"""Cliff walking: the short way to the goal runs along a cliff.

    . . . . . . . . . . . .
    . . . . . . . . . . . .
    . . . . . . . . . . . .
    S ~ ~ ~ ~ ~ ~ ~ ~ ~ ~ G

The walker starts at S and moves up, right, down or left; with probability `slip` = 0.1 the move is random, in one of
the four directions or none, with equal probability. Stepping off the cliff (~) leads back to S; the episode ends at the
goal. Loss scenarios, for every step that begins before the goal:

    0  steps    1
    1  wind     1 in the row along the cliff, 1/2 elsewhere
    2  mud      1/2 in the row along the cliff, 1 elsewhere

One constraint: the number of falls, on average at most 0.1 in an episode of 24 steps. At S a fall and a slip without a
move lead to the same cell, so the use of that tuple is the share of falls among the two.

Reference: R. S. Sutton, A. G. Barto, "Reinforcement learning: an introduction", 2nd edition, MIT Press 2018, example
6.6 (the map; a step costs 1 there and a fall 100). The slip, the limit on falls in place of their cost, and scenarios 1
and 2 are this package's.
"""

import numpy as np

from tightrope.arguments import number, room, whole
from tightrope.problems.base import Problem
from tightrope.problems.constraints import NoiseChoice
from tightrope.problems.layout import Indices
from tightrope.problems.losses import LossChoice
from tightrope.problems.suite.grid import DIRECTIONS, cell_names, grid_moves, merge_rows
from tightrope.problems.unroll import unroll
from tightrope.space import FloatArray


def cliff_walking(
    *,
    n_rows: int = 4,
    n_columns: int = 12,
    n_steps: int = 24,
    slip: float = 0.1,
    budget: float = 0.1,
    losses: LossChoice = "fixed",
    noise: NoiseChoice = "none",
) -> Problem:
    """A map of `n_rows` rows and `n_columns` columns, at most `budget` falls on average in `n_steps` steps."""
    n_rows = whole(n_rows, "n_rows", at_least=2)
    n_columns = whole(n_columns, "n_columns", at_least=3)
    n_steps = whole(n_steps, "n_steps", at_least=1)
    budget = number(budget, "budget", 0, n_steps)
    room(20 * n_rows * n_columns, "a map of these sizes")
    start, goal = (n_rows - 1) * n_columns, n_rows * n_columns - 1
    cliff = np.arange(start + 1, goal)

    rows, P = grid_moves(n_rows, n_columns, slip=number(slip, "slip", 0, 1))
    standing = ~np.isin(rows[:, 0], cliff)
    rows, P = rows[standing], P[standing]
    falls = np.isin(rows[:, 2], cliff)
    rows[falls, 2] = start
    rows, P, fallen = merge_rows(rows, P, falls)
    layout = unroll(rows, P, n_steps=n_steps, start=start, terminal=[goal])

    def along(cell: Indices) -> FloatArray:
        shown: FloatArray = (cell // n_columns == n_rows - 2).astype(np.float64)
        return shown

    return Problem.from_units(
        name="cliff-walking",
        mdp=layout.mdp,
        ties=layout.ties,
        scenarios=[
            layout.lay_out(lambda s, a, s_next, step: 1.0),
            layout.lay_out(lambda s, a, s_next, step: (1 + along(s)) / 2),
            layout.lay_out(lambda s, a, s_next, step: 1 - along(s) / 2),
        ],
        losses=losses,
        loss_unit="steps",
        uses=[layout.lay_out(fallen)],
        noise=noise,
        budgets=[budget],
        constraint_names=("falls",),
        state_names=layout.state_names(cell_names(n_rows, n_columns)),
        action_names=DIRECTIONS,
    )
