"""OMDPD against its lines in plain Python over whole runs, its parameters by hand, and what it is for."""

import math
from typing import Any

import numpy as np
import pytest

import tightrope as tr
from tests.conftest import FloatArray
from tests.learners.problems import problem_with
from tightrope import Episode, KnownModel, LayeredMDP, LayeredSpace
from tightrope.learners.omdpd import OMDPD

T = 30
BUDGETS = (0.3, 0.5)


def twin(f: FloatArray, g: FloatArray, alpha: float, beta: float, V: float, gamma: float) -> Any:
    """A chain of two states with three actions each: measures are pairs of distributions, steps are closed formulas.

    f (T, 2, 3), g (T, 2, 2, 3) by constraint, state and action. Yields θ^{t+1}, θ̂^{t+1} and the prices of episode t.
    """
    theta = anchor = [[1 / 3] * 3, [1 / 3] * 3]
    lam, w, changes = [0.0, 0.0], [[0.0] * 3, [0.0] * 3], 0.0
    E = 2 * math.log(3 / gamma)

    def step(start: Any, cost: Any, eta: float) -> Any:
        after = []
        for k in range(2):
            mass = [((1 - gamma) * start[k][a] + gamma / 3) * math.exp(-eta * cost[k][a]) for a in range(3)]
            after.append([m / sum(mass) for m in mass])
        return after

    for t in range(len(f)):
        eta = math.sqrt(E / (2 + changes))
        new, prices = f[t].tolist(), []
        for i in range(2):
            use = sum(g[t, i, k, a] * theta[k][a] for k in range(2) for a in range(3))
            if use > BUDGETS[i]:
                lam[i] += alpha * (use - BUDGETS[i])
            prices.append(min(beta * math.exp(beta * lam[i]) / V, 2 * beta / V * (1 + 2 * V * T)))
            if use > BUDGETS[i]:
                new = [[new[k][a] + prices[i] * g[t, i, k, a] for a in range(3)] for k in range(2)]
        changes += sum(max(abs(new[k][a] - w[k][a]) for a in range(3)) ** 2 for k in range(2))
        w = new
        anchor = step(anchor, w, eta)
        theta = step(anchor, w, math.sqrt(E / (2 + changes)))
        yield theta, anchor, prices


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"alpha": 3.0, "beta": 0.2, "V": 0.5, "mixing": 0.05},
        {"alpha": 30.0, "beta": 0.3, "V": 3.0},  # prices reach their bound
    ],
)
def test_a_whole_run_against_plain_python(options: dict[str, Any]) -> None:
    space, rng = LayeredSpace.dense([1, 1, 1], 3), np.random.default_rng(5)
    f = rng.uniform(-1, 1, (T, 2, 3))
    g = rng.uniform(-0.2, 0.5, (T, 2, 2, 3))
    learner = OMDPD(space, BUDGETS, episodes=T, confidence=KnownModel(transitions=np.ones(6)), **options)
    given = {"alpha": 1.0, "beta": 1 / (2 * math.sqrt(T)), "V": 1 / math.sqrt(T), "mixing": 1 / T} | options
    seen = set()
    for t, (theta, anchor, prices) in enumerate(twin(f, g, *given.values())):
        learner.observe(Episode([0, 1, 2], [0, 0], f[t].ravel(), g[t].reshape(2, 6)))
        np.testing.assert_allclose(learner.state.theta, np.ravel(theta), atol=1e-9)
        np.testing.assert_allclose(learner.state.anchor, np.ravel(anchor), atol=1e-9)
        np.testing.assert_allclose(learner.multipliers, prices, rtol=1e-9)
        seen |= {(g[t, i].ravel() @ np.ravel(theta) > BUDGETS[i], i) for i in range(2)}
    assert len(seen) == 4  # either budget was exceeded, and was not
    assert np.ptp(np.ravel(theta)) > 0.05
    bound = 2 * given["beta"] / given["V"] * (1 + 2 * given["V"] * T)
    assert (learner.multipliers.max() == pytest.approx(bound)) == (options.get("alpha") == 30.0)


def test_parameters_by_hand() -> None:
    """T = 100, 3 layers of 4, 8 and 4 tuples: β = 1/20, V = 1/10, γ = 1/100, E = log 400 + log 800 + log 400."""
    learner = OMDPD(LayeredSpace.dense([1, 2, 2, 1], 2), [0.5], episodes=100)
    assert (learner.alpha, learner.beta, learner.V, learner.mixing) == pytest.approx((1.0, 0.05, 0.1, 0.01))
    assert learner.multipliers.tolist() == [0.5]
    assert learner._far == pytest.approx(18.667540, abs=1e-6)
    assert learner._most == pytest.approx(21.0)
    assert learner._rate(0.0) == pytest.approx(2.494497, abs=1e-6)
    # an excess of 2 makes the price e^{0.05 · 2} / 2
    np.testing.assert_allclose(learner._prices(np.array([2.0])), [0.5 * 1.1051709180756477])
    np.testing.assert_allclose(learner._prices(np.array([1e9])), [21.0])


def test_steps_stay_in_the_confidence_set_and_are_those_of_project() -> None:
    """On a random model: both steps of an episode by `tr.project` on the set of the epoch."""
    problem, rng = problem_with(1), np.random.default_rng(0)
    learner = OMDPD(problem.space, problem.budgets, episodes=20, radius_scale=0.2)
    layers = np.diff(problem.space.tuples_before)
    uniform = np.repeat(1 / layers, layers)
    for t in range(6):
        anchor, surprise = learner.state.anchor, learner.state.surprise
        states, actions = sampled(problem.mdp, learner.policy.probabilities, rng)
        f, g = problem.losses.begin(rng).loss(t + 1), problem.constraints.mean
        learner.observe(Episode(states, actions, f, g))
        for start, after, total in (
            (anchor, learner.state.anchor, surprise),
            (learner.state.anchor, learner.state.theta, learner.state.surprise),
        ):
            eta = math.sqrt(sum(math.log(20 * n) for n in layers) / (3 + total))
            reference, cost = 0.95 * start + 0.05 * uniform, eta * learner.state.gradient
            expected = tr.project(problem.space, reference, cost, learner.confidence_set).theta
            np.testing.assert_allclose(after, expected, atol=1e-6)


def sampled(mdp: LayeredMDP, pi: FloatArray, rng: np.random.Generator) -> tuple[list[int], list[int]]:
    space, states, actions = mdp.space, [0], []
    for _ in range(space.n_layers):
        here = np.flatnonzero(space.pairs[:, 0] == states[-1])
        pair = int(rng.choice(here, p=pi[here]))
        actions.append(int(space.pairs[pair, 1]))
        j = np.flatnonzero((space.tuples[:, 0] == states[-1]) & (space.tuples[:, 1] == actions[-1]))
        states.append(int(space.tuples[rng.choice(j, p=mdp.transitions[j]), 2]))
    return states, actions


def test_it_approaches_the_best_policy_within_every_budget() -> None:
    """On mannor-game: a strong violation that falls per episode, and no regret against the best always within it."""
    shares = []
    for turn in (150, 600):
        history = tr.run(tr.make("mannor-game", turn=turn), "omdpd", episodes=2 * turn, records=1)
        assert history["regret_always"][-1] < 0
        assert history["violation"][-1] == 0
        shares.append(history["strong_violation"][-1] / (2 * turn))
    assert shares[1] < 0.12
    assert shares[1] < 0.75 * shares[0]


def test_dear_times_are_paid_for_as_they_come() -> None:
    """media-streaming with costs that switch: less strong violation than ucpd and ucpd-practical, and less regret."""
    problem = tr.make("media-streaming", n_levels=3, n_steps=4, budget=2, losses="switching", noise="switching")
    found = {name: tr.run(problem, name, episodes=1000, records=1) for name in ("omdpd", "ucpd", "ucpd-practical")}
    strong = {name: history["strong_violation"][-1] for name, history in found.items()}
    assert strong["omdpd"] < 0.5 * min(strong["ucpd"], strong["ucpd-practical"])
    assert found["omdpd"]["regret_always"][-1] < 0
