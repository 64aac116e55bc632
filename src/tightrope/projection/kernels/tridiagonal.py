"""Cholesky for symmetric positive definite block-tridiagonal matrices with dense blocks, in place.

The rows of layer k, n states, form one panel of n × (n + m) numbers, row-major from panel_ptr[k] on: the layer's own
block (upper triangle), then the block towards the m states of layer k + 1. Layers 0..L−1 take part; m = 0 for the last.
Indices are unsigned, as everywhere in the solver's kernels (`lanes.py`); rows are taken four at a time, since each
then travels through memory a quarter as often.
"""

import numpy as np

from tightrope.kernels.arithmetic import fma
from tightrope.kernels.compile import jit

TINY = 1e-290  # added to every pivot: a state without any mass has a row of zeros, and rounding may leave less than 0
ZERO, ONE, TWO, THREE, FOUR = (np.uint64(i) for i in range(5))


@jit
def factorise(layer_state, panel_ptr, panels):
    """H = Uᵀ U: overwrite every panel by its rows of U, with the reciprocals of the diagonal."""
    for k in range(panel_ptr.size - 1):
        n, base = np.uint64(layer_state[k + 1] - layer_state[k]), panel_ptr[k]
        width = (panel_ptr[k + 1] - base) // n
        for r in range(n):
            row = base + r * width
            subtract_rows(panels, base, width, r, r, row, r, width)
            pivot = 1.0 / np.sqrt(max(panels[row + r], 0.0) + TINY)
            for j in range(r + ONE, width):
                panels[row + j] *= pivot
            panels[row + r] = pivot
        m = width - n
        if m > ZERO:
            below = (panel_ptr[k + 2] - panel_ptr[k + 1]) // m
            for r in range(m):  # the next layer's block loses Bᵀ H⁻¹ B
                subtract_rows(panels, base, width, n, n + r, panel_ptr[k + 1] + r * below - n, n + r, width)


@jit
def subtract_rows(panels, base, width, count, column, row, first, last):
    """panels[row + j] -= Σ_i U[i, column] U[i, j], first <= j < last; U is `count` rows of `width` from `base` on."""
    whole = count // FOUR * FOUR
    for i in range(ZERO, whole, FOUR):
        i0 = base + i * width
        i1 = i0 + width
        i2 = i1 + width
        i3 = i2 + width
        f0, f1, f2, f3 = -panels[i0 + column], -panels[i1 + column], -panels[i2 + column], -panels[i3 + column]
        for j in range(first, last):
            x = fma(f0, panels[i0 + j], fma(f1, panels[i1 + j], panels[row + j]))
            panels[row + j] = fma(f2, panels[i2 + j], fma(f3, panels[i3 + j], x))
    for i in range(whole, count):
        i0 = base + i * width
        f0 = panels[i0 + column]
        for j in range(first, last):
            panels[row + j] -= f0 * panels[i0 + j]


@jit
def solve(layer_state, panel_ptr, panels, x):
    """Overwrite the right-hand side x (by state) with H⁻¹ x, given the factor."""
    L = panel_ptr.size - 1
    for k in range(L):
        start, n, base = np.uint64(layer_state[k]), np.uint64(layer_state[k + 1] - layer_state[k]), panel_ptr[k]
        width = (panel_ptr[k + 1] - base) // n
        for r in range(n):
            row = base + r * width
            f = x[start + r] * panels[row + r]
            x[start + r] = f
            for j in range(r + ONE, width):
                x[start + j] = fma(-f, panels[row + j], x[start + j])
    for k in range(L - 1, -1, -1):
        start, n, base = np.uint64(layer_state[k]), np.uint64(layer_state[k + 1] - layer_state[k]), panel_ptr[k]
        width = (panel_ptr[k + 1] - base) // n
        for back in range(n):
            r = n - ONE - back
            row = base + r * width
            first, sum0, sum1, sum2, sum3 = r + ONE, 0.0, 0.0, 0.0, 0.0
            whole = first + (width - first) // FOUR * FOUR
            for j in range(first, whole, FOUR):
                sum0 = fma(panels[row + j], x[start + j], sum0)
                sum1 = fma(panels[row + j + ONE], x[start + j + ONE], sum1)
                sum2 = fma(panels[row + j + TWO], x[start + j + TWO], sum2)
                sum3 = fma(panels[row + j + THREE], x[start + j + THREE], sum3)
            for j in range(whole, width):
                sum0 = fma(panels[row + j], x[start + j], sum0)
            x[start + r] = (x[start + r] - ((sum0 + sum1) + (sum2 + sum3))) * panels[row + r]
