"""UOB-REPS against Algorithm 2 as it is printed, its bounds and estimates in exact expectation, and that it learns."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from tests.conftest import FloatArray, pair_of_tuple, random_mdp, random_sparse_space
from tests.instances import Boxed
from tests.learners.gap import regret_per_episode
from tests.projection.test_box import conic_solution
from tests.trajectories import trajectories
from tests.twins import first_measure, occupancy, policy_of, sample_path
from tightrope import BanditEpisode, Box, ConvergenceError, InvalidInputError, LayeredMDP, LayeredSpace
from tightrope.confidence import Counts
from tightrope.learners.uob_reps import UOBREPS
from tightrope.projection.projector import Projector

PRECISE = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}


def bandit_episode(
    space: LayeredSpace, pi: FloatArray, P: FloatArray, f: FloatArray, rng: np.random.Generator
) -> BanditEpisode:
    states, actions, steps = sample_path(space, pi, P, rng.random(2 * space.n_layers))
    return BanditEpisode(states, actions, f[steps], np.zeros((0, space.n_layers)))


def learner_after(number: int, mdp: LayeredMDP, **options: Any) -> UOBREPS:
    rng = np.random.default_rng(9)
    learner = UOBREPS(mdp.space, [], episodes=1000, **options)
    for _ in range(number):
        f = rng.uniform(-1, 1, mdp.space.n_tuples)
        learner.observe(bandit_episode(mdp.space, learner.policy.probabilities, mdp.transitions, f, rng))
    return learner


def printed_bounds(space: LayeredSpace, pi: FloatArray, lower: FloatArray, upper: FloatArray, target: int) -> float:
    """max over the models of the box of the probability to pass `target`: a linear program for every pair."""
    pair = pair_of_tuple(space)
    reach = (np.arange(space.n_states) == target).astype(float)
    for s in reversed(range(target)):
        for i in np.flatnonzero(space.pairs[:, 0] == s):
            j = pair == i
            bounds = list(zip(lower[j], upper[j], strict=True))
            best = linprog(-reach[space.tuples[j, 2]], A_eq=np.ones((1, j.sum())), b_eq=[1], bounds=bounds)
            assert best.status == 0
            reach[s] += pi[i] * (reach[space.tuples[j, 2]] @ best.x)
    return float(reach[0])


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
def test_a_whole_run_against_algorithm_2(sparse: bool) -> None:
    """θ of 10 episodes, with radii scaled so that some boxes bind."""
    T, delta, scale, eta, gamma, rng = 10, 0.05, 0.02, 0.3, 0.1, np.random.default_rng(12)
    space = random_sparse_space(rng, [1, 3, 3, 1], 2, 0.6) if sparse else LayeredSpace.dense([1, 2, 3, 1], 2)
    learner = UOBREPS(space, [], episodes=T, learning_rate=eta, exploration=gamma, level=delta, radius_scale=scale)
    mdp, pair = random_mdp(rng, space), pair_of_tuple(space)
    theta, lower, upper = first_measure(space), np.zeros(space.n_tuples), np.ones(space.n_tuples)
    M, N_before, bound = np.zeros(space.n_tuples, int), np.zeros(space.n_pairs, int), 0
    for _ in range(T):
        f, pi = rng.uniform(-1, 1, space.n_tuples), policy_of(space, theta)
        episode = bandit_episode(space, learner.policy.probabilities, mdp.transitions, f, rng)
        learner.observe(episode)
        estimate, path = np.zeros(space.n_tuples), space.path(episode.states, episode.actions)
        for j in path:
            u = pi[pair[j]] * printed_bounds(space, pi, lower, upper, space.tuples[j, 0])
            estimate[pair == pair[j]] = (f[j] + 1) / 2 / (u + gamma)
        M[path] += 1
        N = np.bincount(pair, M, minlength=space.n_pairs)
        if any(N[i] >= max(1, 2 * N_before[i]) for i in pair[path]):
            N_before = N
            P_bar = M / np.maximum(1, N)[pair]
            n, log_term = np.maximum(1, N - 1)[pair], math.log(T * space.n_states * space.n_actions / delta)
            eps = scale * (2 * np.sqrt(P_bar * log_term / n) + 14 * log_term / (3 * n))
            eps[N[pair] == 0] = 1.0
            lower, upper = np.maximum(0, P_bar - eps), np.minimum(1, P_bar + eps)
        instance = Boxed(space, np.maximum(theta, 1e-12), eta * estimate, Box(lower, upper))
        theta = np.maximum(conic_solution(instance, **PRECISE)[1], 0)
        np.testing.assert_allclose(learner.state.theta, theta, atol=3e-6)
        bound = max(bound, int(((upper < 1) & (np.abs(theta - upper * np.bincount(pair, theta)[pair]) < 1e-7)).sum()))
    assert bound > 0
    assert learner.epoch > 3


def test_bounds_are_above_the_occupancy_while_the_model_is_in_its_box() -> None:
    """At every episode of a run and every pair; and they come down towards it."""
    rng = np.random.default_rng(3)
    space = LayeredSpace.dense([1, 2, 2, 1], 2)
    mdp, pair = random_mdp(rng, space), pair_of_tuple(space)
    learner = UOBREPS(space, [], episodes=4000)
    excess = []
    for t in range(4000):
        if t % 100 == 0:
            box, q = learner.confidence_set, np.bincount(pair, mdp.occupancy(learner.policy))
            assert (box.lower <= mdp.transitions).all()
            assert (mdp.transitions <= box.upper).all()
            gaps = []
            for path, _ in trajectories(mdp, learner.policy):
                gaps += (learner.upper_bounds(path) - q[pair[path]]).tolist()
            assert min(gaps) >= -1e-12
            excess.append(max(gaps))
        f = rng.uniform(-1, 1, space.n_tuples)
        learner.observe(bandit_episode(space, learner.policy.probabilities, mdp.transitions, f, rng))
    assert excess[-1] < excess[0] / 2


def test_the_estimate_is_unbiased_up_to_the_exploration() -> None:
    """E ℓ̂(s,a) = ℓ(s,a) q(s,a) / (u(s,a) + γ), exactly, over all trajectories; so it is below ℓ(s,a)."""
    rng = np.random.default_rng(4)
    for sparse in (False, True):
        space = random_sparse_space(rng, [1, 3, 2, 1], 2, 0.5) if sparse else LayeredSpace.dense([1, 2, 2, 1], 2)
        mdp, pair = random_mdp(rng, space), pair_of_tuple(space)
        learner = learner_after(60, mdp)
        losses = rng.random(space.n_tuples)
        mean_loss = np.bincount(pair, losses * mdp.transitions)
        q = np.bincount(pair, occupancy(space, learner.policy.probabilities, mdp.transitions)[1])
        mean, u = np.zeros(space.n_tuples), np.full(space.n_pairs, np.nan)
        for path, probability in trajectories(mdp, learner.policy):
            mean += probability * learner.estimate(path, losses[path])
            u[pair[path]] = learner.upper_bounds(path)
        met = ~np.isnan(u)
        expected = np.where(met, mean_loss * q / (u + learner.exploration), 0)
        np.testing.assert_allclose(mean, expected[pair], rtol=1e-10)
        assert (mean <= mean_loss[pair] + 1e-12).all()


def test_with_the_model_known_only_the_exploration_is_left() -> None:
    """No radius, and counts that are the model: u is the occupancy."""
    rng = np.random.default_rng(5)
    space = LayeredSpace.dense([1, 2, 2, 1], 2)
    pair, M = pair_of_tuple(space), rng.integers(1, 9, space.n_tuples)
    learner = UOBREPS(space, [], episodes=10, radius_scale=0.0, exploration=1e-9)
    counts = Counts(space)
    counts.M, counts.N = M, np.bincount(pair, M).astype(np.int64)
    learner.state = replace(learner.state, counts=counts)
    mdp = LayeredMDP(space, M / counts.N[pair])
    losses, mean = rng.random(space.n_tuples), np.zeros(space.n_tuples)
    for path, probability in trajectories(mdp, learner.policy):
        mean += probability * learner.estimate(path, losses[path])
    np.testing.assert_allclose(mean, np.bincount(pair, losses * mdp.transitions)[pair], rtol=1e-6)


def test_regret_per_episode_falls() -> None:
    early, late = (regret_per_episode("uob-reps", "switching", T) for T in (500, 8000))
    assert 0 < late < early / 2


@pytest.mark.parametrize(
    ("option", "value"),
    [("learning_rate", 0.0), ("exploration", 0.0), ("exploration", np.inf), ("level", 1.0), ("radius_scale", -1.0)],
)
def test_bad_parameters_are_named(option: str, value: Any) -> None:
    with pytest.raises(InvalidInputError, match=f"{option.removeprefix('radius_')} is {value}"):
        UOBREPS(LayeredSpace.dense([1, 2, 1], 2), [], episodes=7, **{option: value})


def test_a_failing_projection_leaves_the_learner_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    space = LayeredSpace.dense([1, 2, 1], 2)
    learner = UOBREPS(space, [], episodes=7)
    before, theta = learner.policy, learner.state.theta.copy()

    def fail(*_: object) -> None:
        raise ConvergenceError("not today")

    with monkeypatch.context() as patch:
        patch.setattr(Projector, "solve", fail)
        with pytest.raises(ConvergenceError, match="not today"):
            learner.observe(BanditEpisode([0, 1, 3], [0, 0], [0.5, 0.5], np.zeros((0, 2))))
    assert learner.policy is before
    np.testing.assert_array_equal(learner.state.theta, theta)
    assert learner.observed == learner.state.counts.n.sum() == 0
