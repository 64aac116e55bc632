"""Machine cycle: against a second telling, and by hand."""

from typing import Any

import numpy as np
import pytest

import tightrope as tr
from tests.problems.twin import Move, Twin, assert_same, scenarios
from tightrope import InvalidInputError, solve_cmdp
from tightrope.planning.hindsight import best_policy


def law(s: Any, action: int, step: int) -> list[Move]:
    if action == 0:
        return [Move(1.0, s, (0, 0, 0), (0,))]
    return [Move(1.0, (s + 1) % 3, (-(s + 1) / 3, -(3 - s) / 3, -(s == 1)), (1,))]


def test_it_is_its_twin() -> None:
    assert_same(tr.make("machine-cycle"), Twin({0: 1.0}, 6, lambda s: (0, 1), law))


def test_numbers_of_the_story_by_hand() -> None:
    """Six moves are two rounds of (1 + 2 + 3) / 3; three moves on average are one of them, or two every other time."""
    problem = tr.make("machine-cycle")
    assert problem.space.layer_sizes == (1, 2, 3, 3, 3, 3, 1)
    assert problem.budgets.tolist() == [3.0]
    assert problem.losses.name == "fixed"
    rising = scenarios(problem)[0]
    assert best_policy(problem.mdp, rising)[0] == pytest.approx(-4.0)
    within = solve_cmdp(problem.mdp, rising, problem.constraints.mean, problem.budgets)
    assert within.value == pytest.approx(-2.0)
    np.testing.assert_allclose(within.multipliers, [2 / 3])
    assert set(problem.mdp.transitions.tolist()) == {1.0}
    assert (problem.state_name(0), problem.action_name(1)) == ("state 0, step 0", "move")


def test_options_change_the_cycle() -> None:
    problem = tr.make("machine-cycle", n_states=5, n_steps=4, budget=2)
    assert problem.space.layer_sizes == (1, 2, 3, 4, 1)
    assert scenarios(problem)[0].min() == -4 / 5


@pytest.mark.parametrize(
    ("options", "words"),
    [({"n_states": 1}, "n_states is 1"), ({"n_steps": 0}, "n_steps is 0"), ({"budget": 7}, "budget is 7; .* to 6")],
)
def test_wrong_options_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        tr.make("machine-cycle", **options)
