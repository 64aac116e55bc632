"""KL balls: how answers move, the subproblem against a conic solver and the reference, and learners that use them."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import tightrope as tr
from tests.conftest import FloatArray, pair_of_tuple, random_mdp, random_policy, random_shares, random_sparse_space
from tests.conic import measures
from tests.instances import flow_residual, objective, random_instance
from tests.projection.test_sets import divergence
from tests.projection.test_solver import Evaluated, potentials
from tightrope.checks.worlds import drive, ordinary_world
from tightrope.projection import reference
from tightrope.projection.projector import Projector


class Curved(NamedTuple):
    """As `instances.Instance`, with KL balls."""

    space: tr.LayeredSpace
    reference: FloatArray
    cost: FloatArray
    confidence: tr.KLBall


Make = Callable[[int], Curved]


def curved_instance(seed: int) -> Curved:
    """The instance of that seed with KL balls about as large as its L1 balls: points and free pairs among them."""
    space, reference, cost, ball = random_instance(seed)
    return Curved(space, reference, cost, tr.KLBall(ball.center, 0.5 * ball.radius**2))


def smooth_instance(seed: int) -> Curved:
    """No balls so small, no weights so far apart that finite differences could not tell; zeros in half the centers."""
    rng = np.random.default_rng([seed, 31])
    sizes, n_actions = [1, *rng.integers(1, 5, size=rng.integers(1, 4)), 1], int(rng.integers(1, 4))
    dense = rng.random() < 0.5
    space = tr.LayeredSpace.dense(sizes, n_actions) if dense else random_sparse_space(rng, sizes, n_actions, 0.6)
    center = random_shares(rng, pair_of_tuple(space), zeros=rng.choice([0.0, 0.4]))
    radius = rng.choice([0.0, 1e-3, 0.05, 0.3, 1.0, np.inf], size=space.n_pairs)
    cost = rng.choice([0.1, 2.0]) * rng.uniform(-1, 1, space.n_tuples)
    return Curved(space, rng.uniform(0.1, 1.0, space.n_tuples), cost, tr.KLBall(center, radius))


@settings(max_examples=50)
@given(st.integers(0, 2000))
def test_movement(seed: int) -> None:
    """H of the factors against differences of the answers; conjugate gradients solve with the same H."""
    instance = smooth_instance(seed)
    space, pair = instance.space, pair_of_tuple(instance.space)
    beta = potentials(space, np.random.default_rng(seed), 1.0)
    ours = Evaluated(instance, beta)  # type: ignore[arg-type]

    def conditionals(at: FloatArray) -> FloatArray:
        answer = Evaluated(instance, at)  # type: ignore[arg-type]
        theta = answer.divided()
        p: FloatArray = theta / np.bincount(pair, theta)[pair]
        return p

    theta = Evaluated(instance, beta).divided()  # type: ignore[arg-type]
    q, p, s_next = np.bincount(pair, theta), conditionals(beta), space.tuples[:, 2]
    H = np.zeros((space.n_states,) * 2)
    for i, s in enumerate(space.pairs[:, 0]):
        away = np.eye(space.n_states)[s]
        away[s_next[pair == i]] -= p[pair == i]
        H += q[i] * np.outer(away, away)
    h, kinked = 1e-5, False
    for t in range(1, space.n_states - 1):
        step = h * np.eye(space.n_states)[t]
        up, down = conditionals(beta + step) - p, p - conditionals(beta - step)
        kinked |= bool(np.abs(up - down).max() > 1e-2 * h)
        np.add.at(H[:, t], s_next, (up + down) / (2 * h) * q[pair])
    H[-1], H[:, -1] = 0.0, 0.0
    found = ours.H(0.0)
    if not kinked:
        np.testing.assert_allclose(found, H, atol=1e-6)

    b = ours["outflow"] - ours["inflow"]
    b[[0, -1]] = 0.0
    x = b.copy()
    damped = found + 0.1 * np.diag(ours["inflow"] + ours["outflow"])
    ours.parts.conjugate_gradients(0.1, 1e-11, x)
    assert np.abs(damped[:-1, :-1] @ x[:-1] - b[:-1]).sum() <= 1e-9 * max(np.abs(b).sum(), 1e-3)


def conic_solution(instance: Curved) -> tuple[str, FloatArray]:
    """The same problem as it is written, given to Clarabel through CVXPY; points as equalities."""
    ball, pair = instance.confidence, pair_of_tuple(instance.space)
    theta, by_pair, held = among = measures(instance.space)
    point = ball.radius[pair] == 0
    if point.any():
        held.append((theta - sp.diags(ball.center) @ by_pair.T @ by_pair @ theta)[point] == 0)
    for i in np.flatnonzero((ball.radius > 0) & np.isfinite(ball.radius) & (np.bincount(pair) > 1)):
        j = np.flatnonzero((pair == i) & (ball.center > 0))
        total = cp.sum(theta[np.flatnonzero(pair == i)])
        held.append(cp.sum(cp.rel_entr(ball.center[j] * total, theta[j])) <= ball.radius[i] * total)
    return among.nearest(instance.reference, instance.cost)


@pytest.mark.parametrize(("make", "slack", "least"), [(smooth_instance, 1e-5, 18), (curved_instance, 1e-4, 8)])
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
def test_agrees_with_a_conic_solver(make: Make, slack: float, least: int) -> None:
    """On 24 seeds: never worse than the conic solver, and feasible where the solver is only nearly so.

    What it is beside a ball in KL it gains by the square root, so that it may seem better where balls are tiny.
    """
    agreed = 0
    for seed in range(24):
        instance = make(seed)
        instance.confidence.check(instance.space)
        answer = tr.project(*instance)
        assert flow_residual(instance.space, answer.theta) <= 1e-9, seed
        assert answer.set_violation <= 1e-9, seed
        ours = objective(instance, answer.theta)  # type: ignore[arg-type]
        assert abs(answer.duality_gap) <= 1e-7 * (1 + abs(ours)), seed
        try:
            status, theta = conic_solution(instance)
        except cp.SolverError:
            continue  # the nastiest instances are beyond it
        if status != cp.OPTIMAL:
            continue
        theirs = objective(instance, np.maximum(theta, 0.0))  # type: ignore[arg-type]
        assert ours <= theirs + slack * (1 + abs(theirs)), seed
        agreed += theirs <= ours + 1e-4 * (1 + abs(ours))
    assert agreed >= least  # where the solver is exact it finds the same minimum


@pytest.mark.parametrize("make", [smooth_instance, curved_instance])
def test_the_answer_is_that_of_the_reference(make: Make) -> None:
    for seed in range(6):
        instance = make(seed)
        np.testing.assert_allclose(tr.project(*instance).theta, reference.solve(*instance).theta, atol=1e-7)


def test_violation_is_the_most_that_a_divergence_exceeds_its_radius(rng: np.random.Generator) -> None:
    space = tr.LayeredSpace.dense([1, 3, 1], 2)
    center = random_shares(rng, pair_of_tuple(space))
    theta = random_mdp(rng, space).occupancy(random_policy(rng, space))
    p = theta[:6].reshape(2, 3) / theta[:6].reshape(2, 3).sum(axis=1, keepdims=True)
    far = divergence(center[:6].reshape(2, 3), p)
    radius = np.zeros(space.n_pairs)
    assert tr.KLBall(center, radius).violation(space, theta) == pytest.approx(far.max(), abs=1e-12)
    radius[np.argmax(far)] = np.inf
    assert tr.KLBall(center, radius).violation(space, theta) == pytest.approx(far.min(), abs=1e-12)


def test_an_occupancy_measure_in_the_set_is_its_own_projection(rng: np.random.Generator) -> None:
    space = tr.LayeredSpace.dense([1, 4, 3, 1], 2)
    mdp = random_mdp(rng, space)
    theta = mdp.occupancy(random_policy(rng, space))
    for radius in (0.0, 0.1, np.inf):
        ball = tr.KLBall(mdp.transitions, np.full(space.n_pairs, radius))
        answer = tr.project(space, theta, np.zeros(space.n_tuples), ball)
        np.testing.assert_allclose(answer.theta, theta, atol=1e-12)
        assert answer.iterations == 0


def test_radius_0_is_the_known_model_and_inf_is_free() -> None:
    for seed in range(20):
        space, reference, cost, ball = random_instance(seed)
        for radius, same in ((0.0, 0.0), (np.inf, 2.0)):
            ours = tr.project(space, reference, cost, tr.KLBall(ball.center, np.full(space.n_pairs, radius)))
            plain = tr.project(space, reference, cost, tr.L1Ball(ball.center, np.full(space.n_pairs, same)))
            np.testing.assert_allclose(ours.theta, plain.theta, atol=1e-8)


def test_factors_and_conjugate_gradients_give_the_same_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(0, 400, 7):
        space, reference, cost, confidence = curved_instance(seed)
        found = []
        for operations in (np.inf, -1.0):
            monkeypatch.setattr("tightrope.projection.projector.DIRECT_OPERATIONS", operations)
            theta = np.empty(space.n_tuples)
            Projector(space).solve(reference, cost, confidence, theta)
            found.append(theta)
        np.testing.assert_allclose(found[0], found[1], atol=1e-7)


@pytest.mark.parametrize("make", [smooth_instance, curved_instance])
def test_a_warm_start_changes_nothing(make: Make) -> None:
    """From thresholds of other sets too, and of another kind."""
    for seed in range(30):
        space, reference, cost, ball = make(seed)
        rng, projector, theta = np.random.default_rng(seed), Projector(space, 1e-11), np.empty(space.n_tuples)
        for kind in (tr.L1Ball, tr.KLBall, tr.KLBall):
            moved = cost + 0.1 * rng.standard_normal(space.n_tuples)
            projector.solve(reference, moved, kind(ball.center, ball.radius * rng.uniform(0.5, 1.0)), theta)
        projector.solve(reference, cost, ball, theta)
        cold = tr.project(space, reference, cost, ball, tolerance=1e-11).theta
        np.testing.assert_allclose(theta, cold, atol=1e-8)


def test_an_invalid_ball_is_refused() -> None:
    space = tr.LayeredSpace.dense([1, 2, 1], 1)
    good = np.array([0.5, 0.5, 1.0, 1.0])
    for center, radius, words in (
        (good[:-1], [1.0, 1.0, 1.0], "center has"),
        (good, [1.0, 1.0], "radius has shape"),
        (good, [-1.0, 1.0, 1.0], "state 0, action 0: radius is -1"),
        (good, [np.nan, 1.0, 1.0], "state 0, action 0: radius is nan"),
        (2 * good, [5.0, 1.0, 1.0], "state 0, action 0: center is no distribution"),
    ):
        with pytest.raises(tr.InvalidInputError, match=words):
            tr.KLBall(center, radius).check(space)
    tr.KLBall(0 * good, [np.inf, 0.0, 0.0]).check(space)  # free, and pairs with one successor


def test_a_learner_continues_with_the_same_bits(tmp_path: Path) -> None:
    at = ordinary_world()
    learner = tr.make_learner("ucpd", at, episodes=60, confidence="kl")
    drive(at, learner, last=30)
    learner.save(tmp_path / "learner")
    again = tr.load(tmp_path / "learner")
    assert isinstance(again, tr.UCPD) and isinstance(learner, tr.UCPD)
    assert isinstance(again.confidence_set, tr.KLBall)
    for one in (learner, again):
        drive(at, one, first=31, last=60)
    np.testing.assert_array_equal(learner.state.theta, again.state.theta)
