"""FPOP against Algorithm 1 as it is printed, its perturbation, and that it learns."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import kstest

from tests.conftest import FloatArray, pair_of_tuple
from tests.learners.gap import random_episodes, regret_per_episode
from tests.planning.test_extended_values import least_in_ball
from tests.twins import layer_of_state
from tightrope import Episode, InvalidInputError, LayeredMDP, LayeredSpace
from tightrope.confidence import Counts
from tightrope.learners.fpop import FPOP
from tightrope.planning.hindsight import best_policy

SPACE = LayeredSpace.dense([1, 2, 3, 1], 2)


def fpop(space: LayeredSpace = SPACE, episodes: int = 40, seed: int = 3, **options: Any) -> FPOP:
    return FPOP(space, [], episodes=episodes, rng=np.random.default_rng(seed), **options)


def test_the_perturbation_is_exponential_with_rate_eta() -> None:
    space = LayeredSpace.dense([1, 40, 40, 1], 20)
    learner = fpop(space, learning_rate=0.25)
    assert learner.state.perturbation.shape == (space.n_pairs,)
    assert kstest(learner.state.perturbation, "expon", args=(0, 4.0)).pvalue > 0.05
    assert learner.state.perturbation.mean() == pytest.approx(4.0, rel=0.1)


def test_the_perturbation_is_drawn_once() -> None:
    learner = fpop()
    drawn = np.random.default_rng(3).exponential(1 / learner.learning_rate, SPACE.n_pairs)
    for episode in random_episodes(learner, 1, 10):
        np.testing.assert_array_equal(learner.state.perturbation, drawn)
        learner.observe(episode)
    assert not np.array_equal(fpop(seed=4).state.perturbation, drawn)


def test_before_anything_is_known_the_perturbation_decides() -> None:
    """All models are plausible: the best route takes the most perturbed pair of every layer."""
    for seed in range(10):
        learner = fpop(seed=seed)
        Y, taken = learner.state.perturbation, learner.policy.probabilities == 1
        for k in range(SPACE.n_layers):
            here = SPACE.layer_of_pair == k
            assert taken[np.flatnonzero(here)[np.argmax(Y[here])]]


def as_printed(
    Y: FloatArray, total: FloatArray, N: np.ndarray, M: np.ndarray, T: int, delta: float, scale: float
) -> tuple[FloatArray, FloatArray]:
    """(V, q) of extended value iteration, a linear program for every pair; losses minus perturbation."""
    pair, layer = pair_of_tuple(SPACE), layer_of_state(SPACE)
    V, q = np.zeros(SPACE.n_states), np.zeros(SPACE.n_pairs)
    for s in reversed(range(SPACE.n_states - 1)):
        for i in np.flatnonzero(SPACE.pairs[:, 0] == s):
            j = pair == i
            next_layer = int((layer == layer[s] + 1).sum())
            log_term = math.log((T + 1) * SPACE.n_states * SPACE.n_actions / delta)
            eps = scale * math.sqrt(2 * next_layer * log_term / max(1, N[i])) if N[i] else math.inf
            v = total[j] - Y[i] + V[SPACE.tuples[j, 2]]
            q[i] = v.min() if eps >= 2 else least_in_ball(v, M[j] / N[i], eps)
        V[s] = q[SPACE.pairs[:, 0] == s].min()
    return V, q


@pytest.mark.parametrize("scale", [1.0, 0.1])
def test_a_whole_run_against_algorithm_1(scale: float) -> None:
    T, delta = 25, 0.05
    learner = fpop(episodes=T, level=delta, radius_scale=scale, learning_rate=0.5)
    Y, total, pair = learner.state.perturbation.copy(), np.zeros(SPACE.n_tuples), pair_of_tuple(SPACE)
    N, n, M, m, epoch = (np.zeros(size, dtype=int) for size in (SPACE.n_pairs,) * 2 + (SPACE.n_tuples,) * 2 + (1,))
    policies = set()
    for episode in random_episodes(learner, 2, T):
        V, q = as_printed(Y, total, N, M, T, delta, scale)
        taken = np.flatnonzero(learner.policy.probabilities == 1)
        assert SPACE.pairs[taken, 0].tolist() == list(range(SPACE.n_states - 1))
        np.testing.assert_allclose(q[taken], V[:-1], atol=1e-9)
        policies.add(tuple(taken))
        learner.observe(episode)
        path = SPACE.path(episode.states, episode.actions)
        total += (np.asarray(episode.loss) + 1) / 2
        n[pair[path]] += 1
        m[path] += 1
        if (n >= np.maximum(1, N)).any():
            N, M, n, m = N + n, M + m, 0 * n, 0 * m
            epoch += 1
        assert learner.epoch == 1 + epoch[0]
    assert len(policies) > 3


def test_with_the_model_known_it_follows_the_perturbed_leader() -> None:
    """No radius and counts that are the model: the policy is the best one for the losses so far minus Y."""
    rng = np.random.default_rng(5)
    learner = fpop(radius_scale=0.0)
    counts = Counts(SPACE)
    counts.M = rng.integers(1, 50, SPACE.n_tuples)
    counts.N = np.bincount(pair_of_tuple(SPACE), counts.M).astype(np.int64)
    learner.state = replace(learner.state, counts=counts, total_loss=rng.uniform(0, 20, SPACE.n_tuples))
    mdp = LayeredMDP(SPACE, counts.M / SPACE.expand_to_tuples(counts.N))
    perturbed = learner.state.total_loss - SPACE.expand_to_tuples(learner.state.perturbation)
    assert mdp.occupancy(learner.policy) @ perturbed == pytest.approx(best_policy(mdp, perturbed)[0], abs=1e-9)


def test_regret_per_episode_falls() -> None:
    early, late = (regret_per_episode("fpop", "switching", T) for T in (250, 4000))
    assert 0 < late < early / 3


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"learning_rate": 0.0}, "learning_rate is 0.0"),
        ({"learning_rate": np.inf}, "learning_rate is inf"),
        ({"level": 1.0}, "level is 1.0"),
        ({"radius_scale": -1.0}, "scale is -1.0"),
    ],
)
def test_bad_parameters_are_named(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        fpop(**options)


def test_a_failing_planner_leaves_the_learner_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = fpop()
    episode = Episode([0, 1, 3, 6], [0, 1, 0], np.ones(SPACE.n_tuples), np.zeros((0, SPACE.n_tuples)))
    before = learner.policy
    with monkeypatch.context() as patch:
        patch.setattr("tightrope.learners.fpop.optimistic_policy", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            learner.observe(episode)
    assert learner.policy is before
    assert learner.observed == learner.state.counts.n.sum() == learner.state.total_loss.sum() == 0
