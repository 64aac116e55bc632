"""Visits counted along paths, when an epoch is over, and what the counts say of the dynamics."""

import numpy as np

from tightrope.kernels.compile import jit

#: The most visits that an epoch may count: they are held in 32 bits.
FULL = 2**31 - 1


@jit
def count_path(pair_ptr, steps, times, n, m):
    """Add `times` to the counts n and m of every pair and tuple on a path."""
    for j in steps:
        n[np.searchsorted(pair_ptr, j, side="right") - 1] += times
        m[j] += times


@jit
def epoch_is_over(pair_ptr, steps, N, n):
    """Whether some pair on a path has n >= max(1, N), or as much as n can hold."""
    for j in steps:
        i = np.searchsorted(pair_ptr, j, side="right") - 1
        if n[i] >= min(max(1, N[i]), FULL):
            return True
    return False


@jit
def frequencies(pair_ptr, N, M, P_hat):
    """P̂(s'|s,a) = M(s,a,s') / max(1, N(s,a)). Writes P_hat."""
    for i in range(N.size):
        for j in range(pair_ptr[i], pair_ptr[i + 1]):
            P_hat[j] = M[j] / max(1, N[i])
