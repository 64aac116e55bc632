"""The subproblem with priced rows: against its NumPy twin and a conic solver, by hand, and always an answer."""

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, reject, settings
from hypothesis import strategies as st

from tests.conftest import FloatArray
from tests.conic import measures
from tests.instances import Instance, flow_residual, random_instance
from tests.projection.test_inequalities import KINDS, Some, objective
from tightrope import ConvergenceError, L1Ball, LayeredMDP, LayeredSpace, project
from tightrope.projection import reference as in_numpy
from tightrope.projection.priced import PricedProjector

Rows = tuple[FloatArray, FloatArray, FloatArray]


def some_rows(seed: int, instance: Some, m: int) -> Rows:
    """A, b and most: rows of ordinary size, tiny, sparse, equal or empty; met with room, just, or by nothing."""
    rng = np.random.default_rng([seed, 11])
    n = instance.space.n_tuples
    A = rng.normal(size=(m, n)) * rng.choice([1.0, 1e-6, 1e-12], size=(m, 1))
    sparse = rng.random(m) < 0.3
    A[sparse] *= rng.random((sparse.sum(), n)) < 0.1
    if m > 1 and rng.random() < 0.5:
        A[rng.integers(m)] = A[rng.integers(m)]
    elsewhere = instance.cost + rng.normal(size=n)
    size = np.abs(A).max(axis=1, initial=0.0)
    b = A @ project(instance.space, instance.reference, elsewhere, instance.confidence).theta
    b += rng.choice([-1.0, -0.1, 0.0, 0.05]) * size
    return A, b, rng.choice([0.1, 1.0, 10.0, 200.0], size=m) / np.where(size > 0, size, 1.0)


def solved(instance: Some, rows: Rows) -> tuple[PricedProjector, FloatArray]:
    projector, theta = PricedProjector(instance.space, len(rows[1])), np.empty(instance.space.n_tuples)
    projector.solve(instance.reference, instance.cost, instance.confidence, *rows, theta)
    return projector, theta


def penalised(instance: Some, rows: Rows, theta: FloatArray) -> float:
    A, b, most = rows
    return objective(instance, theta) + float(np.sum(most * np.maximum(A @ theta - b, 0.0)))


@pytest.mark.parametrize("kind", KINDS)
def test_agrees_with_the_twin_in_numpy(kind: str) -> None:
    traded = 0
    for seed in range(8):
        instance = KINDS[kind](seed + 60)
        instance = instance._replace(cost=np.tanh(instance.cost))
        rows = some_rows(seed, instance, m=1 + seed % 5)
        projector, theta = solved(instance, rows)
        twin = in_numpy.solve_priced(instance.space, instance.reference, instance.cost, instance.confidence, *rows)
        assert twin.missed <= 1e-9
        np.testing.assert_allclose(theta, twin.theta, atol=1e-7)
        assert projector.dual_value == pytest.approx(twin.dual_value, rel=1e-8, abs=1e-8)
        traded += (projector.multipliers == rows[2]).any()
    assert traded >= 1


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
def test_agrees_with_the_exact_penalty_in_a_conic_solver() -> None:
    """Rows that nothing meets together: never worse than the conic solver, and the same where that is exact."""
    agreed = exceeded = 0
    for seed in range(8):
        instance = random_instance(2 * seed)
        instance = instance._replace(cost=np.tanh(instance.cost))
        rng = np.random.default_rng(seed)
        A, most = rng.normal(size=(4, instance.space.n_tuples)), rng.choice([0.5, 2.0, 8.0], size=4)
        b = A @ instance.space.uniform() - rng.choice([0.0, 0.3], size=4)
        projector, theta = solved(instance, (A, b, most))
        ours = penalised(instance, (A, b, most), theta)
        exceeded += projector.excess > 0.01
        measure, by_pair, held = measures(instance.space)
        ball, mass = instance.confidence, by_pair.T @ by_pair @ measure
        bound = np.flatnonzero(ball.radius < 2)
        if len(bound):
            away = cp.abs(measure - sp.diags(ball.center) @ mass)
            held.append(by_pair[bound] @ away <= sp.diags(ball.radius[bound]) @ by_pair[bound] @ measure)
        divergence = cp.sum(cp.kl_div(measure, instance.reference))
        problem = cp.Problem(cp.Minimize(instance.cost @ measure + divergence + most @ cp.pos(A @ measure - b)), held)
        try:
            problem.solve(solver=cp.CLARABEL)
        except cp.SolverError:
            continue
        if problem.status == cp.OPTIMAL:
            theirs = penalised(instance, (A, b, most), np.maximum(measure.value, 0.0))
            assert ours <= theirs + 1e-5 * (1 + abs(theirs)), seed
            agreed += theirs <= ours + 1e-4 * (1 + abs(ours))
    assert agreed >= 3
    assert exceeded >= 3


def test_by_hand() -> None:
    """One choice, θ = (1 − x, x), x <= 1/4, reference (1/2, 1/2), cost (0, −1): the price wanted is log 3 + 1."""
    space, free = LayeredSpace.dense([1, 1], 2), L1Ball(np.ones(2), np.full(2, np.inf))
    instance = Instance(space, np.array([0.5, 0.5]), np.array([0.0, -1.0]), free)
    A, b = np.array([[0.0, 1.0]]), np.array([0.25])
    enough, theta = solved(instance, (A, b, np.array([3.0])))
    np.testing.assert_allclose(theta, [0.75, 0.25], atol=1e-9)
    assert enough.multipliers == pytest.approx([2.09861228866811], abs=1e-8)
    short, theta = solved(instance, (A, b, np.array([1.0])))  # the price takes the cost away, and no more
    np.testing.assert_allclose(theta, [0.5, 0.5], atol=1e-9)
    assert short.multipliers[0] == 1.0
    assert short.excess == pytest.approx(0.25, abs=1e-9)
    empty, theta = solved(instance, (np.zeros((1, 2)), np.array([-1.0]), np.array([5.0])))
    assert empty.multipliers[0] == 0.0
    np.testing.assert_array_equal(theta, project(*instance).theta)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_with_room_change_nothing(kind: str) -> None:
    instance = KINDS[kind](5)
    plain = project(*instance)
    A = np.random.default_rng(0).normal(size=(9, instance.space.n_tuples))
    projector, theta = solved(instance, (A, A @ plain.theta + 0.1, np.full(9, 7.0)))
    np.testing.assert_array_equal(theta, plain.theta)
    assert not projector.multipliers.any()
    assert projector.iterations == plain.iterations


def test_units_of_rows_do_not_matter() -> None:
    instance = random_instance(45)
    A, b, most = some_rows(3, instance, 4)
    for scale in (1e-12, 1e9):
        projector, theta = solved(instance, (A, b, most))
        other, same = solved(instance, (scale * A, scale * b, most / scale))
        np.testing.assert_allclose(same, theta, atol=1e-8)
        np.testing.assert_allclose(scale * other.multipliers, projector.multipliers, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("operations", [1e9, 0.0], ids=["factors", "conjugate gradients"])
def test_warm_starts_take_few_steps(operations: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tightrope.projection.projector.DIRECT_OPERATIONS", operations)
    space = LayeredSpace.dense([1, 5, 5, 5, 1], 3)
    rng = np.random.default_rng(2)
    ball = L1Ball(LayeredMDP.even(space).transitions, np.full(space.n_pairs, 0.3))
    cost, A = rng.uniform(-1, 1, space.n_tuples), rng.uniform(0, 1, (3, space.n_tuples))
    b, most = A @ project(space, space.uniform(), 3 * A.sum(axis=0), ball).theta, np.full(3, 50.0)
    projector, theta, steps = PricedProjector(space, 3), np.empty(space.n_tuples), []
    for _ in range(20):
        near = cost + 0.02 * rng.uniform(-1, 1, space.n_tuples)
        projector.solve(space.uniform(), near, ball, A, b, most, theta)
        assert projector.multipliers.max() > 0.1
        steps.append(projector.iterations)
    assert np.mean(steps[1:]) <= 4


@pytest.mark.parametrize("kind", KINDS)
@given(
    seed=st.integers(0, 10_000), m=st.integers(0, 10), floor=st.sampled_from([1.0, 1e-140]),
    cost=st.sampled_from([1.0, 50.0]),
)  # fmt: skip
@example(seed=83, m=5, floor=1.0, cost=50.0)
@settings(max_examples=25, deadline=None)
def test_there_always_is_an_answer(kind: str, seed: int, m: int, floor: float, cost: float) -> None:
    instance = KINDS[kind](seed)
    few = np.random.default_rng(seed).random(instance.space.n_tuples) < 0.3
    reference = np.where(few, floor * instance.reference, instance.reference)
    instance = instance._replace(reference=reference, cost=cost * np.tanh(instance.cost))
    try:
        A, b, most = rows = some_rows(seed, instance, m)
    except ConvergenceError:  # of the plain subproblem that the right-hand sides come from
        reject()
    projector, theta = solved(instance, rows)
    assert flow_residual(instance.space, theta) <= 1e-8
    assert instance.confidence.violation(instance.space, theta) <= 1e-8
    assert ((projector.multipliers >= 0) & (projector.multipliers <= most)).all()
    gap = projector.duality_gap(instance.reference, instance.cost, A, b, projector.share * most, theta)
    assert abs(gap) <= 1e-6 * (1 + abs(projector.dual_value))
