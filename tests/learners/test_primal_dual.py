"""Algorithm 1 around its subproblem: against the formulas, written as they are printed."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import rngs, spaces
from tests.twins import layer_of_state
from tightrope import LayeredSpace
from tightrope.core import dual_step, lift, mix, mix_pairs, weigh


@given(st.integers(1, 40) | st.just(3000), st.integers(0, 3), rngs())
def test_the_cost_of_the_subproblem(n: int, n_constraints: int, rng: np.random.Generator) -> None:
    f, Q, g = rng.uniform(-1, 1, n), rng.uniform(0, 9, n_constraints), rng.uniform(-1, 1, (n_constraints, n))
    V, alpha = rng.uniform(0.1, 50, 2)
    psi = weigh(V, f, Q, g, alpha)
    expected = [(V * f[j] + sum(Q[i] * g[i, j] for i in range(n_constraints))) / alpha for j in range(n)]
    np.testing.assert_allclose(psi, expected, rtol=1e-12, atol=1e-13)


@given(spaces(), st.floats(1e-6, 1), rngs())
def test_the_reference_of_the_subproblem(space: LayeredSpace, lam: float, rng: np.random.Generator) -> None:
    theta = rng.random(space.n_tuples)
    reference = mix(space.native, theta, lam)
    layer = layer_of_state(space)[space.tuples[:, 0]]
    uniform = [1 / np.count_nonzero(layer == k) for k in layer]
    np.testing.assert_allclose(reference, (1 - lam) * theta + lam * np.array(uniform), rtol=1e-14)


@given(spaces(), st.floats(1e-6, 1), rngs())
def test_a_reference_with_mass_by_pair(space: LayeredSpace, lam: float, rng: np.random.Generator) -> None:
    theta, even = rng.random(space.n_tuples), rng.random(space.n_pairs)
    reference = mix_pairs(space.native, theta, lam, even)
    added = [even[np.flatnonzero((space.pairs == (s, a)).all(axis=1))[0]] for s, a, _ in space.tuples]
    np.testing.assert_allclose(reference, (1 - lam) * theta + lam * np.array(added), rtol=1e-14)


@given(spaces(), st.sampled_from([1e-2, 1e-9, 1e-140]), rngs())
def test_a_reference_without_holes(space: LayeredSpace, floor: float, rng: np.random.Generator) -> None:
    """A state below the floor comes to it whole; what is above stays to the bit; what has nothing gets even shares."""
    origin = space.tuples[:, 0]
    mass = floor ** rng.choice([0.0, 0.5, 1.5, 2.0], space.n_states) * rng.choice([1.0, 1.0, 0.0], space.n_states)
    theta = rng.uniform(0.1, 1, space.n_tuples) * rng.choice([1.0, 1.0, floor**2], space.n_tuples)
    theta *= (mass / np.bincount(origin, theta, minlength=space.n_states).clip(1e-300))[origin]
    reference = lift(space.native, theta, floor)
    held = np.bincount(origin, theta, minlength=space.n_states)[origin]
    lifted = np.where(held > 0, theta / np.where(held > 0, held, 1.0), 0.0) * np.maximum(held, floor)
    np.testing.assert_allclose(reference, np.maximum(lifted, floor * np.maximum(held, floor)), rtol=1e-12)
    kept = (held > 2 * floor) & (theta > 2 * floor * held)
    np.testing.assert_array_equal(reference[kept], theta[kept])


@given(st.integers(1, 40), st.integers(0, 3), rngs())
def test_the_step_of_the_multipliers(n: int, n_constraints: int, rng: np.random.Generator) -> None:
    Q, c = rng.uniform(0, 2, n_constraints), rng.uniform(-1, 4, n_constraints)
    g, theta = rng.uniform(-1, 1, (n_constraints, n)), rng.random(n)
    before = Q.copy()
    ahead = dual_step(Q, g, theta, c)
    expected = [max(Q[i] + sum(g[i] * theta) - c[i], 0) for i in range(n_constraints)]
    np.testing.assert_allclose(ahead, expected, atol=1e-13)
    np.testing.assert_array_equal(Q, before)  # an array that was returned before does not change
