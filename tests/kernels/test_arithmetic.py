"""Elementary functions and sums: accurate, and the same to the bit however they are compiled."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tightrope.kernels.arithmetic import LARGEST, dot, exp, log
from tightrope.kernels.compile import jit


@given(st.floats(-LARGEST, LARGEST))
def test_exponential(x: float) -> None:
    assert exp(x) == pytest.approx(np.exp(x), rel=1e-14)


def test_exponential_beyond_its_range() -> None:
    assert [exp(x) for x in (np.inf, 1e308, -np.inf, -1e308, np.nan)] == [np.inf, np.inf, 0.0, 0.0, 0.0]


@given(st.floats(1e-300, 1e300) | st.floats(0.5, 2.0))
def test_logarithm(x: float) -> None:
    assert log(x) == pytest.approx(np.log(x), rel=1e-15, abs=1e-300)


@jit
def dot_of(a, i, b, j, n):  # type: ignore[no-untyped-def]
    return dot(a, i, b, j, n)  # type: ignore[call-arg]


@given(st.integers(0, 40), st.integers(0, 5), st.integers(0, 5))
def test_dot(n: int, i: int, j: int) -> None:
    a, b = np.random.default_rng(n).standard_normal((2, 50))
    ours = dot_of(a, np.uint32(i), b, np.uint32(j), np.uint32(n))
    assert ours == pytest.approx(a[i : i + n] @ b[j : j + n], abs=1e-13)
