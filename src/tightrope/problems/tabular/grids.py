"""Moves on a grid, shared by the problems that are played on one. Cells are numbered row by row."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope.problems.tabular.rows import Indices
from tightrope.space import FloatArray

#: What each action does to (row, column).
STEPS = ((-1, 0), (0, 1), (1, 0), (0, -1))
DIRECTIONS = ("up", "right", "down", "left")


def grid_moves(n_rows: int, n_columns: int, *, slip: float, walls: Iterable[int] = ()) -> tuple[Indices, FloatArray]:
    """Rows (cell, direction, next cell) and probabilities of a walk on a grid.

    With probability 1 − slip a move goes where it was meant to; else, with equal chances, it goes in one of the four
    directions or stays. A move off the grid or into a wall stays too. No move starts in a wall.
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
    """Rows that have become equal made one: their probabilities added up, their values averaged."""
    unique, index = np.unique(rows, axis=0, return_inverse=True)
    index = index.reshape(-1)
    total, weighted = np.zeros(len(unique)), np.zeros(len(unique))
    np.add.at(total, index, P)
    np.add.at(weighted, index, P * np.asarray(values, dtype=np.float64))
    return unique, total, weighted / total


def cells_marked(lines: Sequence[str], mark: str) -> list[int]:
    """The cells where a map, given line by line, has this mark."""
    marks: NDArray[np.str_] = np.array([list(line) for line in lines])
    return np.flatnonzero(marks == mark).tolist()


def cell_names(n_rows: int, n_columns: int) -> list[str]:
    """Rows and columns count from 1."""
    return [f"row {r + 1}, column {c + 1}" for r in range(n_rows) for c in range(n_columns)]
