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


@given(st.integers(0, 200), st.integers(0, 5), st.integers(0, 5))
def test_dot_is_eight_sums_to_the_bit(n: int, i: int, j: int) -> None:
    """And would not be if numba or LLVM fused, reordered or padded any of it."""
    a, b = np.random.default_rng(n).standard_normal((2, 210))
    products = a[i : i + n] * b[j : j + n]
    whole = n // 8 * 8
    sums, rest = np.zeros(8), 0.0
    for eight in products[:whole].reshape(-1, 8):
        sums += eight
    for product in products[whole:]:
        rest += product
    while len(sums) > 1:
        sums = sums[: len(sums) // 2] + sums[len(sums) // 2 :]
    assert dot_of(a, np.uint32(i), b, np.uint32(j), np.uint32(n)) == sums[0] + rest
    assert sums[0] + rest == pytest.approx(a[i : i + n] @ b[j : j + n], abs=1e-12)
