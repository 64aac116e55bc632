"""The subproblem with priced rows: against its NumPy twin and a conic solver, and an answer whatever the rows."""

import numpy as np
import pytest

from tests.projection.test_inequalities import KINDS, Some
from tightrope import project
from tightrope.projection import priced_reference as in_numpy
from tightrope.projection.priced import PricedProjector
from tightrope.space import FloatArray


def some_rows(seed: int, instance: Some, m: int) -> tuple[FloatArray, FloatArray, FloatArray]:
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


@pytest.mark.parametrize("kind", KINDS)
def test_agrees_with_the_twin_in_numpy(kind: str) -> None:
    traded = 0
    for seed in range(8):
        instance = KINDS[kind](seed + 60)
        instance = instance._replace(cost=np.tanh(instance.cost))
        A, b, most = some_rows(seed, instance, m=1 + seed % 5)
        projector, theta = PricedProjector(instance.space, len(b)), np.empty(instance.space.n_tuples)
        projector.solve(instance.reference, instance.cost, instance.confidence, A, b, most, theta)
        twin = in_numpy.solve(instance.space, instance.reference, instance.cost, instance.confidence, A, b, most)
        assert twin.missed <= 1e-9
        np.testing.assert_allclose(theta, twin.theta, atol=1e-7)
        assert projector.dual_value == pytest.approx(twin.dual_value, rel=1e-8, abs=1e-8)
        traded += (projector.multipliers == most).any()
    assert traded >= 1
