"""Budgets that exclude each other, and the best loss against a budget."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tightrope as tr
from tests.conftest import FloatArray, mdps, rngs
from tests.theory.explicit import deterministic_points, lp_slack, lp_value
from tests.theory.test_frontier import fork
from tightrope import InvalidInputError, LayeredMDP, Problem
from tightrope.problems.constraints import Deterministic
from tightrope.problems.losses import Fixed
from tightrope.theory import budget_curve, conflict, with_budgets


def problem_of(mdp: LayeredMDP, f: FloatArray, g: FloatArray, c: FloatArray) -> Problem:
    names = tuple(f"budget {i}" for i in range(len(g)))
    losses = Fixed(f[None])
    return Problem(name="made", mdp=mdp, losses=losses, constraints=Deterministic(g), budgets=c, constraint_names=names)


def test_two_of_three_exclude_each_other() -> None:
    """Either way uses 0.25 of its own budget, so that both together need 0.25; another budget is wide."""
    g = np.array([[0.25, 0.0], [0.1, 0.1], [0.0, 0.25]])
    c = np.array([0.1, 0.5, 0.1])
    found = conflict(problem_of(fork(2), np.zeros(2), g, c))
    assert found is not None
    assert found.members == (0, 2)
    assert found.excess == pytest.approx(0.025)  # half and half: 0.125 each
    np.testing.assert_allclose(found.enough, [0.15, 0.15])  # 0.25 − 0.1
    assert conflict(problem_of(fork(2), np.zeros(2), g, np.array([0.125, 0.5, 0.125]))) is None


@settings(max_examples=40)
@given(mdps(max_steps=3, max_width=3, max_actions=3), rngs(), st.integers(1, 3))
def test_conflicts_are_real_minimal_and_resolved(mdp: LayeredMDP, rng: np.random.Generator, n: int) -> None:
    g = rng.uniform(-1, 1, (n, mdp.space.n_tuples)) / n
    least = np.array([lp_value(mdp, row, np.empty((0, len(row))), np.empty(0)) for row in g])
    c = np.clip(least + rng.uniform(-0.1, 0.2, n), -mdp.space.n_layers / n, mdp.space.n_layers / n)
    found, slack = conflict(problem_of(mdp, np.zeros(mdp.space.n_tuples), g, c)), lp_slack(mdp, g, c)
    if abs(slack) > 1e-6:
        assert (found is None) == (slack > 0)
    if found is None:
        return
    members = list(found.members)
    assert found.excess == pytest.approx(-lp_slack(mdp, g[members], c[members]), abs=1e-7)
    for k, i in enumerate(members):
        others = [j for j in members if j != i]
        assert not others or lp_slack(mdp, g[others], c[others]) >= -1e-7
        raised = np.where(np.arange(n) == i, 0.0, c)
        raised[i] = found.enough[k]
        assert lp_slack(mdp, g[members], raised[members]) == pytest.approx(0.0, abs=1e-7)


@settings(max_examples=20)
@given(mdps(max_steps=3, max_width=2, max_actions=3), rngs(), st.integers(1, 2))
def test_the_curve_is_the_lp_and_the_multiplier_its_slope(mdp: LayeredMDP, rng: np.random.Generator, n: int) -> None:
    f, g = rng.uniform(-1, 1, mdp.space.n_tuples), rng.random((n, mdp.space.n_tuples)) / n
    points = deterministic_points(mdp, g)
    c = points[rng.integers(len(points))] + 0.05 / n
    c *= min(1.0, mdp.space.n_layers / c.sum())
    curve = budget_curve(problem_of(mdp, f, g, c), f, 0, points=5)
    assert curve.yours is not None and curve.budgets[curve.yours] == pytest.approx(c[0])
    for budget, loss in zip(curve.budgets, curve.losses, strict=True):
        value = lp_value(mdp, f, g, np.where(np.arange(n) == 0, budget + 1e-10, c))
        assert loss == pytest.approx(value, abs=1e-6)
    # a convex curve is above all its tangents
    b, v, price = curve.budgets[1:], curve.losses[1:], curve.multipliers[1:]
    tangents = v[:, None] - price[:, None] * (b - b[:, None])
    assert (v >= tangents - 1e-7).all()
    assert curve.multipliers[0] == np.inf and curve.multipliers[-1] == 0.0
    # from the least budget on, and up to where more gains nothing
    others = slice(1, None)
    assert curve.budgets[0] == pytest.approx(lp_value(mdp, g[0], g[others], c[others]), abs=1e-7)
    assert curve.losses[-1] == pytest.approx(lp_value(mdp, f, g[others], c[others]), abs=1e-6)


def test_budgets_by_name_in_their_own_units() -> None:
    problem = tr.make("inventory")
    changed = with_budgets(problem, {"cost": 50.0})
    assert problem.use_in_units(changed.budgets) == pytest.approx([50.0])
    curve = budget_curve(changed, changed.losses.begin(np.random.default_rng(0)).loss(1), 0)
    assert curve.yours is not None and curve.budgets[curve.yours] == pytest.approx(50.0)
    for wrong in ({"fuel": 1.0}, {"cost": "much"}, {"cost": float("nan")}, {"cost": 1e9}):
        with pytest.raises(InvalidInputError):
            with_budgets(problem, wrong)  # type: ignore[arg-type]


def test_a_budget_out_of_reach_has_a_curve_without_it() -> None:
    problem = replace(tr.make("media-streaming"), budgets=np.array([-1.0]))
    curve = budget_curve(problem, problem.losses.begin(np.random.default_rng(0)).loss(1), 0)
    assert curve.yours is None and curve.budgets[0] == pytest.approx(0.0, abs=1e-9)
