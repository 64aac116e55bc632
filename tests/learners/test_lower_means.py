"""Lower bounds on means: against their definition, and how often the mean is ever below one, by simulation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from tests.conftest import FloatArray
from tightrope.core import lower_means

RUNS, DRAWS, DELTA = 2000, 1000, 0.1
TIMES = np.unique(np.geomspace(1, DRAWS, 40).astype(int))


@given(st.integers(0, 10**6), st.floats(0, 1), st.floats(0, 1), st.floats(1e-6, 0.5))
def test_the_kernel_agrees_with_the_definition(n: int, mean: float, variance: float, delta: float) -> None:
    """The least over all λ_k, of which the kernel stops looking early."""
    k = np.arange(100)
    lam = 0.8 * 2 ** (-k / 2)
    off = (np.log((k + 1) * (k + 2) / delta) + (-np.log1p(-lam) - lam) * n * variance) / lam
    total, V = np.array([[n * mean]]), np.array([[n * variance]])
    lower = lower_means(np.array([n]), total, V, np.log(1 / delta), 1.0)
    expected = max(0.0, mean - off.min() / n) if n > 0 else 0.0
    np.testing.assert_allclose(lower, expected, rtol=1e-9, atol=1e-12)


def draws(law: str, rng: np.random.Generator) -> FloatArray:
    """(RUNS, DRAWS) with mean 0.3."""
    if law == "a coin":
        return (rng.random((RUNS, DRAWS)) < 0.3).astype(float)
    if law == "two numbers":
        return np.where(rng.random((RUNS, DRAWS)) < 0.5, 0.2, 0.4)
    return rng.beta(0.3, 0.7, (RUNS, DRAWS))


def share_ever_above(law: str, scale: float) -> float:
    """Of RUNS runs, in how many the bound is above the mean at one of TIMES: one stops where it looks worst."""
    x = draws(law, np.random.default_rng(4))
    total = np.cumsum(x, axis=1)
    guess = (0.5 + total - x) / np.arange(1, DRAWS + 1)
    V, ever = np.cumsum((x - guess) ** 2, axis=1), np.zeros(RUNS, dtype=bool)
    for time in TIMES:
        now = np.full(RUNS, time), total[None, :, time - 1].copy(), V[None, :, time - 1].copy()
        lower = lower_means(*now, np.log(1 / DELTA), scale)
        ever |= lower[0] > 0.3
    return float(ever.mean())


@pytest.mark.parametrize("law", ["a coin", "two numbers", "beta"])
def test_the_mean_is_hardly_ever_below(law: str) -> None:
    assert share_ever_above(law, 1.0) * RUNS <= binom.ppf(1 - 1e-6, RUNS, DELTA)


@pytest.mark.parametrize("law", ["a coin", "two numbers", "beta"])
def test_a_third_of_the_width_would_be_too_narrow(law: str) -> None:
    """So the test above can fail. Of half, it is above in 0.095 of the runs with little variance."""
    assert share_ever_above(law, 1 / 3) > DELTA
