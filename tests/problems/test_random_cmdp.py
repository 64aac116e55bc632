"""The generator of random instances: its laws, its options, and that its budgets can be met."""

import hashlib
from collections import Counter
from typing import Any

import numpy as np
import pytest

import tightrope as tr
from tests.problems.twin import scenarios
from tightrope import InvalidInputError, Policy, Problem, checks, solve_cmdp
from tightrope.planning.hindsight import best_policy, slater_slack
from tightrope.problems.suite.random_cmdp import MOST_TUPLES

SEEDS = range(150)


@pytest.fixture(scope="module")
def drawn() -> list[Problem]:
    return [tr.make("random-cmdp", seed=seed) for seed in SEEDS]


def bits(problem: Problem) -> list[bytes]:
    f = [problem.losses.begin(np.random.default_rng(0)).loss(t) for t in (1, 2, 3)]
    g = problem.constraints.sample(np.random.default_rng(0))
    arrays = (problem.space.tuples, problem.mdp.transitions, *f, g, problem.budgets)
    return [array.tobytes() for array in arrays]


def test_the_same_seed_gives_the_same_bits_and_another_another() -> None:
    for seed in range(20):
        assert bits(tr.make("random-cmdp", seed=seed)) == bits(tr.make("random-cmdp", seed=seed))
        assert bits(tr.make("random-cmdp", seed=seed)) != bits(tr.make("random-cmdp", seed=seed + 1))


def test_instances_have_the_same_bits_on_every_machine() -> None:
    digest = hashlib.sha256()
    for problem in (tr.make("random-cmdp", seed=seed) for seed in range(20)):
        for array in (problem.space.tuples, problem.mdp.transitions, problem.constraints.mean, problem.budgets):
            digest.update(array.tobytes())
        digest.update(scenarios(problem).tobytes())
    assert digest.hexdigest()[:16] == "3fddbcdcf8c2d253"


@pytest.mark.parametrize("seed", range(0, 40, 3))
def test_instances_pass_the_public_checks(seed: int) -> None:
    assert len(checks.check_problem(tr.make("random-cmdp", seed=seed))) == len(list(checks.yield_problem_checks()))


def test_everything_varies_and_instances_stay_small(drawn: list[Problem]) -> None:
    assert max(problem.space.n_tuples for problem in drawn) <= MOST_TUPLES
    assert {len(problem.budgets) for problem in drawn} == {1, 2, 3, 4, 5}
    assert {problem.space.n_layers for problem in drawn} == set(range(2, 13))
    assert {problem.space.n_actions for problem in drawn} == {2, 3, 4, 5}
    tied = np.mean([problem.ties is not None for problem in drawn])
    assert 0.2 < tied < 0.6
    by_losses, by_noise = (Counter(names) for names in zip(*((p.losses.name, p.noise) for p in drawn), strict=True))
    assert set(by_losses) == {
        *("fixed", "iid", "switching", "drifting", "waves", "square-waves", "random-walk", "bursts", "chaser")
    }
    assert set(by_noise) == {"none", "scaled", "correlated", "beta", "bernoulli"}
    assert min(by_losses.values()) >= 5
    assert min(by_noise.values()) >= 15


def test_costs_are_caused_by_transitions_from_common_to_rare(drawn: list[Problem]) -> None:
    """The chances of the moves that cost something, before the last step, reach from 1e-4 to above one half."""
    chances = []
    for problem in drawn:
        inner = problem.space.layer_of_pair[problem.space.pair_of_tuple] < problem.space.n_layers - 1
        cost = (problem.constraints.mean > 0).any(axis=0) & inner
        chances.append(problem.mdp.transitions[cost])
    logs = np.log10(np.concatenate(chances))
    assert logs.min() < -4
    assert logs.max() > np.log10(0.8)
    share, _ = np.histogram(logs, [-9, -3, -2, -1, 0])
    assert share.min() > 0.1 * len(logs)


def test_every_budget_can_be_met_with_something_to_spare_and_most_bind(drawn: list[Problem]) -> None:
    binding, relative = 0, []
    for problem in drawn:
        mean, budgets = problem.constraints.mean, problem.budgets
        assert (budgets > 0).all()
        relative.append(slater_slack(problem.mdp, mean / budgets[:, None], np.ones(len(budgets))))
        f = scenarios(problem).mean(axis=0)
        binding += solve_cmdp(problem.mdp, f, mean, budgets).value > best_policy(problem.mdp, f)[0] + 1e-6
    assert min(relative) > 2e-5
    assert binding > len(drawn) // 2
    assert np.quantile(relative, 0.1) < 0.05  # some are tight
    assert np.quantile(relative, 0.9) > 0.5  # some are generous


@pytest.mark.parametrize("slack", [0.0, 0.001, 0.3])
def test_with_one_budget_the_slack_is_the_share_that_was_asked_for(slack: float) -> None:
    """Between the least use, at slack 0, and that of the best policy without budgets, at slack 1."""
    for seed in range(8):
        tight, asked, wide = (
            tr.make("random-cmdp", seed=seed, n_constraints=1, slack=value, noise="none") for value in (0.0, slack, 1.0)
        )
        least, _ = best_policy(asked.mdp, asked.constraints.mean[0])
        _, best = best_policy(wide.mdp, scenarios(wide).mean(axis=0))
        used, even = (wide.constraints.mean @ wide.mdp.occupancy(p) for p in (best, Policy.uniform(wide.space)))
        np.testing.assert_allclose(wide.budgets, np.maximum(used, 0.1 * even), rtol=1e-9)
        np.testing.assert_allclose(tight.budgets, least, rtol=1e-4, atol=1e-7)
        np.testing.assert_allclose(asked.budgets, (1 - slack) * tight.budgets + slack * wide.budgets, rtol=1e-9)


def test_what_is_fixed_leaves_the_other_draws_as_they_are() -> None:
    for seed in range(10):
        problem = tr.make("random-cmdp", seed=seed)
        other = tr.make("random-cmdp", seed=seed, losses="chaser", noise="none", slack=0.5)
        assert (other.losses.name, other.noise) == ("chaser", "none")
        np.testing.assert_array_equal(problem.mdp.transitions, other.mdp.transitions)
        np.testing.assert_array_equal(scenarios(problem), scenarios(other))
        sizes = tr.make("random-cmdp", seed=seed, n_constraints=len(problem.budgets), n_actions=problem.space.n_actions)
        assert bits(sizes) == bits(problem)


def test_sizes_that_are_asked_for_are_given() -> None:
    problem = tr.make(
        "random-cmdp",
        seed=1,
        n_steps=5,
        n_states=20,
        n_actions=3,
        n_successors=20,
        n_constraints=2,
        rarity=1e-6,
        stationary=True,
    )
    assert problem.space.layer_sizes == (1, 20, 20, 20, 20, 1)
    assert problem.space.n_tuples == 60 + 3 * 1200 + 60  # more than would be drawn
    assert problem.ties is not None
    assert len(problem.budgets) == 2
    assert problem.mdp.transitions.min() < 1e-5
    assert tr.make("random-cmdp", seed=1, n_steps=5, stationary=False).ties is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"seed": -1}, "seed is -1"),
        ({"n_steps": 0}, "n_steps is 0"),
        ({"n_states": 0}, "n_states is 0"),
        ({"n_actions": 2.5}, "n_actions is 2.5"),
        ({"n_successors": 0}, "n_successors is 0"),
        ({"n_constraints": 0}, "n_constraints is 0"),
        ({"stationary": 1}, "stationary is 1; it must be True, False, or None"),
        ({"rarity": 0}, "rarity is 0"),
        ({"slack": -0.1}, "slack is -0.1"),
        ({"losses": "wave"}, "did you mean 'waves'"),
        ({"n_states": 10**9, "n_steps": 10**9}, "a problem of these sizes"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        tr.make("random-cmdp", **options)
