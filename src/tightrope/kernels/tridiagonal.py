"""Cholesky for symmetric positive definite block-tridiagonal matrices with dense blocks, in place.

The rows of layer k, n states, form one panel of n × (n + m) numbers, row-major from panel_ptr[k] on: the layer's own
block (upper triangle), then the block towards the m states of layer k + 1. Layers 0..L−1 take part; m = 0 for the last.
"""

from tightrope.kernels.compile import jit

PIVOT = 1e-15  # smallest share of its diagonal entry that a pivot may keep
TINY = 1e-290  # added to every pivot: a state without any mass has a row of zeros


@jit
def factorise(layer_ptr, panel_ptr, panels):
    """H = Uᵀ U: overwrite every panel by its rows of U, with the reciprocals of the diagonal."""
    for k in range(panel_ptr.size - 1):
        n = layer_ptr[k + 1] - layer_ptr[k]
        U = panels[panel_ptr[k] : panel_ptr[k + 1]].reshape(n, -1)
        width = U.shape[1]
        for r in range(n):
            whole = U[r, r]
            for i in range(r):
                f = U[i, r]
                for c in range(r, width):
                    U[r, c] -= f * U[i, c]
            pivot = 1.0 / (max(U[r, r], PIVOT * whole) + TINY) ** 0.5
            for c in range(r + 1, width):
                U[r, c] *= pivot
            U[r, r] = pivot
        m = width - n
        if m > 0:
            D = panels[panel_ptr[k + 1] : panel_ptr[k + 2]].reshape(m, -1)
            i = 0
            while i + 3 < n:  # four rows at a time
                for r in range(m):
                    a, b, c, d = U[i, n + r], U[i + 1, n + r], U[i + 2, n + r], U[i + 3, n + r]
                    for t in range(r, m):
                        D[r, t] -= a * U[i, n + t] + b * U[i + 1, n + t] + c * U[i + 2, n + t] + d * U[i + 3, n + t]
                i += 4
            while i < n:
                for r in range(m):
                    a = U[i, n + r]
                    for t in range(r, m):
                        D[r, t] -= a * U[i, n + t]
                i += 1


@jit
def solve(layer_ptr, panel_ptr, panels, x):
    """Overwrite the right-hand side x (by state) with H⁻¹ x, given the factor."""
    L = panel_ptr.size - 1
    for k in range(L):
        n = layer_ptr[k + 1] - layer_ptr[k]
        U, y = panels[panel_ptr[k] : panel_ptr[k + 1]].reshape(n, -1), x[layer_ptr[k] :]
        for r in range(n):
            f = y[r] * U[r, r]
            y[r] = f
            for c in range(r + 1, U.shape[1]):
                y[c] -= U[r, c] * f
    for k in range(L - 1, -1, -1):
        n = layer_ptr[k + 1] - layer_ptr[k]
        U, y = panels[panel_ptr[k] : panel_ptr[k + 1]].reshape(n, -1), x[layer_ptr[k] :]
        for r in range(n - 1, -1, -1):
            f = y[r]
            for c in range(r + 1, U.shape[1]):
                f -= U[r, c] * y[c]
            y[r] = f * U[r, r]
