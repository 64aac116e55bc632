"""UOpt-RPGPD against a naive twin over a whole run, numbers worked out by hand, and that its policies settle."""

import math
from typing import Any

import numpy as np
import pytest

from tests.learners.problems import problem_with
from tests.learners.test_optimistic import episodes_of, mean_loss, two_choices
from tightrope import BanditEpisode, LayeredSpace, Policy, make_learner, run, solve_cmdp
from tightrope.learners.uopt_rpgpd import UOptRPGPD

Table = dict[tuple[int, int], float]


class Twin:
    """Rewards, utilities and counts in dictionaries by (state, action), as published; δ = 0.01."""

    def __init__(self, space: LayeredSpace, budgets: list[float], scale: float) -> None:
        self.space, self.H, self.scale = space, space.n_layers, scale
        self.successors: dict[tuple[int, int], list[int]] = {}
        for s, a, s_next in self.space.tuples.tolist():
            self.successors.setdefault((s, a), []).append(s_next)
        self.actions = {s: [a for t, a in self.successors if t == s] for s, _ in self.successors}
        self.pi = {(s, a): 1 / len(self.actions[s]) for s, a in self.successors}
        self.due = [(self.H - c) / 2 for c in budgets]
        self.price = [0.0] * len(self.due)
        self.n: Table = dict.fromkeys(self.successors, 0)
        self.to: dict[tuple[int, int, int], int] = {}
        self.sums: list[Table] = [dict.fromkeys(self.successors, 0.0) for _ in range(1 + len(self.due))]
        self.most = 0  # how often the truncation was active in the last episode

    def observe(self, k: int, play: BanditEpisode) -> None:
        states, actions = np.asarray(play.states).tolist(), np.asarray(play.actions).tolist()
        met = np.vstack([np.asarray(play.losses), np.asarray(play.constraints)]).tolist()
        for h in range(self.H):
            at = states[h], actions[h]
            self.n[at] += 1
            self.to[*at, states[h + 1]] = self.to.get((*at, states[h + 1]), 0) + 1
            for total, values in zip(self.sums, met, strict=True):
                total[at] += (1 - values[h]) / 2
        eta, tau = 1 / (k + 3) ** 0.53, 1 / (k + 3) ** 0.4
        self.most = 0
        _, Q_r = self.values(self.sums[0], tau)
        others = [self.values(total, 0.0) for total in self.sums[1:]]
        new = {}
        for s, here in self.actions.items():
            weight = {}
            for a in here:
                q = Q_r[s, a] + sum(price * Q[s, a] for price, (_, Q) in zip(self.price, others, strict=True))
                weight[a] = self.pi[s, a] ** (1 - eta * tau) * math.exp(eta * q)
            new.update({(s, a): weight[a] / sum(weight.values()) for a in here})
        self.pi = new
        self.price = [
            max(0.0, price + eta * (due - V[0] - tau * price))
            for price, due, (V, _) in zip(self.price, self.due, others, strict=True)
        ]

    def values(self, total: Table, tau: float) -> tuple[dict[int, float], Table]:
        V, Q, L = {self.space.n_states - 1: 0.0}, {}, math.log(48 * self.space.n_tuples / 0.01)
        for s in sorted(self.actions, reverse=True):
            for a in self.actions[s]:
                n, to = self.n[s, a], self.successors[s, a]
                P = {t: self.to.get((s, a, t), 0) / n if n else 1 / len(to) for t in to}
                phi = math.sqrt((2 * math.log(math.log(max(2 * n, math.e))) + 2 * L) / max(n, 1))
                bonus = phi + self.H * (sum(phi * math.sqrt(p) for p in P.values()) + 5 * phi * phi)
                reward = total[s, a] / n if n else 1.0
                q = reward + self.scale * bonus + sum(p * V[t] for t, p in P.items())
                left = (1 + tau * math.log(2)) * (self.H - self.space.layer_of(s))
                self.most += q > left
                Q[s, a] = min(q, left)
            V[s] = sum(self.pi[s, a] * (Q[s, a] - tau * math.log(self.pi[s, a])) for a in self.actions[s])
        return V, Q


def test_a_whole_run_of_uopt_rpgpd() -> None:
    problem, scale, K = problem_with(2), 0.0002, 60
    budgets = (0.3 * problem.budgets).tolist()
    learner = UOptRPGPD(problem.space, budgets, radius_scale=scale)
    twin = Twin(problem.space, budgets, scale)
    dear, truncated = 0, []
    for k, play in enumerate(episodes_of(problem, Policy.uniform(problem.space), K)):
        learner.observe(play)
        twin.observe(k, play)
        assert learner.policy.probabilities.tolist() == pytest.approx(list(twin.pi.values()), abs=1e-11)
        assert learner.multipliers.tolist() == pytest.approx(twin.price, abs=1e-11)
        dear += all(price > 0 for price in twin.price)
        truncated.append(twin.most)
    assert dear > 20 and truncated[0] > truncated[20] > truncated[-1] == 0
    assert max(twin.pi.values()) > 0.75


def test_the_first_episode_by_hand() -> None:
    """One step, two actions: f = −1 and g = 1 is met at action 0; the budget is 0, b is left out.

    k = 0: η = 3^−0.53 = 0.558632. Rewards 1 and, never met, 1; u = 0 and, never met, 1, of which (1 − 0)/2 is due.
    V(u) = ½, so λ_1 = 0. π stays even: both Q are 1. Next action 0 again, k = 1, and all is the same.
    Third, action 1 with f = 1, g = 1: k = 2, η = 5^−0.53 = 0.426134, Q(r) = (1, 0), V(u) = 0, λ = η/2 = 0.213067,
    π ∝ (e^0.426134, 1), so π(0) = 0.604950.
    Fourth, the same again: k = 3, η = 6^−0.53 = 0.386883, τ = 6^−0.4 = 0.488359, λ = 0.213067 + η (½ − τ 0.213067) =
    0.366252, and log(π(0)/π(1)) = (1 − η τ) 0.426134 + η = 0.732504, so π(0) = 0.675355.
    """
    learner = UOptRPGPD(LayeredSpace.dense([1, 1], 2), [0.0], radius_scale=0.0)
    for _ in range(2):
        learner.observe(BanditEpisode([0, 1], [0], [-1.0], [[1.0]]))
        assert learner.policy[0] == pytest.approx({0: 0.5, 1: 0.5})
        assert learner.multipliers.tolist() == [0.0]
    learner.observe(BanditEpisode([0, 1], [1], [1.0], [[1.0]]))
    assert learner.policy[0][0] == pytest.approx(0.604950, abs=1e-6)
    assert learner.multipliers[0] == pytest.approx(0.213067, abs=1e-6)
    learner.observe(BanditEpisode([0, 1], [1], [1.0], [[1.0]]))
    assert learner.policy[0][0] == pytest.approx(0.675355, abs=1e-6)
    assert learner.multipliers[0] == pytest.approx(0.366252, abs=1e-6)


def test_phi_by_hand() -> None:
    """30 tuples, δ = 0.01: log(48 · 30 / 0.01) = log 144,000 = 11.877569.

    Of 1 visit, where log log e = 0: √(2 · 11.877569) = 4.873924; of 50: log log 100 = 1.527180, √(2 · 13.404749 / 50) =
    0.732250.
    """
    learner: Any = make_learner("uopt-rpgpd", problem_with(2))
    assert learner.space.n_tuples == 30
    assert learner._phi(np.array([0, 1, 50])).tolist() == pytest.approx([4.873924, 4.873924, 0.732250], abs=1e-6)


def test_its_policies_settle_and_come_nearer_to_the_best_within_the_budget() -> None:
    """Entropy and the pull on the price fade slowly: what is over falls, and a hundred more episodes change little."""
    problem, over = two_choices(), []
    for T in (300, 3000):
        learner = make_learner("uopt-rpgpd", problem, radius_scale=0.0005)
        run(problem, learner, episodes=T, seed=3)
        used = problem.constraints.mean @ problem.mdp.occupancy(learner.policy)
        over.append(float(used[0] - problem.budgets[0]))
    assert 0 < over[1] < over[0] / 2
    price = solve_cmdp(problem.mdp, mean_loss(problem), problem.constraints.mean, problem.budgets).multipliers[0]
    assert 0.8 * price < learner.multipliers[0] < price
    before = learner.policy.probabilities
    for play in episodes_of(problem, learner.policy, 100):
        learner.observe(play)
    np.testing.assert_allclose(learner.policy.probabilities, before, atol=0.01)
