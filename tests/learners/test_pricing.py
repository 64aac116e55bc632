"""ucpd-practical-0.2 and ucpd-bandit-0.2 over whole runs, line by line of their docstrings, in plain NumPy.

Trusted are the projection, the confidence rules and the upper occupancy bounds, which have tests of their own; θ is
taken over from the learner after it was compared, so that nothing adds up.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tests.conftest import FloatArray, pair_of_tuple, random_mdp
from tests.twins import first_measure, model_of, occupancy, policy_of, sample_path
from tightrope import BanditEpisode, Episode, LayeredSpace, Policy, project
from tightrope.core import SMALLEST
from tightrope.learners import parts
from tightrope.learners.parts import rate, spans_after, upper_bounds
from tightrope.learners.ucpd_bandit_0_2 import UCPDBandit02
from tightrope.learners.ucpd_practical_0_2 import UCPDPractical02

SPACE = LayeredSpace.dense([1, 2, 2, 1], 2)
PAIR, L, BUDGETS = pair_of_tuple(SPACE), 3, np.array([0.5, 0.45])
MDP = random_mdp(np.random.default_rng(8), SPACE)


def from_least(f: FloatArray) -> tuple[FloatArray, float, float]:
    """f from the least of each layer; the largest difference in one; the sum of the least."""
    layers = [*pairwise(SPACE.tuples_before)]
    least = np.concatenate([np.full(b - a, f[a:b].min()) for a, b in layers])
    return f - least, max(np.ptp(f[a:b]) for a, b in layers), sum(f[a:b].min() for a, b in layers)


def values(pi: FloatArray, P: FloatArray, f: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return V and Q of a policy, from the last layer to the first."""
    V, Q = np.zeros(SPACE.n_states), np.zeros(SPACE.n_pairs)
    for s in reversed(range(SPACE.n_states - 1)):
        mine = np.flatnonzero(SPACE.pairs[:, 0] == s)
        for i in mine:
            Q[i] = P[i == PAIR] @ (f + V[SPACE.tuples[:, 2]])[i == PAIR]
        V[s] = pi[mine] @ Q[mine]
    return V, Q


def least_prices(A: FloatArray, v: FloatArray) -> FloatArray:
    """argmin over w >= 0 of ½ wᵀ A w − v·w for two prices: of all sets of positive ones, the one that is optimal."""
    for positive in ([], [0], [1], [0, 1]):
        w = np.zeros(2)
        w[positive] = np.linalg.solve(A[np.ix_(positive, positive)], v[positive])
        if (w >= 0).all() and (A @ w >= v - 1e-9 * np.abs(v).max()).all():
            return w
    raise AssertionError("one of them is optimal")


class Twin:
    """Lines 1 to 5 of `ucpd_practical_0_2`, for z = ½, k = 0.3, r = ½, h = 1, κ = 5, and the tilt B that is given."""

    def __init__(self, rule: Any, B: float) -> None:
        self.rule, self.B, self.t, self.m, self.S, self.Q = rule, B, 0, 0, 0.0, np.zeros(2)
        (self.N, self.n), (self.M, self.k) = np.zeros((2, SPACE.n_pairs)), np.zeros((2, SPACE.n_tuples))
        self.uses: list[FloatArray] = []
        self.priced = self.held = 0  # how often both budgets had a price, and some price was the most that it may be

    def count(self, steps: list[int], g: FloatArray) -> None:
        """One more episode; a new epoch when a pair was visited a tenth as often inside as before, and once."""
        self.t += 1
        self.uses.append(g.sum(axis=1))
        np.add.at(self.n, PAIR[steps], 1)
        np.add.at(self.k, steps, 1)
        if (self.n >= np.maximum(1, 0.1 * self.N)).any():
            self.N, self.n, self.M, self.k = self.N + self.n, 0 * self.n, self.M + self.k, 0 * self.k

    def confidence_set(self) -> Any:
        return self.rule(SPACE, self.N.astype(int), self.M.astype(int))

    def step(
        self, theta: FloatArray, f: FloatArray, picture: FloatArray, g: FloatArray, less: FloatArray, F: float
    ) -> Any:
        """The next θ and the prices, with less taken off g where θ is moved."""
        self.m, t = self.m + 1, self.t
        pi = policy_of(SPACE, theta)
        squares = sum(((use - before) ** 2 for before, use in pairwise(self.uses)), np.zeros(2))
        aims = BUDGETS - 0.5 * np.sqrt(squares / 2 / max(t - 1, 1)) / np.sqrt(t)
        d = np.bincount(PAIR)[PAIR]
        P = (self.M + d * model_of(SPACE, theta)) / (self.N[PAIR] + d)
        visits, used = occupancy(SPACE, pi, P)
        e, charged, unit, covered = np.zeros(2), [], np.zeros(2), []
        for i in range(2):
            cost, unit[i], least = from_least(g[i])
            e[i] = (cost @ used - (aims[i] - least)) / unit[i]
            V, Q = values(pi, P, cost / unit[i])
            covered.append(Q - V[SPACE.pairs[:, 0]])
            charged.append(0.5 * covered[i][PAIR] + 0.5 * cost / unit[i])
        V, Q = values(pi, P, picture)
        covered.append(Q - V[SPACE.pairs[:, 0]])
        responses = np.array([[(visits[SPACE.pairs[:, 0]] * pi * x) @ y for y in covered] for x in covered])
        A, b = responses[:2, :2] + 1e-5 * np.eye(2), responses[2, :2]

        eta = 1 / np.sqrt(F**2 + self.S / 25)
        tilts, spans, _ = zip(*map(from_least, charged), strict=True)
        most = self.B / eta / np.maximum(spans, 1e-3)
        self.Q = np.clip(self.Q + 3 * F / (L * np.sqrt(self.m)) * e, 0, most)
        w = np.minimum(least_prices(A, A @ self.Q + 0.3 * e / eta - b), most)
        self.priced, self.held = self.priced + bool((w > 0).all()), self.held + bool((w == most).any())
        cost = np.minimum(from_least(f)[0], self.B / eta) + w @ (np.array(tilts) - less / unit[:, None])
        mixing = 1 / (10 + self.m)
        reference = (1 - mixing) * theta + mixing * first_measure(SPACE)
        return project(SPACE, reference, eta * cost, self.confidence_set()).theta, w / unit


def plays(learner: Any, episodes: int) -> Iterator[tuple[list[int], list[int], list[int], FloatArray, FloatArray]]:
    """Paths of its policy, with losses that drift and uses that vary: the first action is cheap, and uses much."""
    rng = np.random.default_rng(5)
    first, late = SPACE.tuples[:, 1] == 0, SPACE.tuples[:, 0] > 0
    mean = np.array([np.where(first & late, 0.35, 0.05), np.where(first & ~late, 0.4, 0.1)])
    mean, f = mean + rng.uniform(-0.04, 0.04, mean.shape), np.where(first, -0.4, 0.4)
    for _ in range(episodes):
        path = sample_path(SPACE, learner.policy.probabilities, MDP.transitions, rng.random(2 * L))
        f = np.clip(f + rng.uniform(-0.1, 0.1, SPACE.n_tuples), -1, 1)
        yield *path, f, mean + rng.uniform(-0.05, 0.05, mean.shape)


def assert_alike(learner: Any, twin: Twin, theta: FloatArray, prices: FloatArray) -> None:
    np.testing.assert_allclose(learner.state.theta, theta, atol=2e-5)
    np.testing.assert_allclose(learner.state.integrals, twin.Q, rtol=1e-6)
    np.testing.assert_allclose(learner.multipliers, prices, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(learner.state.changes, twin.S, rtol=1e-9)


@pytest.mark.parametrize("B", [100.0, 0.2])
def test_ucpd_practical_0_2_is_its_docstring(B: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "BLOCK_GROWTH", 20)  # blocks of 1, 2 and 3 episodes in this run
    learner = UCPDPractical02(SPACE, BUDGETS, largest_tilt=B, block=3)
    twin, block, F, before = Twin(learner.rule, B), list[FloatArray](), 0.0, None
    mean = np.zeros((2, SPACE.n_tuples))
    for states, actions, steps, f, g in plays(learner, 60):
        theta = learner.state.theta
        learner.observe(Episode(states, actions, f, g))
        twin.count(steps, g[:, steps])
        mean = mean + (g - mean) / twin.t
        block.append(f)
        if len(block) == min(3, 1 + twin.t // 20):
            loss, block = np.mean(block, axis=0), []
            F = max(F, from_least(loss)[1])
            twin.S += 0 if before is None else from_least(loss - before)[1] ** 2
            assert_alike(learner, twin, *twin.step(theta, loss, loss, mean, np.zeros_like(mean), F))
            before = loss
    assert twin.priced > 20
    assert (twin.held > 0) == (B < 1)


@pytest.mark.parametrize("B", [100.0, 0.2])
def test_ucpd_bandit_0_2_is_its_docstring(B: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "BLOCK_GROWTH", 20)
    learner = UCPDBandit02(SPACE, BUDGETS, largest_tilt=B, block=3, optimism=0.5)
    twin, block = Twin(learner.rule, B), list[FloatArray]()
    met: list[list[tuple[int, float, FloatArray]]] = [[] for _ in range(SPACE.n_pairs)]
    for states, actions, steps, f, g in plays(learner, 60):
        theta, t, length = learner.state.theta, twin.t + 1, min(3, 1 + (twin.t + 1) // 20)
        believed = np.array([np.mean([x[1] for x in at]) if at and 2 * at[-1][0] > t - 1 else -1.0 for at in met])
        u = upper_bounds(Policy(SPACE, policy_of(SPACE, theta)), twin.confidence_set(), np.array(steps))
        gamma, delta = np.sqrt(3 * np.log(3 * 12 / 0.01) / (t * 12)), np.zeros(SPACE.n_pairs)
        delta[PAIR[steps]] = (f[steps] - believed[PAIR[steps]]) / (u + gamma)
        twin.S += theta @ delta[PAIR] ** 2 / length**2
        learner.observe(BanditEpisode(states, actions, f[steps], g[:, steps]))
        twin.count(steps, g[:, steps])
        for j in steps:
            met[PAIR[j]].append((t, f[j], g[:, j]))
        block.append((believed + delta)[PAIR])
        if len(block) == length:
            loss, block = np.mean(block, axis=0), []
            anywhere = np.mean([x[2] for at in met for x in at], axis=0)
            mean = np.array([np.mean([x[2] for x in at], axis=0) if at else anywhere for at in met]).T
            lower = np.array([[below(at, i) for at in met] for i in range(2)])
            expected = twin.step(theta, loss, believed[PAIR], mean[:, PAIR], 0.5 * (mean - lower)[:, PAIR], 2.0)
            assert_alike(learner, twin, *expected)
    assert twin.priced > 20
    assert (twin.held > 0) == (B < 1)
    assert lower.max() > -0.9


def test_blocks_are_longer_by_one_after_250_episodes_each() -> None:
    learner = UCPDPractical02(SPACE, BUDGETS)
    states = [replace(learner.state, observed=t) for t in (0, 248, 249, 498, 499, 1249, 10**6)]
    assert [parts.block_length(state, learner.block) for state in states] == [1, 1, 2, 2, 3, 6, 6]


def below(at: list[tuple[int, float, FloatArray]], i: int) -> float:
    """g̲_i of a pair, at the level 0.01 for 2 times 10 means: the best of the bounds of docs/explanation/theory.md."""
    x = np.array([(g[i] + 1) / 2 for _, _, g in at])
    if len(x) == 0:
        return -1.0
    guesses = np.array([(0.5 + x[:j].sum()) / (1 + j) for j in range(len(x))])
    k = np.arange(100)
    lam = 0.8 * 0.5 ** (k / 2)
    off = (np.log(20 / 0.01 * (k + 1) * (k + 2)) + (-np.log(1 - lam) - lam) * ((x - guesses) ** 2).sum()) / lam
    return float(2 * max(0.0, x.mean() - off.min() / len(x)) - 1)


@pytest.mark.parametrize(("span", "largest"), [(SMALLEST, SMALLEST), (SMALLEST / 2, 0.0)])
def test_losses_that_differ_by_next_to_nothing(span: float, largest: float) -> None:
    f = np.append(np.zeros(SPACE.n_tuples - 1), span)
    assert spans_after(SPACE, f, np.zeros(SPACE.n_tuples), 0.0, 0.0, steps=0) == (largest, 0.0)


def test_the_rate_of_the_smallest_losses_is_a_number() -> None:
    assert rate(SMALLEST, 0.0, 1.0, 5.0) == pytest.approx(1 / SMALLEST)
    assert rate(3.0, 16.0, 1.0, 1.0) == pytest.approx(0.2)
    assert rate(0.0, 16.0, 1.0, 1.0) == 1.0
