"""ucpd-practical over whole runs, line by line of its docstring, in plain NumPy.

Trusted are the projection with inequalities and the confidence rules, which have tests of their own; θ is taken over
from the learner after it was compared, so that nothing adds up.
"""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import FloatArray
from tests.learners.test_pricing import BUDGETS, MDP, PAIR, SPACE, L, from_least, plays, values
from tests.twins import first_measure, model_of, occupancy, policy_of
from tightrope import Episode, InfeasibleError, InvalidInputError, UCPDPractical, load, make, project, run
from tightrope.learners import parts
from tightrope.learners.ucpd_practical_known import UCPDPracticalKnown

LAYERS = [slice(a, b) for a, b in pairwise(SPACE.tuples_before)]


def mix_gap(theta: FloatArray, x: FloatArray, eta: float) -> float:
    """Σ_k <θ, x> + log(Σ θ e^{−η x}) / η."""
    return float(sum(theta[k] @ x[k] + np.log(theta[k] @ np.exp(-eta * x[k])) / eta for k in LAYERS))


class Twin:
    """Lines 1 to 6 of `ucpd_practical` with h = 1, τ = 10 and half of a budget at least, given ω and z."""

    def __init__(
        self, rule: Any, budgets: FloatArray, optimism: float, prudence: float, model: FloatArray | None
    ) -> None:
        self.budgets = budgets
        self.rule, self.optimism, self.prudence, self.model = rule, optimism, prudence, model
        self.t, self.m, self.G, self.F, self.V, self.kappa = 0, 0, 0.0, 0.0, np.zeros(2), 1.0
        (self.N, self.n), (self.M, self.k) = np.zeros((2, SPACE.n_pairs)), np.zeros((2, SPACE.n_tuples))
        self.uses: list[FloatArray] = []
        self.before = np.zeros(SPACE.n_tuples)
        self.priced, self.missed = 0, 0  # how often both budgets had a price, and a target was missed

    def count(self, steps: list[int], g: FloatArray) -> None:
        """One more episode; a new epoch when a pair was visited a tenth as often inside as before, and once."""
        self.t += 1
        self.uses.append(g.sum(axis=1))
        np.add.at(self.n, PAIR[steps], 1)
        np.add.at(self.k, steps, 1)
        if (self.n >= np.maximum(1, 0.1 * self.N)).any():
            self.N, self.n, self.M, self.k = self.N + self.n, 0 * self.n, self.M + self.k, 0 * self.k

    def rate(self) -> Any:
        return 1 / np.sqrt(self.F**2 + (self.G / L) ** 2)

    def step(
        self, theta: FloatArray, f: FloatArray, g: FloatArray, paths: list[list[int]], taken: FloatArray,
        predicted: FloatArray | None = None, excess: FloatArray | None = None,
    ) -> Any:  # fmt: skip
        """The next θ and the prices, after a block with these paths; without any if targets exclude each other.

        `taken` is the θ of the learner then, by which the caution is judged; `predicted` is f', which is f by default,
        and `excess` what V grows by, (I,).
        """
        predicted = f if predicted is None else predicted
        self.m, t, surprise = self.m + 1, self.t, f - self.before
        if self.m > 1:
            self.G += mix_gap(theta, surprise, self.rate())
        self.F = max(self.F, from_least(predicted)[1])
        eta, self.before = self.rate(), predicted

        pi = policy_of(SPACE, theta)
        d = 1.0
        N = self.N[PAIR]
        P = (self.M + d * model_of(SPACE, theta)) / (N + d)
        if self.model is not None:
            P, N = self.model, np.full(SPACE.n_tuples, np.inf)
        _, used = occupancy(SPACE, pi, P)
        squares = sum(((use - before) ** 2 for before, use in pairwise(self.uses)), np.zeros(2))
        rows, limits, units = np.zeros((2, SPACE.n_tuples)), np.zeros(2), np.zeros(2)
        for i in range(2):
            cost, span, least = from_least(g[i])
            units[i] = span if span > 1e-13 * np.abs(g[i]).max() else 1.0
            cost, c = cost / units[i], (self.budgets[i] - least) / units[i]
            V, Q = values(pi, P, cost)
            x = cost + V[SPACE.tuples[:, 2]]
            variance = np.bincount(PAIR, P * (x - Q[PAIR]) ** 2)[PAIR]
            counted, more = np.bincount(PAIR, self.M * x)[PAIR] / (N + d), d * x / (N + d)
            if self.model is not None:
                counted, more = Q[PAIR], 0.0
            first, visits = SPACE.csr.pair_ptr[:-1], np.maximum(N, 1)
            least, most = np.minimum.reduceat(x, first)[PAIR], np.maximum.reduceat(x, first)[PAIR]
            if self.optimism > 0:
                less = self.optimism / self.kappa * (np.sqrt(variance / visits) + (most - least) / visits)
                counted = np.maximum(counted - less, N / (N + d) * least)
            rows[i] = counted + more - V[SPACE.tuples[:, 0]]
            use = cost @ used
            self.V[i] += len(paths) * (use - c) if excess is None else excess[i] / units[i]
            if self.model is None and excess is None:
                self.V[i] += sum(x[step] - Q[PAIR[step]] for path in paths for step in path)
            sigma = np.sqrt(squares[i] / 2 / max(t - 1, 1)) / units[i]
            owed = (self.prudence * sigma + max(self.V[i], 0) / 10) / np.sqrt(t)
            limits[i] = c - self.kappa * min(owed, 0.5 * c) - use
        mixing = 1 / (10 + self.m)
        reference = (1 - mixing) * theta + mixing * first_measure(SPACE)
        try:
            found = project(
                SPACE,
                reference,
                eta * (predicted + surprise),
                self.confidence_set(),
                inequalities=(rows, limits),
                tolerance=1e-8,
            )
        except InfeasibleError:
            now, size = rows @ taken, np.abs(rows).max(axis=1)
            if ((now > limits + 1e-5 * size) & (now > np.where(limits < 0, 0.1 * limits, limits))).any():
                self.missed, self.kappa = self.missed + 1, max(self.kappa / 2, 1 / 16)
            else:
                self.kappa = min(1.0, 1.03 * self.kappa)
            return None, None
        self.kappa = min(1.0, 1.03 * self.kappa)
        self.priced += bool((found.multipliers > 0).all())
        return found.theta, found.multipliers / eta / units

    def confidence_set(self) -> Any:
        return self.rule(SPACE, self.N.astype(int), self.M.astype(int))


def learners() -> list[Any]:
    return [
        UCPDPractical(SPACE, BUDGETS, block=3),
        UCPDPractical(SPACE, BUDGETS, block=3, optimism=0.0, prudence=2.0),
        UCPDPracticalKnown(SPACE, BUDGETS, model=MDP, block=3),
        UCPDPractical(SPACE, 0.45 * BUDGETS, block=3, optimism=0.1),
    ]


@pytest.mark.parametrize("learner", learners(), ids=["preset", "prudent", "known", "tight"])
def test_ucpd_practical_is_its_docstring(learner: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "BLOCK_GROWTH", 20)  # blocks of 1, 2 and 3 episodes in this run
    model = None if learner.model is None else MDP.transitions
    twin, block = Twin(learner.rule, learner.budgets, learner.optimism, learner.prudence, model), list[FloatArray]()
    paths = list[list[int]]()
    mean = np.zeros((2, SPACE.n_tuples))
    for states, actions, steps, f, g in plays(learner, 60):
        theta = learner.state.theta
        learner.observe(Episode(states, actions, f, g))
        twin.count(steps, g[:, steps])
        mean = mean + (g - mean) / twin.t
        block.append(f)
        paths.append(steps)
        if len(block) == min(3, 1 + twin.t // 20):
            expected, prices = twin.step(theta, np.mean(block, axis=0), mean, paths, learner.state.theta)
            if expected is not None:  # else the targets exclude each other
                np.testing.assert_allclose(learner.state.theta, expected, atol=3e-5)
                np.testing.assert_allclose(learner.multipliers, prices, rtol=1e-3, atol=1e-4)
            assert learner.state.caution == pytest.approx(twin.kappa)
            np.testing.assert_allclose(learner.state.overspent, twin.V, rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(learner.state.gap, twin.G, rtol=1e-6, atol=1e-12)
            block, paths = [], []
        else:
            assert learner.state.theta is theta
    if learner.budgets[0] < BUDGETS[0]:
        assert twin.missed > 0
    else:
        assert twin.priced > 5


@pytest.mark.parametrize("one_in", [100, 1000])
def test_budgets_on_rare_events_hold(one_in: int) -> None:
    """A crash is one event in so many; 200 are allowed, and bold steps would cause 400.

    The preset of 0.2 ends at 1.6 to 2 times its budget here, for its prices are capped.
    """
    problem = make("rare-crash", probability=1 / one_in)
    episodes = 100 * one_in
    if one_in == 1000:
        episodes //= 4
    history = run(problem, "ucpd-practical", episodes=episodes, seed=2, regret="last", records=1)
    allowed = float(problem.budgets[0]) * episodes
    # The share of crashes is known to one in the square root of their number, at best.
    assert history["violation"][-1] <= 2 * np.sqrt(allowed)


def test_a_checkpoint_with_paths_outside_of_the_space_is_refused(tmp_path: Path) -> None:
    learner = UCPDPractical(SPACE, BUDGETS)
    learner.state.paths[:] = SPACE.n_tuples
    learner.save(tmp_path / "it.npz")
    with pytest.raises(InvalidInputError, match=f"paths is {SPACE.n_tuples} at index 0, 0; .* to {SPACE.n_tuples - 1}"):
        load(tmp_path / "it.npz")


@pytest.mark.parametrize("seed", [71, 132])
def test_targets_that_exclude_each_other_do_not_stop_learning(seed: int) -> None:
    """Several tight budgets, some on rare events, seem to exclude each other. With κ = 1 the regret is 3 and more."""
    problem = make("random-cmdp", seed=seed)
    space = problem.space
    history = run(problem, "ucpd-practical", episodes=4000, seed=seed, regret="last", records=1)
    unit = np.sqrt(space.n_layers * space.n_states * space.n_actions * 4000)
    assert history["regret"][-1] / unit < 2
    assert history["violation"][-1] / unit < 0.02


@pytest.mark.parametrize("period", [4, 16, 48])
def test_losses_that_oscillate_are_followed_in_time(period: int) -> None:
    """At 20,000 episodes the preset of 0.2 loses up to 2.9 shares of √(L|S||A|T) to such waves."""
    problem = make("media-streaming", losses={"name": "square-waves", "period": period})
    space = problem.space
    history = run(problem, "ucpd-practical", episodes=3000, seed=0, regret="last", records=1)
    unit = np.sqrt(space.n_layers * space.n_states * space.n_actions * 3000)
    assert history["regret"][-1] / unit < 0.5
