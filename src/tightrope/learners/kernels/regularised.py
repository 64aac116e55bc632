"""Policies with a reward for being undecided: what they are worth on an estimated model, and a step on them."""

import numpy as np

from tightrope.kernels.compile import jit
from tightrope.learners.kernels.policies import FLOOR


@jit
def regularised_values(csr, pi, P, R, tau, V, Q):
    """Q(s,a) = R(s,a) + Σ_s' P(s'|s,a) V(s'), V(s) = Σ_a π(a|s) (Q(s,a) − τ log π(a|s)): for every row of R, V and Q.

    tau has the τ of every row. Q is 1 + τ log|A| for every step left, at most. Writes V and Q.
    """
    n_layers = csr.layer_ptr.size - 2
    n_actions = csr.action.max() + 1
    for h in range(R.shape[0]):
        most = 1.0 + tau[h] * np.log(n_actions)
        V[h, csr.layer_ptr[n_layers]] = 0.0
        for k in range(n_layers - 1, -1, -1):
            for s in range(csr.layer_ptr[k], csr.layer_ptr[k + 1]):
                V[h, s] = 0.0
                for i in range(csr.state_ptr[s], csr.state_ptr[s + 1]):
                    q = R[h, i]
                    for j in range(csr.pair_ptr[i], csr.pair_ptr[i + 1]):
                        q += P[j] * V[h, csr.successor[j]]
                    Q[h, i] = min(q, most * (n_layers - k))
                    V[h, s] += pi[i] * (Q[h, i] - tau[h] * np.log(max(pi[i], FLOOR)))


@jit
def regularised_step(csr, pi, q, step, tau, out):
    """π'(a|s) ∝ π(a|s)^(1 − step·τ) exp(step q(s,a)). Writes out."""
    for s in range(csr.state_ptr.size - 2):
        first, last = csr.state_ptr[s], csr.state_ptr[s + 1]
        largest = -np.inf
        for i in range(first, last):
            out[i] = (1.0 - step * tau) * np.log(max(pi[i], FLOOR)) + step * q[i]
            largest = max(largest, out[i])
        mass = 0.0
        for i in range(first, last):
            out[i] = np.exp(out[i] - largest)
            mass += out[i]
        for i in range(first, last):
            out[i] /= mass
