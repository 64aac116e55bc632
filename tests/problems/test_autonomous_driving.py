"""Autonomous driving: against a second telling, in minutes and litres."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import tightrope as tr
from tests.problems.twin import Move, Twin, assert_same, scenarios
from tightrope import InvalidInputError, solve_cmdp

LEVELS = [30, 50, 80, 100, 130]
BENDS = [0.1, 0.1, 0.4, 1.0, 0.4, 0.1] * 2


def law(level: Any, action: int, k: int) -> list[Move]:
    outcomes = {0: [(1.0, -1)], 1: [(0.9, 0), (0.1, -1)], 2: [(0.8, 1), (0.2, 0)]}[action]
    moves = []
    for chance, shift in outcomes:
        after = min(max(level + shift, 0), 4)
        v = LEVELS[after]
        minutes = [60 / (30 if jam else v) for jam in (False, k <= 3, k >= 6)]
        fuel = 0.04 + 0.06 * (v / 100) ** 2 + (0.04 if action == 2 else 0)
        moves.append(Move(chance, after, minutes, (fuel, BENDS[k] * (v / 130) ** 2)))
    return moves


def test_it_is_its_twin() -> None:
    assert_same(tr.make("autonomous-driving"), Twin({1: 1.0}, 12, lambda level: range(3), law))


def test_both_budgets_bind_in_every_scenario() -> None:
    problem = tr.make("autonomous-driving")
    np.testing.assert_allclose(problem.use_in_units(problem.budgets), [1.08, 1.2])
    for loss in scenarios(problem):
        assert (solve_cmdp(problem.mdp, loss, problem.constraints.mean, problem.budgets).multipliers > 0.01).all()


def test_names_and_units() -> None:
    problem = tr.make("autonomous-driving")
    assert problem.state_name(0) == "50 km/h, step 0"
    assert (problem.loss_unit, problem.constraint_units) == ("minutes", ("litres", ""))
    assert problem.loss_scale == 2.0


def test_a_road_of_another_length_is_jammed_in_the_same_parts() -> None:
    problem = tr.make("autonomous-driving", n_segments=6)
    free, morning, evening = scenarios(problem)
    first_tuple = problem.space.csr.pair_ptr[problem.space.csr.state_ptr[problem.space.csr.layer_ptr[:-1]]]
    jammed = [
        [bool(np.all(loss[first:last] == 1.0)) for first, last in pairwise(first_tuple.tolist())]
        for loss in (free, morning, evening)
    ]
    assert jammed == [[False] * 6, [True] * 2 + [False] * 4, [False] * 3 + [True] * 3]


@pytest.mark.parametrize(
    ("options", "words"),
    [({"n_segments": 0}, "n_segments is 0"), ({"max_fuel": 1}, "max_fuel is 1"), ({"max_risk": 2}, "max_risk is 2")],
)
def test_wrong_options_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        tr.make("autonomous-driving", **options)
