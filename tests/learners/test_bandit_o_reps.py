"""Bandit O-REPS over a whole run against a conic solver, its estimates in exact expectation, and that it learns."""

import math

import numpy as np
import pytest

from tests.learners.gap import regret_per_episode
from tests.learners.over_pairs import OverPairs
from tests.trajectories import trajectories
from tightrope import BanditEpisode, InvalidInputError, LayeredMDP, LayeredSpace, Policy, make_learner
from tightrope.checks.worlds import WORLDS
from tightrope.learners.o_reps import BanditOREPS
from tightrope.learners.parts import unbiased


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
def test_a_whole_run_over_pairs() -> None:
    """The published lines: q_1 of largest entropy, ℓ̂ = ℓ / q of the path, η<ℓ̂, q> + D(q, q_t), within the model."""
    at, eta = WORLDS["a_sparse_space"](), 0.3
    learner = make_learner("bandit-o-reps", at, episodes=6, learning_rate=eta)
    measures, pairs = OverPairs(at.mdp), at.space.pairs.tolist()
    q = measures.largest_entropy()
    for t in range(1, 7):
        for i, (s, a) in enumerate(pairs):
            share = q[i] / sum(q[j] for j in range(len(pairs)) if pairs[j][0] == s)
            assert learner.policy[s][a] == pytest.approx(share, abs=2e-5)
        episode = at.play(learner.policy, "bandit", t, np.random.default_rng(t))
        estimate = np.zeros(len(pairs))
        for s, a, f in zip(episode.states, episode.actions, episode.losses, strict=False):
            i = pairs.index([int(s), int(a)])
            estimate[i] = (float(f) + 1) / 2 / q[i]
        learner.observe(episode)
        q = measures.nearest(q, eta * estimate)


def test_the_estimate_is_unbiased() -> None:
    """Its mean over all trajectories is the mean loss of every pair; the loss depends on where a step leads."""
    at, rng = WORLDS["a_sparse_space"](), np.random.default_rng(4)
    space, policy, losses = at.space, Policy.uniform(at.space), rng.random(at.space.n_tuples)
    mean = np.zeros(space.n_tuples)
    for path, probability in trajectories(at.mdp, policy):
        mean += probability * unbiased(at.mdp, policy, path, losses[path], 1)
    expected = space.sum_over_successors(losses * at.mdp.transitions)
    np.testing.assert_allclose(mean, expected[space.pair_of_tuple], rtol=1e-12)


def test_one_estimate_by_hand() -> None:
    """π(0|0) = ½ and P(1|0,0) = ¼, P(1|0,1) = ¾: state 1 is passed with ½, its action 1, of π(1|1) = 1/5, with 1/10.

    The path 0 → 1 → 3 by the actions 0 and 1, which cost 0.3 and 0.8, has ℓ̂ = 0.3 / ½ and 0.8 / 0.1.
    """
    space = LayeredSpace.dense([1, 2, 1], 2)
    mdp = LayeredMDP(space, [0.25, 0.75, 0.75, 0.25, 1, 1, 1, 1])
    policy = Policy(space, [0.5, 0.5, 0.8, 0.2, 0.5, 0.5])
    estimate = unbiased(mdp, policy, space.path([0, 1, 3], [0, 1]), np.array([0.3, 0.8]), 1)
    assert estimate == pytest.approx([0.6, 0.6, 0, 0, 0, 8.0, 0, 0])


def test_a_path_that_cannot_be_is_refused() -> None:
    """Neither the policy nor the model goes there; the learner stays as it was."""
    space = LayeredSpace.dense([1, 2, 1], 2)
    mdp = LayeredMDP(space, [1, 0, 1, 0, 1, 1, 1, 1])
    learner = BanditOREPS(space, [], episodes=5, model=mdp)
    before = learner.state.theta.copy()
    never = BanditEpisode([0, 2, 3], [0, 1], [0.1, 0.2], np.zeros((0, 2)))
    with pytest.raises(InvalidInputError, match=r"episode 1: step 1 took action 1 at state 2, .* probability 0 under"):
        learner.observe(never)
    other = BanditEpisode([0, 1, 3], [0, 1], [0.1, 0.2], np.zeros((0, 2)), Policy(space, [1, 0, 1, 0, 1, 0]))
    with pytest.raises(InvalidInputError, match="step 1 took action 1 at state 1"):
        learner.observe(other)
    assert learner.observed == 0
    np.testing.assert_array_equal(learner.state.theta, before)


def test_regret_per_episode_falls() -> None:
    """Within the published bound, 2 sqrt(L|S||A|T log(|S||A|/L)), twice as wide for f."""
    early, late = (regret_per_episode("bandit-o-reps", "switching", T) for T in (300, 5000))
    assert 0 < late < early / 2
    assert late * 5000 < 4 * math.sqrt(2 * 8 * 5000 * math.log(4))
