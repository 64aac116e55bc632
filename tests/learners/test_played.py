"""Kernels of what was played, against plain sums and a difference quotient."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

from tests.conftest import mdps, random_policy, rngs
from tightrope import LayeredMDP, LayeredSpace, Policy
from tightrope.learners.kernels.played import SMALLEST, believe, from_least, in_spans, least_prices, responses, uses
from tightrope.space import FloatArray


@settings(max_examples=40)
@given(mdps(), rngs())
def test_uses_and_responses(mdp: LayeredMDP, rng: np.random.Generator) -> None:
    """Uses by the occupancy measure; responses by moving the policy a little and looking at what that saves."""
    space, n = mdp.space, 2
    f, g, w = rng.uniform(-1, 1, space.n_tuples), rng.uniform(-1, 1, (n, space.n_tuples)), rng.uniform(0, 2, n)
    policy = random_policy(rng, space)
    pi, P = policy.probabilities, mdp.transitions
    d, theta, use = np.empty(space.n_states), np.empty(space.n_tuples), np.empty(n)
    uses(space.csr, pi, P, g, d, theta, use)
    np.testing.assert_allclose(use, g @ mdp.occupancy(policy), atol=1e-12)
    b, A, V = np.empty(n), np.empty((n, n)), np.empty((n + 1, space.n_states))
    responses(space.csr, pi, P, f, g.copy(), 0.5, d, V, b, A)
    np.testing.assert_allclose(A, A.T, atol=1e-12)

    values, Q = np.zeros(space.n_states), np.zeros(space.n_pairs)
    cost = f + w @ g
    for s in range(space.n_states - 2, -1, -1):
        first, last = space.csr.state_ptr[s : s + 2]
        for k in range(first, last):
            rows = slice(*space.csr.pair_ptr[k : k + 2])
            Q[k] = P[rows] @ (cost[rows] + values[space.tuples[rows, 2]])
        values[s] = pi[first:last] @ Q[first:last]

    def used(eta: float) -> FloatArray:
        weights = pi * np.exp(-eta * Q)
        total = np.add.reduceat(weights, space.csr.state_ptr[:-2])
        moved = Policy(space, weights / np.repeat(total, np.diff(space.csr.state_ptr)[:-1]))
        uses_then: FloatArray = g @ mdp.occupancy(moved)
        return uses_then

    np.testing.assert_allclose((used(-1e-5) - used(1e-5)) / 2e-5, b + A @ w, atol=1e-6)


@settings(max_examples=40)
@given(mdps(), rngs(), st.floats(0, 1))
def test_what_is_charged_is_the_difference_to_the_policy_played(
    mdp: LayeredMDP, rng: np.random.Generator, realism: float
) -> None:
    """Another policy is charged what it uses more, as far as it is charged by the counts; and it cannot choose them."""
    space = mdp.space
    f, g = rng.uniform(-1, 1, space.n_tuples), rng.uniform(-1, 1, (2, space.n_tuples))
    played, other = random_policy(rng, space), random_policy(rng, space)
    theta, elsewhere = mdp.occupancy(played), mdp.occupancy(other)
    d, b, A, V = np.empty(space.n_states), np.empty(2), np.empty((2, 2)), np.empty((3, space.n_states))
    uses(space.csr, played.probabilities, mdp.transitions, g, d, np.empty(space.n_tuples), np.empty(2))
    charged, by_counts = g.copy(), g.copy()
    responses(space.csr, played.probabilities, mdp.transitions, f, charged, realism, d, V, b, A)
    more = g @ elsewhere - g @ theta
    np.testing.assert_allclose(charged @ elsewhere, realism * more + (1 - realism) * g @ elsewhere, atol=1e-12)
    responses(space.csr, played.probabilities, mdp.transitions, f, by_counts, 1.0, d, V, b, A)
    for first, last in pairwise(space.csr.pair_ptr):
        assert np.ptp(by_counts[:, first:last], axis=1).max() == 0


@given(rngs())
def test_least_prices_against_non_negative_least_squares(rng: np.random.Generator) -> None:
    n = int(rng.integers(1, 5))
    root = rng.normal(size=(n + 2, n))
    A, v, w = root.T @ root + 1e-3 * np.eye(n), rng.normal(size=n), np.empty(n)
    least_prices(A, v, w)
    U = np.linalg.cholesky(A).T
    np.testing.assert_allclose(w, nnls(U, np.linalg.solve(U.T, v))[0], atol=1e-6)


def test_beliefs_by_hand() -> None:
    """Three visits, one to the first and two to the second successor; θ has it the other way round."""
    space = LayeredSpace.dense([1, 2, 1], 2)
    N, M = np.array([3, 0, 1, 0, 0, 0]), np.array([1, 2, 0, 0, 1, 0, 0, 0])
    theta = np.array([0.6, 0.2, 0.05, 0.15, 0.65, 0.0, 0.35, 0.0])
    P = np.empty(space.n_tuples)
    believe(space.csr.pair_ptr, N, M, theta, P)
    np.testing.assert_allclose(P, [2.5 / 5, 2.5 / 5, 0.25, 0.75, 1, 1, 1, 1])


def test_from_the_least_of_every_layer_by_hand() -> None:
    space = LayeredSpace.dense([1, 2, 1], 2)
    f, out = np.array([0.1, 0.3, -0.1, 0.2, 5.0, 5.1, 5.2, 5.3]), np.empty(8)
    assert from_least(space.tuples_before, f, out) == pytest.approx((0.4, 4.9))
    np.testing.assert_allclose(out, [0.2, 0.4, 0.0, 0.3, 0.0, 0.1, 0.2, 0.3], atol=1e-15)


@pytest.mark.parametrize(
    ("low", "high", "unit"),
    [
        (0.0, 0.5, 0.5),
        (0.0, SMALLEST, SMALLEST),
        (0.0, SMALLEST / 2, 1.0),
        (1.0, 1 + 2e-13, 2e-13),
        (1.0, 1 + 5e-14, 1.0),
    ],
)
def test_a_span_is_a_unit_unless_it_is_nothing(low: float, high: float, unit: float) -> None:
    space, g = LayeredSpace.dense([1, 1], 2), np.array([[low, high]])
    costs, limits, units = np.empty((1, 2)), np.empty(1), np.empty(1)
    in_spans(space.tuples_before, g, np.array([high]), costs, limits, units)
    np.testing.assert_allclose(units, unit, rtol=0.01)
    np.testing.assert_allclose(costs[0], [0, 0] if unit == 1 else [0, 1])
    np.testing.assert_allclose(limits, (high - low) / units)
