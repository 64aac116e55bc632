"""Elementary functions and sums: accurate, in every shape, and in a fixed order."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tightrope import core
from tightrope.arithmetic import dot, exp, log, power


@given(st.floats(-700, 700))
def test_the_exponential_is_accurate(x: float) -> None:
    assert exp(x) == pytest.approx(np.exp(x), rel=1e-14)


def test_the_exponential_beyond_its_range_is_zero_or_infinite() -> None:
    assert exp(np.array([np.inf, 1e308, -np.inf, -1e308, np.nan])).tolist() == [np.inf, np.inf, 0.0, 0.0, 0.0]


@given(st.floats(1e-300, 1e300) | st.floats(0.5, 2.0))
def test_the_logarithm_is_accurate(x: float) -> None:
    assert log(x) == pytest.approx(np.log(x), rel=1e-15, abs=1e-300)


def test_the_logarithm_of_what_has_none() -> None:
    np.testing.assert_array_equal(log(np.array([0.0, -1.0, np.inf])), [-np.inf, np.nan, np.inf])


@given(st.floats(0.01, 100), st.floats(-5, 5))
def test_a_power_is_accurate(x: float, y: float) -> None:
    assert power(x, y) == pytest.approx(x**y, rel=1e-13)


@given(arrays(np.float64, st.sampled_from([(3,), (0,), (2, 3), (2, 0, 3)]), elements=st.floats(0.1, 9)))
def test_arrays_keep_their_shape(x: np.ndarray) -> None:
    for function, twin in ((exp, np.exp), (log, np.log)):
        assert function(x).shape == x.shape
        np.testing.assert_allclose(function(x), twin(x), rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(exp(x.T), np.exp(x.T), rtol=1e-13)


@given(st.integers(0, 200))
def test_a_dot_product_is_eight_sums_to_the_bit(n: int) -> None:
    """And would not be if a compiler fused, reordered or padded any of it."""
    a, b = np.random.default_rng(n).standard_normal((2, n))
    products, whole = a * b, n // 8 * 8
    sums, rest = np.zeros(8), 0.0
    for eight in products[:whole].reshape(-1, 8):
        sums += eight
    for product in products[whole:]:
        rest += product
    while len(sums) > 1:
        sums = sums[: len(sums) // 2] + sums[len(sums) // 2 :]
    assert dot(a, b) == sums[0] + rest
    assert sums[0] + rest == pytest.approx(a @ b, abs=1e-12)


def test_dot_products_of_rows_and_of_strided_arrays(rng: np.random.Generator) -> None:
    values, weights = rng.normal(size=(4, 2, 9)), rng.normal(size=18)[::2]
    np.testing.assert_allclose(dot(values, weights), values @ weights)
    np.testing.assert_allclose(dot(values.T, weights[:4]), values.T @ weights[:4])


@pytest.mark.parametrize("function", [core.exp, core.log, core.expm1, core.log1p, core.lgamma, core.dot])
def test_arrays_of_another_kind_are_refused(function: object) -> None:
    wrong = [np.ones(3, np.float32), np.ones((3, 1)), np.ones(6)[::2], np.ones(4), [1.0, 1.0, 1.0], None]
    for other in wrong:
        with pytest.raises((TypeError, ValueError)):
            function(np.ones(3), other)  # type: ignore[operator]
