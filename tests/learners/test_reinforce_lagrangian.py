"""REINFORCE with a multiplier: against a plain twin, by hand, and that it learns."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.learners.test_optimistic import two_choices
from tightrope import BanditEpisode, InvalidInputError, LayeredSpace, Policy, make_learner, run
from tightrope.checks.worlds import world
from tightrope.learners.reinforce_lagrangian import ReinforceLagrangian


def test_a_run_is_that_of_its_twin() -> None:
    """Step by step along the path, from lists of all that was ever lost and used from a state on."""
    at, T, eta, eta_dual = world(LayeredSpace.dense([1, 2, 3, 1], 3), 2), 60, 0.4, 0.3
    space, c = at.space, at.budgets - [0.25, 0.0]
    learner = ReinforceLagrangian(space, c, episodes=T, policy_step=eta, dual_step=eta_dual)
    w = dict.fromkeys(map(tuple, space.pairs.tolist()), 0.0)
    met: dict[int, list[list[float]]] = {s: [] for s in range(space.n_states)}
    prices, dear = [0.0, 0.0], 0
    for t in range(1, T + 1):
        pi = {(s, a): math.exp(w[s, a]) / sum(math.exp(w[s, b]) for b in range(3)) for s, a in w}
        np.testing.assert_allclose(learner.policy.probabilities, [pi[s, a] for s, a in space.pairs.tolist()], rtol=1e-9)
        np.testing.assert_allclose(learner.multipliers, prices, atol=1e-12)
        episode = at.play(learner.policy, "bandit", t, np.random.default_rng([4, t]))
        learner.observe(episode)
        for k in range(3):
            s, a = int(episode.states[k]), int(episode.actions[k])
            rest = [sum(row[k:]) for row in (episode.losses, *episode.constraints)]
            means = [sum(one[h] for one in met[s]) / max(1, len(met[s])) for h in range(3)]
            delta = rest[0] - means[0] + sum(prices[i] * (rest[1 + i] - means[1 + i]) for i in range(2))
            delta /= 1 + sum(prices)
            for b in range(3):
                w[s, b] -= eta * delta * ((b == a) - pi[s, b])
            met[s].append(rest)
        used = [sum(row) for row in episode.constraints]
        prices = [max(0.0, prices[i] + eta_dual * (used[i] - c[i])) for i in range(2)]
        dear += min(prices) > 0
    assert 5 < dear < T


def test_an_episode_by_hand() -> None:
    """η = 0.5, η_λ = 0.1 and λ = 1: from step 0 on 0.6 is lost and 1 used, δ = (0.6 + 1)/2; from step 1 on 0.2, 0.5."""
    space = LayeredSpace.dense([1, 2, 1], 2)
    learner = ReinforceLagrangian(space, [0.4], episodes=25, policy_step=0.5, dual_step=0.1)
    learner.state = replace(learner.state, multipliers=np.array([1.0]))
    learner.observe(BanditEpisode([0, 1, 3], [0, 1], [0.4, 0.2], [[0.5, 0.5]]))
    np.testing.assert_allclose(learner.state.preferences, [-0.2, 0.2, 0.0875, -0.0875, 0, 0])
    np.testing.assert_allclose(learner.multipliers, [1.06])
    np.testing.assert_allclose(learner.state.baseline, [[0.6, 0.2, 0, 0], [1.0, 0.5, 0, 0]])
    assert learner.policy.probabilities[0] == pytest.approx(0.40131234)  # 1 / (1 + e^0.4)


def test_settings_and_other_policies() -> None:
    learner: Any = make_learner("reinforce-lagrangian", two_choices(), episodes=400)
    assert (learner.policy_step, learner.dual_step) == (0.5, 0.05)
    other = Policy(learner.space, [1.0, 0.0, 1.0, 0.0, 1.0, 0.0])
    with pytest.raises(InvalidInputError, match="reinforce-lagrangian learns only from its own"):
        learner.observe(BanditEpisode([0, 1, 3], [0, 0], [0.4, 0.2], [[0.5, 0.5]], policy=other))
    assert learner.observed == 0


def test_it_learns_to_lose_less_and_the_price_holds_it_back() -> None:
    """Best without the budget: −1.58 an episode, 0.9 over; within it −0.184."""
    problem, T = two_choices(), 3000
    learners = [make_learner("reinforce-lagrangian", problem, episodes=T) for _ in range(2)]
    learners[0].dual_step = 0.0  # type: ignore[attr-defined]
    free, held = (run(problem, learner, episodes=T, seed=1) for learner in learners)
    assert free["loss"][-1] < -1.3 * T and free["violation"][-1] > 0.8 * T
    assert held["violation"][-1] < 0.3 * T and held["loss"][-1] < 0
