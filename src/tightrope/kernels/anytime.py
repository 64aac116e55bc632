"""Radii that hold at all times at once: how far the likelihood of counts may exceed that under the true model.

For a law on d outcomes with counts M, N = ΣM, and the mixture of all laws with Jeffreys' prior (Krichevsky, Trofimov),

    KT(M) = Γ(d/2) / Γ(N + d/2) · Π Γ(M + ½) / Γ(½),

the ratio KT(M) / Π p^M is a martingale under p, so that with probability at least 1 − δ, for all N at once,

    KL(P̂‖p) <= r = ( log(1/δ) + log ML(M) − log KT(M) ) / N,      ML(M) = Π P̂^M.

Neither logarithm is formed, being of the order of N: of log Γ(M + ½) − M log M + M little is left.
"""

import math

import numpy as np

from tightrope.kernels.compile import jit

SERIES = 16  # from here on asymptotic series are exact to rounding
LOG_SQRT_PI = 0.5 * math.log(math.pi)
LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
LOG_SQRT_2 = 0.5 * math.log(2.0)
SMALL = np.array(
    [0.0] + [math.lgamma(m + 0.5) - m * math.log(m) + m - LOG_SQRT_PI for m in range(1, SERIES)]
)  # of `outcome_term`


@jit
def outcome_term(m):
    """log Γ(m + ½) − m log m + m − log Γ(½): from 0 at m = 0 up to log √2."""
    if m < SERIES:
        return SMALL[m]
    x = 1.0 / m
    q = x * x
    return LOG_SQRT_2 - x * (1.0 / 24.0 - q * (7.0 / 2880.0 - q * (31.0 / 40320.0 - q * (127.0 / 430080.0))))


@jit
def total_term(n, d):
    """log Γ(n + d/2) − n log n + n − log Γ(d/2), n >= 1."""
    h = 0.5 * d
    z = n + h
    if z < SERIES:
        return math.lgamma(z) - n * math.log(n) + n - math.lgamma(h)
    x = 1.0 / z
    q = x * x
    series = x * (1.0 / 12.0 - q * (1.0 / 360.0 - q * (1.0 / 1260.0 - q / 1680.0)))
    return n * math.log1p(h / n) - h + (h - 0.5) * math.log(z) + LOG_SQRT_2PI + series - math.lgamma(h)


@jit
def kl_radii(pair_ptr, N, M, log_inverse, scale, radius):
    """scale · r of every pair, with log(1/δ) given; inf without visits, and where there is one successor."""
    for i in range(N.size):
        d = pair_ptr[i + 1] - pair_ptr[i]
        radius[i] = np.inf
        if d > 1 and N[i] > 0:
            regret = log_inverse + total_term(N[i], d)
            for j in range(pair_ptr[i], pair_ptr[i + 1]):
                regret -= outcome_term(M[j])
            radius[i] = scale * regret / N[i]


@jit
def kl_bounds(pair_ptr, N, M, log_inverse, scale, lower, upper):
    """The p with kl(P̂(s')‖p) <= scale · r for every successor by itself: happens or not, d = 2.

    δ of a pair is shared among its successors; of two only one counts, since the other is the rest. Writes 0 and 1
    where there is nothing to bound.
    """
    for i in range(N.size):
        d = pair_ptr[i + 1] - pair_ptr[i]
        if d == 1 or N[i] == 0:
            lower[pair_ptr[i] : pair_ptr[i + 1]], upper[pair_ptr[i] : pair_ptr[i + 1]] = 0.0, 1.0
            continue
        common = log_inverse + (math.log(d) if d > 2 else 0.0) + total_term(N[i], 2)
        for j in range(pair_ptr[i], pair_ptr[i + 1]):
            r = scale * (common - outcome_term(M[j]) - outcome_term(N[i] - M[j])) / N[i]
            P, rest = M[j] / N[i], (N[i] - M[j]) / N[i]
            upper[j] = max(P, largest_within(P, rest, r))
            lower[j] = min(P, 1.0 - largest_within(rest, P, r))


@jit
def largest_within(P, rest, r):
    """The largest p with P log(P/p) + (1 − P) log((1 − P)/(1 − p)) <= r, where rest = 1 − P.

    Newton's method in t = log(p/(1 − p)), in which the left side is convex, and straight in the tails.
    """
    if P == 0.0:
        return -math.expm1(-r)
    if rest == 0.0 or r == 0.0:
        return P
    level = r - P * math.log(P) - rest * math.log(rest)
    t = math.log(P / rest) + math.sqrt(2.0 * r / (P * rest)) + r / rest
    for _ in range(50):
        over = math.log1p(math.exp(-abs(t))) + max(t, 0.0) - P * t - level
        slope = (1.0 / (1.0 + math.exp(-t)) if t > 0.0 else math.exp(t) / (1.0 + math.exp(t))) - P
        step = over / slope
        t -= step
        if abs(step) <= 1e-13 * (1.0 + abs(t)) or not slope > 0.0:
            break
    return 1.0 / (1.0 + math.exp(-t)) if t > 0.0 else math.exp(t) / (1.0 + math.exp(t))
