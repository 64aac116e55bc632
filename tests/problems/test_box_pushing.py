"""Box pushing: against a second telling, read off the drawing in its docstring."""

from typing import Any

import pytest

from tests.problems.twin import Move, Twin, assert_same, scenarios
from tightrope import InvalidInputError
from tightrope.planning.hindsight import best_policy
from tightrope.problems.suite import box_pushing as module
from tightrope.problems.suite.box_pushing import box_pushing

DRAWING = [line.split() for line in (module.__doc__ or "").splitlines() if line.startswith("    #")]
CELLS = {(r, c): mark for r, row in enumerate(DRAWING) for c, mark in enumerate(row) if mark != "#"}
WHERE = {mark: cell for cell, mark in CELLS.items()}
SHIFTS = ((-1, 0), (0, 1), (1, 0), (0, -1), (0, 0))


def cornered(box: tuple[int, int]) -> bool:
    r, c = box
    beside = (r, c - 1) not in CELLS or (r, c + 1) not in CELLS
    above_or_below = (r - 1, c) not in CELLS or (r + 1, c) not in CELLS
    return beside and above_or_below


def twin(n_steps: int, slip: float) -> Twin:
    def law(state: Any, action: int, step: int) -> list[Move]:
        moves = []
        for outcome, (down, right) in enumerate(SHIFTS):
            chance = slip / 5 + (1 - slip if outcome == action else 0)
            agent, box = state
            ahead, beyond = (agent[0] + down, agent[1] + right), (agent[0] + 2 * down, agent[1] + 2 * right)
            pushed = ahead == box and beyond in CELLS
            if pushed:
                agent, box = ahead, beyond
            elif ahead in CELLS and ahead != box:
                agent = ahead
            losses = (1.0, 1.0 if pushed else 0.5, (step + 1) / n_steps)
            moves.append(Move(chance, (agent, box), losses, (pushed and cornered(box),)))
        return moves

    return Twin({(WHERE["A"], WHERE["X"]): 1.0}, n_steps, lambda state: () if state[0] == WHERE["G"] else range(4), law)


def test_it_is_its_twin() -> None:
    assert len(CELLS) == 11
    assert_same(box_pushing(), twin(12, 0.05))


def test_much_slip_is_its_twin() -> None:
    assert_same(box_pushing(n_steps=8, slip=0.6, budget=0.5), twin(8, 0.6))


def test_without_slip_the_two_ways_take_five_and_seven_steps() -> None:
    problem = box_pushing(slip=0)
    steps, corners = scenarios(problem)[0], problem.constraints.mean[0]
    assert best_policy(problem.mdp, steps)[0] == pytest.approx(5.0)
    assert best_policy(problem.mdp, steps + 0.9 * corners)[0] == pytest.approx(5.9)
    assert best_policy(problem.mdp, steps + 100 * corners)[0] == pytest.approx(7.0)


def test_names() -> None:
    assert box_pushing().state_name(0) == "agent (1, 2), box (2, 2), step 0"


@pytest.mark.parametrize(
    ("options", "words"),
    [({"n_steps": 0}, "n_steps is 0"), ({"slip": 2}, "slip is 2"), ({"budget": -1}, "budget is -1")],
)
def test_wrong_options_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        box_pushing(**options)
