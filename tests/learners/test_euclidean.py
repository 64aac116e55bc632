"""The Euclidean projection against an independent conic solver, and by its optimality conditions."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import FloatArray, mdps, pair_of_tuple, random_mdp, random_policy, rngs
from tightrope import ConvergenceError, InvalidInputError, LayeredMDP, LayeredSpace, make, run
from tightrope.learners import drift_plus_penalty as euclidean
from tightrope.learners.drift_plus_penalty import EuclideanProjector


def flow(mdp: LayeredMDP) -> tuple[FloatArray, FloatArray]:
    """(A, b): one row for every state but the last, from the definition."""
    space = mdp.space
    A = np.zeros((space.n_states, space.n_pairs))
    A[space.pairs[:, 0], np.arange(space.n_pairs)] = 1.0
    for j, i in enumerate(pair_of_tuple(space)):
        A[space.tuples[j, 2], i] -= mdp.transitions[j]
    b = np.zeros(space.n_states - 1)
    b[0] = 1.0
    return A[:-1], b


@given(mdps(), rngs(), st.sampled_from([0.01, 1.0, 30.0]))
def test_the_answer_meets_the_optimality_conditions(mdp: LayeredMDP, rng: np.random.Generator, size: float) -> None:
    """x >= 0, Ax = b, and x − y − Aᵀβ is zero where x > 0 and not negative elsewhere: nothing else is the nearest."""
    A, b = flow(mdp)
    projector = EuclideanProjector(mdp)
    for _ in range(3):  # from cold, then from where the last one was
        y = rng.normal(size=mdp.space.n_pairs) * size
        x = projector.solve(y)
        assert (x >= 0).all()
        assert np.abs(A @ x - b).sum() <= 1e-9
        slack = x - y - A.T @ projector.potentials[:-1]
        np.testing.assert_allclose(slack[x > 0], 0.0, atol=1e-9 * size)
        assert (slack >= -1e-9 * size).all()


@pytest.mark.parametrize("seed", range(5))
def test_against_a_conic_solver(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, LayeredSpace.dense([1, 4, 5, 3, 1], 3), zeros=0.3)
    A, b = flow(mdp)
    y = rng.normal(size=mdp.space.n_pairs)
    x = cp.Variable(mdp.space.n_pairs, nonneg=True)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(x - y)), [A @ x == b])
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    np.testing.assert_allclose(EuclideanProjector(mdp).solve(y), x.value, atol=1e-6)


def test_a_measure_is_its_own_answer_and_large_models_work(rng: np.random.Generator) -> None:
    mdp = random_mdp(rng, LayeredSpace.dense([1, 40, 40, 40, 1], 5), zeros=0.5)
    measure = mdp.space.sum_over_successors(mdp.occupancy(random_policy(rng, mdp.space, zeros=0.5)))
    np.testing.assert_allclose(EuclideanProjector(mdp).solve(measure), measure, atol=1e-9)


def test_the_state_is_all_that_a_solve_depends_on(rng: np.random.Generator) -> None:
    mdp = random_mdp(rng, LayeredSpace.dense([1, 4, 4, 1], 3))
    one, other = EuclideanProjector(mdp), EuclideanProjector(mdp)
    for _ in range(3):
        one.solve(rng.normal(size=mdp.space.n_pairs))
    other.restore({name: array.copy() for name, array in one.state().items()})
    y = rng.normal(size=mdp.space.n_pairs)
    np.testing.assert_array_equal(one.solve(y), other.solve(y))


def test_a_solve_that_does_not_converge_raises(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    mdp = random_mdp(rng, LayeredSpace.dense([1, 4, 4, 1], 3))
    projector = EuclideanProjector(mdp)
    projector.solve(np.zeros(mdp.space.n_pairs))
    before = projector.potentials.copy()
    monkeypatch.setattr(euclidean, "MAX_STEPS", 1)
    with pytest.raises(ConvergenceError, match="residual of"):
        projector.solve(30 * rng.normal(size=mdp.space.n_pairs))
    np.testing.assert_array_equal(projector.potentials, before)


@pytest.mark.parametrize("episodes", [7, 40, 200])
def test_states_that_nothing_uses_do_not_end_a_run(episodes: int) -> None:
    """Their rows of A D Aᵀ are 0: a Newton step is asked to move their potentials much too far."""
    for losses in ("fixed", "chaser"):
        history = run(make("media-streaming", losses=losses), "drift-plus-penalty", episodes=episodes, regret="never")
        assert history["episode"][-1] == episodes


@pytest.mark.parametrize("far", [1e6, 1e20, 1e90])
def test_a_start_that_is_too_far_away_is_given_up_for_a_cold_one(far: float, rng: np.random.Generator) -> None:
    mdp = random_mdp(rng, LayeredSpace.dense([1, 4, 5, 3, 1], 3))
    cold, warm = EuclideanProjector(mdp), EuclideanProjector(mdp)
    y = rng.normal(size=mdp.space.n_pairs)
    warm.restore({"potentials": far * rng.normal(size=mdp.space.n_states)})
    np.testing.assert_allclose(warm.solve(y), cold.solve(y), atol=1e-9)
    with pytest.raises(InvalidInputError, match="potentials"):
        warm.restore({"potentials": np.full(mdp.space.n_states, 1e200)})
