"""Products and sums with the same bits on every machine, which BLAS does not promise."""

import numpy as np

from tightrope import core
from tightrope.space import FloatArray


def products(rows: FloatArray, vectors: FloatArray) -> FloatArray:
    """<rows_i, vectors_j> of every i and j, with the same bits on every machine."""
    return np.array([[core.dot(row, vector) for vector in vectors] for row in rows])


def combined(weights: FloatArray, rows: FloatArray) -> FloatArray:
    """Σ_i weights_i rows_i, likewise."""
    total = np.zeros(rows.shape[1])
    for weight, row in zip(weights, rows, strict=True):
        total += weight * row
    return total
