"""The steps of the Euclidean projection against their definitions with whole matrices."""

import numpy as np
from hypothesis import given

from tests.conftest import mdps, rngs
from tests.learners.test_euclidean import flow
from tightrope import LayeredMDP, core


@given(mdps(), rngs())
def test_point(mdp: LayeredMDP, rng: np.random.Generator) -> None:
    A, b = flow(mdp)
    y, beta = rng.normal(size=mdp.space.n_pairs), np.append(rng.normal(size=mdp.space.n_states - 1), 0.0)
    x, residual, off, F = core.euclidean_point(mdp.space.native, mdp.transitions, y, beta)
    expected = np.maximum(y + A.T @ beta[:-1], 0)
    np.testing.assert_allclose(x, expected, atol=1e-13)
    np.testing.assert_allclose(residual, np.append(A @ expected - b, 0.0), atol=1e-13)
    np.testing.assert_allclose(off, np.abs(A @ expected - b).sum(), atol=1e-12)
    np.testing.assert_allclose(F, 0.5 * expected @ expected - b @ beta[:-1], atol=1e-12)


@given(mdps(), rngs())
def test_newton_step(mdp: LayeredMDP, rng: np.random.Generator) -> None:
    A, _ = flow(mdp)
    x = np.maximum(rng.normal(size=mdp.space.n_pairs), 0.0)
    H = A @ np.diag((x > 0).astype(float)) @ A.T + 0.01 * np.eye(len(A))
    residual = np.append(rng.normal(size=len(A)), 0.0)
    step = core.euclidean_step(mdp.space.native, mdp.transitions, x, residual, 0.01)
    np.testing.assert_allclose(step[:-1], np.linalg.solve(H, -residual[:-1]), rtol=1e-9, atol=1e-11)
    assert step[-1] == 0
