"""Random problems: their laws, their budgets, their seeds."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import FloatArray, layer_sizes
from tightrope import InvalidInputError, Problem, solve_cmdp
from tightrope.planning.hindsight import best_policy, slater_slack
from tightrope.problems.losses import Oblivious
from tightrope.problems.suite import random as module
from tightrope.problems.suite.random import random


def scenarios(problem: Problem) -> FloatArray:
    assert isinstance(problem.losses, Oblivious)
    return problem.losses.scenarios


def bits(problem: Problem) -> list[bytes]:
    arrays = (
        problem.space.tuples,
        problem.mdp.transitions,
        scenarios(problem),
        problem.constraints.mean,
        problem.budgets,
    )
    return [array.tobytes() for array in arrays]


@pytest.mark.parametrize("n_successors", [None, 3])
def test_the_same_seed_gives_the_same_bits_and_another_another(n_successors: int | None) -> None:
    one, again, other = (random(n_successors=n_successors, seed=seed) for seed in (5, 5, 6))
    assert bits(one) == bits(again)
    assert all(a != b for a, b in zip(bits(one)[1:], bits(other)[1:], strict=True))


def test_more_scenarios_or_constraints_do_not_change_the_rest() -> None:
    one, other = random(seed=5), random(seed=5, n_scenarios=7, n_constraints=2)
    np.testing.assert_array_equal(one.mdp.transitions, other.mdp.transitions)
    np.testing.assert_array_equal(scenarios(one), scenarios(other)[:4])
    np.testing.assert_allclose(one.constraints.mean[0], 2 * other.constraints.mean[0])


def test_transitions_are_uniform_on_the_simplex() -> None:
    """Dirichlet(1, 1, 1, 1): mean 1/4, variance 3/80, covariance -1/80."""
    problem = random(layer_sizes=[1, 400, 4, 1], n_actions=10, seed=1)
    P = problem.mdp.transitions[4000:-40].reshape(4000, 4)
    np.testing.assert_allclose(P.mean(axis=0), 1 / 4, atol=0.01)
    covariance = np.cov(P.T)
    np.testing.assert_allclose(np.diag(covariance), 3 / 80, atol=0.002)
    np.testing.assert_allclose(covariance[~np.eye(4, dtype=bool)], -1 / 80, atol=0.002)


def test_losses_and_constraints_fill_their_ranges() -> None:
    problem = random(layer_sizes=[1, 30, 30, 1], n_constraints=2, noise={"name": "scaled", "spread": 0.5})
    f, g = scenarios(problem), problem.constraints.mean
    np.testing.assert_allclose([f.min(), f.mean(), f.max()], [-1, 0, 1], atol=0.02)
    np.testing.assert_allclose([g.min(), g.mean(), g.max()], [0, 1 / 6, 1 / 3], atol=0.005)


@settings(max_examples=30)
@given(
    sizes=layer_sizes(max_steps=4, max_width=5),
    n_actions=st.integers(1, 3),
    n_constraints=st.integers(1, 3),
    n_successors=st.none() | st.integers(1, 3),
    seed=st.integers(0, 10**6),
)
def test_budgets_are_half_way_to_the_most_that_can_be_spared(
    sizes: list[int], n_actions: int, n_constraints: int, n_successors: int | None, seed: int
) -> None:
    problem = random(
        layer_sizes=sizes,
        n_actions=n_actions,
        n_constraints=n_constraints,
        n_successors=n_successors,
        seed=seed,
    )
    mdp, mean, budgets = problem.mdp, problem.constraints.mean, problem.budgets
    loss = scenarios(problem).mean(axis=0)
    value, policy = best_policy(mdp, loss)
    over = mean @ mdp.occupancy(policy) - budgets
    slack = slater_slack(mdp, mean, budgets)
    assert slack > 0  # whatever was drawn, the budgets can be met with something to spare
    if over.min() < 0:  # nothing undercuts the best policy in all constraints at once: it may go on
        np.testing.assert_allclose(over, -budgets / 11)
    else:
        np.testing.assert_allclose(over, slack, atol=1e-8)  # as far over all budgets as another stays below
        within = solve_cmdp(mdp, loss, mean, budgets)
        assert within.value > value
        assert within.multipliers.max() > 0


def test_with_one_constraint_the_budget_is_half_way_between_least_and_best() -> None:
    problem = random(seed=5)
    mdp, mean = problem.mdp, problem.constraints.mean
    least, _ = best_policy(mdp, mean[0])
    loss = scenarios(problem).mean(axis=0)
    value, policy = best_policy(mdp, loss)
    usage = float(mean[0] @ mdp.occupancy(policy))
    np.testing.assert_allclose(problem.budgets, [(least + usage) / 2])

    within = solve_cmdp(mdp, loss, mean, problem.budgets)
    slack = slater_slack(mdp, mean, problem.budgets)
    text = " ".join((module.__doc__ or "").split())
    budget = problem.budgets[0]
    assert f"u = {usage:.3f}, least {least:.3f}, budget {budget:.3f}, slack {slack:.3f}" in text
    assert f"{value:.3f} without the budget and {within.value:.3f} with it" in text
    assert f"multiplier {within.multipliers[0]:.2f}" in text


@pytest.mark.parametrize("seed", range(5))
def test_sparse_spaces_have_the_successors_asked_for_and_reach_every_state(seed: int) -> None:
    sizes, n_successors = [1, 30, 7, 50, 1], 3
    problem = random(layer_sizes=sizes, n_actions=2, n_successors=n_successors, seed=seed)
    space = problem.space
    for k, (size, n_next) in enumerate(pairwise(sizes)):
        width = space.successors_per_pair[space.layer_of_pair == k]
        least = -(-n_next // (2 * size))  # fewer could not reach all of the next layer
        assert (width == min(n_next, max(n_successors, least))).all()
        assert len(width) == 2 * size
    assert set(space.tuples[:, 2].tolist()) == set(range(1, space.n_states))
    assert (problem.mdp.transitions > 0).all()


def test_one_action_leaves_nothing_to_choose_and_the_budget_above_its_use() -> None:
    problem = random(n_actions=1, n_constraints=2)
    _, only = best_policy(problem.mdp, scenarios(problem)[0])
    usage = problem.constraints.mean @ problem.mdp.occupancy(only)
    np.testing.assert_allclose(problem.budgets, 1.1 * usage)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"layer_sizes": [1, 0, 1]}, r"layer_sizes\[1\] is 0"),
        ({"layer_sizes": [1, 2.5, 1]}, r"layer_sizes\[1\] is 2.5"),
        ({"layer_sizes": [1]}, "at least a first and a last layer"),
        ({"layer_sizes": [1], "n_successors": 1}, "at least a first and a last layer"),
        ({"layer_sizes": [1, 2]}, "layer 1 has 2 states"),
        ({"layer_sizes": [2, 1], "n_successors": 1}, "layer 0 has 2 states"),
        ({"n_actions": 0}, "n_actions is 0"),
        ({"n_successors": 0}, "n_successors is 0"),
        ({"n_scenarios": 0}, "n_scenarios is 0"),
        ({"n_constraints": 0}, "n_constraints is 0"),
        ({"noise": {"name": "scaled", "spread": 1.5}}, "spread is 1.5"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 0.5}, "seed is 0.5"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        random(**options)
