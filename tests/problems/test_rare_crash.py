"""Rare crash: against a second telling, and by hand."""

from typing import Any

import numpy as np
import pytest

import tightrope as tr
from tests.problems.twin import Move, Twin, assert_same, scenarios
from tightrope import InvalidInputError, solve_cmdp
from tightrope.planning.hindsight import best_policy


def law(s: Any, action: int, step: int) -> list[Move]:
    if action == 0:
        return [Move(1.0, "well", (0.5, 0.1), (0,))]
    return [Move(0.98, "well", (0, 0), (0,)), Move(0.02, "crashed", (0, 0), (1,))]


def test_it_is_its_twin() -> None:
    assert_same(tr.make("rare-crash"), Twin({"well": 1.0}, 4, lambda s: (0, 1), law))


@pytest.mark.parametrize("p", [0.5, 1 / 500, 1e-6])
def test_the_budget_is_half_of_the_bold_and_its_price_grows_as_crashes_get_rare(p: float) -> None:
    problem = tr.make("rare-crash", probability=p)
    assert problem.space.layer_sizes == (1, 2, 2, 2, 1)
    value, bold = best_policy(problem.mdp, scenarios(problem)[0])
    assert value == 0
    used = problem.constraints.mean @ problem.mdp.occupancy(bold)
    np.testing.assert_allclose(problem.use_in_units(used), [4 * p])
    np.testing.assert_allclose(problem.use_in_units(problem.budgets), [2 * p])
    within = solve_cmdp(problem.mdp, scenarios(problem)[0], problem.constraints.mean, problem.budgets)
    assert within.value == pytest.approx(1.0)
    np.testing.assert_allclose(within.multipliers / problem.constraint_scales, [0.5 / p])


def test_another_share_of_the_crashes_can_be_allowed() -> None:
    problem = tr.make("rare-crash", allowed=0.25)
    np.testing.assert_allclose(problem.use_in_units(problem.budgets), [0.02])
    within = solve_cmdp(problem.mdp, scenarios(problem)[0], problem.constraints.mean, problem.budgets)
    assert within.value == pytest.approx(1.5)  # careful at three of four steps


def test_all_pairs_of_bold_share_one_law() -> None:
    problem = tr.make("rare-crash")
    assert problem.ties is not None
    by_law = np.bincount(problem.ties.law)
    assert sorted(by_law[by_law > 1].tolist()) == [2, 3]  # bold when well, at steps 0 to 2; when crashed, at 1 and 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"probability": 0}, "probability is 0"),
        ({"probability": 1.5}, "probability is 1.5"),
        ({"n_steps": 0}, "n_steps is 0"),
        ({"allowed": 1.1}, "allowed is 1.1"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        tr.make("rare-crash", **options)
