"""Loss estimators against their definition, and their exact mean over all trajectories."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import mdps, pair_of_tuple, random_policy, rngs
from tests.trajectories import trajectories
from tests.twins import occupancy
from tightrope import LayeredMDP
from tightrope.learners.parts import importance_weighted


@given(mdps(), rngs(), st.floats(0, 1))
def test_the_estimator_agrees_with_the_definition(mdp: LayeredMDP, rng: np.random.Generator, gamma: float) -> None:
    space, pair = mdp.space, pair_of_tuple(mdp.space)
    path, _ = max(trajectories(mdp, random_policy(rng, space)), key=lambda one: one[1])
    losses, weight = rng.random(space.n_layers), rng.uniform(0.1, 1, space.n_layers)
    estimate = importance_weighted(space, path, losses, weight, gamma)
    for j in range(space.n_tuples):
        met = [losses[k] / (weight[k] + gamma) for k in range(space.n_layers) if pair[path[k]] == pair[j]]
        np.testing.assert_allclose(estimate[j], met[0] if met else 0.0, rtol=1e-12)


@given(mdps(max_steps=3, max_width=3, max_actions=2), rngs(), st.sampled_from([0.0, 0.2]))
def test_its_mean_is_the_loss_shrunk_by_the_exploration(
    mdp: LayeredMDP, rng: np.random.Generator, gamma: float
) -> None:
    """E ℓ̂(s,a) = ℓ(s,a) q(s,a) / (q(s,a) + γ), ℓ(s,a) the mean over successors: exactly, where q > 0."""
    space, pair = mdp.space, pair_of_tuple(mdp.space)
    policy, f = random_policy(rng, space), rng.random(space.n_tuples)
    theta = occupancy(space, policy.probabilities, mdp.transitions)[1]
    q = np.bincount(pair, theta)
    mean = np.zeros(space.n_tuples)
    for path, probability in trajectories(mdp, policy):
        mean += probability * importance_weighted(space, path, f[path], q[pair[path]], gamma)
    passed = q > 1e-9
    expected = np.bincount(pair, f * mdp.transitions) * np.where(passed, q / np.where(passed, q + gamma, 1), 0)
    np.testing.assert_allclose(mean[passed[pair]], expected[pair][passed[pair]], rtol=1e-9)
