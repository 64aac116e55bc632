"""Kernels of what was played, against plain sums and a difference quotient."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

from tests.conftest import FloatArray, mdps, random_counts, random_policy, rngs, spaces
from tightrope import LayeredMDP, LayeredSpace, Policy
from tightrope.core import SMALLEST, assess, believe, from_least, in_spans, least_prices, span, uses


def assessed(
    mdp: LayeredMDP, policy: Policy, f: FloatArray, costs: FloatArray, realism: float, limits: FloatArray
) -> tuple[FloatArray, ...]:
    """`assess` where the model is believed: without visits, the conditionals of θ are, and P is its own."""
    N, M = np.zeros(mdp.space.n_pairs, np.int64), np.zeros(mdp.space.n_tuples, np.int64)
    pi, P = policy.probabilities, mdp.transitions
    answer: tuple[FloatArray, ...] = assess(mdp.space.native, pi, N, M, P, f, costs, realism, limits)
    return answer


@settings(max_examples=40)
@given(mdps(), rngs())
def test_what_is_used_is_used_under_the_belief(mdp: LayeredMDP, rng: np.random.Generator) -> None:
    space, policy = mdp.space, random_policy(rng, mdp.space)
    N, M = random_counts(rng, mdp, 20)
    theta, g = mdp.occupancy(random_policy(rng, space, zeros=0.3)), rng.uniform(-1, 1, (2, space.n_tuples))
    believed = LayeredMDP(space, believe(space.native, N, M, theta))
    expected = g @ believed.occupancy(policy)
    kinds: list[tuple[Any, Any]] = [(N, M), (N.astype(float), M.astype(float))]
    for counts in kinds:
        use = uses(space.native, policy.probabilities, *counts, theta, g)
        np.testing.assert_allclose(use, expected, atol=1e-12)
        over, *_ = assess(
            space.native, policy.probabilities, *counts, theta, g[0], g.copy(), 0.5, np.array([0.25, 0.0])
        )
        np.testing.assert_allclose(over, expected - [0.25, 0.0], atol=1e-12)


@settings(max_examples=40)
@given(mdps(), rngs())
def test_uses_and_responses(mdp: LayeredMDP, rng: np.random.Generator) -> None:
    """Uses by the occupancy measure; responses by moving the policy a little and looking at what that saves."""
    space, n = mdp.space, 2
    f, g, w = rng.uniform(-1, 1, space.n_tuples), rng.uniform(-1, 1, (n, space.n_tuples)), rng.uniform(0, 2, n)
    policy = random_policy(rng, space)
    pi, P = policy.probabilities, mdp.transitions
    use, b, A, _ = assessed(mdp, policy, f, g.copy(), 0.5, np.zeros(n))
    np.testing.assert_allclose(use, g @ mdp.occupancy(policy), atol=1e-12)
    A -= 1e-5 * np.eye(n)  # what keeps it positive definite
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
    charged, by_counts = g.copy(), g.copy()
    *_, spans = assessed(mdp, played, f, charged, realism, np.zeros(2))
    more = realism * (g @ elsewhere - g @ theta) + (1 - realism) * g @ (elsewhere - theta)
    np.testing.assert_allclose(charged @ (elsewhere - theta), more, atol=1e-12)
    layers = list(pairwise(space.tuples_before))
    np.testing.assert_array_equal([charged[:, a:b].min(axis=1) for a, b in layers], 0)
    np.testing.assert_allclose(spans, np.max([np.ptp(charged[:, a:b], axis=1) for a, b in layers], axis=0))
    assessed(mdp, played, f, by_counts, 1.0, np.zeros(2))
    for first, last in pairwise(space.csr.pair_ptr):
        assert np.ptp(by_counts[:, first:last], axis=1).max() == 0


@given(rngs())
def test_least_prices_against_non_negative_least_squares(rng: np.random.Generator) -> None:
    n = int(rng.integers(1, 5))
    root = rng.normal(size=(n + 2, n))
    A, v = root.T @ root + 1e-3 * np.eye(n), rng.normal(size=n)
    w = least_prices(A, v)
    U = np.linalg.cholesky(A).T
    np.testing.assert_allclose(w, nnls(U, np.linalg.solve(U.T, v))[0], atol=1e-6)


def test_beliefs_by_hand() -> None:
    """Three visits, one to the first and two to the second successor; in θ two shares and one."""
    space = LayeredSpace.dense([1, 2, 1], 2)
    N, M = np.array([3, 0, 1, 0, 0, 0]), np.array([1, 2, 0, 0, 1, 0, 0, 0])
    theta = np.array([0.6, 0.2, 0.05, 0.15, 0.65, 0.0, 0.35, 0.0])
    P = believe(space.native, N, M, theta)
    np.testing.assert_allclose(P, [2.5 / 5, 2.5 / 5, 0.25, 0.75, 1, 1, 1, 1])


def test_from_the_least_of_every_layer_by_hand() -> None:
    space = LayeredSpace.dense([1, 2, 1], 2)
    f = np.array([0.1, 0.3, -0.1, 0.2, 5.0, 5.1, 5.2, 5.3])
    assert span(space.native, f) == pytest.approx(0.4)
    np.testing.assert_allclose(from_least(space.native, f), [0.2, 0.4, 0.0, 0.3, 0.0, 0.1, 0.2, 0.3], atol=1e-15)


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
    costs = g.copy()
    limits, units = in_spans(space.native, costs, np.array([high]))
    np.testing.assert_allclose(units, unit, rtol=0.01)
    np.testing.assert_allclose(costs[0], [0, 0] if unit == 1 else [0, 1])
    np.testing.assert_allclose(limits, (high - low) / units)


@given(spaces(max_width=6), rngs())
def test_spans_are_those_of_every_layer(space: LayeredSpace, rng: np.random.Generator) -> None:
    f = rng.normal(size=space.n_tuples)
    layers = [f[a:b] for a, b in pairwise(space.tuples_before)]
    assert span(space.native, f) == max(np.ptp(layer) for layer in layers)
    np.testing.assert_array_equal(from_least(space.native, f), np.concatenate([x - x.min() for x in layers]))
