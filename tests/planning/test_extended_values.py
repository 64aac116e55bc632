"""Extended value iteration against a linear program for every pair, and against what it must do at both ends."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from tests.conftest import FloatArray, pair_of_tuple, random_mdp, rngs, spaces
from tests.twins import pair_values
from tightrope import LayeredSpace, core


def solve(space: LayeredSpace, P: FloatArray, eps: FloatArray, cost: FloatArray) -> tuple[FloatArray, np.ndarray]:
    V, best = core.extended_values(space.native, P, eps, cost)
    return V, best


def least_in_ball(v: FloatArray, center: FloatArray, eps: float) -> float:
    """min <v, p> over distributions p with ‖p − center‖₁ <= eps, as a linear program in p and |p − center|."""
    n, one = len(v), np.eye(len(v))
    answer = linprog(
        np.append(v, np.zeros(n)),
        A_ub=np.block([[one, -one], [-one, -one], [np.zeros((1, n)), np.ones((1, n))]]),
        b_ub=np.concatenate([center, -center, [min(eps, 2.0)]]),
        A_eq=np.append(np.ones(n), np.zeros(n))[None],
        b_eq=[1.0],
    )
    assert answer.x is not None
    return float(v @ answer.x[:n])


@given(spaces(max_steps=3), rngs(), st.sampled_from([0.0, 0.4]))
@settings(max_examples=40)
def test_every_state_solves_its_linear_program(space: LayeredSpace, rng: np.random.Generator, zeros: float) -> None:
    P = random_mdp(rng, space, zeros).transitions
    eps = rng.choice([0.0, 0.05, 0.7, 1.5, 1.99, 2.0, np.inf], size=space.n_pairs)
    cost = rng.choice([-1.0, 0.3, 1.0], size=space.n_tuples) if zeros else rng.uniform(-1, 1, space.n_tuples)
    V, best = solve(space, P, eps, cost)
    assert V[-1] == 0
    for s in range(space.n_states - 1):
        q = {}
        for i in np.flatnonzero(space.pairs[:, 0] == s):
            j = pair_of_tuple(space) == i
            q[i] = least_in_ball(cost[j] + V[space.tuples[j, 2]], P[j], eps[i])
        assert V[s] == pytest.approx(min(q.values()), abs=1e-9)
        assert q[best[s]] == pytest.approx(V[s], abs=1e-9)


@given(spaces(), rngs())
def test_without_a_radius_it_is_value_iteration(space: LayeredSpace, rng: np.random.Generator) -> None:
    P, cost = random_mdp(rng, space, 0.3).transitions, rng.uniform(-1, 1, space.n_tuples)
    V, best = solve(space, P, np.zeros(space.n_pairs), cost)
    V_twin, q = pair_values(space, P, cost)
    np.testing.assert_allclose(V, V_twin, atol=1e-12)
    np.testing.assert_allclose(q[best], V[:-1], atol=1e-12)


def test_a_free_pair_leads_where_it_is_cheapest() -> None:
    """P̂ = 0, as for a pair that was never visited, is not looked at."""
    space = LayeredSpace.dense([1, 2, 1], 2)
    cost = np.array([1.0, 0.0, 0.9, 0.5, 0.3, 0.2, 0.4, 0.6])
    V, best = solve(space, np.zeros(8), np.full(6, np.inf), cost)
    np.testing.assert_allclose(V, [0.4, 0.2, 0.4, 0.0])
    assert best.tolist() == [0, 3, 4]


def test_half_the_radius_goes_from_the_dearest_to_the_cheapest() -> None:
    """Values 0, 1, 2 with P̂ = (0.2, 0.5, 0.3) and ε = 0.8: 0.3 leaves the last, 0.1 the middle one, for the first."""
    space = LayeredSpace.dense([1, 3, 1], 1)
    V, _ = solve(space, np.array([0.2, 0.5, 0.3, 1, 1, 1]), np.full(4, 0.8), np.array([0.0, 0, 0, 0, 1, 2]))
    assert V[0] == pytest.approx(0.6 * 0 + 0.4 * 1 + 0.0 * 2)


def test_of_equal_actions_the_first_is_taken() -> None:
    space = LayeredSpace.dense([1, 2, 1], 3)
    _, best = solve(space, random_mdp(np.random.default_rng(0), space).transitions, np.full(9, 0.4), np.zeros(12))
    assert best.tolist() == [0, 3, 6]
