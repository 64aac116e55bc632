"""Optimistic POMD against linear programs over whole runs, and that it learns."""

import math

import numpy as np
import pytest
from scipy.optimize import linprog

from tests.conftest import pair_of_tuple, random_mdp, random_sparse_space
from tests.learners.gap import regret_per_episode
from tests.learners.test_uob_reps import bandit_episode, printed_bounds
from tightrope import LayeredSpace
from tightrope.learners.opt_pomd import OptPOMD


@pytest.mark.parametrize("sparse", [False, True])
def test_a_whole_run_is_that_of_its_twin(sparse: bool) -> None:
    """Boxes from lists of what was met, bounds and values by linear programs, weights by exponentials."""
    K, delta, scale, eta, gamma, rng = 25, 0.05, 0.01, 0.3, 0.1, np.random.default_rng(5)
    space = random_sparse_space(rng, [1, 3, 3, 1], 2) if sparse else LayeredSpace.dense([1, 3, 2, 1], 2)
    mdp, pair = random_mdp(rng, space), pair_of_tuple(space)
    learner = OptPOMD(space, [], episodes=K, level=delta, radius_scale=scale, learning_rate=eta, exploration=gamma)
    total, N, M = np.zeros(space.n_pairs), np.zeros(space.n_pairs), np.zeros(space.n_tuples)
    log_term, bound = math.log(K * space.n_states * space.n_actions / delta), 0
    for _ in range(K):
        weights = np.exp(-eta * total)
        pi = weights / np.array([weights[space.pairs[:, 0] == s].sum() for s in space.pairs[:, 0]])
        np.testing.assert_allclose(learner.policy.probabilities, pi, rtol=1e-7)
        P_hat, share = M / np.maximum(1, N)[pair], log_term / np.maximum(1, N - 1)[pair]
        radius = scale * (2 * np.sqrt(P_hat * share) + 14 / 3 * share)
        lower = np.where(N[pair] > 0, np.maximum(P_hat - radius, 0), 0.0)
        upper = np.where(N[pair] > 0, np.minimum(P_hat + radius, 1), 1.0)
        bound += int(((lower > 0) & (upper < 1)).sum())

        f = rng.uniform(-1, 1, space.n_tuples)
        episode = bandit_episode(space, learner.policy.probabilities, mdp.transitions, f, rng)
        learner.observe(episode)
        path, losses = space.path(episode.states, episode.actions), np.asarray(episode.losses)
        estimate = np.zeros(space.n_pairs)
        for k, j in enumerate(path):
            u = pi[pair[j]] * printed_bounds(space, pi, lower, upper, int(space.tuples[j, 0]))
            estimate[pair[j]] = (losses[k] + 1) / 2 / (u + gamma)
        V, Q = np.zeros(space.n_states), np.zeros(space.n_pairs)
        for i in reversed(range(space.n_pairs)):
            of = pair == i
            least = linprog(
                V[space.tuples[of, 2]], A_eq=np.ones((1, of.sum())), b_eq=[1],
                bounds=list(zip(lower[of], upper[of], strict=True)),
            )  # fmt: skip
            Q[i] = estimate[i] + least.fun
            V[space.pairs[i, 0]] += pi[i] * Q[i]
        total += Q
        np.add.at(N, pair[path], 1)
        np.add.at(M, path, 1)
    assert bound > 20  # boxes that neither leave all open nor nothing


def test_it_explores_with_1_at_most() -> None:
    """(4² √(log 2 / K) / 8)^(2/3): 1.405 for K = 1, 0.303 for K = 100."""
    space = LayeredSpace.dense([1, 1, 1, 1, 1], 2)
    explored = [OptPOMD(space, [], episodes=K).exploration for K in (1, 100)]
    assert explored == [1.0, pytest.approx(0.30266473)]


def test_its_regret_per_episode_falls() -> None:
    early, late = (regret_per_episode("opt-pomd", "switching", episodes) for episodes in (300, 6000))
    assert late < 0.7 * early
