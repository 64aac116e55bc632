"""Frontier and dual function of one budget: by hand, by enumeration, by an LP written out, by finite differences."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.conftest import FloatArray, mdps, rngs
from tests.theory.explicit import deterministic_points, lp_value
from tightrope import InfeasibleError, InvalidInputError, LayeredMDP, LayeredSpace
from tightrope.theory import Frontier, frontier

small = mdps(max_steps=3, max_width=2, max_actions=3)


def fork(n_actions: int) -> LayeredMDP:
    """One decision, then the end: θ is the action distribution itself."""
    return LayeredMDP(LayeredSpace.dense([1, 1], n_actions), np.ones(n_actions))


def test_a_frontier_agrees_with_numbers_by_hand() -> None:
    """Four ways to go: the third is worse than a mixture of its neighbours."""
    loss, use = np.array([-1.0, -0.4, 0.3, 0.6]), np.array([1.0, 0.5, 0.3, 0.0])
    found = frontier(fork(4), loss, use, most=1e3)
    np.testing.assert_allclose(found.use, [1.0, 0.5, 0.0])
    np.testing.assert_allclose(found.loss, [-1.0, -0.4, 0.6])
    np.testing.assert_allclose(found.prices, [1.2, 2.0])
    assert found.multipliers(0.7) == pytest.approx((1.2, 1.2))
    assert found.multipliers(0.5) == pytest.approx((1.2, 2.0))
    assert found.multipliers(1.5) == (0.0, 0.0)
    assert found.multipliers(1.0) == pytest.approx((0.0, 1.2))
    assert found.multipliers(0.0) == (2.0, np.inf)
    # q of a budget of 0.7: -1 + 0.3 η, then -0.4 - 0.2 η, then 0.6 - 0.7 η; at its best -0.64
    assert found.dual(1.2, 0.7) == pytest.approx(-0.64)
    assert found.dual(3.0, 0.7) == pytest.approx(-1.5)
    # slopes 0.3 to the left, at most 1.2 away; to the right 0.2, and 0.7 from η = 2 on, 0.8 away
    assert found.vartheta(0.7, 0.19) == pytest.approx(0.0)
    assert found.vartheta(0.7, 0.29) == pytest.approx((0.7 * 0.8 - 0.2 * 0.8) / (0.7 - 0.29))
    assert found.vartheta(0.7, 0.31) == pytest.approx(1.2)  # to the left it never is as steep
    assert found.vartheta(0.7, 0.7) == np.inf


def random_pair(mdp: LayeredMDP, rng: np.random.Generator) -> FloatArray:
    """(2, n_tuples): a loss, and a use in [0, 1]."""
    n = mdp.space.n_tuples
    values: FloatArray = np.stack([rng.uniform(-1, 1, n), rng.random(n)])
    return values


@given(small, rngs())
def test_no_policy_is_below_and_every_corner_is_one(mdp: LayeredMDP, rng: np.random.Generator) -> None:
    f, g = random_pair(mdp, rng)
    found, most = frontier(mdp, f, g, most=50.0), 50.0
    points = deterministic_points(mdp, np.stack([f, g]))
    for price in [0.0, most, *rng.exponential(2.0, 20)]:
        best = float((points[:, 0] + price * points[:, 1]).min())
        assert found.dual(price, 0.0) == pytest.approx(best, abs=1e-9)
    assert (np.diff(found.use) < 0).all() and (np.diff(found.prices) > -1e-7).all()
    for use, loss in zip(found.use, found.loss, strict=True):
        assert np.abs(points - [loss, use]).max(axis=1).min() <= 1e-9


@settings(max_examples=50)
@given(small, rngs(), st.floats(0.05, 0.95))
def test_multipliers_are_the_slopes_of_the_best_loss(mdp: LayeredMDP, rng: np.random.Generator, share: float) -> None:
    f, g = random_pair(mdp, rng)
    found = frontier(mdp, f, g, most=1e4)
    assume(found.use[0] - found.use[-1] > 1e-2)
    c, h = found.use[-1] + share * (found.use[0] - found.use[-1]), 1e-4
    values = [lp_value(mdp, f, g[None], np.array([c + step])) for step in (-h, 0.0, h)]
    low, _ = found.multipliers(c)
    assert found.dual(low, c) == pytest.approx(values[1], abs=1e-7)
    assume(np.abs(found.use - c).min() > h)  # no corner between
    np.testing.assert_allclose(-np.diff(values) / h, [low, low], atol=1e-3)
    # at a corner itself the slope changes from the one to the other
    if len(found.use) > 2:
        assume(-np.diff(found.use).max() > 3 * h)
        c = found.use[1]
        values = [lp_value(mdp, f, g[None], np.array([c + step])) for step in (-h, 0.0, h)]
        high_low = [(values[0] - values[1]) / h, (values[1] - values[2]) / h]
        np.testing.assert_allclose(found.multipliers(c)[::-1], high_low, atol=1e-3)


def chains() -> st.SearchStrategy[Frontier]:
    """Return a strategy for convex piecewise linear curves."""

    def made(rng: np.random.Generator, n: int) -> Frontier:
        steps, prices = rng.uniform(0.1, 1.0, n), np.cumsum(rng.exponential(0.7, n) + 0.05)
        use = np.append(0.0, np.cumsum(steps))[::-1]
        return Frontier(use, np.append(0.0, np.cumsum(prices * steps[::-1])) - 1.0)

    return st.builds(made, rngs(), st.integers(1, 6))


@given(chains(), st.floats(0.02, 1.1), st.floats(0.05, 0.95))
def test_vartheta_is_the_least_distance(chain: Frontier, share: float, steep: float) -> None:
    """It falls by σ times the distance from ϑ on, on either side, and not just before."""
    c = share * chain.use[0]
    sigma = steep * c  # the slack is c, as the least use is 0
    low, high = chain.multipliers(c)
    best, vartheta = chain.dual(low, c), chain.vartheta(c, sigma)

    def falls(d: float, rounding: float) -> bool:
        sides = [high + d] + ([low - d] if d <= low else [])
        return all(best - chain.dual(eta, c) >= sigma * d - rounding for eta in sides)

    for d in (*(vartheta * np.array([1.0, 1.001, 1.5, 4.0])), 1e-6, 0.1, 1.0, 30.0):
        assert d < vartheta or falls(d, rounding=1e-9)
    if vartheta > 1e-3:
        assert not falls(0.99 * vartheta, rounding=-1e-12)


def test_a_budget_without_slack_has_no_distance() -> None:
    chain = Frontier(use=np.array([2.0, 1.0]), loss=np.array([0.0, 1.0]))
    budget: Any
    for budget in (0.5, 1.0, Fraction(1, 2)):
        with pytest.raises(InfeasibleError, match=r"no policy leaves slack in a budget of"):
            chain.vartheta(budget, 0.1)


@pytest.mark.parametrize("wrong", [None, "1", np.nan, np.inf, [1.0], 1e300])
def test_wrong_numbers_are_refused(wrong: Any) -> None:
    chain = Frontier(use=np.array([2.0, 1.0]), loss=np.array([0.0, 1.0]))
    for call in (
        lambda: chain.dual(wrong, 1.0),
        lambda: chain.dual(1.0, wrong),
        lambda: chain.multipliers(wrong),
        lambda: chain.vartheta(1.5, wrong),
    ):
        with pytest.raises(InvalidInputError, match=r"(price|budget|sigma) is .*it must be a number"):
            call()
