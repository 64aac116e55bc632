"""What the policy just played costs, as far as that is known, and how it answers to prices."""

import numpy as np

from tightrope.kernels.arithmetic import dot
from tightrope.kernels.compile import jit
from tightrope.kernels.occupancy import NONE, occupancy


@jit
def believe(pair_ptr, N, M, theta, P):
    """P(s'|s,a) = (M(s,a,s') + p(s'|s,a)) / (N(s,a) + 1), p the conditionals of θ: counts, and one visit's worth of θ.

    A pair without visits is believed to lead where θ has it lead. Writes P.
    """
    for i in range(N.size):
        first, last = pair_ptr[i], pair_ptr[i + 1]
        mass = 0.0
        for j in range(first, last):
            mass += theta[j]
        for j in range(first, last):
            p = theta[j] / mass if mass > NONE else 1.0 / (last - first)
            P[j] = (M[j] + p) / (N[i] + 1)


@jit
def uses(csr, pi, P, g, d, theta, use):
    """<g_i, θ> for every i, θ the occupancy measure of the policy under P. Writes d, theta and use."""
    occupancy(csr, pi, P, d, theta)
    for i in range(use.size):
        use[i] = dot(g[i], 0, theta, 0, theta.size)


@jit
def responses(csr, pi, P, g, d, V, A):
    """A_i = Σ_s d(s) Var_{a~π}(Q_i(s,a)), Q_i what g_i costs from (s,a) on: how fast <g_i, θ> falls with its own price.

    For π'(a|s) ∝ π(a|s) e^{−x Q_i(s,a)}, −A_i is the derivative of <g_i, θ> in x at 0. d is the probability of passing
    through each state (`uses`). Writes V and A.
    """
    state_ptr, pair_ptr, successor = csr.state_ptr, csr.pair_ptr, csr.successor
    end = state_ptr.size - 2
    for i in range(A.size):
        A[i], V[end] = 0.0, 0.0
        for s in range(end - 1, -1, -1):
            mean, square = 0.0, 0.0
            for k in range(state_ptr[s], state_ptr[s + 1]):
                q = 0.0
                for j in range(pair_ptr[k], pair_ptr[k + 1]):
                    q += P[j] * (g[i, j] + V[successor[j]])
                mean += pi[k] * q
                square += pi[k] * q * q
            V[s] = mean
            A[i] += d[s] * max(square - mean * mean, 0.0)


@jit
def from_least(tuples_before, f, out):
    """out = f − the least f of the layer, which changes no choice; returns the largest of it, and Σ_k of the least."""
    most, least = 0.0, 0.0
    for k in range(tuples_before.size - 1):
        low, high = np.inf, -np.inf
        for j in range(tuples_before[k], tuples_before[k + 1]):
            low, high = min(low, f[j]), max(high, f[j])
        for j in range(tuples_before[k], tuples_before[k + 1]):
            out[j] = f[j] - low
        most, least = max(most, high - low), least + low
    return most, least
