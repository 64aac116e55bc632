"""Problems by name, and what every one of them promises."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from benchmarks.problems import long_run_loss
from tests.problems.suite import NAMES, make_or_skip
from tightrope import InvalidInputError, checks, make, solve_cmdp
from tightrope.planning.hindsight import best_policy, slater_slack
from tightrope.problems import PROBLEMS
from tightrope.problems.constraints import NOISES
from tightrope.problems.losses import LOSSES

VARIANTS: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in NAMES),
    ("edge-cloud", {"noise": {"name": "scaled", "spread": 1.0}, "n_cells": 5}),
    ("grid", {"n_rows": 3, "n_columns": 4, "n_steps": 3, "start": (0, 0)}),
    ("inventory", {"capacity": 2, "n_days": 3, "demand": [0.5, 0.5], "budget": 1}),
    ("mars-rover", {"size": 8, "n_steps": 18}),
    ("media-streaming", {"n_levels": 4}),
    ("random", {"n_constraints": 3, "noise": {"name": "scaled", "spread": 1.0}, "n_successors": 2, "seed": 5}),
    ("single-server-queue", {"capacity": 2, "noise": "correlated"}),
]


@pytest.mark.parametrize(("name", "options"), VARIANTS)
def test_every_problem_passes_the_public_checks(name: str, options: dict[str, Any]) -> None:
    problem = make_or_skip(name, **options)
    assert problem.name == name
    assert len(checks.check_problem(problem)) == len(list(checks.yield_problem_checks()))


@pytest.mark.parametrize("losses", sorted(LOSSES))
@pytest.mark.parametrize("name", NAMES)
def test_every_problem_can_be_played_against_every_adversary(name: str, losses: str) -> None:
    problem = make_or_skip(name, losses=losses)
    assert problem.losses.name == losses
    checks.check_losses_are_within_assumption_2(problem)
    checks.check_losses_repeat_with_the_seed(problem)
    checks.check_losses_handed_out_stay_as_they_were(problem)


@pytest.mark.parametrize("noise", sorted(set(NOISES) - {"replay"}))
@pytest.mark.parametrize("name", NAMES)
def test_every_problem_can_be_drawn_with_every_noise(name: str, noise: str) -> None:
    problem, quiet = make_or_skip(name, noise=noise), make_or_skip(name, noise="none")
    checks.check_constraints_are_within_assumption_2(problem)
    checks.check_constraints_average_to_their_mean(problem)
    np.testing.assert_allclose(problem.mdp.transitions, quiet.mdp.transitions)
    if name != "random":  # the noise leaves budgets and means alone, in units; random's are made to fit
        np.testing.assert_allclose(problem.use_in_units(problem.budgets), quiet.use_in_units(quiet.budgets))
        means = [each.use_in_units(each.constraints.mean.T) for each in (problem, quiet)]
        np.testing.assert_allclose(means[0], means[1], atol=1e-12)


def test_a_recorded_table_takes_the_place_of_the_constraints() -> None:
    table = np.zeros((2, 1, 30))
    table[1, 0, ::2] = 0.5
    problem = make("machine-cycle", noise={"name": "replay", "table": table})
    np.testing.assert_array_equal(problem.constraints.mean, table.mean(axis=0))


@pytest.mark.parametrize("name", NAMES)
def test_budgets_are_neither_slack_nor_out_of_reach(name: str) -> None:
    """For the losses that come by default, in the long run."""
    problem = make_or_skip(name)
    mean, budgets, loss = problem.constraints.mean, problem.budgets, long_run_loss(problem)
    assert slater_slack(problem.mdp, mean, budgets) >= 0.02
    value, _ = best_policy(problem.mdp, loss)
    within = solve_cmdp(problem.mdp, loss, mean, budgets)
    assert within.value > value + 0.01
    assert within.multipliers.max() > 0.05


@pytest.mark.parametrize("name", NAMES)
def test_the_listing_is_true_and_its_options_have_defaults_that_work(name: str) -> None:
    entry, one = PROBLEMS[name], make_or_skip(name)
    assert 10 < len(entry.summary) < 80
    assert (entry.states, entry.steps, entry.constraints) == (one.space.n_states, one.space.n_layers, len(one.budgets))
    assert {"losses", "noise"} <= set(entry.options)
    other = make(name, **entry.options)
    np.testing.assert_array_equal(one.mdp.transitions, other.mdp.transitions)
    assert one.losses.name == other.losses.name


def test_the_listing_is_in_order() -> None:
    assert list(PROBLEMS) == sorted(PROBLEMS)


def test_options_reach_the_problem() -> None:
    assert make("random", layer_sizes=[1, 10, 10, 1], n_actions=4, seed=5).space.n_states == 22
    assert make("media-streaming", losses="switching").losses.name == "switching"


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("media_streaming", {}, "no problem 'media_streaming'; did you mean 'media-streaming'"),
        ("xyz", {}, r"no problem 'xyz' \(known: autonomous-driving, box-pushing, "),
        ("random", {"seeds": 3}, "problem 'random' has no option 'seeds'; did you mean 'seed'"),
        ("media-streaming", {"wings": 2}, r"'wings' \(known: budget, losses, n_levels, n_steps, noise\)"),
    ],
)
def test_what_does_not_exist_is_refused_with_what_does(name: str, options: Any, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        make(name, **options)


def test_listing_does_not_load_the_heavy_libraries() -> None:
    code = (
        "import sys; from tightrope.problems import PROBLEMS; [entry.summary for entry in PROBLEMS.values()];"
        "print(sorted({'highspy', 'numpy'} & set(sys.modules)))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
