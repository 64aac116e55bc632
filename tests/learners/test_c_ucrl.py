"""C-UCRL: phases and programs against a plain twin, no budget exceeded at the published radius, and it learns."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from tests.conftest import FloatArray
from tests.learners.problems import problem_with
from tests.learners.test_euclidean import flow
from tests.learners.test_optimistic import one_step
from tightrope import LayeredSpace, Policy, make_learner, run
from tightrope.checks.worlds import World, world
from tightrope.learners.c_ucrl import CUCRL
from tightrope.learners.needs import most_slack_policy

Met = dict[tuple[int, int], list[FloatArray]]


def program(at: World, met: Met, t: int, delta: float, scale: float) -> tuple[FloatArray, FloatArray, Any]:
    """Costs of line 3, and the answer of an LP solver."""
    space, A_eq, b_eq = at.space, *flow(at.mdp)
    cost, use = np.zeros(space.n_pairs), np.ones((len(at.budgets), space.n_pairs))
    log_term = math.log((1 + len(at.budgets)) * space.n_pairs * math.pi**2 * t**3 / (3 * delta))
    for i, (s, a) in enumerate(space.pairs.tolist()):
        if (s, a) in met:
            mean, epsilon = np.mean(met[s, a], axis=0), scale * math.sqrt(log_term / (2 * len(met[s, a])))
            cost[i], use[:, i] = max(0, mean[0] - epsilon), np.minimum(1, mean[1:] + epsilon)
        else:
            use[:, i] = min(1, scale * math.sqrt(log_term / 2))
    answer = linprog(cost, A_ub=use, b_ub=(at.budgets + space.n_layers) / 2, A_eq=A_eq, b_eq=b_eq)
    return cost, use, answer


@pytest.mark.parametrize(
    ("layers", "n_actions", "n_constraints", "scale"), [([1, 2, 2, 1], 2, 2, 0.02), ([1, 1], 4, 1, 0.4)]
)
def test_a_run_is_that_of_its_twin(layers: list[int], n_actions: int, n_constraints: int, scale: float) -> None:
    """Phases of 1, 2, 3, … episodes, the first of each with π_0, the others with the answer of an explicit LP."""
    at, delta, n_phases = world(LayeredSpace.dense(layers, n_actions), n_constraints), 0.05, 14
    safe, alpha = most_slack_policy(at.mdp, at.mean, at.budgets), (at.budgets + at.space.n_layers) / 2
    learner: Any = CUCRL(
        at.space, at.budgets, episodes=9, model=at.mdp, safe_policy=safe, level=delta, radius_scale=scale
    )  # fmt: skip
    met: Met = {}
    t, answered, binding, planned = 0, 0, 0, None
    for k in range(1, n_phases + 1):
        for j in range(k):
            if j == 0 or planned is None or not planned[2].success:
                np.testing.assert_array_equal(learner.policy.probabilities, safe.probabilities)
            else:
                cost, use, answer = planned
                x = at.space.sum_over_successors(at.mdp.occupancy(learner.policy))
                assert cost @ x == pytest.approx(answer.fun, abs=1e-6)
                assert (use @ x <= alpha + 1e-6).all()
                np.testing.assert_allclose(learner.multipliers, -answer.ineqlin.marginals, atol=1e-5)
                answered, binding = answered + 1, binding + bool(learner.multipliers.any())
            t += 1
            episode = at.play(learner.policy, "bandit", t, np.random.default_rng([6, t]))
            learner.observe(episode)
            for h in range(at.space.n_layers):
                one = np.array([episode.losses[h], *episode.constraints[:, h]])
                met.setdefault((int(episode.states[h]), int(episode.actions[h])), []).append((one + 1) / 2)
            if j == 0:
                planned = program(at, met, t, delta, scale)
    assert learner.observed == t == n_phases * (n_phases + 1) // 2
    assert t / 4 < answered < t - n_phases and binding > 10


def test_the_radius_by_hand() -> None:
    """(1 + 1)·6·π²·10³ / (3·0.05) = 789,568.352; log 13.579242; ε(4 visits) = √(13.579242/8) = 1.302845."""
    space = LayeredSpace.dense([1, 2, 1], 2)
    at = world(space, 1)
    learner = CUCRL(space, [0.5], episodes=9, model=at.mdp, safe_policy=Policy.uniform(space), level=0.05)
    np.testing.assert_allclose(learner._radius(10, [0, 1, 4]), [2.605690, 2.605690, 1.302845], atol=1e-6)


def test_the_safe_policy_is_played_until_another_is_known_to_be_safe() -> None:
    problem = problem_with(2)
    learner = make_learner("c-ucrl", problem, episodes=100)
    assert isinstance(learner, CUCRL)
    run(problem, learner, episodes=100, regret="never")
    np.testing.assert_array_equal(learner.policy.probabilities, learner.safe_policy.probabilities)
    assert not learner.multipliers.any()
    assert (learner.state.phase, learner.state.played, learner.epoch) == (14, 9, 1)


def test_with_the_published_radius_it_learns_and_never_exceeds_a_budget() -> None:
    problem, T = one_step(), 6000
    history = run(problem, "c-ucrl", episodes=T, seed=1, regret="last")
    assert history["strong_violation"][-1] <= 1e-9 * T
    safe = run(problem, "safe-baseline", episodes=T, seed=1, regret="last")
    assert history["regret"][-1] < 0.5 * safe["regret"][-1]
