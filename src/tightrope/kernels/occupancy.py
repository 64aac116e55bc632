"""Occupancy measures: from a policy and a model, and back."""

import numpy as np

from tightrope.kernels.compile import jit

#: No mass: below this, 1 / mass is no number (divisions may be compiled as products with the reciprocal).
NONE = 1e-300


@jit
def occupancy(csr, pi, P, d, theta):
    """θ(s,a,s') = d(s) π(a|s) P(s'|s,a), d the probability of passing through s. Writes d and theta."""
    state_ptr, pair_ptr, successor = csr.state_ptr, csr.pair_ptr, csr.successor
    d[:] = 0.0
    d[0] = 1.0
    for s in range(state_ptr.size - 2):  # the last state has no actions
        for i in range(state_ptr[s], state_ptr[s + 1]):
            q = d[s] * pi[i]
            # unsigned: numba would otherwise allow for negative indices, which takes time
            for j in range(np.uint64(pair_ptr[i]), np.uint64(pair_ptr[i + 1])):
                theta[j] = q * P[j]
                d[np.uint32(successor[j])] += theta[j]


@jit
def policy_of(state_ptr, pair_ptr, theta, pi):
    """π(a|s) ∝ Σ_s' θ(s,a,s'), uniform over the actions of a state without mass. Writes pi."""
    for i in range(pi.size):
        q = 0.0
        for j in range(pair_ptr[i], pair_ptr[i + 1]):
            q += theta[j]
        pi[i] = q
    for s in range(state_ptr.size - 2):  # the last state has no actions
        first, last = state_ptr[s], state_ptr[s + 1]
        mass = 0.0
        for i in range(first, last):
            mass += pi[i]
        for i in range(first, last):
            pi[i] = pi[i] / mass if mass > NONE else 1.0 / (last - first)


@jit
def model_of(csr, theta, P):
    """P(s'|s,a) ∝ θ(s,a,s'), uniform over the successors of a pair without mass. Writes P."""
    for i in range(csr.pair_ptr.size - 1):
        first, last = csr.pair_ptr[i], csr.pair_ptr[i + 1]
        mass = 0.0
        for j in range(first, last):
            mass += theta[j]
        for j in range(first, last):
            P[j] = theta[j] / mass if mass > NONE else 1.0 / (last - first)
