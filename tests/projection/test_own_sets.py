"""Confidence sets of one's own: a class that answers the pair's question in Python, and all that works with it."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import wrightomega

import tightrope as tr
from tests.conftest import FloatArray, pair_of_tuple
from tests.conic import measures
from tests.instances import flow_residual, objective, random_instance
from tightrope import LayeredSpace
from tightrope.checks.worlds import drive, ordinary_world
from tightrope.confidence import ConfidenceSet, OwnSet, frequencies
from tightrope.projection import reference as in_numpy
from tightrope.projection.projector import Projector
from tightrope.projection.reference import falling_root


@dataclass
class EuclideanBall:
    """‖p − center‖₂ <= radius; a radius of inf leaves the pair free."""

    space: LayeredSpace
    center: FloatArray
    radius: FloatArray

    def free(self, space: LayeredSpace) -> NDArray[np.bool_]:
        return np.isinf(self.radius)

    def check(self, space: LayeredSpace) -> None:
        assert self.center.shape == (space.n_tuples,)

    def violation(self, space: LayeredSpace, theta: FloatArray) -> float:
        mass = space.expand_to_tuples(space.sum_over_successors(theta))
        p = np.divide(theta, mass, where=mass > 0, out=self.center.copy())
        away = np.sqrt(space.sum_over_successors((p - self.center) ** 2))
        return float(np.max(away - self.radius, initial=0.0))

    def pair_question(self, i: int, log_w: FloatArray) -> tuple[FloatArray, FloatArray]:
        """p = w normalised if that is in the ball; otherwise log p − log w + λ + μ (p − c) = 0 on its surface."""
        c, r = self.center[self.space.csr.pair_ptr[i] : self.space.csr.pair_ptr[i + 1]], float(self.radius[i])
        w = np.exp(np.maximum(log_w - log_w.max(), -600.0))
        p, mu = w / w.sum(), 0.0
        if np.sqrt(np.sum((p - c) ** 2)) > r:
            if r == 0:
                return c / c.sum(), np.zeros((len(c), len(c)))
            log_bar = np.log(p)

            def at(mu: float) -> FloatArray:
                def log_total(lam: float) -> tuple[float, float]:
                    q = wrightomega(log_bar + mu * c - lam + np.log(mu)) / mu
                    return float(np.log(q.sum())), -float(np.sum(q / (1 + mu * q)) / q.sum())

                lam = falling_root(log_total, -1e4, mu + 1e4, mu * float(np.sum(p * c)), 1e-15)
                q = wrightomega(log_bar + mu * c - lam + np.log(mu)) / mu
                return np.asarray(q / q.sum())

            def excess(log_mu: float) -> tuple[float, float]:
                return float(np.log(np.sqrt(np.sum((at(np.exp(log_mu)) - c) ** 2)) / r)), 0.0

            mu = float(np.exp(falling_root(excess, -60.0, 60.0, 0.0, 1e-13)))
            p = at(mu)
        D = p / (1 + mu * p)
        A = np.stack([np.ones_like(p), p - c], axis=1) if mu > 0 else np.ones((len(p), 1))
        held = D[:, None] * A
        return p, np.diag(D) - held @ np.linalg.pinv(A.T @ held) @ held.T


@dataclass
class Point:
    """The distributions themselves, as simple as a set can be."""

    space: LayeredSpace
    center: FloatArray

    def free(self, space: LayeredSpace) -> NDArray[np.bool_]:
        return np.zeros(space.n_pairs, dtype=bool)

    def check(self, space: LayeredSpace) -> None:
        pass

    def violation(self, space: LayeredSpace, theta: FloatArray) -> float:
        return tr.L1Ball(self.center, np.zeros(space.n_pairs)).violation(space, theta)

    def pair_question(self, i: int, log_w: FloatArray) -> tuple[FloatArray, FloatArray]:
        p = self.center[self.space.csr.pair_ptr[i] : self.space.csr.pair_ptr[i + 1]]
        return p, np.zeros((len(p), len(p)))


class Round(NamedTuple):
    """As `instances.Instance`, with Euclidean balls."""

    space: LayeredSpace
    reference: FloatArray
    cost: FloatArray
    confidence: EuclideanBall


def round_instance(seed: int) -> Round:
    """The random instance of that seed, of at most four layers, with Euclidean balls about as large as its L1 balls."""
    space, reference, cost, ball = random_instance(seed, max_steps=3, max_width=4, max_actions=2)
    center = np.where(space.expand_to_tuples(ball.radius < 2), ball.center, 1.0)
    center = center / space.expand_to_tuples(space.sum_over_successors(center))
    radius = np.where(ball.radius < 1e-5, 0.0, np.where(ball.radius < 2, 0.5 * ball.radius, np.inf))
    return Round(space, reference, cost, EuclideanBall(space, center, radius))


def test_own_sets_are_sets() -> None:
    ball = round_instance(0).confidence
    assert isinstance(ball, OwnSet) and isinstance(ball, ConfidenceSet)
    assert not isinstance(tr.L1Ball([1.0], [0.0]), OwnSet)


@given(st.integers(0, 300))
def test_a_point_is_a_ball_of_radius_0(seed: int) -> None:
    space, reference, cost, ball = random_instance(seed, max_steps=4, max_width=4)
    center = tr.LayeredMDP.from_occupancy(space, ball.center).transitions
    expected = tr.project(space, reference, cost, tr.L1Ball(center, np.zeros(space.n_pairs)))
    found = tr.project(space, reference, cost, Point(space, center))
    np.testing.assert_allclose(found.theta, expected.theta, atol=1e-8)
    assert found.flow_residual <= 1e-9
    assert found.set_violation <= 1e-9
    assert abs(found.duality_gap) <= 1e-7


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
def test_euclidean_balls_against_a_conic_solver() -> None:
    agreed = 0
    for seed in range(12):
        instance = round_instance(seed)
        answer = tr.project(*instance)
        assert flow_residual(instance.space, answer.theta) <= 1e-9, seed
        assert answer.set_violation <= 1e-9, seed
        ours = objective(instance, answer.theta)  # type: ignore[arg-type]
        assert abs(answer.duality_gap) <= 1e-7 * (1 + abs(ours)), seed
        try:
            status, theta = conic_solution(instance)
        except cp.SolverError:
            continue
        if status != cp.OPTIMAL:
            continue
        theirs = objective(instance, np.maximum(theta, 0.0))  # type: ignore[arg-type]
        assert ours <= theirs + 1e-5 * (1 + abs(theirs)), seed
        agreed += theirs <= ours + 1e-4 * (1 + abs(ours))
    assert agreed >= 5  # the comparison is real


def conic_solution(instance: Round) -> tuple[str, FloatArray]:
    """The same problem as it is written, given to Clarabel through CVXPY."""
    space, ball, pair = instance.space, instance.confidence, pair_of_tuple(instance.space)
    theta, by_pair, held = among = measures(space)
    away = theta - sp.diags(ball.center) @ by_pair.T @ by_pair @ theta
    for i in np.flatnonzero(np.isfinite(ball.radius)):
        held.append(cp.norm(away[np.flatnonzero(pair == i)]) <= ball.radius[i] * (by_pair[[i]] @ theta)[0])
    return among.nearest(instance.reference, instance.cost)


def test_inequalities_hold_over_own_sets() -> None:
    for seed in range(6):
        instance = round_instance(seed)
        space, rng = instance.space, np.random.default_rng(seed)
        A = rng.standard_normal((2, space.n_tuples))
        elsewhere = tr.project(space, instance.reference, instance.cost + A[0], instance.confidence).theta
        b = A @ elsewhere + 1e-3
        answer = tr.project(*instance, inequalities=(A, b))
        assert (A @ answer.theta <= b + 1e-8).all()
        assert answer.set_violation <= 1e-8
        assert abs(answer.duality_gap) <= 1e-6
        np.testing.assert_allclose(answer.multipliers * (b - A @ answer.theta), 0.0, atol=1e-6)


def test_the_answer_moves_with_its_cost_as_the_derivatives_say() -> None:
    space, reference, cost, ball = round_instance(3)
    A, h = np.random.default_rng(0).standard_normal((1, space.n_tuples)), 1e-6
    projector, theta = Projector(space, 1e-12), np.empty(space.n_tuples)
    projector.solve(reference, cost, ball, theta)
    at = in_numpy.dual(space, reference, cost, ball, projector.potentials)
    dbeta, dtheta = in_numpy.sensitivities(space, at, A)
    moved = np.empty((2, space.n_tuples))
    for side, sign in enumerate((1.0, -1.0)):
        projector.solve(reference, cost + sign * h * A[0], ball, moved[side])
    np.testing.assert_allclose((moved[0] - moved[1]) / (2 * h), dtheta[0], atol=1e-5)
    assert dbeta.shape == (1, space.n_states)


def test_a_projector_changes_between_own_sets_and_others() -> None:
    """And starts each time from the potentials of the last answer."""
    space, reference, cost, ball = round_instance(5)
    other = tr.L1Ball(ball.center, np.full(space.n_pairs, 0.3))
    projector, theta = Projector(space), np.empty(space.n_tuples)
    for confidence in (ball, other, ball, other, Point(space, ball.center), other):
        projector.solve(reference, cost, confidence, theta)
        np.testing.assert_allclose(theta, tr.project(space, reference, cost, confidence).theta, atol=1e-8)
        projector.solve(reference, cost, confidence, theta)
        assert projector.iterations == 0


@dataclass
class EuclideanRule:
    """Balls of radius 2/√N around the counted frequencies; nothing is known of pairs that were not visited."""

    def __call__(self, space: LayeredSpace, N: NDArray[np.int64], M: NDArray[np.int64]) -> EuclideanBall:
        radius = np.where(N > 0, 2 / np.sqrt(np.maximum(N, 1)), np.inf)
        return EuclideanBall(space, frequencies(space, N, M), radius)


def test_a_learner_learns_with_a_rule_that_makes_own_sets() -> None:
    at = ordinary_world()
    learner = tr.make_learner("ucpd", at, episodes=60, confidence=EuclideanRule())
    assert isinstance(learner, tr.UCPD)
    drive(at, learner, last=60)
    assert isinstance(learner.confidence_set, EuclideanBall)
    assert np.isfinite(learner.confidence_set.radius).any()
    assert learner.confidence_set.violation(at.space, learner.state.theta) <= 1e-8
    assert flow_residual(at.space, learner.state.theta) <= 1e-8


# ------------------------------------------------------------------------------------------ what goes wrong


def test_a_set_that_does_not_answer_is_refused() -> None:
    class Silent:
        def free(self, space: LayeredSpace) -> NDArray[np.bool_]:
            return np.zeros(space.n_pairs, dtype=bool)

        def check(self, space: LayeredSpace) -> None:
            pass

        def violation(self, space: LayeredSpace, theta: FloatArray) -> float:
            return 0.0

    space = LayeredSpace.dense([1, 2, 1], 1)
    with pytest.raises(tr.InvalidInputError, match=r"Silent does not answer the pair's question; .* pair_question"):
        tr.project(space, space.uniform(), np.zeros(space.n_tuples), Silent())


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (None, "returned None; expected two arrays"),
        ((np.ones(3) / 3, np.zeros((3, 3))), r"returned shapes \(3,\) and \(3, 3\); expected \(2,\) and \(2, 2\)"),
        ((np.array([0.5, np.nan]), np.zeros((2, 2))), "numbers that are not finite"),
        ((np.array([0.5, 0.6]), np.zeros((2, 2))), "smallest entry 0.5 and sum 1.1; expected a distribution"),
        ((np.array([-0.5, 1.5]), np.zeros((2, 2))), "smallest entry -0.5"),
    ],
)
def test_answers_that_make_no_sense_are_refused(answer: object, words: str) -> None:
    class Odd(Point):
        def pair_question(self, i: int, log_w: FloatArray) -> tuple[FloatArray, FloatArray]:
            return answer  # type: ignore[return-value]

    space = LayeredSpace.dense([1, 2, 1], 1)
    odd, projector, theta = Odd(space, space.uniform()), Projector(space), np.zeros(space.n_tuples)
    with pytest.raises(tr.InvalidInputError, match=rf"state 0, action 0: Odd.pair_question .*{words}"):
        projector.solve(space.uniform(), np.zeros(space.n_tuples), odd, theta)
    assert np.isnan(theta).all()


def test_a_solve_that_does_not_converge_raises_and_returns_no_answer() -> None:
    """With a set that answers otherwise every time; the next solve starts cold."""

    class Fickle(Point):
        rng = np.random.default_rng(0)

        def pair_question(self, i: int, log_w: FloatArray) -> tuple[FloatArray, FloatArray]:
            return self.rng.dirichlet(np.ones(len(log_w))), np.zeros((len(log_w), len(log_w)))

    space = LayeredSpace.dense([1, 3, 3, 1], 2)
    projector, theta = Projector(space), np.zeros(space.n_tuples)
    with pytest.raises(tr.ConvergenceError, match=r"flow residual of .* no answer is returned"):
        projector.solve(space.uniform(), np.zeros(space.n_tuples), Fickle(space, space.uniform()), theta)
    assert np.isnan(theta).all()
    assert not projector.potentials.any()


def test_derivatives_that_are_inexact_do_not_change_the_answer() -> None:
    """Of half the size: more steps, and the same θ."""

    class Sluggish(EuclideanBall):
        def pair_question(self, i: int, log_w: FloatArray) -> tuple[FloatArray, FloatArray]:
            p, movement = super().pair_question(i, log_w)
            return p, 0.5 * movement

    instance = round_instance(3)
    sluggish = Sluggish(**vars(replace(instance.confidence)))
    expected, found = tr.project(*instance), tr.project(*instance[:3], sluggish)
    np.testing.assert_allclose(found.theta, expected.theta, atol=1e-8)
    assert found.iterations > expected.iterations
