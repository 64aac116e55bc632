"""Visits counted along paths, when an epoch is over, and what the counts say of the dynamics."""

import numpy as np

from tightrope.kernels.compile import jit

#: The most visits that an epoch may count: they are held in 32 bits.
FULL = 2**31 - 1


@jit
def count(pair_ptr, steps, N, growth, n, m):
    """Add one to n and m for every pair and tuple on the path.

    Returns whether some pair on it then has n >= max(1, growth · N), or as much as n can hold.
    """
    over = False
    for j in steps:
        i = np.searchsorted(pair_ptr, j, side="right") - 1
        n[i] += 1
        m[j] += 1
        over |= n[i] >= min(max(1.0, growth * N[i]), FULL)
    return over


@jit
def count_laws(pair_ptr, steps, law, N, growth, n):
    """Add one to n for the law of every step; returns whether one then has n >= max(1, growth · N), or FULL."""
    over = False
    for j in steps:
        i = law[np.searchsorted(pair_ptr, j, side="right") - 1]
        n[i] += 1
        over |= n[i] >= min(max(1.0, growth * N[i]), FULL)
    return over


@jit
def frequencies(pair_ptr, N, M, P_hat):
    """P̂(s'|s,a) = M(s,a,s') / max(1, N(s,a)). Writes P_hat."""
    for i in range(N.size):
        for j in range(pair_ptr[i], pair_ptr[i + 1]):
            P_hat[j] = M[j] / max(1, N[i])
