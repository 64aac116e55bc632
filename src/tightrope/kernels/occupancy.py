"""Occupancy measures: from a policy and a model, and back."""

from tightrope.kernels.compile import jit

#: No mass: below this, 1 / mass is no number (divisions may be compiled as products with the reciprocal).
NONE = 1e-300


@jit
def occupancy(csr, pi, P, d, theta):
    """θ(s,a,s') = d(s) π(a|s) P(s'|s,a), d the probability of passing through s. Writes d and theta."""
    d[:] = 0.0
    d[0] = 1.0
    for s in range(csr.layer_ptr[csr.layer_ptr.size - 2]):
        for i in range(csr.state_ptr[s], csr.state_ptr[s + 1]):
            q = d[s] * pi[i]
            for j in range(csr.pair_ptr[i], csr.pair_ptr[i + 1]):
                theta[j] = q * P[j]
                d[csr.successor[j]] += theta[j]


@jit
def policy_of(csr, theta, pi):
    """π(a|s) ∝ Σ_s' θ(s,a,s'), uniform over the actions of a state without mass. Writes pi."""
    for s in range(csr.layer_ptr[csr.layer_ptr.size - 2]):
        first, last = csr.state_ptr[s], csr.state_ptr[s + 1]
        mass = 0.0
        for i in range(first, last):
            q = 0.0
            for j in range(csr.pair_ptr[i], csr.pair_ptr[i + 1]):
                q += theta[j]
            pi[i] = q
            mass += q
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
