"""Policies evaluated by truncated dynamic programming, and improved by mirror steps."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import mdps, pair_of_tuple, random_counts, random_mdp, random_policy, rngs
from tightrope import LayeredMDP, LayeredSpace
from tightrope.core import evaluate, mirror_step


def test_evaluation_is_truncated_dynamic_programming(rng: np.random.Generator) -> None:
    mdp = random_mdp(rng, LayeredSpace.dense([1, 3, 2, 1], 2))
    space, policy = mdp.space, random_policy(rng, mdp.space)
    N, M = random_counts(rng, mdp, 6)
    n, R = N + 1, rng.uniform(-0.5, 1.5, (2, space.n_pairs))
    V, Q = evaluate(space.native, policy.probabilities, M, n, R)
    for as_weights in evaluate(space.native, policy.probabilities, M.astype(float), n.astype(float), R):
        np.testing.assert_array_equal(as_weights, V if as_weights.shape == V.shape else Q)
    for h in range(2):
        expected = np.zeros(space.n_states)
        for s in range(space.n_states - 2, -1, -1):
            for i in np.flatnonzero(space.pairs[:, 0] == s):
                to = np.flatnonzero(pair_of_tuple(space) == i)
                q = R[h, i] + M[to] @ expected[space.tuples[to, 2]] / n[i]
                q = min(max(q, 0), space.n_layers - space.layer_of(s))
                assert Q[h, i] == pytest.approx(q)
                expected[s] += policy.probabilities[i] * q
        np.testing.assert_allclose(V[h], expected)
    assert (Q == 0).any() and (Q == 1).any()


@given(mdps(), rngs(), st.sampled_from([0.0, 0.3, 50.0]))
def test_the_mirror_step_is_its_closed_form(mdp: LayeredMDP, rng: np.random.Generator, step: float) -> None:
    space = mdp.space
    pi, q = random_policy(rng, space).probabilities, rng.uniform(-2, 2, space.n_pairs)
    out = mirror_step(space.native, pi, q, step)
    weights = pi * np.exp(-step * q)
    states = space.pairs[:, 0]
    np.testing.assert_allclose(out, weights / np.bincount(states, weights)[states], rtol=1e-10)


def test_a_mirror_step_brings_back_what_was_as_good_as_gone() -> None:
    space = LayeredSpace.dense([1, 1], 2)
    out = mirror_step(space.native, np.array([1.0, 0.0]), np.array([0.0, 1e4]), 1.0)
    assert out[0] == 1.0
    assert mirror_step(space.native, out, np.array([1e4, 0.0]), 1.0)[1] == 1.0
