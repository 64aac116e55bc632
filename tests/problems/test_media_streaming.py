"""Media streaming: transitions and charges by hand, values by a recursion of their own."""

import re
from typing import Any

import numpy as np
import pytest

from tests.conftest import FloatArray
from tightrope import InvalidInputError, Problem, solve_cmdp
from tightrope.planning.hindsight import best_policy, slater_slack
from tightrope.problems.losses import Oblivious
from tightrope.problems.suite import media_streaming as module
from tightrope.problems.suite.media_streaming import media_streaming

FAST, SLOW = 0, 1


def scenarios(problem: Problem) -> FloatArray:
    assert isinstance(problem.losses, Oblivious)
    return problem.losses.scenarios


def level_and_step(problem: Problem, state: int) -> tuple[int, int]:
    numbers = re.fullmatch(r"level (\d+), step (\d+)", problem.state_name(state))
    assert numbers is not None
    return int(numbers[1]), int(numbers[2])


def transition_matrix(problem: Problem, action: int, step: int) -> FloatArray:
    """(10, 10) between levels, of one step before the last; zero where a level cannot be met yet."""
    matrix = np.zeros((10, 10))
    for (s, a, s_next), p in zip(problem.space.tuples.tolist(), problem.mdp.transitions, strict=True):
        if a == action and s_next < problem.space.n_states - 1:
            (level, at), (next_level, _) = level_and_step(problem, s), level_and_step(problem, s_next)
            if at == step:
                matrix[level, next_level] = p
    return matrix


@pytest.mark.parametrize(("action", "up", "down", "stay"), [(FAST, 0.18, 0.08, 0.74), (SLOW, 0.02, 0.72, 0.26)])
def test_transitions_by_hand(action: int, up: float, down: float, stay: float) -> None:
    expected = up * np.eye(10, k=1) + down * np.eye(10, k=-1) + stay * np.eye(10)
    expected[0, 0] += down
    expected[9, 9] += up
    problem = media_streaming(n_steps=11)  # in ten steps the full buffer is only met where all is merged
    np.testing.assert_allclose(transition_matrix(problem, action, step=9), expected, atol=1e-15)
    expected[3:] = 0
    np.testing.assert_allclose(transition_matrix(problem, action, step=2), expected, atol=1e-15)


def test_size_names_and_defaults() -> None:
    problem = media_streaming()
    assert problem.space.layer_sizes == (*range(1, 11), 1)
    assert problem.action_names == ("fast", "slow")
    assert problem.state_name(0) == "level 0, step 0"
    assert problem.budgets.tolist() == [5.0]
    assert problem.constraint_names == ("fast steps",)
    assert problem.losses.name == "fixed"


def test_charges_are_of_the_level_before_the_move() -> None:
    problem = media_streaming()
    playback, live, download = scenarios(problem)
    (fast_steps,) = problem.constraints.sample(np.random.default_rng(0))
    for j, (s, a, _) in enumerate(problem.space.tuples.tolist()):
        level, _ = level_and_step(problem, s)
        assert playback[j] == (level == 0)
        assert live[j] == level / 9
        assert download[j] == 1 - level / 9
        assert fast_steps[j] == (a == FAST)


def test_best_values_without_the_budget_by_backward_recursion() -> None:
    matrices = []
    for delivers in (0.9, 0.1):
        up, down = delivers * (1 - 0.8), (1 - delivers) * 0.8
        matrix = up * np.eye(10, k=1) + down * np.eye(10, k=-1)
        matrices.append(matrix + np.diag(1 - matrix.sum(axis=1)))
    problem = media_streaming()
    level = np.arange(10)
    for loss, charged in zip(scenarios(problem), [level == 0, level / 9, 1 - level / 9], strict=True):
        V = np.zeros(10)
        for _ in range(10):
            V = charged + np.min([matrix @ V for matrix in matrices], axis=0)
        np.testing.assert_allclose(best_policy(problem.mdp, loss)[0], V[0])


def test_the_numbers_of_the_docstring() -> None:
    """The budget binds in playback, download and on average, and is slack in live."""
    problem = media_streaming()
    mdp, mean = problem.mdp, problem.constraints.mean
    playback, live, download = scenarios(problem)
    text = " ".join((module.__doc__ or "").split())
    for loss in (playback, download, scenarios(problem).mean(axis=0)):
        value, _ = best_policy(mdp, loss)
        _, frugal = best_policy(mdp, loss + 1e-8 * mean[0])
        fast_steps = float(mean[0] @ mdp.occupancy(frugal))
        within = solve_cmdp(mdp, loss, mean, problem.budgets)
        np.testing.assert_allclose(mean @ within.occupancy, [5.0])
        assert fast_steps > 8.5
        assert within.value > value + 0.2
        for words in (f"{value:.2f}", f"{fast_steps:.3g} fast", f"{within.value:.2f}, multiplier"):
            assert words in text
        assert f"{within.value:.2f}, multiplier {within.multipliers[0]:.2f}" in text
    assert solve_cmdp(mdp, live, mean, problem.budgets).multipliers[0] < 1e-9
    np.testing.assert_allclose(slater_slack(mdp, mean, problem.budgets), 5.0)


def test_options_change_size_and_budget() -> None:
    problem = media_streaming(n_levels=3, n_steps=4, budget=1.5, losses={"name": "switching", "period": 7})
    assert problem.space.layer_sizes == (1, 2, 3, 3, 1)
    assert problem.budgets.tolist() == [1.5]
    assert problem.losses.name == "switching"
    assert scenarios(problem)[1].max() == 1.0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_levels": 1}, "n_levels is 1; it must be a whole number of at least 2"),
        ({"n_levels": 10.5}, "n_levels is 10.5"),
        ({"n_steps": 0}, "n_steps is 0"),
        ({"budget": 11}, "budget is 11; it must be a number from 0 to 10"),
        ({"budget": -1}, "budget is -1"),
        ({"losses": "adversarial"}, "no loss sequence 'adversarial'"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        media_streaming(**options)
