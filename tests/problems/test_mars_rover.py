"""Mars rover: against a second telling, read off the drawing in its docstring."""

import re
from typing import Any

import pytest

from tests.problems.twin import Move, Twin, assert_same
from tightrope import InvalidInputError
from tightrope.problems.suite import mars_rover as module
from tightrope.problems.suite.mars_rover import mars_rover

SHIFTS = {0: (-1, 0), 1: (0, 1), 2: (1, 0), 3: (0, -1)}


def drawing(size: int) -> dict[tuple[int, int], str]:
    """Cells of the map, from the docstring: the 4 x 4 one stands left, the 8 x 8 one right."""
    lines = [line for line in (module.__doc__ or "").splitlines() if re.search(r"[.#S] [.#S] [.#]", line)]
    marks = [re.findall(r"[S.#G](?: [S.#G])*", re.sub(r"\d x \d", "", line)) for line in lines]
    rows = [found[0] if size == 4 else found[-1] for found in marks][:size]
    return {(r, c): mark for r, row in enumerate(rows) for c, mark in enumerate(row.split())}


def twin(size: int, n_steps: int, slip: float = 0.2) -> Twin:
    cells = drawing(size)
    assert len(cells) == size * size
    [start] = [cell for cell, mark in cells.items() if mark == "S"]

    def actions(state: Any) -> tuple[int, ...]:
        return () if state == "goal" else (0,) if state == "wreck" else (0, 1, 2, 3)

    def law(state: Any, action: int, step: int) -> list[Move]:
        losses = [1.0, (step + 1) / n_steps, 0.5]
        if state == "wreck":
            return [Move(1.0, "wreck", losses, (0,))]
        r, c = state
        losses[2] = 1.0 if r < size / 2 else 0.5
        moves = []
        outcomes = [(1 - slip, SHIFTS[action]), *((slip / 5, shift) for shift in (*SHIFTS.values(), (0, 0)))]
        for chance, (down, right) in outcomes:
            there = (r + down, c + right)
            mark = cells.get(there)
            after: Any = state if mark is None else {"#": "wreck", "G": "goal"}.get(mark, there)
            moves.append(Move(chance, after, losses, (after == "wreck",)))
        return moves

    return Twin({start: 1.0}, n_steps, actions, law)


def test_it_is_its_twin() -> None:
    assert_same(mars_rover(), twin(4, 16))


def test_the_large_map_is_its_twin() -> None:
    assert_same(mars_rover(size=8, n_steps=20, budget=0.2), twin(8, 20))


def test_defaults_of_the_large_map() -> None:
    problem = mars_rover(size=8)
    assert problem.space.n_layers == 30
    assert problem.budgets.tolist() == [0.25]


def test_names() -> None:
    problem = mars_rover()
    assert problem.state_name(0) == "row 1, column 1, step 0"
    names = {name.rpartition(",")[0] for name in problem.state_names}
    assert {"wreck", "done"} <= names
    assert "row 1, column 3" not in names  # a rock


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"size": 5}, "size is 5; there is a map of size 4 and 8"),
        ({"n_steps": 0}, "n_steps is 0"),
        ({"slip": 1.5}, "slip is 1.5"),
        ({"budget": 2}, "budget is 2"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        mars_rover(**options)
