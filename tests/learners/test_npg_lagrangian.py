"""Natural policy gradient with prices, by ascent and by PID control: against a plain twin, by hand, and they learn."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.conftest import FloatArray
from tests.learners.test_optimistic import two_choices
from tightrope import LayeredSpace, make_learner, run
from tightrope.checks.worlds import World, world
from tightrope.learners.npg_lagrangian import NPGLagrangian
from tightrope.learners.pid_lagrangian import PIDLagrangian

Met = dict[tuple[int, int], list[tuple[int, FloatArray]]]


def values(at: World, pi: dict[tuple[int, int], float], met: Met, h: int) -> tuple[dict[Any, float], float]:
    """Q of cost h from the list of what was met at each pair, and V at the first state."""
    Q, V = {}, {at.space.n_states - 1: 0.0}
    for s in reversed(range(at.space.n_states - 1)):
        here = [pair for pair in pi if pair[0] == s]
        for pair in here:
            visits = met.get(pair, [])
            Q[pair] = sum(costs[h] + V[s_next] for s_next, costs in visits) / max(1, len(visits))
        V[s] = sum(pi[pair] * Q[pair] for pair in here)
    return Q, V[0]


@pytest.mark.parametrize("controlled", [False, True])
def test_a_run_is_that_of_its_twin(controlled: bool) -> None:
    at, K, eta, k_i, k_p, k_d = world(LayeredSpace.dense([1, 2, 3, 1], 2), 2), 50, 0.4, 0.3, 0.8, 1.7
    space, c = at.space, at.budgets - [0.45, 0.25]
    options: Any = {"policy_step": eta, "dual_step": k_i}
    learner: Any = NPGLagrangian(space, c, episodes=K, **options)
    if controlled:
        learner = PIDLagrangian(space, c, episodes=K, proportional=k_p, derivative=k_d, **options)
    pi = dict.fromkeys(map(tuple, space.pairs.tolist()), 0.5)
    met: Met = {}
    prices, integral, before, dear = [0.0, 0.0], [0.0, 0.0], [0.0, 0.0], 0
    for k in range(1, K + 1):
        np.testing.assert_allclose(learner.policy.probabilities, list(pi.values()), rtol=1e-9)
        np.testing.assert_allclose(learner.multipliers, prices, atol=1e-12)
        episode = at.play(learner.policy, "bandit", k, np.random.default_rng([5, k]))
        learner.observe(episode)
        for j in range(3):
            costs = (np.array([episode.losses[j], *episode.constraints[:, j]]) + 1) / 2
            pair = int(episode.states[j]), int(episode.actions[j])
            met.setdefault(pair, []).append((int(episode.states[j + 1]), costs))
        (Q, _), *constraints = (values(at, pi, met, h) for h in range(3))
        weight = {}
        for pair in pi:
            total = Q[pair] + sum(price * Q_i[pair] for price, (Q_i, _) in zip(prices, constraints, strict=True))
            weight[pair] = pi[pair] * math.exp(-eta * total / (1 + sum(prices)))
        pi = {(s, a): w / (weight[s, 0] + weight[s, 1]) for (s, a), w in weight.items()}
        for i, (_, used) in enumerate(constraints):
            over = used - (c[i] + 3) / 2
            integral[i] = max(0.0, integral[i] + k_i * over)
            prices[i] = integral[i]
            if controlled:
                prices[i] = max(0.0, k_p * over + integral[i] + k_d * max(0.0, used - before[i]))
            before[i] = used
        dear += min(prices) > 0
    assert 5 < dear < K


def test_prices_agree_with_numbers_by_hand() -> None:
    """α = (0.2 + 2)/2 = 1.1, K_I = 0.5, K_P = 2, K_D = 3; u = 1.5, 1.6, 0.5.

    e = 0.4, 0.5, −0.6; I = 0.2, 0.45, 0.15; λ = 0.8 + 0.2 + 4.5, 1 + 0.45 + 0.3, max{−1.2 + 0.15, 0}.
    """
    space = LayeredSpace.dense([1, 2, 1], 2)
    options: Any = {"policy_step": 0.1, "dual_step": 0.5}
    ascent = NPGLagrangian(space, [0.2], episodes=9, **options)
    controlled = PIDLagrangian(space, [0.2], episodes=9, proportional=2.0, derivative=3.0, **options)
    seen: list[list[float]] = []
    for used in (1.5, 1.6, 0.5):
        u = np.array([used])
        ascent.state = replace(ascent.state, multipliers=ascent._prices(ascent.state, u))
        prices, integrals = controlled._prices(controlled.state, u)
        controlled.state = replace(controlled.state, multipliers=prices, integrals=integrals, used=u)
        seen.append([ascent.multipliers[0], controlled.multipliers[0], controlled.state.integrals[0]])
    np.testing.assert_allclose(seen, [[0.2, 5.5, 0.2], [0.45, 1.75, 0.45], [0.15, 0.0, 0.15]])


def test_default_steps_are_those_of_the_docstring() -> None:
    """A = 2, H = 2, K = 400: η = √(8 · 0.6931471806 / 400) / 2 = 0.0588705; 1/√400."""
    for name in ("npg-lagrangian", "pid-lagrangian"):
        settings = make_learner(name, two_choices(), episodes=400).settings
        assert settings["policy_step"] == pytest.approx(0.0588705, abs=1e-6)
        assert settings["dual_step"] == 0.05
    assert (settings["proportional"], settings["derivative"]) == (1.0, 1.0)


@pytest.mark.parametrize("name", ["npg-lagrangian", "pid-lagrangian"])
def test_regret_and_violation_per_episode_fall(name: str) -> None:
    problem = two_choices()

    def per_episode(K: int) -> float:
        history = run(problem, make_learner(name, problem, episodes=K), episodes=K, records=1)
        return float(abs(history["regret"][-1]) + history["violation"][-1]) / K

    assert per_episode(4000) < 0.6 * per_episode(250)
