"""Dynamic programming in the core: against NumPy, and on input that is wrong."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import FloatArray, mdps, random_counts, random_mdp, random_policy, rngs
from tightrope import LayeredMDP, LayeredSpace, Policy, core
from tightrope.planning.dynamic_programming import Intervals


def most_in_box(lower: FloatArray, upper: FloatArray, v: FloatArray) -> float:
    """max Σ p v over lower <= p <= upper, Σ p = 1: the rest of the mass goes where v is largest first."""
    order = np.argsort(-v, kind="stable")
    room = np.cumsum((upper - lower)[order])
    left = 1 - lower.sum()
    more = np.diff(np.minimum(room, left), prepend=0.0)
    return float((lower[order] + more) @ v[order])


@given(mdps(), rngs(), st.sampled_from([3, 30, 1000]))
def test_the_dearest_model_of_a_box_is_found_pair_by_pair(mdp: LayeredMDP, rng: np.random.Generator, n: int) -> None:
    space = mdp.space
    box = Intervals.of_counts(space, *random_counts(rng, mdp, n), log_term=1.0, scale=0.3)
    pi, cost = random_policy(rng, space).probabilities, np.round(rng.uniform(-1, 1, space.n_pairs), 1)
    V = core.dearest_values(space.native, box.lower, box.upper, pi, cost)
    ptr, end = space.csr.pair_ptr, space.n_states - 1
    for s in range(end):
        value = 0.0
        for i in range(*space.csr.state_ptr[s : s + 2].tolist()):
            j = slice(*ptr[i : i + 2].tolist())
            value += pi[i] * (cost[i] + most_in_box(box.lower[j], box.upper[j], V[space.csr.successor[j]]))
        assert V[s] == pytest.approx(value, abs=1e-12)
    assert V[end] == 0


@given(mdps(), rngs())
def test_visits_are_those_of_the_policy(mdp: LayeredMDP, rng: np.random.Generator) -> None:
    space = mdp.space
    _, best = core.best_actions(space.native, mdp.transitions, rng.uniform(-1, 1, space.n_tuples))
    pi = np.zeros(space.n_pairs)
    pi[best] = 1.0
    theta = mdp.occupancy(Policy(space, pi))
    np.testing.assert_allclose(
        core.visits(space.native, best, mdp.transitions), space.sum_over_successors(theta), atol=1e-14
    )


@given(mdps(), rngs())
def test_a_box_around_a_point_is_that_model(mdp: LayeredMDP, rng: np.random.Generator) -> None:
    space, P, cost = mdp.space, mdp.transitions, rng.uniform(-1, 1, mdp.space.n_pairs)
    V, best, p = core.optimistic_actions(space.native, P, P, cost)
    by_tuple = space.expand_to_tuples(cost)
    V_known, best_known = core.best_actions(space.native, P, by_tuple)
    np.testing.assert_allclose(V, V_known, atol=1e-12)
    np.testing.assert_array_equal(p, P)
    np.testing.assert_array_equal(best, best_known)


def valid(rng: np.random.Generator) -> dict[Callable[..., Any], list[Any]]:
    """Every kernel of planning and confidence sets with arguments that it takes."""
    space = LayeredSpace.dense([1, 3, 2, 1], 2)
    mdp = random_mdp(rng, space)
    P, by_tuple, by_pair = mdp.transitions, rng.normal(size=space.n_tuples), rng.normal(size=space.n_pairs)
    N, M = random_counts(rng, mdp, 50)
    best = space.csr.state_ptr[:-2].copy()
    radius, pi = np.full(space.n_pairs, 0.1), random_policy(rng, space).probabilities
    D, alpha, beta = rng.normal(size=(2, space.n_pairs)), np.zeros(2), np.zeros(space.n_states)
    at = space.native
    return {
        core.best_actions: [at, P, by_tuple],
        core.extended_values: [at, P, radius, by_tuple],
        core.largest_values: [at, False, 0 * P, np.ones_like(P), P, radius, by_tuple, pi],
        core.optimistic_actions: [at, P, P, by_pair],
        core.dearest_values: [at, P, P, pi, by_pair],
        core.visits: [at, best, P],
        core.best_mixture: [at, P, P, by_pair, D, alpha, 1e-9, 10],
        core.euclidean_point: [at, P, by_pair, beta],
        core.euclidean_step: [at, P, np.abs(by_pair), beta, 0.01],
        core.kl_radii: [at, N, M, 3.0, 1.0],
        core.kl_bounds: [at, N, M, 3.0, 1.0],
        core.are_balls: [at, P, radius, 1e-9],
    }


CALLS = valid(np.random.default_rng(0))
ARRAYS = [
    pytest.param(kernel, k, id=f"{kernel.__name__}-{k}")
    for kernel, arguments in CALLS.items()
    for k, argument in enumerate(arguments)
    if isinstance(argument, np.ndarray)
]


@pytest.mark.parametrize(("kernel", "k"), ARRAYS)
def test_arrays_of_another_kind_are_refused(kernel: Callable[..., Any], k: int) -> None:
    arguments = CALLS[kernel]
    array = arguments[k]
    kernel(*arguments)
    other = np.float64 if array.dtype == np.int64 else np.float32
    wrong = [array[:-1].copy(), np.append(array, array[-1:], axis=0), array.astype(other), array[..., None], "text"]
    for bad in [*wrong, np.repeat(array, 2, axis=-1)[..., ::2], array.tolist()]:
        with pytest.raises((TypeError, ValueError)):
            kernel(*arguments[:k], bad, *arguments[k + 1 :])


@given(rngs(), st.sampled_from(ARRAYS), st.sampled_from([np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324]))
def test_numbers_without_sense_end(rng: np.random.Generator, case: Any, number: float) -> None:
    """There is an answer, or a ValueError; and no memory is touched that is not ours."""
    kernel, k = case.values
    arguments = list(CALLS[kernel])
    array = arguments[k].copy()
    at = rng.random(array.shape) < 0.5
    array[at] = rng.integers(-(2**62), 2**62) if array.dtype == np.int64 else number
    try:
        kernel(*arguments[:k], array, *arguments[k + 1 :])
    except ValueError:
        assert array.dtype == np.int64


def test_a_pair_of_another_state_is_refused() -> None:
    space, best, P = CALLS[core.visits]
    for wrong in (-1, int(best[2]), 2**40):
        with pytest.raises(ValueError, match=r"best\[1\] is not a pair"):
            core.visits(space, np.array([best[0], wrong, *best[2:]]), P)


@pytest.mark.parametrize("kernel", [core.kl_radii, core.kl_bounds])
def test_counts_that_are_none_are_refused(kernel: Callable[..., Any]) -> None:
    space, N, M, *rest = CALLS[kernel]
    for n, m, words in ((-1, 0, "N has a negative"), (0, -1, "M has a negative")):
        with pytest.raises(ValueError, match=words):
            kernel(space, np.append(n, N[1:]), np.append(m, M[1:]), *rest)
    with pytest.raises(ValueError, match="more than N of its pair"):
        core.kl_bounds(space, N, np.append(N[0] + 1, M[1:]), *rest)
