"""OptPess-LP against an explicit LP over a whole run, and numbers worked out by hand."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from tests.conftest import FloatArray
from tests.learners.averages import averages
from tests.learners.problems import problem_with
from tests.learners.test_optimistic import episodes_of, one_step
from tightrope import LayeredSpace, Policy, make_learner


def flow(space: LayeredSpace, P: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Equations over pairs: what leaves a state is what the model P brings there, 1 at the first."""
    A, b = np.zeros((space.n_states - 1, space.n_pairs)), np.zeros(space.n_states - 1)
    b[0] = 1.0
    for i, (s, _) in enumerate(space.pairs.tolist()):
        A[s, i] += 1.0
    for j, (_, _, s_next) in enumerate(space.tuples.tolist()):
        if s_next < space.n_states - 1:
            A[s_next, space.pair_of_tuple[j]] -= P[j]
    return A, b


def visits(space: LayeredSpace, pi: FloatArray, P: FloatArray) -> FloatArray:
    """Return the visits x(s,a) of a policy, from the first layer to the last."""
    mass, x = np.zeros(space.n_states), np.zeros(space.n_pairs)
    mass[0] = 1.0
    for j, (s, _, s_next) in enumerate(space.tuples.tolist()):
        i = space.pair_of_tuple[j]
        x[i] = mass[s] * pi[i]
        mass[s_next] += x[i] * P[j]
    return x


def test_a_whole_run_of_optpess_lp() -> None:
    """With β as published, K = 400 and δ = 0.01, but 1/2000 of it: at first π_b, then the answer of the LP."""
    problem, K, scale = problem_with(2), 400, 0.0005
    space, H, S = problem.space, 3, 3
    learner: Any = make_learner("optpess-lp", problem, episodes=K, radius_scale=scale)
    budgets, C_b = (problem.budgets + H) / 2, (learner.parameters["safe_usage"] + H) / 2
    gamma, pi_b = float(min(budgets - C_b)), learner.safe_policy.probabilities
    plays = episodes_of(problem, Policy.uniform(space), 70)
    safe, planned, dear = 0, 0, 0
    for k, play in enumerate(plays):
        N, M, sums = averages(problem, plays[:k])
        n = np.maximum(N, 1)
        P = np.array(
            [M[j] / N[i] if N[i] else 1 / space.successors_per_pair[i] for j, i in enumerate(space.pair_of_tuple)]
        )
        beta = scale * np.sqrt(math.log(16 * 30 * K / 0.01) / n)
        c_bar = sums[1:] / n + (1 + S * H) * beta
        r_bar = sums[0] / n - (1 + S * H + 4 * H * (1 + S * H) / gamma) * beta
        if (c_bar @ visits(space, pi_b, P) >= (budgets + C_b) / 2).any():
            np.testing.assert_array_equal(learner.policy.probabilities, pi_b)
            safe += 1
        else:
            A, b = flow(space, P)
            best, x = linprog(r_bar, c_bar, budgets, A, b), visits(space, learner.policy.probabilities, P)
            assert r_bar @ x == pytest.approx(best.fun, abs=1e-6)
            assert (c_bar @ x <= budgets + 1e-6).all()
            np.testing.assert_allclose(learner.multipliers, -best.ineqlin.marginals, atol=1e-5)
            planned, dear = planned + 1, dear + (learner.multipliers.max() > 0)
        learner.observe(play)
    assert safe > 5 and planned > 20 and dear > 10


def test_beta_by_hand() -> None:
    """30 tuples, K = 50, δ = 0.01: log(16 · 30 · 50 / 0.01) = log 2,400,000 = 14.690979, and √ of it is 3.832881."""
    learner: Any = make_learner("optpess-lp", problem_with(2), episodes=50)
    assert learner._beta(np.array([0, 1, 100])).tolist() == pytest.approx([3.832881, 3.832881, 0.3832881], abs=1e-6)


def test_it_leaves_the_safe_policy_when_half_of_its_slack_is_beyond_doubt() -> None:
    """One step, S = H = 1: c̄ = ĉ + 2β. π_b uses 0 of 0.8: ½ against 0.9 in [0, 1], half way is 0.7, so β < 0.1.

    3 tuples, K = 1000, δ = 0.01: 100 log(16 · 3 · 1000 / 0.01) = 1538.41 visits of its action.
    """
    problem = one_step()
    learner = make_learner("optpess-lp", problem, episodes=1000)
    for k, play in enumerate(episodes_of(problem, learner.policy, 1550)):
        assert (learner.policy[0] == {0: 1.0, 1: 0.0, 2: 0.0}) == (k < 1539)
        learner.observe(play)
