"""One simulated episode and its twin."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests import twins
from tests.conftest import mdps, random_policy, rngs
from tightrope import LayeredMDP
from tightrope.core import play


@given(mdps(), rngs(), st.integers(0, 3), st.sampled_from([0.0, 0.5]))
def test_the_play_kernel_agrees_with_its_twin(
    mdp: LayeredMDP, rng: np.random.Generator, n_constraints: int, zeros: float
) -> None:
    space, L, n = mdp.space, mdp.space.n_layers, mdp.space.n_tuples
    pi, P, uniforms = random_policy(rng, space, zeros).probabilities, mdp.transitions, rng.random(2 * L)
    f, before = rng.uniform(-1, 1, (2, n))
    g, mean_g = rng.uniform(-1, 1, (2, n_constraints, n))
    budgets, over_before = rng.uniform(-1, 1, (2, n_constraints))
    total_f, over = before.copy(), over_before.copy()
    states, actions, steps, loss, strong = play(space.native, pi, P, uniforms, f, g, mean_g, budgets, total_f, over)

    twin_loss, path, _, twin_usage, twin_mean_usage = twins.play(space, pi, P, uniforms, f, g, mean_g)
    np.testing.assert_allclose(loss, twin_loss, atol=1e-14)
    assert (states.tolist(), actions.tolist(), steps.tolist()) == path
    np.testing.assert_allclose(over, over_before + twin_usage - budgets, atol=1e-14)
    np.testing.assert_allclose(strong, np.linalg.norm(np.maximum(twin_mean_usage - budgets, 0)), atol=1e-14)
    np.testing.assert_array_equal(total_f, before + f)
    *_, with_mean = play(space.native, pi, P, uniforms, f, mean_g, mean_g, budgets, total_f, over)
    assert with_mean == strong  # the mean may be the very array that was drawn
