"""Edge cloud: its moves and charges by hand, and the table of its docstring."""

import re
from typing import Any

import numpy as np
import pytest

from tests.conftest import FloatArray
from tightrope import InvalidInputError, Problem
from tightrope.planning.hindsight import HindsightLP, best_policy, slater_slack
from tightrope.problems.constraints import ScaledNoise
from tightrope.problems.losses import Oblivious
from tightrope.problems.suite import edge_cloud as module
from tightrope.problems.suite.edge_cloud import edge_cloud

RING = [min(d, 8 - d) for d in range(8)]
SITES = [0, 2, 4, 6]


def scenarios(problem: Problem) -> FloatArray:
    assert isinstance(problem.losses, Oblivious)
    return problem.losses.scenarios


def parsed(name: str) -> tuple[int, int, int]:
    """(cell, site, step) out of a state's name."""
    numbers = re.fullmatch(r"cell (\d+), site (\d+), step (\d+)", name)
    assert numbers is not None
    cell, site, step = map(int, numbers.groups())
    return cell, site, step


def test_size_and_names() -> None:
    problem = edge_cloud()
    assert problem.space.layer_sizes == (1, 12, 20, 28, *[32] * 8, 1)
    assert problem.space.n_states == 318
    assert problem.state_name(0) == "cell 0, site 0, step 0"
    assert problem.state_name(317) == "end"
    assert problem.action_names == ("site 0", "site 1", "site 2", "site 3")
    assert problem.constraint_names == ("delay", "energy")
    assert problem.losses.name == "switching"


def test_every_tuple_moves_and_is_charged_as_the_docstring_says() -> None:
    problem = edge_cloud()
    prices, power = np.array(module.PRICES), np.array(module.POWER)
    walk = {0: 0.4, 1: 0.4, 7: 0.2}
    delay, energy = problem.constraints.mean
    for j, (s, host, s_next) in enumerate(problem.space.tuples.tolist()):
        cell, site, step = parsed(problem.state_name(s))
        if step < 11:
            next_cell, next_site, next_step = parsed(problem.state_name(s_next))
            assert (next_site, next_step) == (host, step + 1)
            assert problem.mdp.transitions[j] == walk[(next_cell - cell) % 8]
        migrated = RING[SITES[site] - SITES[host]] / 4
        np.testing.assert_allclose(scenarios(problem)[:, j], 0.75 * prices[:, host] + 0.25 * migrated)
        np.testing.assert_allclose(delay[j], 0.4 * RING[(cell - SITES[host]) % 8] / 4)
        np.testing.assert_allclose(energy[j], 0.4 * (0.8 * power[host] + 0.2 * migrated))
    np.testing.assert_allclose(problem.budgets, [12 * 0.4 * 1.2 / 4, 12 * 0.4 * 0.45])


def test_without_budgets_the_best_is_to_go_to_the_cheap_site_and_stay() -> None:
    problem = edge_cloud()
    losses = [*scenarios(problem), scenarios(problem).mean(axis=0)]
    cheap, hops = [0.1, 0.1, 0.1, (0.7 + 0.5 + 0.1) / 3], [2, 4, 2, 2]
    for loss, price, distance in zip(losses, cheap, hops, strict=True):
        value, _ = best_policy(problem.mdp, loss)
        np.testing.assert_allclose(value, 12 * 0.75 * price + 0.25 * distance / 4)


def test_the_table_of_the_docstring() -> None:
    """Budgets bind in every scenario and on average; the numbers are those that readers see."""
    problem = edge_cloud()
    mdp, mean = problem.mdp, problem.constraints.mean
    per_step = np.array([4, 1]) / (0.4 * 12)  # constraints of an episode to hops and energy of a step
    program = HindsightLP(mdp, mean, problem.budgets)
    rows = dict(re.findall(r"^    (\d|mean) +([\d. ]+)$", module.__doc__ or "", flags=re.MULTILINE))
    assert list(rows) == ["0", "1", "2", "mean"]
    for loss, row in zip([*scenarios(problem), scenarios(problem).mean(axis=0)], rows.values(), strict=True):
        value, _ = best_policy(mdp, loss)
        _, frugal = best_policy(mdp, loss + 1e-8 * mean.sum(axis=0))
        within = program.solve(loss)
        used = mean @ within.occupancy
        expected = [value, *(mean @ mdp.occupancy(frugal) * per_step)]
        expected += [within.value, *(used * per_step), *within.multipliers]
        np.testing.assert_allclose([float(number) for number in row.split()], expected, atol=6e-4)

        assert within.multipliers.max() > 0.1
        assert within.value > value + 0.4
        binding = within.multipliers > 0.1
        np.testing.assert_allclose(used[binding], problem.budgets[binding], rtol=1e-9)


def test_the_least_use_and_the_slack_of_the_docstring() -> None:
    problem = edge_cloud()
    mean = problem.constraints.mean
    least = np.array([best_policy(problem.mdp, g)[0] for g in mean]) * [4, 1] / (0.4 * 12)
    slack = slater_slack(problem.mdp, mean, problem.budgets)
    text = " ".join((module.__doc__ or "").split())
    assert f"below {least[0]:.3f} hops, or below {least[1]:.2f} energy" in text
    assert f"some policy has a slack of {slack:.3f} in each budget" in text


def test_options_change_the_size() -> None:
    problem = edge_cloud(n_cells=5, n_steps=3, prices=[[0.5, 1.0]], power=[0.0, 1.0], noise="none", max_delay=2)
    assert problem.space.layer_sizes == (1, 6, 10, 1)
    assert problem.action_names == ("site 0", "site 1")
    np.testing.assert_allclose(problem.budgets, [3 * 0.5 * 1.0, 3 * 0.5 * 0.45])
    delay, _ = problem.constraints.mean
    assert {0.0, 0.25, 0.5} == set(delay.tolist())  # 0, 1 and 2 hops of 2


def test_noise_is_as_asked_for() -> None:
    problem = edge_cloud(noise={"name": "scaled", "spread": 0.5})
    assert isinstance(problem.constraints, ScaledNoise)
    assert problem.constraints.spread == 0.5
    np.testing.assert_allclose(np.abs(problem.constraints.mean).max(axis=1).sum() * 1.5, 1, atol=0.2)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_cells": 2}, "n_cells is 2"),
        ({"n_steps": 0}, "n_steps is 0"),
        ({"n_cells": 3}, "at most one in each of the 3 cells"),
        ({"prices": [[0.1, 0.2, 0.3]]}, "prices has 3 sites and power has 4"),
        ({"prices": [0.1, 0.2, 0.3, 0.4]}, r"prices has shape \(4,\)"),
        ({"prices": [[0.1, 0.2, 0.3, 1.4]]}, "prices holds .* every entry must be in"),
        ({"power": [0.1, 0.2, 0.3, np.nan]}, "power holds"),
        ({"power": []}, r"power has shape \(0,\)"),
        ({"max_delay": 4.5}, "max_delay is 4.5; it must be a number from 0 to 4"),
        ({"max_energy": "low"}, "max_energy is 'low'"),
        ({"noise": {"name": "scaled", "spread": 2}}, "spread is 2"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        edge_cloud(**options)
