"""Steps of the Euclidean projection (`tightrope.planning.euclidean` has the mathematics), with A in compressed rows."""

from tightrope.kernels.compile import jit


@jit
def point(csr, P, y, beta, x, residual):
    """Write x = [y + Aᵀβ]_+ and Ax − b; return Σ|Ax − b| and F(β). β is 0 at the last state, which has no row."""
    end = csr.layer_ptr[csr.layer_ptr.size - 2]
    residual[:] = 0.0
    residual[0] = -1.0
    F = -beta[0]
    for s in range(end):
        for i in range(csr.state_ptr[s], csr.state_ptr[s + 1]):
            v = y[i] + beta[s]
            for j in range(csr.pair_ptr[i], csr.pair_ptr[i + 1]):
                v -= P[j] * beta[csr.successor[j]]
            x[i] = max(v, 0.0)
            if v > 0.0:
                F += 0.5 * v * v
                residual[s] += v
                for j in range(csr.pair_ptr[i], csr.pair_ptr[i + 1]):
                    residual[csr.successor[j]] -= P[j] * v
    residual[end] = 0.0
    residual_norm = 0.0
    for s in range(end):
        residual_norm += abs(residual[s])
    return residual_norm, F


@jit
def hessian_band(csr, P, x, mu, band):
    """Write the lower band of A D Aᵀ + μ, D the pairs with x > 0: band[s, d] is the entry of states s + d and s."""
    end = csr.layer_ptr[csr.layer_ptr.size - 2]
    band[:] = 0.0
    for s in range(end):
        band[s, 0] += mu
        for i in range(csr.state_ptr[s], csr.state_ptr[s + 1]):
            if x[i] > 0.0:
                band[s, 0] += 1.0
                for j in range(csr.pair_ptr[i], csr.pair_ptr[i + 1]):
                    t = csr.successor[j]
                    if t < end:
                        band[s, t - s] -= P[j]
                        for k in range(j, csr.pair_ptr[i + 1]):
                            band[t, csr.successor[k] - t] += P[j] * P[k]
