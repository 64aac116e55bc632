"""River swim: against a second telling."""

from typing import Any

import pytest

import tightrope as tr
from tests.problems.twin import Move, Twin, assert_same
from tightrope import InvalidInputError
from tightrope.planning.hindsight import best_policy, slater_slack


def law(s: Any, action: int, step: int) -> list[Move]:
    if action == 0:
        return [Move(1.0, s - 1 if s else 0, (-0.005, -0.1) if s == 0 else (0, 0), (0,))]
    losses, uses = (-1.0, -0.2) if s == 5 else (0.0, 0.0), (1,)
    if s == 0:
        outcomes = [(0.4, 0), (0.6, 1)]
    elif s == 5:
        outcomes = [(0.4, 4), (0.6, 5)]
    else:
        outcomes = [(0.05, s - 1), (0.6, s), (0.35, s + 1)]
    return [Move(chance, place, losses, uses) for chance, place in outcomes]


def test_it_is_its_twin() -> None:
    assert_same(tr.make("river-swim"), Twin({0: 1.0}, 20, lambda s: (0, 1), law))


def test_drifting_uses_nothing_so_that_the_budget_is_the_slack() -> None:
    problem = tr.make("river-swim")
    assert slater_slack(problem.mdp, problem.constraints.mean, problem.budgets) == pytest.approx(12.0)
    assert best_policy(problem.mdp, problem.constraints.mean[0])[0] == 0.0


def test_options_change_the_river() -> None:
    problem = tr.make("river-swim", n_places=3, n_steps=5, budget=2)
    assert problem.space.layer_sizes == (1, 2, 3, 3, 3, 1)
    assert problem.state_name(2) == "place 1, step 1"


@pytest.mark.parametrize(
    ("options", "words"),
    [({"n_places": 1}, "n_places is 1"), ({"n_steps": 0}, "n_steps is 0"), ({"budget": 21}, "budget is 21")],
)
def test_wrong_options_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        tr.make("river-swim", **options)
