"""Cliff walking: against a second telling."""

from typing import Any

import pytest

import tightrope as tr
from tests.problems.twin import Move, Twin, assert_same
from tightrope import InvalidInputError

SHIFTS = ((-1, 0), (0, 1), (1, 0), (0, -1), (0, 0))


def twin(n_rows: int, n_columns: int, n_steps: int, slip: float) -> Twin:
    start, goal = (n_rows - 1, 0), (n_rows - 1, n_columns - 1)

    def law(state: Any, action: int, step: int) -> list[Move]:
        beside = state[0] == n_rows - 2
        losses = (1.0, 1.0 if beside else 0.5, 0.5 if beside else 1.0)
        moves = []
        for outcome, (down, right) in enumerate(SHIFTS):
            chance = slip / 5 + (1 - slip if outcome == action else 0)
            r, c = state[0] + down, state[1] + right
            there: Any = (r, c) if 0 <= r < n_rows and 0 <= c < n_columns else state
            fell = there[0] == n_rows - 1 and there not in (start, goal)
            moves.append(Move(chance, start if fell else there, losses, (fell,)))
        return moves

    return Twin({start: 1.0}, n_steps, lambda state: () if state == goal else range(4), law)


def test_it_is_its_twin() -> None:
    assert_same(tr.make("cliff-walking"), twin(4, 12, 24, 0.1))


def test_a_small_one_with_much_slip_is_its_twin() -> None:
    assert_same(tr.make("cliff-walking", n_rows=2, n_columns=4, n_steps=9, slip=0.5, budget=1), twin(2, 4, 9, 0.5))


def test_no_state_is_off_the_cliff() -> None:
    names = {name.rpartition(",")[0] for name in tr.make("cliff-walking").state_names[:-1]}
    assert "row 4, column 1" in names
    assert not {f"row 4, column {c}" for c in range(2, 13)} & names


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_rows": 1}, "n_rows is 1"),
        ({"n_columns": 2}, "n_columns is 2"),
        ({"slip": -0.1}, "slip is -0.1"),
        ({"budget": 25}, "budget is 25"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        tr.make("cliff-walking", **options)
