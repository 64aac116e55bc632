"""Upper occupancy bounds: the best of all models by brute force, and never below a model of the box."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import FloatArray, mdps, pair_of_tuple, random_mdp, random_policy, random_sparse_space, rngs
from tests.twins import occupancy
from tightrope import LayeredMDP, LayeredSpace
from tightrope.core import upper_occupancy


def bounds_of_pairs(space: LayeredSpace, pi: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """u (n_pairs,): the kernel's answer for every pair, on paths that need not be possible to pass them all."""
    first_tuple = space.csr.pair_ptr[:-1]
    layer = space.layer_of_pair
    u = np.full(space.n_pairs, np.nan)
    most = int(np.bincount(layer).max())
    for r in range(most):
        pairs = np.array([np.flatnonzero(layer == k)[r % (layer == k).sum()] for k in range(space.n_layers)])
        u[pairs] = upper_occupancy(space.native, pi, lower, upper, first_tuple[pairs])
    return u


def box_around(rng: np.random.Generator, P: FloatArray, width: float) -> tuple[FloatArray, FloatArray]:
    return np.maximum(0, P - width * rng.random(len(P))), np.minimum(1, P + width * rng.random(len(P)))


def vertices(lower: FloatArray, upper: FloatArray) -> list[FloatArray]:
    """The distributions between the bounds with at most one entry off both: the corners of the pair's set."""
    found = []
    for free in range(len(lower)):
        for ends in product(*[(0, 1)] * (len(lower) - 1)):
            p = np.where(np.insert(ends, free, 0), upper, lower)
            p[free] = 1 - np.delete(p, free).sum()
            if lower[free] - 1e-12 <= p[free] <= upper[free] + 1e-12:
                found.append(p)
    return [p for n, p in enumerate(found) if not any(np.allclose(p, other) for other in found[:n])]


@pytest.mark.parametrize(
    ("sizes", "n_actions"), [([1, 2, 2, 1], 2), ([1, 3, 1], 2), ([1, 2, 3, 1], 1), ([1, 2, 2, 2, 1], 1)]
)
@pytest.mark.parametrize("width", [0.1, 0.5, 1.5])
def test_brute_force_finds_the_same(sizes: list[int], n_actions: int, width: float) -> None:
    """Occupancy is linear in each pair's row, so some corner of the box attains the maximum."""
    rng = np.random.default_rng([n_actions, int(10 * width)])
    space = LayeredSpace.dense(sizes, n_actions)
    pi, P = random_policy(rng, space).probabilities, random_mdp(rng, space, 0.3).transitions
    lower, upper = box_around(rng, P, width)
    pair, most = pair_of_tuple(space), np.zeros(space.n_pairs)
    for rows in product(*(vertices(lower[pair == i], upper[pair == i]) for i in range(space.n_pairs))):
        theta = occupancy(space, pi, np.concatenate(rows))[1]
        most = np.maximum(most, np.bincount(pair, theta))
    np.testing.assert_allclose(bounds_of_pairs(space, pi, lower, upper), most, atol=1e-12)


@given(mdps(), rngs(), st.floats(0, 1))
@settings(max_examples=60)
def test_no_model_of_the_box_is_above(mdp: LayeredMDP, rng: np.random.Generator, width: float) -> None:
    space = mdp.space
    pi = random_policy(rng, space, zeros=0.3).probabilities
    lower, upper = box_around(rng, mdp.transitions, width)
    u = bounds_of_pairs(space, pi, lower, upper)
    theta = occupancy(space, pi, mdp.transitions)[1]
    assert (u >= np.bincount(pair_of_tuple(space), theta) - 1e-12).all()
    assert (u <= pi + 1e-12).all()


@given(mdps(), rngs())
def test_a_box_of_one_model_gives_its_occupancy(mdp: LayeredMDP, rng: np.random.Generator) -> None:
    pi = random_policy(rng, mdp.space).probabilities
    u = bounds_of_pairs(mdp.space, pi, mdp.transitions, mdp.transitions)
    theta = occupancy(mdp.space, pi, mdp.transitions)[1]
    np.testing.assert_allclose(u, np.bincount(pair_of_tuple(mdp.space), theta), atol=1e-12)


def test_without_knowledge_a_state_may_be_certain_where_it_can_be_reached() -> None:
    """lower = 0, upper = 1: the best model leads to the target by every action that can; the others miss it."""
    rng = np.random.default_rng(4)
    space = random_sparse_space(rng, [1, 4, 4, 1], 2, 0.2)
    pi = random_policy(rng, space).probabilities
    u = bounds_of_pairs(space, pi, np.zeros(space.n_tuples), np.ones(space.n_tuples))
    pair = pair_of_tuple(space)
    for i, (target, _) in enumerate(space.pairs.tolist()):
        reach = (np.arange(space.n_states) == target).astype(float)
        for s in reversed(range(target)):
            pairs = np.flatnonzero(space.pairs[:, 0] == s)
            reach[s] = sum(pi[m] * reach[space.tuples[pair == m, 2]].max() for m in pairs)
        assert u[i] == pytest.approx(pi[i] * reach[0], abs=1e-12)
