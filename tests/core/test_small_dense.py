"""Small dense problems against SciPy's answers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import nnls

from tests.conftest import FloatArray
from tightrope import core

SEEDS = st.integers(0, 2**32 - 1)


def value(S: FloatArray, r: FloatArray, y: FloatArray) -> float:
    return float(0.5 * y @ S @ y - r @ y)


def instance(seed: int) -> tuple[FloatArray, FloatArray]:
    """A random problem; some have fewer independent rows than unknowns, equal columns, or sizes far apart."""
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(1, 9)), int(rng.integers(1, 12))
    rows = rng.normal(size=(k, n)) * 10.0 ** rng.integers(-3, 3, n)
    if rng.random() < 0.3:
        rows[:, rng.integers(n)] = rows[:, rng.integers(n)]
    return rows.T @ rows, rows.T @ rng.normal(size=k)


@given(SEEDS)
def test_least_prices_agree_with_nnls(seed: int) -> None:
    S, r = instance(seed)
    y = core.least_prices(S, r)
    size = np.abs(S) @ y + np.abs(r)
    assert (y >= 0).all()
    assert (r - S @ y <= 1e-9 * (1e-300 + size)).all()  # no entry is worth more
    assert np.abs(y * (r - S @ y)).max() <= 1e-9 * (1e-300 + y @ size)  # and those above 0 are worth what they cost
    values, vectors = np.linalg.eigh(S)
    kept = values > 1e-13 * values[-1]
    roots = np.sqrt(values[kept])
    theirs = nnls(roots[:, None] * vectors.T[kept], (vectors.T @ r)[kept] / roots)[0]
    assert value(S, r, y) <= value(S, r, theirs) + 1e-9 * (1 + abs(value(S, r, theirs)))


def test_an_empty_row_gets_exactly_nothing() -> None:
    S = np.diag([2.0, 1e-20, 4.0, 0.0])
    assert core.least_prices(S, np.array([3.0, 0.0, -1.0, 0.0])).tolist() == [1.5, 0.0, 0.0, 0.0]


def test_equal_rows_share_a_price() -> None:
    S = np.full((3, 3), 5.0) + np.diag(np.full(3, 5e-10))
    y = core.least_prices(S, np.full(3, 10.0))
    assert y.sum() == pytest.approx(2, rel=1e-6)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_one_entry_is_a_division(n: int) -> None:
    r = np.linspace(-1, 3, n)
    np.testing.assert_array_equal(core.least_prices(3 * np.eye(n), r), np.maximum(r / 3, 0))


@pytest.mark.parametrize(
    ("S", "r"),
    [
        (np.eye(2), np.zeros(3)),
        (np.ones((2, 3)), np.zeros(2)),
        (np.full((1, 1), np.nan), np.zeros(1)),
        (np.eye(1), np.array([np.inf])),
    ],
)
def test_bad_input_is_refused(S: FloatArray, r: FloatArray) -> None:
    with pytest.raises(ValueError, match=r"[Sr] has"):
        core.least_prices(S, r)


@given(SEEDS)
def test_any_matrix_ends(seed: int) -> None:
    """Not positive semidefinite, not symmetric, of any size: the answer is useless, but there is one."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(0, 7))
    S, r = rng.normal(size=(n, n)) * 10.0 ** rng.integers(-160, 150, (n, n)), rng.normal(size=n)
    assert core.least_prices(S, r).shape == (n,)
