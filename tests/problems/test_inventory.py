"""Inventory: against a second telling, in money."""

from typing import Any

import numpy as np
import pytest

import tightrope as tr
from tests.problems.twin import Move, Twin, assert_same, scenarios
from tightrope import InvalidInputError

CHANCES = [0.3, 0.2, 0.2, 0.2, 0.05, 0.05]


def law(s: Any, a: int, day: int) -> list[Move]:
    moves = []
    for asked, chance in enumerate(CHANCES):
        sold = min(s + a, asked)
        cost = (4 + 2 * a if a else 0) + s + a
        moves.append(Move(chance, s + a - sold, (-8 * sold, -(2 + 2 * day) * sold, -(14 - 2 * day) * sold), (cost,)))
    return moves


def test_it_is_its_twin() -> None:
    assert_same(tr.make("inventory"), Twin({0: 1.0}, 7, lambda s: range(6 - s), law))


def test_the_budget_is_three_and_a_half_of_the_dearest_days() -> None:
    problem = tr.make("inventory")
    assert problem.budgets.tolist() == [3.5]
    np.testing.assert_allclose(problem.use_in_units(problem.budgets), [66.5])
    assert (problem.loss_scale, problem.loss_unit) == (70.0, "money")
    assert np.abs(scenarios(problem)).max() <= 1
    assert problem.constraints.mean.max() == 1.0
    assert problem.space.n_layers == 7
    assert problem.action_names == ("order 0", "order 1", "order 2", "order 3", "order 4", "order 5")


def test_orders_never_exceed_the_room_that_is_left() -> None:
    problem = tr.make("inventory", capacity=3, n_days=4)
    for s, a in problem.space.pairs.tolist():
        stock = int(problem.state_name(s).split()[1].rstrip(","))
        assert stock + a <= 3


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"capacity": 0}, "capacity is 0"),
        ({"n_days": 0}, "n_days is 0"),
        ({"budget": 8}, "budget is 8"),
        ({"demand": [0.5, 0.4]}, "demand sum to 0.9, not 1"),
        ({"demand": [1.5, -0.5]}, r"demand\[0\] is 1.5"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        tr.make("inventory", **options)
