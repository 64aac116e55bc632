"""Moves on a grid, against a twin that walks cell by cell."""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import rngs
from tightrope.problems.suite.grid import DIRECTIONS, STEPS, cell_names, cells_marked, grid_moves, merge_rows


@given(st.integers(1, 5), st.integers(1, 5), st.floats(0, 1), rngs())
def test_moves_are_those_of_the_twin(n_rows: int, n_columns: int, slip: float, rng: np.random.Generator) -> None:
    walls = set(np.flatnonzero(rng.random(n_rows * n_columns) < 0.3).tolist())
    expected: defaultdict[tuple[int, int, int], float] = defaultdict(float)
    for cell in set(range(n_rows * n_columns)) - walls:
        r, c = divmod(cell, n_columns)
        for action in range(4):
            for meant, (down, right) in enumerate([*STEPS, (0, 0)]):
                chance = slip / 5 + (1 - slip) * (meant == action)
                there = (r + down) * n_columns + c + right
                inside = 0 <= r + down < n_rows and 0 <= c + right < n_columns
                if chance > 0:
                    expected[cell, action, there if inside and there not in walls else cell] += chance
    rows, P = grid_moves(n_rows, n_columns, slip=slip, walls=walls)
    assert [tuple(row) for row in rows.tolist()] == sorted(expected)
    np.testing.assert_allclose(P, [expected[tuple(row)] for row in rows.tolist()])


def test_directions_are_as_they_are_called() -> None:
    rows, P = grid_moves(3, 3, slip=0)
    from_the_middle = {DIRECTIONS[a]: target for cell, a, target in rows.tolist() if cell == 4}
    assert from_the_middle == {"up": 1, "right": 5, "down": 7, "left": 3}
    assert set(P.tolist()) == {1.0}


def test_equal_rows_become_one_with_the_average_of_their_values() -> None:
    rows = np.array([(1, 0, 2), (0, 0, 1), (1, 0, 2)])
    unique, P, values = merge_rows(rows, np.array([0.25, 1.0, 0.75]), [8.0, 5.0, 4.0])
    assert unique.tolist() == [[0, 0, 1], [1, 0, 2]]
    assert P.tolist() == [1.0, 1.0]
    assert values.tolist() == [5.0, 5.0]


def test_maps_and_names() -> None:
    assert cells_marked(("S#", "#G"), "#") == [1, 2]
    assert cells_marked(("S#", "#G"), "?") == []
    assert cell_names(2, 2) == ["row 1, column 1", "row 1, column 2", "row 2, column 1", "row 2, column 2"]


@pytest.mark.parametrize("slip", [0.0, 0.3, 1.0])
def test_probabilities_sum_to_one(slip: float) -> None:
    rows, P = grid_moves(4, 3, slip=slip)
    np.testing.assert_allclose(np.bincount(rows[:, 0] * 4 + rows[:, 1], weights=P), 1)
