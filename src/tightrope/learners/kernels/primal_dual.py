"""Algorithm 1 around its subproblem: what goes into it, and the multipliers after it."""

import numpy as np

from tightrope.kernels.arithmetic import dot
from tightrope.kernels.compile import jit
from tightrope.kernels.occupancy import NONE


@jit
def weigh(V, f, Q, g, alpha, psi):
    """ψ/α = (V f + Σ_i Q_i g_i) / α. Writes psi, which may be f."""
    weight = V / alpha
    for j in range(f.size):
        psi[j] = weight * f[j]
    for i in range(Q.size):
        weight = Q[i] / alpha
        for j in range(f.size):
            psi[j] += weight * g[i, j]


@jit
def mix(tuples_before, theta, lam, reference):
    """θ̃ = (1 − λ) θ + λ uniform, uniform on the tuples of every layer. Writes reference."""
    for k in range(tuples_before.size - 1):
        here = slice(tuples_before[k], tuples_before[k + 1])
        chosen, mixed = theta[here], reference[here]
        for j in range(chosen.size):
            mixed[j] = (1.0 - lam) * chosen[j] + lam / chosen.size


@jit
def mix_pairs(pair_ptr, theta, lam, even, reference):
    """(1 − λ) θ + λ even, of which every successor of a pair i has even[i]. Writes reference."""
    for i in range(pair_ptr.size - 1):
        for j in range(pair_ptr[i], pair_ptr[i + 1]):
            reference[j] = (1.0 - lam) * theta[j] + lam * even[i]


@jit
def lift(csr, theta, floor, reference):
    """θ with `floor` of its layer in every state at the least, and `floor` of its state in every tuple.

    A state is lifted whole, so that what is played there stays as it was. Writes reference.
    """
    for s in range(csr.state_ptr.size - 2):  # the last state has no actions
        first, last = csr.pair_ptr[csr.state_ptr[s]], csr.pair_ptr[csr.state_ptr[s + 1]]
        mass = 0.0
        for j in range(first, last):
            mass += theta[j]
        scale = floor / mass if NONE < mass < floor else 1.0
        least = floor * max(mass, floor)
        for j in range(first, last):
            reference[j] = max(scale * theta[j], least)


@jit
def dual_step(Q, g, theta, c):
    """max{Q_i + <g_i, θ> − c_i, 0} for every i."""
    ahead = np.empty(Q.size)
    for i in range(Q.size):
        ahead[i] = max(Q[i] + dot(g[i], 0, theta, 0, theta.size) - c[i], 0.0)
    return ahead
