"""Q-learning with upper confidence bounds: against a plain twin that earns rewards, by hand, and that it learns."""

import math
from collections import defaultdict

import numpy as np
import pytest

from tests.learners.gap import regret_per_episode
from tests.twins import pair_values
from tightrope import BanditEpisode, LayeredSpace
from tightrope.checks.worlds import WORLDS
from tightrope.learners.q_learning_ucb import QLearningUCB
from tightrope.planning.dynamic_programming import greedy, least_values


def test_a_run_is_that_of_algorithm_1() -> None:
    """As published: rewards 1 − ℓ, Q_h and V_h by step, V_h at most the steps left, one step after the other."""
    at, K = WORLDS["a_sparse_space"](), 120
    space, H = at.space, at.space.n_layers
    learner = QLearningUCB(space, at.budgets, episodes=K, level=0.05, radius_scale=0.05)
    iota = math.log(2 * space.n_pairs * K / 0.05)
    actions_of: dict[int, list[int]] = defaultdict(list)
    for s, a in space.pairs.tolist():
        actions_of[s].append(a)
    Q = {(s, a): float(H - space.layer_of(s)) for s, a in space.pairs.tolist()}
    V = {s: float(H - space.layer_of(s)) for s in range(space.n_states)}
    held = 0
    N: dict[tuple[int, int], int] = defaultdict(int)
    for k in range(1, K + 1):
        for i, (s, a) in enumerate(space.pairs.tolist()):
            best = max(Q[s, b] for b in actions_of[s])
            assert learner.policy.probabilities[i] in (0.0, 1.0)
            if learner.policy.probabilities[i] == 1:
                assert Q[s, a] == pytest.approx(best, abs=1e-12)
        episode = at.play(learner.policy, "bandit", k, np.random.default_rng([2, k]))
        for h in range(H):
            s, a, s_next = int(episode.states[h]), int(episode.actions[h]), int(episode.states[h + 1])
            N[s, a] += 1
            t = N[s, a]
            alpha, bonus = (H + 1) / (H + t), 0.05 * math.sqrt(H**3 * iota / t)
            reward = 1 - (episode.losses[h] + 1) / 2
            Q[s, a] = (1 - alpha) * Q[s, a] + alpha * (reward + V[s_next] + bonus)
            V[s] = min(H - h, max(Q[s, b] for b in actions_of[s]))
            held += V[s] == H - h and k > 20
        learner.observe(episode)
        left = [H - space.layer_of(s) for s in space.pairs[:, 0].tolist()]
        expected = [steps - Q[s, a] for steps, (s, a) in zip(left, space.pairs.tolist(), strict=True)]
        np.testing.assert_allclose(learner.state.values, expected, atol=1e-12)
    assert len(N) > 12 and max(N.values()) > 50
    assert 0 < held < K  # at times V is what is left, and not always


def test_two_episodes_by_hand() -> None:
    """H = 2, six pairs, K = 10 and p = 120/e⁹ make ι = 9, so that √(H³ι) = √72; c = 1/√288 makes b_1 = 1/2."""
    space = LayeredSpace.dense([1, 2, 1], 2)
    learner = QLearningUCB(space, [], episodes=10, level=120 / math.e**9, radius_scale=1 / math.sqrt(288))
    learner.observe(BanditEpisode([0, 1, 3], [0, 0], [0.6, 1.0], np.zeros((0, 2))))
    # α_1 = 1: 0.8 + 0 − 0.5 and 1 + 0 − 0.5
    np.testing.assert_allclose(learner.state.values, [0.3, 0, 0.5, 0, 0, 0], atol=1e-15)
    assert learner.policy.probabilities.tolist() == [0, 1, 0, 1, 1, 0]
    learner.observe(BanditEpisode([0, 1, 3], [0, 0], [0.6, 1.0], np.zeros((0, 2))))
    # α_2 = 3/4, b_2 = 0.3535533906: 0.3/4 + 0.75 (0.8 + V(1) − b_2), V(1) = 0; 0.5/4 + 0.75 (1 − b_2)
    np.testing.assert_allclose(learner.state.values, [0.4098349571, 0, 0.6098349571, 0, 0, 0], atol=1e-10)
    learner.observe(BanditEpisode([0, 1, 3], [0, 1], [0.6, 1.0], np.zeros((0, 2))))
    # α_3 = 3/5, b_3 = 0.2886751346: 0.4·0.4098349571 + 0.6 (0.8 + 0 − b_3); the other pair is new
    np.testing.assert_allclose(learner.state.values, [0.4707289021, 0, 0.6098349571, 0.5, 0, 0], atol=1e-10)
    assert learner.state.visits.tolist() == [3, 0, 2, 1, 0, 0]


def test_the_published_bonus() -> None:
    """log(2·6·10/0.05) = 7.7832240163, √(2³ · 7.7832240163) = 7.8908676412."""
    space = LayeredSpace.dense([1, 2, 1], 2)
    learner = QLearningUCB(space, [], episodes=10, level=0.05)
    learner.observe(BanditEpisode([0, 1, 3], [0, 1], [-1.0, -1.0], np.zeros((0, 2))))
    np.testing.assert_allclose(learner.state.values, [-7.8908676412, 0, 0, -7.8908676412, 0, 0], rtol=1e-10)


def test_its_values_stay_below_the_true_ones() -> None:
    at = WORLDS["a_dense_space_without_constraints"]()
    _, true = pair_values(at.space, at.mdp.transitions, (at.scenarios.mean(axis=0) + 1) / 2)
    learner = QLearningUCB(at.space, [], episodes=2000)
    for k in range(1, 2001):
        learner.observe(at.play(learner.policy, "bandit", k, np.random.default_rng([4, k])))
    assert (learner.state.values <= true).all()
    assert learner.state.visits.sum() == 2000 * 3


def test_regret_per_episode_falls() -> None:
    early, late = (regret_per_episode("q-learning-ucb", "iid", T, radius_scale=0.1) for T in (500, 8000))
    assert 0 < late < early / 3


def test_greedy_takes_the_first_of_equals() -> None:
    space = LayeredSpace.dense([1, 2, 1], 3)
    Q = np.array([2.0, 1, 1, 0, 0, 0, 3, 2, 1])
    assert greedy(space, Q).probabilities.tolist() == [0, 1, 0, 1, 0, 0, 0, 0, 1]
    assert least_values(space, Q).tolist() == [1, 0, 1, 0]
