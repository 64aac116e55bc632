"""OptCMDP, OptDual-CMDP and OptPrimalDual-CMDP over whole runs, against HiGHS and against loops.

Two budgets that are in the way of the loss, losses and uses that vary; all learners play what they say. The twins know
the plays alone: what they expect is worked out from these, from the first episode on.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.conftest import FloatArray, random_mdp
from tests.extended_lp import Answer, extended_lp
from tests.learners.averages import averages, backwards, radii
from tests.learners.problems import Turns
from tests.twins import sample_path
from tightrope import BanditEpisode, LayeredSpace, Problem
from tightrope.learners import LearnerBase
from tightrope.learners.opt_cmdp import OptCMDP
from tightrope.learners.opt_dual_cmdp import OptDualCMDP
from tightrope.learners.opt_primal_dual import OptPrimalDual
from tightrope.problems.constraints import Deterministic

K, H, SLACK = 40, 3, 0.45
RHO = H / (SLACK / 2)  # H/γ


def two_budgets() -> Problem:
    """The first action is cheap and uses much of both budgets, of the second early and of the first late."""
    space = LayeredSpace.dense([1, 2, 2, 1], 2)
    rng = np.random.default_rng(3)
    first, late = space.pairs[:, 1] == 0, np.arange(space.n_pairs) >= 2
    use = np.array([np.where(first & late, 0.35, -0.3), np.where(first & ~late, 0.4, np.where(first, 0.1, -0.3))])
    return Problem(
        name="two budgets",
        mdp=random_mdp(rng, space),
        losses=Turns([space.expand_to_tuples(np.where(first, -0.7, 0.5))]),
        constraints=Deterministic(space.expand_to_tuples(use + rng.uniform(-0.04, 0.04, use.shape))),
        budgets=np.array([-0.4, -0.4]),
        constraint_names=("late", "early"),
    )


def whole_run(problem: Problem, learner: LearnerBase, seed: int) -> Iterator[list[BanditEpisode]]:
    """Before each of K episodes all plays so far; the learner then plays, and is shown what it met."""
    space, rng, plays = problem.space, np.random.default_rng(seed), list[BanditEpisode]()
    for _ in range(K):
        yield plays
        uniforms = rng.random(2 * H)
        states, actions, steps = sample_path(space, learner.policy.probabilities, problem.mdp.transitions, uniforms)
        f = problem.losses.begin(rng).loss(1)[steps] + rng.uniform(-0.3, 0.3, H)
        g = problem.constraints.mean[:, steps] + rng.uniform(-0.05, 0.05, (2, H))
        plays.append(BanditEpisode(states, actions, f, g))
        learner.observe(plays[-1])


class Known:
    """c̃, d̃, the bounds of the models and the budgets α, from the plays so far."""

    def __init__(self, problem: Problem, plays: list[BanditEpisode], scale: float) -> None:
        space = self.space = problem.space
        N, M, sums = averages(problem, plays)
        beta_c, beta_p = radii(problem, N, M, K, scale)
        self.c, self.d = np.split(sums / np.maximum(N, 1) - beta_c, [1])
        P, unseen = M / space.expand_to_tuples(np.maximum(N, 1)), space.expand_to_tuples(N) == 0
        self.lower, self.upper = np.where(unseen, 0, P - beta_p), np.where(unseen, 1, P + beta_p)
        self.alpha = (problem.budgets + H) / 2

    def best(self, prices: FloatArray | None = None, policy: FloatArray | None = None) -> Answer:
        """Of the LP within the budgets, or, at prices, of c̃ + Σ_i λ_i d̃_i."""
        c, no_budgets = self.c[0], (np.empty((0, self.space.n_pairs)), np.empty(0))
        cost, (D, alpha) = (c, (self.d, self.alpha)) if prices is None else (c + prices @ self.d, no_budgets)
        return extended_lp(self.space, self.lower, self.upper, cost, D, alpha, policy)


def test_opt_cmdp_plays_an_optimal_policy_of_the_extended_lp_in_every_episode() -> None:
    problem, priced = two_budgets(), 0
    learner = OptCMDP(problem.space, problem.budgets, episodes=K, radius_scale=0.03)
    for plays in whole_run(problem, learner, seed=1):
        known, Lambda = Known(problem, plays, scale=0.03), learner.multipliers
        best = known.best()
        assert best.excess == pytest.approx(0, abs=1e-9)
        assert known.best(policy=learner.policy.probabilities).value == pytest.approx(best.value, abs=1e-6)
        assert known.best(Lambda).value - Lambda @ known.alpha == pytest.approx(best.value, abs=1e-6)  # strong duality
        priced += bool((Lambda > 0.01).all())
    assert priced > K / 3


def test_opt_dual_steps_by_what_the_best_answer_to_its_prices_uses() -> None:
    problem, inside, Lambda = two_budgets(), 0, np.zeros(2)
    learner = OptDualCMDP(problem.space, problem.budgets, episodes=K, slack=SLACK, radius_scale=0.03)
    for plays in whole_run(problem, learner, seed=1):
        np.testing.assert_allclose(learner.multipliers, Lambda, atol=1e-6)
        known = Known(problem, plays, scale=0.03)
        best = known.best(Lambda)
        answer = known.best(Lambda, policy=learner.policy.probabilities)
        assert answer.value == pytest.approx(best.value, abs=1e-6)
        inside += bool(((Lambda > 0) & (Lambda < RHO)).all())
        Lambda = np.maximum(Lambda + (known.d @ best.x - known.alpha) / np.sqrt(H**2 * 2 * K / RHO**2), 0)
    assert inside > K / 2


def test_opt_primal_dual_steps_as_published() -> None:
    problem, inside, Lambda, scale = two_budgets(), 0, np.zeros(2), 0.0003
    space, states = problem.space, problem.space.pairs[:, 0]
    learner: Any = OptPrimalDual(space, problem.budgets, episodes=K, slack=SLACK, radius_scale=scale)
    pi = 1 / np.bincount(states)[states]
    for plays in whole_run(problem, learner, seed=1):
        np.testing.assert_allclose(learner.policy.probabilities, pi, atol=1e-9)
        np.testing.assert_allclose(learner.multipliers, Lambda, atol=1e-9)
        N, M, sums = averages(problem, plays)
        n, (beta_c, beta_p) = np.maximum(N, 1), radii(problem, N, M, K, scale)
        bonus, P = beta_c + H * space.sum_over_successors(beta_p), M / space.expand_to_tuples(n)
        V, Q = map(np.array, zip(*(backwards(space, pi, P, row / n - bonus, np.inf) for row in sums), strict=True))
        weights = pi * np.exp(-np.sqrt(2 * np.log(2) / (H**2 * (1 + 2 * RHO) ** 2 * K)) * (Q[0] + Lambda @ Q[1:]))
        pi = weights / np.bincount(states, weights)[states]
        inside += bool(((Lambda > 0) & (Lambda < RHO)).all())
        Lambda = np.clip(Lambda + (V[1:, 0] - (problem.budgets + H) / 2) / np.sqrt(H**2 * 2 * K / RHO**2), 0, RHO)
    assert inside > K / 2
