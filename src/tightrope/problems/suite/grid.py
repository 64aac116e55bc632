"""Grid: a walk on a grid of any size, towards a corner that changes, through hazards. Made for scale.

A cell is (row, column). An episode starts anywhere, with equal chances, or in a cell that is given. Moves go up, right,
down or left; with probability `slip` = 0.1 in any of the four directions or nowhere, all with equal chances, and what
would leave the grid stays: a pair has at most 5 successors. Each cell is a hazard with probability `hazards` = 0.3,
drawn once from `seed`.

Loss scenario k = 0, 1, 2: how far the walker is, after the move, from the bottom right corner, the top right one, the
bottom left one, in steps, as a share of the largest distance. One constraint: the number of steps that end on a
hazard, on average at most `max_hazards` = 0.05 of them.

A 50 x 50 grid over 40 steps, from anywhere, has 100,002 states and 1.9 million tuples.

Reference: none; the shape of the large instances in tightrope's benchmarks.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope.arguments import number, room, whole
from tightrope.arguments.arrays import wholes
from tightrope.errors import InvalidInputError
from tightrope.problems.base import Problem
from tightrope.problems.constraints import NoiseChoice
from tightrope.problems.layout import Indices, Start
from tightrope.problems.losses import LossChoice
from tightrope.problems.unroll import unroll
from tightrope.space import FloatArray

#: What each action does to (row, column).
STEPS = ((-1, 0), (0, 1), (1, 0), (0, -1))
DIRECTIONS = ("up", "right", "down", "left")


def grid_moves(n_rows: int, n_columns: int, *, slip: float, walls: Iterable[int] = ()) -> tuple[Indices, FloatArray]:
    """Rows (cell, direction, next cell) and probabilities of a walk on a grid.

    With probability 1 − slip a move has the chosen direction; else it is in one of the four directions or none, with
    equal probability. A move off the grid or into a wall stays. No move starts in a wall.
    """
    free = np.ones((n_rows, n_columns), dtype=bool)
    free.flat[list(walls)] = False
    row, column, action, outcome = np.indices((n_rows, n_columns, 4, 5)).reshape(4, -1)
    shift = np.array([*STEPS, (0, 0)])[outcome]
    to_row, to_column = (np.stack([row, column], axis=1) + shift).T
    inside = (to_row >= 0) & (to_row < n_rows) & (to_column >= 0) & (to_column < n_columns)
    open_ = inside & free[np.where(inside, to_row, row), np.where(inside, to_column, column)]
    cell = row * n_columns + column
    target = np.where(open_, to_row * n_columns + to_column, cell)
    chance = slip / 5 + (1 - slip) * (action == outcome)

    used = free[row, column] & (chance > 0)
    rows, P, _ = merge_rows(np.stack([cell, action, target], axis=1)[used], chance[used], 0.0)
    return rows, P


def merge_rows(rows: Indices, P: FloatArray, values: ArrayLike) -> tuple[Indices, FloatArray, FloatArray]:
    """Merge equal rows: add up their probabilities, and average their values."""
    unique, index = np.unique(rows, axis=0, return_inverse=True)
    index = index.reshape(-1)
    total, weighted = np.zeros(len(unique)), np.zeros(len(unique))
    np.add.at(total, index, P)
    np.add.at(weighted, index, P * np.asarray(values, dtype=np.float64))
    return unique, total, weighted / total


def cells_marked(lines: Sequence[str], mark: str) -> list[int]:
    """Return the cells with this mark in a map, which is given line by line."""
    marks: NDArray[np.str_] = np.array([list(line) for line in lines])
    return np.flatnonzero(marks == mark).tolist()


def cell_names(n_rows: int, n_columns: int) -> list[str]:
    """Return the names of the cells, with rows and columns counted from 1."""
    return [f"row {r + 1}, column {c + 1}" for r in range(n_rows) for c in range(n_columns)]


def grid(
    *,
    n_rows: int = 8,
    n_columns: int = 8,
    n_steps: int = 12,
    start: tuple[int, int] | None = None,
    slip: float = 0.1,
    hazards: float = 0.3,
    max_hazards: float = 0.05,
    losses: LossChoice = "switching",
    noise: NoiseChoice = "none",
    seed: int = 0,
) -> Problem:
    """`start`: (row, column), counted from 0, or None for anywhere; `max_hazards`: an average over the steps."""
    n_rows, n_columns = whole(n_rows, "n_rows", at_least=2), whole(n_columns, "n_columns", at_least=2)
    n_steps = whole(n_steps, "n_steps", at_least=1)
    slip, share = number(slip, "slip", 0, 1), number(hazards, "hazards", 0, 1)
    limit = number(max_hazards, "max_hazards", 0, 1)
    n_cells = n_rows * n_columns
    room(20 * n_cells, "a grid of these sizes")
    if start is None:
        first: Start = dict.fromkeys(range(n_cells), 1 / n_cells)
    else:
        row, column = wholes(start, "start", (2,)).tolist()
        if not (0 <= row < n_rows and 0 <= column < n_columns):
            raise InvalidInputError(f"start is {start}; the grid has {n_rows} rows and {n_columns} columns")
        first = row * n_columns + column

    rows, P = grid_moves(n_rows, n_columns, slip=slip)
    layout = unroll(rows, P, n_steps=n_steps, start=first)

    down, right = np.divmod(np.arange(n_cells), n_columns)
    up, left = n_rows - 1 - down, n_columns - 1 - right
    distances = np.array([up + left, down + left, up + right]) / (n_rows + n_columns - 2)
    hazardous = np.random.default_rng(whole(seed, "seed", at_least=0)).random(n_cells) < share
    next_cell = rows[:, 2]
    return Problem.from_units(
        name="grid",
        mdp=layout.mdp,
        ties=layout.ties,
        scenarios=[layout.lay_out(distance[next_cell]) for distance in distances],
        losses=losses,
        uses=[layout.lay_out(hazardous[next_cell])],
        noise=noise,
        budgets=[n_steps * limit],
        constraint_names=("hazards",),
        state_names=layout.state_names(cell_names(n_rows, n_columns)),
        action_names=DIRECTIONS,
    )
