"""Planning when each P(s'|s,a) is only known to lie between lower and upper.

Costs are per pair: r (n_pairs,), D (I, n_pairs). x(s,a) is the probability that an episode passes through (s,a).
"""

import numpy as np

from tightrope.kernels.compile import inlined, jit
from tightrope.planning.kernels.simplex import enter, first_to_leave, most_exceeded, price_rows, yields


@jit
def bernstein_intervals(csr, N, M, log_term, scale, lower, upper, radius):
    """[P̂ − β, P̂ + β] within [0, 1], β = min(scale (√(4 P̂ (1 − P̂) log_term / N) + 14 log_term / (3 N)), 1).

    N (n_pairs,) and M (n_tuples,) count visits, P̂ = M / N. A pair without visits is free; its β is as if N = 1.
    Writes lower, upper and radius(s,a) = Σ_s' β(s,a,s').
    """
    for i in range(N.size):
        n = max(N[i], 1)
        radius[i] = 0.0
        for j in range(csr.pair_ptr[i], csr.pair_ptr[i + 1]):
            P_hat = M[j] / n
            deviation = np.sqrt(max(4.0 * P_hat * (1.0 - P_hat) * log_term / n, 0.0))
            beta = min(scale * (deviation + 14.0 * log_term / (3.0 * n)), 1.0)
            radius[i] += beta
            lower[j] = max(P_hat - beta, 0.0) if N[i] > 0 else 0.0
            upper[j] = min(P_hat + beta, 1.0) if N[i] > 0 else 1.0


@inlined
def known(lower, upper, first, n):
    """Whether the bounds of the n tuples from `first` on leave nothing open."""
    j = first
    while j < first + n and lower[j] >= upper[j]:
        j += 1
    return j == first + n


@jit
def optimistic_actions(csr, lower, upper, r, V, best, p):
    """V(s) = min_a [r(s,a) + min_p Σ_s' p(s') V(s')], p between lower and upper; V = 0 at the last state.

    Writes V, best(s), the pair of s that attains the minimum (the first of equals), and p, the minimiser of every pair:
    what lower leaves of the mass goes to the successors of least V first.
    """
    layer_ptr, state_ptr, pair_ptr, successor = csr.layer_ptr, csr.state_ptr, csr.pair_ptr, csr.successor
    n_layers = layer_ptr.size - 2
    order = np.empty(V.size, dtype=np.int64)
    V[layer_ptr[n_layers]] = 0.0
    for k in range(n_layers - 1, -1, -1):
        below, width = layer_ptr[k + 1], layer_ptr[k + 2] - layer_ptr[k + 1]
        by_V = np.argsort(V[below : below + width])
        for s in range(layer_ptr[k], layer_ptr[k + 1]):
            for i in range(state_ptr[s], state_ptr[s + 1]):
                first, n = pair_ptr[i], pair_ptr[i + 1] - pair_ptr[i]
                q = r[i]
                if known(lower, upper, first, n):
                    for j in range(first, first + n):
                        p[j] = lower[j]
                        q += p[j] * V[successor[j]]
                else:
                    left = 1.0
                    for h in range(n):
                        left -= lower[first + h]
                        if n == width:
                            order[h] = by_V[h]
                        else:  # few of many: sort them by insertion
                            at = h
                            while at > 0 and V[successor[first + order[at - 1]]] > V[successor[first + h]]:
                                order[at] = order[at - 1]
                                at -= 1
                            order[at] = h
                    for h in range(n):
                        j = first + order[h]
                        more = max(min(upper[j] - lower[j], left), 0.0)
                        left -= more
                        p[j] = lower[j] + more
                        q += p[j] * V[successor[j]]
                if i == state_ptr[s] or q < V[s]:
                    V[s] = q
                    best[s] = i


@jit
def visits(csr, best, p, d, x):
    """x of the policy that takes the pair best(s) at s, under the model p. Writes d(s), the mass at s, and x."""
    d[:] = 0.0
    d[0] = 1.0
    x[:] = 0.0
    for s in range(best.size):
        i = best[s]
        x[i] = d[s]
        for j in range(csr.pair_ptr[i], csr.pair_ptr[i + 1]):
            d[csr.successor[j]] += d[s] * p[j]


@jit
def total(r, best, x):
    """<r, x> for the x of the policy that takes the pair best(s) at s."""
    value = 0.0
    for i in best:
        value += r[i] * x[i]
    return value


@jit
def column_of(D, best, x, column):
    """What a policy is to the simplex method: D x, and 1 for its weight. Writes column."""
    for h in range(D.shape[0]):
        column[h] = total(D[h], best, x)
    column[D.shape[0]] = 1.0


@jit
def best_mixture(csr, lower, upper, c, D, alpha, tolerance, max_pivots, multipliers, x):
    """min <c, x> over the x of all policies and all models between lower and upper with D x <= alpha.

    The simplex method on the I + 1 rows D x <= alpha and Σ_k w_k = 1, where x = Σ_k w_k x_k. Its columns are the
    deterministic policies, each with a model; a basis mixes at most I + 1 of them, and dynamic programming on c + λ D,
    λ the multipliers, finds the one of least reduced cost. If the policy that is best for c alone exceeds alpha, a
    column of relief, which allows every row the same excess, is in the basis and first driven out of it; if that cannot
    be, the answer is the x of least excess, and λ, which then sums to 1, proves it.

    Writes multipliers and x; returns whether it is the second case. After `max_pivots` it stops where it is.
    """
    n_rows, n_pairs = D.shape
    m = n_rows + 1
    n_states = csr.layer_ptr[csr.layer_ptr.size - 1]
    V, d, p = np.empty(n_states), np.empty(n_states), np.empty(lower.size)
    best, r, x_new = np.empty(n_states - 1, dtype=np.int64), c.copy(), np.empty(n_pairs)
    column, direction, price = np.empty(m), np.empty(m), np.empty(m)
    table, weight, cost, X = np.eye(m), np.ones(m), np.zeros(m), np.zeros((m, n_pairs))
    weight[:n_rows] = alpha

    optimistic_actions(csr, lower, upper, r, V, best, p)
    visits(csr, best, p, d, X[n_rows])
    cost[n_rows] = total(c, best, X[n_rows])
    column_of(D, best, X[n_rows], column)
    relief = most_exceeded(column, alpha, tolerance)
    yields(table, column, direction)
    enter(table, weight, direction, n_rows)
    if relief >= 0:
        column[:] = -1.0
        column[n_rows] = 0.0
        yields(table, column, direction)
        enter(table, weight, direction, relief)

    for _ in range(max_pivots):
        slack = price_rows(table, cost, relief, tolerance, price, multipliers)
        if slack >= 0:
            column[:], x_new[:] = 0.0, 0.0
            column[slack] = 1.0
        else:
            for i in range(n_pairs):
                r[i] = c[i] if relief < 0 else 0.0
                for h in range(n_rows):
                    r[i] += multipliers[h] * D[h, i]
            optimistic_actions(csr, lower, upper, r, V, best, p)
            if V[0] - price[n_rows] >= -tolerance:
                break
            visits(csr, best, p, d, x_new)
            column_of(D, best, x_new, column)
        yields(table, column, direction)
        leaving = first_to_leave(weight, direction, relief)
        if leaving < 0:
            break
        enter(table, weight, direction, leaving)
        cost[leaving] = total(c, best, x_new)
        X[leaving] = x_new
        if leaving == relief:
            relief = -1

    x[:] = 0.0
    for k in range(m):
        x += max(weight[k], 0.0) * X[k]
    return relief >= 0
