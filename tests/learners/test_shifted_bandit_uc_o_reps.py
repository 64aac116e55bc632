"""Shifted Bandit UC-O-REPS: its sets, its estimates in exact expectation, a run as printed, and that it learns."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.conftest import pair_of_tuple, random_mdp, random_sparse_space
from tests.instances import Boxed
from tests.learners.gap import regret_per_episode
from tests.learners.test_uob_reps import PRECISE, bandit_episode
from tests.projection.test_box import conic_solution
from tests.trajectories import trajectories
from tests.twins import first_measure, layer_of_state, occupancy
from tightrope import (
    BanditEpisode,
    Box,
    InvalidInputError,
    L1Ball,
    LayeredMDP,
    LayeredSpace,
    PaperRadius,
    Policy,
    project,
)
from tightrope.learners.shifted_bandit_uc_o_reps import ShiftedBanditUCOREPS, ShiftedRadius
from tightrope.storage import checkpoints


def visits(rng: np.random.Generator, space: LayeredSpace) -> tuple[np.ndarray, np.ndarray]:
    pair = pair_of_tuple(space)
    M = rng.integers(0, 400, space.n_tuples) * (rng.random(space.n_pairs) < 0.8)[pair]
    return np.bincount(pair, M).astype(np.int64), M


def test_the_set_holds_the_shifted_models_of_the_ball_and_no_others() -> None:
    rng, alpha = np.random.default_rng(2), 0.3
    for seed in range(20):
        space = random_sparse_space(np.random.default_rng(seed), [1, 4, 3, 1], 2, 0.7)
        unshifted = PaperRadius(episodes=50, level=0.1, scale=0.3)
        N, M = visits(rng, space)
        ball, box = unshifted(space, N, M), ShiftedRadius(unshifted=unshifted, shift=alpha)(space, N, M)
        box.check(space)
        uniform = 1 / space.successors_per_pair[pair_of_tuple(space)]
        for _ in range(10):
            P = random_mdp(rng, space, zeros=0.5).transitions
            near = space.expand_to_tuples(np.minimum(1, rng.uniform(0, 1.2) * ball.radius / 2))
            P = np.where(space.expand_to_tuples(N > 0), (1 - near) * ball.center + near * P, P)
            theta = space.expand_to_tuples(rng.random(space.n_pairs))
            inside = ball.violation(space, theta * P)
            shifted = box.violation(space, theta * ((1 - alpha) * P + alpha * uniform))
            assert shifted == pytest.approx((1 - alpha) * inside, abs=1e-12)
            assert box.violation(space, theta * P) >= np.max(alpha * uniform - P) - 1e-12


def test_every_state_is_passed_whatever_the_losses_say() -> None:
    """In dense spaces with probability α/|S_k| at least."""
    rng, alpha = np.random.default_rng(3), 0.2
    space = LayeredSpace.dense([1, 4, 3, 1], 2)
    rule = ShiftedRadius(unshifted=PaperRadius(episodes=50, level=0.1, scale=0.3), shift=alpha)
    for _ in range(10):
        cost = 50 * rng.uniform(-1, 1, space.n_tuples)
        theta = project(space, space.uniform(), cost, rule(space, *visits(rng, space))).theta
        passed = np.bincount(space.tuples[:, 0], theta)
        floor = alpha / np.array(space.layer_sizes)[layer_of_state(space)[:-1]]
        assert (passed[1:] >= floor[1:] - 1e-9).all()


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("sparse", [False, True])
def test_a_whole_run_as_printed(sparse: bool) -> None:
    T, delta, scale, eta, alpha, rng = 10, 0.05, 0.2, 0.05, 0.3, np.random.default_rng(12)
    space = random_sparse_space(rng, [1, 3, 3, 1], 2, 0.6) if sparse else LayeredSpace.dense([1, 2, 3, 1], 2)
    learner = ShiftedBanditUCOREPS(
        space, [], episodes=T, learning_rate=eta, shift=alpha, level=delta, radius_scale=scale
    )
    mdp, pair = random_mdp(rng, space), pair_of_tuple(space)
    n_next = np.array(space.layer_sizes)[layer_of_state(space)[space.pairs[:, 0]] + 1]
    theta, M, N_before = first_measure(space), np.zeros(space.n_tuples, int), np.zeros(space.n_pairs, int)
    ball = L1Ball(np.zeros(space.n_tuples), np.full(space.n_pairs, np.inf))
    uniform, ones = 1 / np.bincount(pair)[pair], np.ones(space.n_tuples)
    for _ in range(T):
        f = rng.uniform(-1, 1, space.n_tuples)
        episode = bandit_episode(space, learner.policy.probabilities, mdp.transitions, f, rng)
        learner.observe(episode)
        path = space.path(episode.states, episode.actions)
        estimate, q = np.zeros(space.n_tuples), np.bincount(pair, theta)
        for j in path:
            estimate[pair == pair[j]] = (f[j] + 1) / 2 / q[pair[j]]
        M[path] += 1
        N = np.bincount(pair, M, minlength=space.n_pairs)
        if any(N[i] >= max(1, 2 * N_before[i]) for i in pair[path]):
            N_before = N
            eps = scale * np.sqrt(
                2 * n_next * math.log((T + 1) * space.n_states * space.n_actions / delta) / np.maximum(1, N)
            )
            center = (1 - alpha) * M / np.maximum(1, N)[pair] + alpha * uniform
            ball = L1Ball(center, np.where((N > 0) & (eps < 2), (1 - alpha) * eps, np.inf))
        instance = Boxed(space, np.maximum(theta, 1e-12), eta * estimate, Box(alpha * uniform, ones, ball))
        theta = np.maximum(conic_solution(instance, **PRECISE)[1], 0)
        np.testing.assert_allclose(learner.state.theta, theta, atol=3e-6)
    assert learner.epoch > 3


def test_the_estimate_is_off_by_how_far_the_measure_is_off() -> None:
    """E ℓ̂(s,a) = ℓ(s,a) q(s,a) / q_t(s,a), exactly, over all trajectories; unbiased if q_t is the occupancy measure."""
    rng = np.random.default_rng(4)
    space = LayeredSpace.dense([1, 2, 2, 1], 2)
    mdp, pair, losses = random_mdp(rng, space), pair_of_tuple(space), rng.random(space.n_tuples)
    learner = ShiftedBanditUCOREPS(space, [], episodes=200)
    for _ in range(50):
        f = rng.uniform(-1, 1, space.n_tuples)
        learner.observe(bandit_episode(space, learner.policy.probabilities, mdp.transitions, f, rng))
    for theta in (learner.state.theta.copy(), occupancy(space, learner.policy.probabilities, mdp.transitions)[1]):
        q = np.bincount(pair, occupancy(space, learner.policy.probabilities, mdp.transitions)[1])
        mean = np.zeros(space.n_tuples)
        for path, probability in trajectories(mdp, learner.policy):
            mean += probability * learner.estimate(theta, path, losses[path])
        expected = np.bincount(pair, losses * mdp.transitions) * q / np.bincount(pair, theta)
        np.testing.assert_allclose(mean, expected[pair], rtol=1e-10)
    np.testing.assert_allclose(mean, np.bincount(pair, losses * mdp.transitions)[pair], rtol=1e-10)


def test_all_of_the_shift_is_a_uniform_model() -> None:
    space = LayeredSpace.dense([1, 2, 2, 1], 2)
    learner = ShiftedBanditUCOREPS(space, [], episodes=20, shift=1.0)
    rng = np.random.default_rng(1)
    mdp = random_mdp(rng, space)
    for _ in range(20):
        f = rng.uniform(-1, 1, space.n_tuples)
        learner.observe(bandit_episode(space, learner.policy.probabilities, mdp.transitions, f, rng))
    model = LayeredMDP.from_occupancy(space, learner.state.theta)
    np.testing.assert_allclose(model.transitions, 1 / space.expand_to_tuples(space.successors_per_pair), atol=1e-9)


def test_regret_per_episode_falls() -> None:
    early, late = (regret_per_episode("shifted-bandit-uc-o-reps", "switching", T) for T in (500, 8000))
    assert 0 < late < early / 2


@pytest.mark.parametrize(
    ("option", "value"),
    [("learning_rate", 0.0), ("shift", 0.0), ("shift", 1.1), ("level", 1.0), ("radius_scale", -1.0)],
)
def test_bad_parameters_are_named(option: str, value: Any) -> None:
    with pytest.raises(InvalidInputError, match=f"{option.removeprefix('radius_')} is {value}"):
        ShiftedBanditUCOREPS(LayeredSpace.dense([1, 2, 1], 2), [], episodes=7, **{option: value})


def plays(learner: ShiftedBanditUCOREPS, probabilities: list[float]) -> None:
    """Give the learner the measure of a policy where every successor is as likely."""
    policy = Policy(learner.space, probabilities)
    learner.state = replace(learner.state, theta=LayeredMDP.even(learner.space).occupancy(policy))
    np.testing.assert_array_equal(learner.policy.probabilities, probabilities)


def test_an_action_that_the_policy_never_takes_is_refused_in_words() -> None:
    space = LayeredSpace.dense([1, 2, 1], 2)
    learner = ShiftedBanditUCOREPS(space, [0.5], episodes=9)
    plays(learner, [1.0, 0.0, 0.5, 0.5, 0.5, 0.5])
    state = checkpoints.fingerprint(learner)
    with pytest.raises(InvalidInputError, match=r"episode 1: step 0 took action 1 at state 0, .* probability 0; play"):
        learner.observe(BanditEpisode([0, 1, 3], [1, 0], np.zeros(2), np.zeros((1, 2))))
    assert checkpoints.fingerprint(learner) == state
    plays(learner, [1 - 2.0**-53, 2.0**-53, 0.5, 0.5, 0.5, 0.5])  # as rare as random numbers can be
    learner._check_played(learner.state, space.path([0, 1, 3], [1, 0]))
