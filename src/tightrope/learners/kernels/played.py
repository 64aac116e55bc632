"""What the policy just played costs, as far as that is known, and how it answers to prices."""

import numpy as np

from tightrope.kernels.arithmetic import dot
from tightrope.kernels.compile import jit
from tightrope.kernels.occupancy import NONE, occupancy

LEAST_RESPONSE = 1e-5  # added to every A_ii: of a use to its own price, in shares of the constraint's span squared
ROUNDING, SMALLEST = 1e-13, 1e-290  # spans that are nothing: relative, and what is too small to divide by
SWEEPS = 1000  # of coordinate descent, at the most; one is enough for one budget
EXACT = 1e-12  # relative change of prices at which it has converged


@jit
def believe(pair_ptr, N, M, theta, P):
    """P(s'|s,a) = (M(s,a,s') + d p(s'|s,a)) / (N(s,a) + d): the counts, and d visits' worth of θ's conditionals p.

    d is the number of successors. A pair without visits is believed to lead where θ has it lead. Writes P.
    """
    for i in range(N.size):
        first, last = pair_ptr[i], pair_ptr[i + 1]
        d, mass = last - first, 0.0
        for j in range(first, last):
            mass += theta[j]
        for j in range(first, last):
            p = theta[j] / mass if mass > NONE else 1.0 / d
            P[j] = (M[j] + d * p) / (N[i] + d)


@jit
def uses(csr, pi, P, g, d, theta, use):
    """<g_i, θ> for every i, θ the occupancy measure of the policy under P. Writes d, theta and use."""
    occupancy(csr, pi, P, d, theta)
    for i in range(use.size):
        use[i] = dot(g[i], 0, theta, 0, theta.size)


@jit
def responses(csr, pi, P, f, g, realism, d, V, b, A):
    """How fast the use of each budget falls as losses and prices are paid attention to: b (I,) and A (I, I).

        A_ij = Σ_s d(s) Cov_{a~π}(Q_i(s,a), Q_j(s,a)),      b_i = the same of Q_i and Q_f,

    Q_i and Q_f what g_i and f cost from (s,a) on. For π'(a|s) ∝ π(a|s) e^{−η (Q_f + Σ_j w_j Q_j)}, the derivative of
    <g_i, θ> in η at 0 is −(b + A w)_i. d is the probability of passing through each state (`uses`). Writes V (1 + I,
    n_states), b and A, and in place of g_i what is charged: r (Q_i(s,a) − V_i(s)) + (1 − r) g_i, r the realism.
    """
    state_ptr, pair_ptr, successor = csr.state_ptr, csr.pair_ptr, csr.successor
    end, n = state_ptr.size - 2, b.size
    q, moments = np.empty(n + 1), np.empty((n + 1, n))
    b[:], A[:], V[:, end] = 0.0, 0.0, 0.0
    for s in range(end - 1, -1, -1):
        V[:, s] = 0.0
        moments[:] = 0.0
        for k in range(state_ptr[s], state_ptr[s + 1]):
            q[:] = 0.0
            for j in range(pair_ptr[k], pair_ptr[k + 1]):
                q[n] += P[j] * (f[j] + V[n, successor[j]])
                for i in range(n):
                    q[i] += P[j] * (g[i, j] + V[i, successor[j]])
            for h in range(n + 1):
                V[h, s] += pi[k] * q[h]
                for i in range(n):
                    moments[h, i] += pi[k] * q[h] * q[i]
            for i in range(n):
                for j in range(pair_ptr[k], pair_ptr[k + 1]):
                    g[i, j] = realism * q[i] + (1 - realism) * g[i, j]
        for i in range(n):
            for j in range(pair_ptr[state_ptr[s]], pair_ptr[state_ptr[s + 1]]):
                g[i, j] -= realism * V[i, s]
            b[i] += d[s] * (moments[n, i] - V[n, s] * V[i, s])
            for h in range(n):
                A[h, i] += d[s] * (moments[h, i] - V[h, s] * V[i, s])


@jit
def least_prices(A, v, w):
    """argmin over w >= 0 of ½ wᵀ A w − v·w by coordinate descent, A positive definite. Writes w."""
    w[:] = 0.0
    for _ in range(SWEEPS):
        moved, largest = 0.0, 0.0
        for i in range(w.size):
            rest = v[i]
            for j in range(w.size):
                rest -= A[i, j] * w[j] if j != i else 0.0
            better = max(rest / A[i, i], 0.0)
            moved = max(moved, abs(better - w[i]))
            w[i], largest = better, max(largest, better)
        if moved <= EXACT * largest:
            break


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


@jit
def in_spans(tuples_before, g, budgets, costs, limits, units):
    """g_i and c_i from the least of each layer, in shares of the span of g_i, and that span: 1 where it is nothing."""
    for i in range(budgets.size):
        span, least = from_least(tuples_before, g[i], costs[i])
        largest = 0.0
        for j in range(costs.shape[1]):
            largest = max(largest, abs(g[i, j]))
        nothing = span <= ROUNDING * largest or span < SMALLEST  # no policy makes a difference
        units[i] = 1.0 if nothing else span
        for j in range(costs.shape[1]):
            costs[i, j] = 0.0 if nothing else costs[i, j] / span
        limits[i] = (budgets[i] - least) / units[i]


@jit
def assess(csr, pi, N, M, theta, loss, costs, realism, limits, over, b, A):
    """By how much the policy is over each limit, as far as is known, and its responses.

    Writes over, b and A, and in place of the costs what is charged (`responses`).
    """
    n, n_states = limits.size, csr.state_ptr.size - 1
    P, measure, d, V = np.empty(theta.size), np.empty(theta.size), np.empty(n_states), np.empty((n + 1, n_states))
    believe(csr.pair_ptr, N, M, theta, P)
    uses(csr, pi, P, costs, d, measure, over)
    responses(csr, pi, P, loss, costs, realism, d, V, b, A)
    for i in range(n):
        over[i] -= limits[i]
        A[i, i] += LEAST_RESPONSE
