"""Problems by name, and what every one of them promises."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from tightrope.errors import InvalidInputError
from tightrope.planning import slater_slack
from tightrope.problems import PROBLEMS, make
from tightrope.problems.losses import LOSSES

VARIANTS: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in PROBLEMS),
    ("edge-cloud", {"spread": 1.0, "n_cells": 5}),
    ("media-streaming", {"n_levels": 4}),
    ("random", {"n_constraints": 3, "spread": 1.0, "n_successors": 2, "seed": 5}),
]


@pytest.mark.parametrize(("name", "options"), VARIANTS)
@pytest.mark.parametrize("losses", sorted(LOSSES))
def test_assumption_2_holds_in_thousands_of_draws(name: str, options: dict[str, Any], losses: str) -> None:
    problem = make(name, losses={"name": losses} | ({} if losses == "fixed" else {"period": 17}), **options)
    assert problem.name == name
    assert problem.losses.name == losses
    rng = np.random.default_rng(8)
    adversary = problem.losses.begin(rng)
    n_constraints, n_tuples = len(problem.budgets), problem.space.n_tuples
    for episode in range(1, 2001):
        f, g = adversary.loss(episode), problem.constraints.sample(rng)
        assert f.shape == (n_tuples,)
        assert g.shape == (n_constraints, n_tuples)
        assert np.abs(f).max() <= 1
        assert np.abs(g).max(axis=1).sum() <= 1 + 1e-15
    assert np.abs(problem.budgets).sum() <= problem.space.n_layers


@pytest.mark.parametrize("name", sorted(PROBLEMS))
def test_draws_average_to_the_mean(name: str) -> None:
    constraints, rng = make(name).constraints, np.random.default_rng(8)
    average = np.mean([constraints.sample(rng) for _ in range(3000)], axis=0)
    np.testing.assert_allclose(average, constraints.mean, atol=0.01)


@pytest.mark.parametrize("name", sorted(PROBLEMS))
def test_budgets_can_be_met_with_something_to_spare(name: str) -> None:
    problem = make(name)
    assert slater_slack(problem.mdp, problem.constraints.mean, problem.budgets) > 0.1


@pytest.mark.parametrize("name", sorted(PROBLEMS))
def test_the_listing_has_a_line_and_options_with_defaults_that_work(name: str) -> None:
    entry = PROBLEMS[name]
    assert 10 < len(entry.summary) < 80
    assert "losses" in entry.options
    one, other = make(name), make(name, **entry.options)
    np.testing.assert_array_equal(one.mdp.transitions, other.mdp.transitions)
    assert one.losses.name == other.losses.name


def test_options_reach_the_problem() -> None:
    assert make("random", layer_sizes=[1, 10, 10, 1], n_actions=4, seed=5).space.n_states == 22
    assert make("media-streaming", losses="switching").losses.name == "switching"


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("media_streaming", {}, "no problem 'media_streaming'; did you mean 'media-streaming'"),
        ("xyz", {}, r"no problem 'xyz' \(known: edge-cloud, media-streaming, random\)"),
        ("random", {"seeds": 3}, "problem 'random' has no option 'seeds'; did you mean 'seed'"),
        ("media-streaming", {"wings": 2}, r"'wings' \(known: budget, losses, n_levels, n_steps\)"),
    ],
)
def test_what_does_not_exist_is_refused_with_what_does(name: str, options: Any, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        make(name, **options)


def test_listing_does_not_load_the_heavy_libraries() -> None:
    code = (
        "import sys; from tightrope.problems import PROBLEMS; [entry.summary for entry in PROBLEMS.values()];"
        "print(sorted({'numba', 'scipy', 'numpy'} & set(sys.modules)))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
