"""Lazy FPL against every policy there is, over a whole run; its phases and its perturbation."""

import itertools

import numpy as np
import pytest

from tests.conftest import FloatArray
from tests.learners.gap import random_episodes, regret_per_episode
from tests.twins import occupancy
from tightrope import Episode, LayeredMDP, LayeredSpace, make_learner
from tightrope.checks.worlds import WORLDS, World
from tightrope.learners.lazy_fpl import LazyFPL
from tightrope.streams import streams


def measures(at: World) -> FloatArray:
    """(policies, n_tuples) of every deterministic policy."""
    choices = [np.flatnonzero(at.space.pairs[:, 0] == s) for s in range(at.space.n_states - 1)]
    taken = [np.isin(np.arange(at.space.n_pairs), pairs) for pairs in itertools.product(*choices)]
    return np.array([occupancy(at.space, pi.astype(float), at.mdp.transitions)[1] for pi in taken])


def test_a_whole_run_against_every_policy() -> None:
    """Phases of 1, 2 (seven times) and 3 episodes: the policy of each is the best for R − n, and stays."""
    at = WORLDS["a_sparse_space"]()
    learner = make_learner("lazy-fpl", at, episodes=40, seed=6)
    theta, draws, N = measures(at), streams(6).learner, at.space.n_pairs
    total, t = np.zeros(at.space.n_tuples), 1
    for length in (1, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3):
        cost = total - np.repeat(draws.random(N) * (length * t * N / 2) ** 0.5, at.space.successors_per_pair)
        for _ in range(length):
            assert cost @ at.mdp.occupancy(learner.policy) == pytest.approx((theta @ cost).min(), abs=1e-9)
            f = np.random.default_rng([3, t]).uniform(-1, 1, at.space.n_tuples)
            episode = at.play(learner.policy, "full", t, np.random.default_rng(t))
            learner.observe(Episode(episode.states, episode.actions, f, episode.constraints))
            total, t = total + (f + 1) / 2, t + 1
    assert t == 25


def test_phases_and_widths_by_hand() -> None:
    """N = 6 pairs: the ninth phase has b = √(3 · 16 · 6 / 2) = 12, from t = 16; τ_27 = 3 in spite of rounding."""
    space = LayeredSpace.dense([1, 2, 1], 2)
    learner = LazyFPL(space, [], episodes=1, model=LayeredMDP.even(space), rng=np.random.default_rng(0))
    lengths = {m: learner.phase_length(m) for m in (1, 2, 8, 9, 27, 28, 64, 65, 125, 126, 1000)}
    assert lengths == {1: 1, 2: 2, 8: 2, 9: 3, 27: 3, 28: 4, 64: 4, 65: 5, 125: 5, 126: 6, 1000: 10}
    assert learner.width(9, 16) == 12
    assert learner.width(1, 1) == pytest.approx(1.7320508)
    began = []
    for t, episode in enumerate(random_episodes(learner, 1, 20), start=1):
        if learner.state.played == 0:
            began.append(t)
        learner.observe(episode)
    assert began == [1, 2, 4, 6, 8, 10, 12, 14, 16, 19]


def test_two_phases_of_one_step_by_hand() -> None:
    """N = 2: b is √(1 · 1 · 2 / 2) = 1, then √(2 · 2 · 2 / 2) = 2; the first action has cost 1, the second 0."""
    space, taken = LayeredSpace.dense([1, 1], 2), []
    for seed in range(60):
        draws, rng = (np.random.default_rng(seed) for _ in range(2))
        learner = LazyFPL(space, [], episodes=2, model=LayeredMDP.even(space), rng=rng)
        assert learner.policy[0][int(np.argmax(draws.random(2)))] == 1
        learner.observe(Episode([0, 1], [0], [1, -1], np.zeros((0, 2))))
        taken.append(int(np.argmax(2 * draws.random(2) - [1, 0])))
        assert learner.policy[0][taken[-1]] == 1
    assert 0 < sum(taken) < 60


def test_without_perturbation_it_follows_the_leader() -> None:
    space = LayeredSpace.dense([1, 1], 2)
    even = LayeredMDP.even(space)
    learner = LazyFPL(space, [], episodes=1, model=even, rng=np.random.default_rng(2), perturbation_scale=0)
    for f, leader in (([1, 0], 1), ([-1, 0.5], 1), ([-1, 0.5], 0), ([1, -1], 0), ([1, -1], 1)):
        learner.observe(Episode([0, 1], [0], f, np.zeros((0, 2))))
        assert learner.policy[0][leader] == 1


def test_regret_per_episode_falls() -> None:
    early, late = (regret_per_episode("lazy-fpl", "switching", T) for T in (100, 3000))
    assert 0 < late < early / 3
