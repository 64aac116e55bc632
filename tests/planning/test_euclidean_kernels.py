"""The steps of the Euclidean projection against their definitions with whole matrices."""

from itertools import pairwise

import numpy as np
from hypothesis import given

from tests.conftest import mdps, rngs
from tests.planning.test_euclidean import flow
from tightrope.model import LayeredMDP
from tightrope.planning.kernels import euclidean as kernels


@given(mdps(), rngs())
def test_point(mdp: LayeredMDP, rng: np.random.Generator) -> None:
    A, b = flow(mdp)
    y, beta = rng.normal(size=mdp.space.n_pairs), np.append(rng.normal(size=mdp.space.n_states - 1), 0.0)
    x, residual = np.empty(mdp.space.n_pairs), np.empty(mdp.space.n_states)
    off, F = kernels.point(mdp.space.csr, mdp.transitions, y, beta, x, residual)
    expected = np.maximum(y + A.T @ beta[:-1], 0)
    np.testing.assert_allclose(x, expected, atol=1e-13)
    np.testing.assert_allclose(residual, np.append(A @ expected - b, 0.0), atol=1e-13)
    np.testing.assert_allclose(off, np.abs(A @ expected - b).sum(), atol=1e-12)
    np.testing.assert_allclose(F, 0.5 * expected @ expected - b @ beta[:-1], atol=1e-12)


@given(mdps(), rngs())
def test_newton_matrix(mdp: LayeredMDP, rng: np.random.Generator) -> None:
    A, _ = flow(mdp)
    x = np.maximum(rng.normal(size=mdp.space.n_pairs), 0.0)
    H = A @ np.diag((x > 0).astype(float)) @ A.T + 0.01 * np.eye(len(A))
    sizes = [*mdp.space.layer_sizes[:-1], 0]
    band = np.empty((len(A), max(n + m for n, m in pairwise(sizes))))
    kernels.hessian_band(mdp.space.csr, mdp.transitions, x, 0.01, band)
    for s in range(len(A)):
        inside = min(band.shape[1], len(A) - s)
        np.testing.assert_allclose(band[s, :inside], H[s : s + inside, s], atol=1e-13)
        np.testing.assert_allclose(H[s + inside :, s], 0.0, atol=1e-15)
