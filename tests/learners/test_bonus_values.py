"""Value iteration with a bonus against the equations as they are written."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import FloatArray, mdps, pair_of_tuple, rngs, spaces
from tests.twins import layer_of_state, pair_values
from tightrope import LayeredMDP, LayeredSpace
from tightrope.core import bonus_values


def solve(
    space: LayeredSpace,
    N: np.ndarray,
    M: np.ndarray,
    loss: np.ndarray,
    iota: float,
    rare: float,
    scale: float,
    Q: FloatArray,
) -> tuple[FloatArray, FloatArray, np.ndarray]:
    before = Q.copy()
    Q, best = bonus_values(space.native, N, N, M, loss, iota, rare, scale, before)
    assert before is not Q
    return Q, np.append(Q[best], 0.0), best


@given(mdps(), rngs(), st.sampled_from([0.0, 0.1, 1.0]), st.sampled_from([1.0, 1e3, 1e9]))
def test_the_kernel_agrees_with_the_definition(
    mdp: LayeredMDP, rng: np.random.Generator, scale: float, rare: float
) -> None:
    space, pair = mdp.space, pair_of_tuple(mdp.space)
    N = rng.integers(0, 3000, space.n_pairs) * (rng.random(space.n_pairs) < 0.8)
    M = np.concatenate([rng.multinomial(N[i], mdp.transitions[pair == i]) for i in range(space.n_pairs)])
    loss, before, iota, H = rng.random(space.n_pairs) * N, rng.random(space.n_pairs) * 0.5, 3.0, space.n_layers
    Q, V, best = solve(space, N, M, loss, iota, rare, scale, before)
    visits = np.bincount(space.pairs[:, 0], N, minlength=space.n_states)
    for i, (s, _) in enumerate(space.pairs.tolist()):
        if N[i] == 0:
            assert Q[i] == before[i]
            continue
        j = pair == i
        p, following = M[j] / N[i], space.tuples[j, 2]
        b = math.sqrt(iota / (2 * N[i]))
        if layer_of_state(space)[s] < H - 1:
            variance = max(0.0, p @ V[following] ** 2 - (p @ V[following]) ** 2)
            with np.errstate(divide="ignore"):
                unsure = p @ np.minimum(rare / visits[following], H**2)
            b += math.sqrt(8 * iota * variance / N[i]) + 14 * H * iota / (3 * N[i]) + math.sqrt(8 * unsure / N[i])
        expected = max(before[i], loss[i] / N[i] + p @ V[following] - scale * b)
        np.testing.assert_allclose(Q[i], expected, rtol=1e-7, atol=1e-9)
    for s in range(space.n_states - 1):
        pairs = np.flatnonzero(space.pairs[:, 0] == s)
        assert best[s] == pairs[np.argmin(Q[pairs])]


@given(spaces(), rngs())
def test_without_a_bonus_and_with_the_true_model_it_is_value_iteration(
    space: LayeredSpace, rng: np.random.Generator
) -> None:
    """Counts that are a multiple of the probabilities, losses that sum up to the pairs' means."""
    pair = pair_of_tuple(space)
    M = rng.integers(1, 10, space.n_tuples)
    N = np.bincount(pair, M).astype(np.int64)
    P, f = M / N[pair], rng.random(space.n_tuples)
    Q, V, best = solve(space, N, M, np.bincount(pair, M * f), 1.0, 1.0, 0.0, np.zeros(space.n_pairs))
    V_twin, Q_twin = pair_values(space, P, f)
    np.testing.assert_allclose(V, V_twin, atol=1e-12)
    np.testing.assert_allclose(Q, Q_twin, atol=1e-12)
    np.testing.assert_allclose(Q_twin[best], V_twin[:-1], atol=1e-12)
