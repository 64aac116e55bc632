"""Cholesky for symmetric positive definite block-tridiagonal matrices with dense blocks, in place.

Block k couples the states of layer k with themselves (`diagonal`, upper triangle) and with layer k + 1 (`upper`);
both are flat, row-major, and start at block[k, 0] and block[k, 1]. Layers 0..L−1 take part.
"""

from tightrope.kernels.compile import jit

PIVOT = 1e-15  # smallest share of its diagonal entry that a pivot may keep


@jit
def factorise(layer_ptr, block, diagonal, upper):
    """H = Uᵀ U: overwrite the diagonal blocks by their triangles U_k, the upper ones by U_k⁻ᵀ B_k."""
    L = layer_ptr.size - 2
    for k in range(L):
        n = layer_ptr[k + 1] - layer_ptr[k]
        U = diagonal[block[k, 0] : block[k, 0] + n * n].reshape(n, n)
        m = layer_ptr[k + 2] - layer_ptr[k + 1] if k < L - 1 else 0
        B = upper[block[k, 1] : block[k, 1] + n * m].reshape(n, m)
        for r in range(n):
            entry = U[r, r]
            for i in range(r):
                entry -= U[i, r] * U[i, r]
            pivot = (max(entry, PIVOT * U[r, r]) + 1e-300) ** 0.5
            U[r, r] = pivot
            for i in range(r):
                f = U[i, r]
                for c in range(r + 1, n):
                    U[r, c] -= f * U[i, c]
                for c in range(m):
                    B[r, c] -= f * B[i, c]
            for c in range(r + 1, n):
                U[r, c] /= pivot
            for c in range(m):
                B[r, c] /= pivot
        if m > 0:
            D = diagonal[block[k + 1, 0] : block[k + 1, 0] + m * m].reshape(m, m)
            for i in range(n):
                for r in range(m):
                    f = B[i, r]
                    for c in range(r, m):
                        D[r, c] -= f * B[i, c]


@jit
def solve(layer_ptr, block, diagonal, upper, x):
    """Overwrite the right-hand side x (by state) with H⁻¹ x, given the factors."""
    L = layer_ptr.size - 2
    for k in range(L):
        start, n = layer_ptr[k], layer_ptr[k + 1] - layer_ptr[k]
        U = diagonal[block[k, 0] : block[k, 0] + n * n].reshape(n, n)
        m = layer_ptr[k + 2] - layer_ptr[k + 1] if k < L - 1 else 0
        B = upper[block[k, 1] : block[k, 1] + n * m].reshape(n, m)
        for r in range(n):
            x[start + r] /= U[r, r]
            f = x[start + r]
            for c in range(r + 1, n):
                x[start + c] -= U[r, c] * f
            for c in range(m):
                x[start + n + c] -= B[r, c] * f
    for k in range(L - 1, -1, -1):
        start, n = layer_ptr[k], layer_ptr[k + 1] - layer_ptr[k]
        U = diagonal[block[k, 0] : block[k, 0] + n * n].reshape(n, n)
        m = layer_ptr[k + 2] - layer_ptr[k + 1] if k < L - 1 else 0
        B = upper[block[k, 1] : block[k, 1] + n * m].reshape(n, m)
        for r in range(n - 1, -1, -1):
            f = x[start + r]
            for c in range(m):
                f -= B[r, c] * x[start + n + c]
            for c in range(r + 1, n):
                f -= U[r, c] * x[start + c]
            x[start + r] = f / U[r, r]
