"""Elementary functions and sums with the same bits on every machine, for learners and accounts.

NumPy and the C library round `exp`, `log` and `dot` differently from one CPU to the next; the compiled core does not.
"""

import math
from collections.abc import Callable
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope import core

FloatArray = NDArray[np.float64]


@overload
def exp(x: float) -> float: ...
@overload
def exp(x: FloatArray) -> FloatArray: ...
def exp(x: Any) -> Any:
    """Return e^x of a number, or of every entry of an array."""
    return _mapped(core.exp, x)


@overload
def log(x: float) -> float: ...
@overload
def log(x: NDArray[Any]) -> FloatArray: ...
def log(x: Any) -> Any:
    """Return the natural logarithm of a number, or of every entry of an array; -inf at 0, NaN below."""
    return _mapped(core.log, x)


def power(x: float, y: float) -> float:
    """Return x^y for x > 0, with the same bits on every machine."""
    return exp(y * log(x))


def cosine(turns: FloatArray) -> FloatArray:
    """Return cos(2π x) for every number x of whole turns, as 1 - 2 sin²(π x)."""
    y = np.pi * np.abs(turns - np.round(turns))  # at most π/2
    square, sine = y * y, np.zeros_like(y)
    for k in range(11, -1, -1):  # Taylor's series of sin(y) / y
        sine = (-1) ** k / math.factorial(2 * k + 1) + sine * square
    sine *= y
    return 1 - 2 * sine * sine


def dot(values: ArrayLike, weights: FloatArray) -> Any:
    """Return the sum of values times weights over the last axis: a number, or an array with one axis less.

    Parameters
    ----------
    values : array of shape (..., n).
    weights : array of shape (n,).
    """
    values, weights = np.ascontiguousarray(values, dtype=np.float64), np.ascontiguousarray(weights, dtype=np.float64)
    if values.ndim == 1:
        return core.dot(values, weights)
    rows = values.reshape(-1, values.shape[-1])
    return np.array([core.dot(row, weights) for row in rows]).reshape(values.shape[:-1])


def products(rows: FloatArray, vectors: FloatArray) -> FloatArray:
    """Return the inner product of every row (m, n) with every vector (k, n), as an array (m, k)."""
    return np.array([dot(vectors, row) for row in rows])


def combine(weights: FloatArray, rows: FloatArray) -> FloatArray:
    """Return the sum of weights[i] * rows[i] over i, (n,), for weights (m,) and rows (m, n)."""
    total: FloatArray = core.combine(np.ascontiguousarray(weights), np.ascontiguousarray(rows))
    return total


def _mapped(function: Callable[[FloatArray, FloatArray], None], x: Any) -> Any:
    values = np.asarray(x, dtype=np.float64, order="C")
    result = np.empty(values.shape)
    function(values.reshape(-1), result.reshape(-1))
    return result if values.ndim else float(result)
