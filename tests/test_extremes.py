"""What the models of a confidence set can make of a cost: against a conic solver, and against models of the set."""

from typing import cast

import cvxpy as cp
import numpy as np
import pytest

from tests.conftest import random_mdp, random_policy
from tests.instances import random_box, random_instance
from tightrope import (
    Box,
    InfeasibleError,
    InvalidInputError,
    KLBall,
    L1Ball,
    LayeredMDP,
    LayeredSpace,
    Policy,
    make,
    project,
)
from tightrope.confidence import CONFIDENCE_RULES, ConfidenceSet
from tightrope.confidence.sets import bounds_of, known, least_possible, worst_use

RADII = (0.0, 1e-4, 0.1, 0.5, 3.0)


def one_pair(
    rng: np.random.Generator, kind: str
) -> tuple[LayeredSpace, ConfidenceSet, cp.Variable, list[cp.Constraint]]:
    """One pair with n successors, its set, and p in that set as a conic solver is told; zeros in some centers."""
    n, r = int(rng.integers(2, 7)), float(rng.choice(RADII))
    space, P = LayeredSpace.dense([1, n, 1], 1), rng.dirichlet(np.full(n, rng.choice([0.3, 3.0])))
    P = np.where(rng.random(n) < 0.3, 0.0, P) + 1e-3 * np.eye(n)[0]
    P /= P.sum()
    center, rest, p = np.append(P, np.ones(n)), np.zeros(n), cp.Variable(n, nonneg=True)
    if kind == "kl":
        seen = np.flatnonzero(P)
        held = [cp.sum(cp.rel_entr(P[seen], p[seen])) <= r]
        return space, KLBall(center, np.append(r, rest)), p, held
    ball = L1Ball(center, np.append(r, rest))
    if kind == "l1":
        return space, ball, p, [cp.norm1(p - P) <= r]
    lower, upper = np.maximum(0, P - 0.3 * rng.random(n)), np.minimum(1, P + 0.3 * rng.random(n))
    within = (np.append(lower, np.ones(n)), np.append(upper, np.ones(n)))
    if kind == "box":
        return space, Box(*within), p, [p >= lower, p <= upper]
    return space, Box(*within, ball), p, [p >= lower, p <= upper, cp.norm1(p - P) <= r]


@pytest.mark.parametrize("kind", ["l1", "box", "both", "kl"])
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
def test_one_pair_against_a_conic_solver(kind: str) -> None:
    rng = np.random.default_rng(len(kind))
    for _ in range(12):
        space, confidence, p, held = one_pair(rng, kind)
        cost = np.append(np.zeros(p.size), np.round(rng.normal(size=p.size), 1))  # some are equal
        theirs = cp.Problem(cp.Maximize(cost[p.size :] @ p), [cp.sum(p) == 1, *held]).solve(solver=cp.CLARABEL)
        policy = Policy.uniform(space)
        ours, _, model = worst_use(space, bounds_of(confidence, space), policy, cost)
        assert ours == pytest.approx(theirs, abs=2e-5)
        theta = LayeredMDP(space, model).occupancy(policy)
        assert confidence.violation(space, theta) <= 1e-9
        assert cost @ theta == pytest.approx(ours, abs=1e-12)


@pytest.mark.parametrize("kind", ["l1", "box", "kl"])
@pytest.mark.parametrize("seed", range(6))
def test_the_extreme_is_the_maximum_over_the_set_and_is_attained(kind: str, seed: int) -> None:
    space, _, cost, ball = random_instance(seed + 30)
    rng = np.random.default_rng(seed)
    confidence: ConfidenceSet = ball if kind == "l1" else KLBall(ball.center, 0.5 * ball.radius**2)
    if kind == "box":
        confidence = random_box(seed + 30, with_ball=True).confidence
    bounds, policy = bounds_of(confidence, space), random_policy(rng, space)
    most, more, model = worst_use(space, bounds, policy, cost)
    assert cost @ LayeredMDP(space, model).occupancy(policy) == pytest.approx(most, abs=1e-10 * np.abs(cost).max())
    # another policy pays more by what its actions do, under the model that is the worst for it
    other = random_policy(rng, space)
    worst = worst_use(space, bounds, other, cost)
    assert worst.most - most <= more @ LayeredMDP(space, worst.model).occupancy(other) + 1e-9
    assert more @ LayeredMDP(space, model).occupancy(policy) == pytest.approx(0, abs=1e-9)
    least, theta = least_possible(space, bounds, cost)
    assert confidence.violation(space, theta) <= 1e-9
    assert cost @ theta == pytest.approx(least, abs=1e-10 * np.abs(cost).max())
    free = space.expand_to_tuples(confidence.free(space))
    inside = np.where(free, random_mdp(rng, space).transitions, bounds.center)
    for mdp in (LayeredMDP(space, inside), LayeredMDP(space, 0.5 * inside + 0.5 * model)):  # sets are convex
        assert least - 1e-9 <= cost @ mdp.occupancy(policy) <= most + 1e-9


def test_extremes_agree_with_numbers_by_hand() -> None:
    """P̂ = (½, ½), uses 0 and 1. L1 radius ½: p = (¼, ¾). KL radius log(2/√3), the same: ½ log(1/(4 · ¼ · ¾))."""
    space, cost = LayeredSpace.dense([1, 2, 1], 1), np.array([0.0, 0.0, 0.0, 1.0])
    center = np.array([0.5, 0.5, 1.0, 1.0])
    for confidence in (L1Ball(center, [0.5, 0, 0]), KLBall(center, [0.143841036225890, 0, 0])):
        most = worst_use(space, bounds_of(confidence, space), Policy.uniform(space), cost).most
        assert most == pytest.approx(0.75, abs=1e-12)
        least, _ = least_possible(space, bounds_of(confidence, space), cost)
        assert least == pytest.approx(0.25, abs=1e-12)
    # never seen, (1, 0) within KL radius log 2: half of p may be where nothing was
    unseen = KLBall([1.0, 0.0, 1.0, 1.0], [0.693147180559945, 0, 0])
    assert worst_use(space, bounds_of(unseen, space), Policy.uniform(space), cost).most == pytest.approx(0.5, abs=1e-12)


def test_a_law_that_is_all_but_certain() -> None:
    """The scale that the tilt would take is no number; nothing is to be had there anyway."""
    space = LayeredSpace.dense([1, 3, 1], 1)
    center = np.array([5e-39, 1.0 - 1e-7, 1e-7, 1.0, 1.0, 1.0])
    ball = KLBall(center, [2.0, 0, 0, 0])
    cost = np.array([0, 0, 0, 2.6, 3.4, 1.7])
    most = worst_use(space, bounds_of(ball, space), Policy.uniform(space), cost).most
    assert most == pytest.approx(3.4, abs=1e-6)


def test_a_users_set_without_registered_bounds_is_refused() -> None:
    class Other:
        free = check = violation = None

    assert known(L1Ball([1.0], [0.0]))
    assert not known(cast(ConfidenceSet, Other()))
    with pytest.raises(InvalidInputError, match="extremes of Other"):
        bounds_of(cast(ConfidenceSet, Other()), LayeredSpace.dense([1, 1], 1))


@pytest.mark.parametrize("scale", [1e-320, 1e-300, 1e-160, 1.0, 1e160, 1e300])
def test_the_scale_of_a_cost_does_not_matter(scale: float) -> None:
    """Prices of inequalities may be tiny: the best actions were left unset where squares of values underflow."""
    space, _, cost, ball = random_instance(3)
    for confidence in (ball, KLBall(ball.center, 0.5 * ball.radius**2)):
        bounds = bounds_of(confidence, space)
        least, theta = least_possible(space, bounds, scale * cost)
        assert least == pytest.approx(scale * least_possible(space, bounds, cost)[0], rel=1e-3, abs=0)
        assert confidence.violation(space, theta) <= 1e-9


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_cost_that_is_not_finite_gives_a_value_that_is_not(value: float) -> None:
    space, _, cost, ball = random_instance(3)
    for confidence in (ball, KLBall(ball.center, 0.5 * ball.radius**2)):
        least, theta = least_possible(space, bounds_of(confidence, space), np.full(space.n_tuples, value))
        assert not np.isfinite(least)
        assert theta.shape == cost.shape


@pytest.mark.parametrize("scale", [1.0, 1e-300])
def test_inequalities_of_any_size_that_cannot_be_met_are_named(scale: float) -> None:
    """On the frozen lake this raised IndexError: the least that a tiny row can be was no number."""
    mdp = make("frozen-lake").mdp
    space, theta = mdp.space, mdp.occupancy(Policy.uniform(mdp.space))
    M = np.round(1000 * theta).astype(np.int64)
    ball = CONFIDENCE_RULES["kl"](level=0.1)(space, np.add.reduceat(M, space.csr.pair_ptr[:-1]), M)
    A = scale * np.random.default_rng(0).random((1, space.n_tuples))
    with pytest.raises(InfeasibleError, match="inequality 0 cannot be met"):
        project(space, 0.99 * theta + 0.01 * space.uniform(), 0 * theta, ball, inequalities=(A, 0.1 * A @ theta))
