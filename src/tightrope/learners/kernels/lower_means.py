"""Lower bounds on means that hold at all times at once (empirical Bernstein; docs/theory.md)."""

import math

import numpy as np

from tightrope.kernels.compile import jit

LARGEST, RATIO, FINEST = 0.8, math.sqrt(0.5), 100  # λ_k = LARGEST · RATIO^k, k < FINEST


@jit
def lower_means(n, total, V, log_inverse, scale, lower):
    """A number below the mean μ of numbers x in [0, 1], given how many there are, Σ x and V = Σ (x − x̂)².

    x̂ is a guess at x made before it was seen. With probability at least 1 − δ, for all n at once,

        μ >= lower = (Σ x − scale · min_k (log((k + 1)(k + 2)/δ) + ψ(λ_k) V) / λ_k) / n,      ψ(λ) = −log(1 − λ) − λ,

    and 0 at the least; log(1/δ) is given, and scale is 1. n is (n_pairs,), total, V and lower (I, n_pairs). Writes
    lower.
    """
    for i in range(total.shape[0]):
        for j in range(n.size):
            least = np.inf
            for k in range(FINEST):
                lam = LARGEST * RATIO**k
                psi = -math.log1p(-lam) - lam
                off = (log_inverse + math.log((k + 1.0) * (k + 2.0)) + psi * V[i, j]) / lam
                if off >= least:  # it falls, and then rises
                    break
                least = off
            lower[i, j] = max(0.0, (total[i, j] - scale * least) / n[j]) if n[j] > 0 else 0.0
