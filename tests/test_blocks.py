"""Spaces so large that the core works in blocks, side by side: against NumPy, and the same bits on any threads."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests import twins
from tests.conftest import random_counts, random_mdp, random_policy, random_sparse_space
from tightrope import LayeredMDP, LayeredSpace, core


class Drawn:
    """A space whose layers have 80,000 tuples, so three blocks each, and what the functions of the core read of it."""

    def __init__(self, space: LayeredSpace) -> None:
        assert space.n_tuples > 100_000 and max(np.diff(space.tuples_before)) > 2 * 2**15
        rng = np.random.default_rng(3)
        mdp, policy = random_mdp(rng, space), random_policy(rng, space)
        self.space = space
        self.N, self.M = random_counts(rng, mdp, 6)
        self.pi, self.P = policy.probabilities, mdp.transitions
        self.theta = mdp.occupancy(random_policy(rng, space))
        self.f, self.g = rng.uniform(-1, 1, space.n_tuples), rng.uniform(-1, 1, (2, space.n_tuples))
        self.c = np.array([0.5, 0.25])
        self.uniforms = rng.random(2 * space.n_layers)
        self.path = space.csr.pair_ptr[space.csr.state_ptr[space.csr.layer_ptr[:-2]]]

    def arguments(self, name: str) -> tuple[Any, ...]:
        """What to call a function with; it may write to the arrays."""
        return tuple(each.copy() if isinstance(each, np.ndarray) else each for each in ARGUMENTS[name](self))


#: Every function that works in blocks, with its arguments.
ARGUMENTS: dict[str, Callable[[Drawn], tuple[Any, ...]]] = {
    "occupancy": lambda d: (d.space.native, d.pi, d.P),
    "policy_of": lambda d: (d.space.native, d.theta),
    "play": lambda d: (
        d.space.native, d.pi, d.P, d.uniforms, d.f, d.g, 0.5 * d.g, d.c, np.zeros(d.space.n_tuples), np.zeros(2)
    ),
    "count": lambda d: (d.space.native, d.path, d.N, 1.0, d.N.astype(np.int32), d.M.astype(np.int32)),
    "frequencies": lambda d: (d.space.native, d.N, d.M),
    "within": lambda d: (d.f, d.g, 2.0),
    "weigh": lambda d: (2.0, d.f, d.c, d.g, 3.0),
    "mix": lambda d: (d.space.native, d.theta, 0.1),
    "mix_pairs": lambda d: (d.space.native, d.theta, 0.1, d.pi),
    "average": lambda d: (d.g, 0.5 * d.g, 3.0),
    "dual_step": lambda d: (d.c, d.g, d.theta, d.c),
    "uses": lambda d: (d.space.native, d.pi, d.N, d.M, d.theta, d.g),
    "assess": lambda d: (d.space.native, d.pi, d.N, d.M, d.theta, d.f, d.g, 0.5, d.c),
    "span": lambda d: (d.space.native, d.f),
    "from_least": lambda d: (d.space.native, d.f),
    "in_spans": lambda d: (d.space.native, d.g, d.c),
}  # fmt: skip


@pytest.fixture(scope="module", params=["dense", "sparse"])
def drawn(request: pytest.FixtureRequest) -> Drawn:
    if request.param == "dense":  # the successors of a pair are consecutive
        return Drawn(LayeredSpace.dense([1, 100, 100, 100, 1], 8))
    return Drawn(random_sparse_space(np.random.default_rng(8), [1, 120, 120, 120, 1], 8, density=0.7))


@pytest.mark.parametrize("name", ARGUMENTS)
def test_the_bits_do_not_depend_on_the_number_of_threads(
    drawn: Drawn, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bits = set()
    for threads in ("1", "2", "4"):
        monkeypatch.setenv("TIGHTROPE_THREADS", threads)
        arguments = drawn.arguments(name)
        answer = getattr(core, name)(*arguments)
        everything = (*(answer if isinstance(answer, tuple) else (answer,)), *arguments[1:])
        bits.add(b"".join(np.asarray(part).tobytes() for part in everything))
    assert len(bits) == 1


def test_occupancy_and_policy_in_blocks_are_their_twins(drawn: Drawn) -> None:
    space = drawn.space
    _, pi, P = drawn.arguments("occupancy")
    np.testing.assert_allclose(core.occupancy(space.native, pi, P), twins.occupancy(space, pi, P)[1], rtol=1e-12)
    theta = drawn.arguments("policy_of")[1]
    np.testing.assert_allclose(core.policy_of(space.native, theta), twins.policy_of(space, theta), rtol=1e-12)


def test_an_account_in_blocks_is_that_of_the_measure(drawn: Drawn) -> None:
    space = drawn.space
    _, pi, P, _, f, g, mean, c, total, over = arguments = drawn.arguments("play")
    theta = core.occupancy(space.native, pi, P)
    *_, loss, violation = core.play(*arguments)
    assert loss == pytest.approx(f @ theta, abs=1e-12)
    assert violation == pytest.approx(np.linalg.norm(np.maximum(mean @ theta - c, 0)), abs=1e-12)
    np.testing.assert_allclose(over, g @ theta - c, atol=1e-12)
    np.testing.assert_array_equal(total, f)


def test_uses_and_responses_in_blocks_are_those_of_the_belief(drawn: Drawn) -> None:
    space = drawn.space
    _, pi, N, M, theta, f, g, _, c = drawn.arguments("assess")
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


def test_sums_and_costs_in_blocks_are_their_formulas(drawn: Drawn) -> None:
    space = drawn.space
    V, f, Q, g, alpha = drawn.arguments("weigh")
    np.testing.assert_allclose(core.weigh(V, f, Q, g, alpha), (V * f + Q @ g) / alpha, atol=1e-13)
    _, _, theta, c = drawn.arguments("dual_step")
    np.testing.assert_allclose(core.dual_step(Q, g, theta, c), np.maximum(Q + g @ theta - c, 0), atol=1e-12)
    np.testing.assert_array_equal(core.average(g, 0.5 * g, 3.0), g + (0.5 * g - g) / 3)
    np.testing.assert_allclose(core.mix(space.native, theta, 0.1), twins.mixed(space, theta, 0.1), rtol=1e-13)
    assert core.within(f, g, np.abs(g).max(axis=1).sum())
    f[-1] = np.nan
    assert not core.within(f, g, 9.0)
