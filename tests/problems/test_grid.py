"""Grid: against a second telling, and at scale."""

from typing import Any

import numpy as np
import pytest

from tests.problems.twin import Move, Twin, assert_same
from tightrope import InvalidInputError
from tightrope.planning.hindsight import best_policy
from tightrope.problems.suite.grid import grid

SHIFTS = ((-1, 0), (0, 1), (1, 0), (0, -1), (0, 0))


def twin(n_rows: int, n_columns: int, n_steps: int, start: dict[Any, float], seed: int) -> Twin:
    hazardous = (np.random.default_rng(seed).random(n_rows * n_columns) < 0.3).reshape(n_rows, n_columns)
    bottom, edge = n_rows - 1, n_columns - 1

    def law(state: Any, action: int, step: int) -> list[Move]:
        moves = []
        for outcome, (down, right) in enumerate(SHIFTS):
            chance = 0.02 + (0.9 if outcome == action else 0)
            r, c = min(max(state[0] + down, 0), bottom), min(max(state[1] + right, 0), edge)
            corners = ((bottom, edge), (0, edge), (bottom, 0))
            losses = [(abs(r - to_r) + abs(c - to_c)) / (bottom + edge) for to_r, to_c in corners]
            moves.append(Move(chance, (r, c), losses, (hazardous[r, c],)))
        return moves

    return Twin(start, n_steps, lambda state: range(4), law)


def test_it_is_its_twin() -> None:
    anywhere = {(r, c): 1 / 64 for r in range(8) for c in range(8)}
    assert_same(grid(), twin(8, 8, 12, anywhere, seed=0))


def test_the_grid_agrees_with_its_twin_from_one_cell_on() -> None:
    problem = grid(n_rows=3, n_columns=5, n_steps=6, start=(1, 2), max_hazards=0.2, seed=3)
    assert problem.space.n_layers == 6
    assert_same(problem, twin(3, 5, 6, {(1, 2): 1.0}, seed=3))


def test_the_seed_draws_the_hazards() -> None:
    one, other = grid(seed=1), grid(seed=2)
    np.testing.assert_array_equal(one.constraints.mean, grid(seed=1).constraints.mean)
    assert (one.constraints.mean != other.constraints.mean).any()
    assert set(one.constraints.mean[0, 64:1000].tolist()) == {0.0, 1.0}


def test_a_large_grid_can_be_made_and_planned_on() -> None:
    """The 50 x 50 cells of the docstring over 40 steps."""
    problem = grid(n_rows=50, n_columns=50, n_steps=40)
    space = problem.space
    assert space.n_states == 40 * 2500 + 2
    assert space.n_tuples == 1_931_300
    assert space.successors_per_pair[1:].max() == 5
    assert best_policy(problem.mdp, problem.constraints.mean[0])[0] < problem.budgets[0]
    assert problem.state_name(2501) == "row 1, column 1, step 1"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_rows": 1}, "n_rows is 1"),
        ({"start": (8, 0)}, r"start is \(8, 0\); the grid has 8 rows and 8 columns"),
        ({"start": (-1, 0)}, r"start is \(-1, 0\); the grid has 8 rows"),
        ({"hazards": 2}, "hazards is 2"),
        ({"max_hazards": 2}, "max_hazards is 2"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        grid(**options)
