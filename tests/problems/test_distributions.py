"""Tails and quantiles against SciPy's."""

import math

import pytest
from scipy.stats import chi2
from scipy.stats import t as student

from tightrope.problems.logs.estimate import chi_squared_tail
from tightrope.problems.logs.evaluation import student_quantile


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 5, 10, 33, 100, 1001, 20000])
@pytest.mark.parametrize("level", [0.999, 0.9, 0.5, 0.1, 1e-3, 1e-9])
def test_the_tail_of_chi_squared(freedom: int, level: float) -> None:
    x = float(chi2.isf(level, freedom))
    assert chi_squared_tail(x, freedom) == pytest.approx(chi2.sf(x, freedom), rel=1e-9)


@pytest.mark.parametrize("freedom", [1, 2, 3])
def test_all_of_chi_squared_is_above_zero_and_nothing_is_far_out(freedom: int) -> None:
    assert chi_squared_tail(0.0, freedom) == 1.0
    assert chi_squared_tail(1e5, freedom) == 0.0


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 5, 10, 33, 100, 1001, 20000])
@pytest.mark.parametrize("p", [0.5, 0.6, 0.9, 0.975, 0.9875, 0.9999, 1 - 1e-7])
def test_the_quantiles_of_students_t(freedom: int, p: float) -> None:
    assert student_quantile(p, freedom) == pytest.approx(student.ppf(p, freedom), rel=1e-8, abs=1e-12)


def test_no_number_is_above_all_of_students_t() -> None:
    assert student_quantile(1.0, 3) == math.inf
