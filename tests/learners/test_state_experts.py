"""Experts in every state against naive twins over whole runs: dictionaries and plain loops, from the publications."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from tests.learners.gap import regret_per_episode
from tests.learners.problems import problem_with
from tightrope import Episode, LayeredMDP, LayeredSpace, make_learner, run
from tightrope.checks.worlds import WORLDS, World
from tightrope.learners.base import LearnerBase
from tightrope.learners.mdp_e import MDPE
from tightrope.learners.online_ssp import least_passed

#: By state, by action.
Table = dict[int, dict[int, float]]

HOMES = ["a_sparse_space", "transitions_of_probability_zero"]


def table(at: World) -> Table:
    """Return a table of zeros for these pairs."""
    actions: Table = {}
    for s, a in at.space.pairs.tolist():
        actions.setdefault(s, {})[a] = 0.0
    return actions


def boltzmann(total: Table, eta: float) -> Table:
    weights = {s: {a: math.exp(-eta * Q) for a, Q in here.items()} for s, here in total.items()}
    return {s: {a: w / sum(here.values()) for a, w in here.items()} for s, here in weights.items()}


def values_of(at: World, pi: Table, loss: Callable[[int], float]) -> Table:
    """Q of π under the model, for the loss of each tuple; the last states first."""
    V, Q = dict.fromkeys(range(at.space.n_states), 0.0), table(at)
    for s in sorted(pi, reverse=True):
        for j, (s_here, a, s_next) in enumerate(at.space.tuples.tolist()):
            if s_here == s:
                Q[s][a] += float(at.mdp.transitions[j]) * (loss(j) + V[s_next])
        V[s] = sum(pi[s][a] * Q[s][a] for a in pi[s])
    return Q


def played(learner: LearnerBase) -> Table:
    pi: Table = {s: learner.policy[s] for s in range(learner.space.n_states - 1)}
    return pi


def assert_same(one: Table, other: Table) -> None:
    for s in one:
        assert one[s] == pytest.approx(other[s], abs=1e-11)


@pytest.mark.parametrize("home", HOMES)
def test_a_whole_run_of_mdp_e(home: str) -> None:
    """Weights that are multiplied by exp(−η Q) in every episode, at every state."""
    at, eta, T = WORLDS[home](), 0.7, 40
    learner = make_learner("mdp-e", at, episodes=T, learning_rate=eta)
    total = table(at)
    for t in range(1, T + 1):
        pi = boltzmann(total, eta)
        assert_same(played(learner), pi)
        f = np.random.default_rng([3, t]).uniform(-1, 1, at.space.n_tuples)
        Q = values_of(at, pi, lambda j, f=f: (float(f[j]) + 1) / 2)  # type: ignore[misc]
        for s in total:
            for a in total[s]:
                total[s][a] += Q[s][a]
        episode = at.play(learner.policy, "full", t, np.random.default_rng(t))
        learner.observe(Episode(episode.states, episode.actions, f, episode.constraints))
    assert max(max(here.values()) for here in pi.values() if len(here) > 1) > 0.8


def test_two_episodes_of_mdp_e_by_hand() -> None:
    """Two steps, two actions; action 0 leads to state 1, action 1 to state 2, at which both actions lead to the end.

    f = 1 for action 0 of state 1 and 0 elsewhere, so ℓ is 1 there and ½ elsewhere. π_1 is uniform: V(1) = ¾, V(2) = ½,
    Q(0,·) = (1¼, 1), Q(1,·) = (1, ½). After two episodes with η = 2: at state 1 the weights are e^{−2·2} and e^{−2·1};
    at state 0, π_2(0|1) = e^{−2} / (e^{−2} + e^{−1}) = 0.268941, so V_2(1) = ½ + 0.268941/2 = 0.634471 and
    Q_2(0,·) = (1.134471, 1): the weights differ by e^{−2 · (0.25 + 0.134471)} = e^{−0.768941}.
    """
    space = LayeredSpace.from_tuples([1, 2, 1], 2, [(0, 0, 1), (0, 1, 2), (1, 0, 3), (1, 1, 3), (2, 0, 3), (2, 1, 3)])
    learner = MDPE(space, [], episodes=2, model=LayeredMDP(space, np.ones(6)), learning_rate=2.0)
    for _ in range(2):
        learner.observe(Episode([0, 1, 3], [0, 0], [0, 0, 1, 0, 0, 0], np.zeros((0, 6))))
    assert learner.policy[0] == pytest.approx({0: 0.316708, 1: 0.683292}, abs=1e-6)
    assert learner.policy[1] == pytest.approx({0: 0.119203, 1: 0.880797}, abs=1e-6)
    assert learner.policy[2] == {0: 0.5, 1: 0.5}
    assert learner.state.total_values == pytest.approx([2.384471, 2, 2, 1, 1, 1], abs=1e-6)


@pytest.mark.parametrize("seed", range(2))
def test_mdp_e_keeps_its_bound(seed: int) -> None:
    """L² √(T log|A| / 2) for losses in [0, 1], for certain; f is twice as wide."""
    for T in (20, 400):
        history = run(problem_with(0, seed=seed, period=40), "mdp-e", episodes=T, seed=seed)
        assert history["regret"][-1] <= 2 * 9 * math.sqrt(T * math.log(2) / 2)


@pytest.mark.parametrize("home", HOMES)
def test_a_whole_run_of_politex(home: str) -> None:
    """Every visit kept in lists: where it led, what it cost. Phases end in the first episode t >= 3.5 i."""
    at, eta, tau, T = WORLDS[home](), 0.9, 3.5, 40
    learner = make_learner("politex", at, episodes=T, learning_rate=eta, phase_length=tau)
    total, ends = table(at), {math.ceil(tau * i) for i in range(1, 20)}
    seen: list[tuple[int, int, int, float]] = []
    for t in range(1, T + 1):
        pi = boltzmann(total, eta)
        assert_same(played(learner), pi)
        assert learner.epoch == 1 + sum(end < t for end in ends)
        episode = at.play(learner.policy, "bandit", t, np.random.default_rng(t))
        steps = zip(episode.states, episode.actions, episode.states[1:], episode.losses, strict=False)
        seen += [(int(s), int(a), int(s_next), (float(f) + 1) / 2) for s, a, s_next, f in steps]
        learner.observe(episode)
        if t in ends:
            V = dict.fromkeys(range(at.space.n_states), 0.0)
            for s in sorted(pi, reverse=True):
                for a in pi[s]:
                    visits = [(s_next, cost) for s_, a_, s_next, cost in seen if (s_, a_) == (s, a)]
                    Q = sum(cost + V[s_next] for s_next, cost in visits) / max(1, len(visits))
                    total[s][a] += Q
                    V[s] += pi[s][a] * Q


@pytest.mark.parametrize("home", HOMES)
def test_a_whole_run_of_online_ssp(home: str) -> None:
    """The losses of the path over the probability of passing there, then as MDP-E; each action keeps its part of γ."""
    at, eta, gamma, T = WORLDS[home](), 0.2, 0.15, 40
    learner = make_learner("online-ssp", at, episodes=T, learning_rate=eta, exploration=gamma)
    total, most = table(at), 0.0
    for t in range(1, T + 1):
        pi = {
            s: {a: (1 - gamma) * w + gamma / len(here) for a, w in here.items()}
            for s, here in boltzmann(total, eta).items()
        }
        assert_same(played(learner), pi)
        mu = dict.fromkeys(range(at.space.n_states), 0.0) | {0: 1.0}
        for j, (s, a, s_next) in enumerate(at.space.tuples.tolist()):
            mu[s_next] += mu[s] * pi[s][a] * float(at.mdp.transitions[j])
        episode = at.play(learner.policy, "bandit", t, np.random.default_rng(t))
        estimate = {}
        for s, a, f in zip(episode.states.tolist(), episode.actions.tolist(), episode.losses.tolist(), strict=False):
            estimate[s, a] = (f + 1) / 2 / (mu[s] * pi[s][a])
        learner.observe(episode)
        tuples = at.space.tuples.tolist()
        Q = values_of(at, pi, lambda j, of=estimate, tuples=tuples: of.get((tuples[j][0], tuples[j][1]), 0.0))  # type: ignore[misc]
        for s in total:
            for a in total[s]:
                total[s][a] += Q[s][a]
        most = max(most, max(max(here.values()) for here in Q.values()))
    assert most > 6  # estimates know no bound


def test_the_least_probability_of_passing_a_state() -> None:
    """From state 0, action 0 leads to state 1 with p, action 1 with 0.6; from there and from state 2, state 3 comes
    with 0.2 or 0.8, and with 0.9.

    p = 0.3: state 1 is passed with 0.3 at the least, state 2 with 0.4, state 3 with 0.6 · 0.2 + 0.4 · 0.9 = 0.48, and
    state 4 with 0.3 · 0.2 + 0.7 · 0.1 = 0.13. p = 1: state 2 can be avoided, and α is 0; the uniform policy passes it
    with 0.2, state 1 with 0.8, state 3 with 0.8 · 0.5 + 0.2 · 0.9 = 0.58 and state 4 with 0.42.
    """
    space = LayeredSpace.dense([1, 2, 2, 1], 2)
    for p, least in ((0.3, 0.13), (1.0, 0.2)):
        P = [p, 1 - p, 0.6, 0.4, 0.2, 0.8, 0.8, 0.2, 0.9, 0.1, 0.9, 0.1, 1, 1, 1, 1]
        assert least_passed(LayeredMDP(space, P)) == pytest.approx(least)


@pytest.mark.parametrize(("name", "T", "share"), [("mdp-e", 100, 0.3), ("online-ssp", 300, 0.4), ("politex", 100, 0.6)])
def test_regret_per_episode_falls(name: str, T: int, share: float) -> None:
    early, late = (regret_per_episode(name, "switching", episodes) for episodes in (T, 20 * T))
    assert 0 < late < share * early
