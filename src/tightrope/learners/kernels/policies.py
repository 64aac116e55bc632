"""Policies that are evaluated on an estimated model, and improved by a step."""

import numpy as np

from tightrope.kernels.compile import jit

#: A policy keeps this much of every action, so that a mirror step can bring it back.
FLOOR = 1e-300


@jit
def evaluate(csr, pi, M, n, R, V, Q):
    """Q(s,a) = R(s,a) + Σ_s' M(s,a,s')/n(s,a) V(s'), V(s) = Σ_a π(a|s) Q(s,a): for every row of R, V and Q.

    Q is truncated to lie between 0 and the number of steps left. Writes V and Q.
    """
    n_layers = csr.layer_ptr.size - 2
    for h in range(R.shape[0]):
        V[h, csr.layer_ptr[n_layers]] = 0.0
        for k in range(n_layers - 1, -1, -1):
            for s in range(csr.layer_ptr[k], csr.layer_ptr[k + 1]):
                V[h, s] = 0.0
                for i in range(csr.state_ptr[s], csr.state_ptr[s + 1]):
                    q = 0.0
                    for j in range(csr.pair_ptr[i], csr.pair_ptr[i + 1]):
                        q += M[j] * V[h, csr.successor[j]]
                    Q[h, i] = min(max(R[h, i] + q / n[i], 0.0), float(n_layers - k))
                    V[h, s] += pi[i] * Q[h, i]


@jit
def mirror_step(csr, pi, q, step, out):
    """argmin over π' of step <q, π'(·|s)> + KL(π'(·|s), π(·|s)): π'(a|s) ∝ π(a|s) exp(−step q(s,a)). Writes out."""
    for s in range(csr.state_ptr.size - 2):
        first, last = csr.state_ptr[s], csr.state_ptr[s + 1]
        least = np.inf
        for i in range(first, last):
            least = min(least, q[i])
        mass = 0.0
        for i in range(first, last):
            out[i] = max(pi[i], FLOOR) * np.exp(-step * (q[i] - least))
            mass += out[i]
        for i in range(first, last):
            out[i] /= mass
