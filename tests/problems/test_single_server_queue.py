"""Single-server queue: against a second telling, in customers."""

from typing import Any

import numpy as np
import pytest

import tightrope as tr
from tests.problems.twin import Move, Twin, assert_same
from tightrope import InvalidInputError

RATES = [(a, b) for a in (0.2, 0.4, 0.6, 0.8) for b in (0.4, 0.5, 0.6, 0.7)]


def law(x: Any, action: int, step: int) -> list[Move]:
    a, b = RATES[action]
    losses, uses = (x, x * (step + 1) / 10, 5 - x), (10 * a, 10 * (1 - b) ** 2)
    if x == 5:
        return [Move(a, 4, losses, uses), Move(1 - a, 5, losses, uses)]
    moves = []
    for served in (True, False):
        for arrived in (True, False):
            chance = (a if served else 1 - a) * (b if arrived else 1 - b)
            moves.append(Move(chance, max(x + arrived - served, 0), losses, uses))
    return moves


def test_it_is_its_twin() -> None:
    assert_same(tr.make("single-server-queue"), Twin({0: 1.0}, 10, lambda x: range(16), law))


def test_units_and_names() -> None:
    problem = tr.make("single-server-queue")
    np.testing.assert_allclose(problem.use_in_units(problem.budgets), [50.0, 20.0])
    assert (problem.loss_scale, problem.loss_unit) == (5.0, "customers")
    assert problem.action_names[5] == "serve 0.4, admit 0.5"
    assert np.abs(problem.constraints.mean).max(axis=1).sum() <= 1 + 1e-12


def test_noise_makes_room_for_itself() -> None:
    """Twice the noise, half the scale, the same budgets in units."""
    quiet, loud = (
        tr.make("single-server-queue"),
        tr.make("single-server-queue", noise={"name": "bernoulli", "height": 2}),
    )
    np.testing.assert_allclose(loud.constraints.mean, quiet.constraints.mean / 2)
    np.testing.assert_allclose(loud.use_in_units(loud.budgets), quiet.use_in_units(quiet.budgets))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"capacity": 1}, "capacity is 1"),
        ({"n_steps": 0}, "n_steps is 0"),
        ({"max_effort": 9}, "max_effort is 9; it must be a number from 0 to 8"),
        ({"max_turned_away": -1}, "max_turned_away is -1"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        tr.make("single-server-queue", **options)
