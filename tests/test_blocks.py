"""Spaces so large that the core works in blocks, side by side: against NumPy, and the same bits on any threads."""

from typing import Any

import numpy as np
import pytest

from tests import twins
from tests.conftest import random_counts, random_mdp, random_policy, random_sparse_space
from tightrope import LayeredMDP, LayeredSpace, core

RNG = np.random.default_rng(8)
#: Layers of 80,000 tuples, so three blocks each, of consecutive successors and of others.
SPACES = [
    LayeredSpace.dense([1, 100, 100, 100, 1], 8),
    random_sparse_space(RNG, [1, 120, 120, 120, 1], 8, density=0.7),
]


def calls(space: LayeredSpace) -> dict[str, tuple[Any, ...]]:
    """Every function that works in blocks, with arguments."""
    rng = np.random.default_rng(3)
    mdp, policy = random_mdp(rng, space), random_policy(rng, space)
    N, M = random_counts(rng, mdp, 6)
    pi, P, theta = policy.probabilities, mdp.transitions, mdp.occupancy(random_policy(rng, space))
    f, g, c = rng.uniform(-1, 1, space.n_tuples), rng.uniform(-1, 1, (2, space.n_tuples)), np.array([0.5, 0.25])
    uniforms, path = rng.random(2 * space.n_layers), space.csr.pair_ptr[space.csr.state_ptr[space.csr.layer_ptr[:-2]]]
    return {
        "occupancy": (space.native, pi, P),
        "policy_of": (space.native, theta),
        "play": (space.native, pi, P, uniforms, f, g, 0.5 * g, c, np.zeros(space.n_tuples), np.zeros(2)),
        "count": (space.native, path, N, 1.0, N.astype(np.int32), M.astype(np.int32)),
        "frequencies": (space.native, N, M),
        "within": (f, g, 2.0),
        "weigh": (2.0, f, c, g, 3.0),
        "mix": (space.native, theta, 0.1),
        "mix_pairs": (space.native, theta, 0.1, pi),
        "average": (g, 0.5 * g, 3.0),
        "dual_step": (c, g, theta, c),
        "uses": (space.native, pi, N, M, theta, g),
        "assess": (space.native, pi, N, M, theta, f, g.copy(), 0.5, c),
        "span": (space.native, f),
        "from_least": (space.native, f),
        "in_spans": (space.native, g.copy(), c),
    }


@pytest.fixture(params=[0, 1], ids=["dense", "sparse"])
def space(request: pytest.FixtureRequest) -> LayeredSpace:
    chosen: LayeredSpace = SPACES[request.param]
    assert chosen.n_tuples > 100_000 and max(np.diff(chosen.tuples_before)) > 2 * 2**15
    return chosen


@pytest.mark.parametrize("name", list(calls(SPACES[0])))
def test_the_bits_do_not_depend_on_the_number_of_threads(
    space: LayeredSpace, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bits = set()
    for threads in ("1", "2", "4"):
        monkeypatch.setenv("TIGHTROPE_THREADS", threads)
        arguments = calls(space)[name]
        answer = getattr(core, name)(*arguments)
        everything = (*(answer if isinstance(answer, tuple) else (answer,)), *arguments[1:])
        bits.add(b"".join(np.asarray(part).tobytes() for part in everything))
    assert len(bits) == 1


def test_occupancy_and_policy_in_blocks_are_their_twins(space: LayeredSpace) -> None:
    _, pi, P = calls(space)["occupancy"]
    np.testing.assert_allclose(core.occupancy(space.native, pi, P), twins.occupancy(space, pi, P)[1], rtol=1e-12)
    theta = calls(space)["policy_of"][1]
    np.testing.assert_allclose(core.policy_of(space.native, theta), twins.policy_of(space, theta), rtol=1e-12)


def test_an_account_in_blocks_is_that_of_the_measure(space: LayeredSpace) -> None:
    _, pi, P, _, f, g, mean, c, total, over = arguments = calls(space)["play"]
    theta = core.occupancy(space.native, pi, P)
    *_, loss, violation = core.play(*arguments)
    assert loss == pytest.approx(f @ theta, abs=1e-12)
    assert violation == pytest.approx(np.linalg.norm(np.maximum(mean @ theta - c, 0)), abs=1e-12)
    np.testing.assert_allclose(over, g @ theta - c, atol=1e-12)
    np.testing.assert_array_equal(total, f)


def test_uses_and_responses_in_blocks_are_those_of_the_belief(space: LayeredSpace) -> None:
    _, pi, N, M, theta, f, g, _, c = calls(space)["assess"]
    P = core.believe(space.native, N, M, theta)
    believed = LayeredMDP(space, P)
    measure = core.occupancy(space.native, pi, P)
    np.testing.assert_allclose(core.uses(space.native, pi, N, M, theta, g), g @ measure, atol=1e-12)
    V, Q = values(believed, pi, f)
    W, R = values(believed, pi, g[0])
    d = np.append(np.bincount(space.tuples[:, 0], measure), 1.0)
    state = space.pairs[:, 0]
    covariance = np.bincount(state, pi * Q * R, minlength=space.n_states) - V * W
    _, b, _, _ = core.assess(space.native, pi, N, M, theta, f, g.copy(), 0.5, c)
    assert b[0] == pytest.approx(d @ covariance, abs=1e-11)


def values(mdp: LayeredMDP, pi: np.ndarray, cost: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """V (n_states,) and Q (n_pairs,) of a policy."""
    space = mdp.space
    V: np.ndarray = np.zeros(space.n_states)
    for _ in range(space.n_layers):  # one layer more is right after each
        Q = space.sum_over_successors(mdp.transitions * (cost + V[space.tuples[:, 2]]))
        V = np.bincount(space.pairs[:, 0], pi * Q, minlength=space.n_states)
    return V, Q


def test_sums_and_costs_in_blocks_are_their_formulas(space: LayeredSpace) -> None:
    given = calls(space)
    V, f, Q, g, alpha = given["weigh"]
    np.testing.assert_allclose(core.weigh(V, f, Q, g, alpha), (V * f + Q @ g) / alpha, atol=1e-13)
    _, _, theta, c = given["dual_step"]
    np.testing.assert_allclose(core.dual_step(Q, g, theta, c), np.maximum(Q + g @ theta - c, 0), atol=1e-12)
    np.testing.assert_array_equal(core.average(g, 0.5 * g, 3.0), g + (0.5 * g - g) / 3)
    np.testing.assert_allclose(core.mix(space.native, theta, 0.1), twins.mixed(space, theta, 0.1), rtol=1e-13)
    assert core.within(f, g, np.abs(g).max(axis=1).sum())
    f[-1] = np.nan
    assert not core.within(f, g, 9.0)
