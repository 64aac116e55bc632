"""Whether losses and constraints keep to their bounds."""

import numpy as np

from tightrope.kernels.compile import jit

#: All bits of a float64 but its sign. What they leave is ordered, as whole numbers, like |x|, and NaN is above all.
MAGNITUDE = np.int64(0x7FFF_FFFF_FFFF_FFFF)


@jit
def within(f, g, bound):
    """|f| <= bound and Σ_i max |g_i| <= bound; NaN is never within."""
    total = 0.0
    for i in range(g.shape[0]):
        total += largest(g[i])
    return largest(f) <= bound and total <= bound


@jit
def largest(values):
    """max |values|, NaN if one is; of whole numbers, since this loop vectorises."""
    bits = values.view(np.int64)
    most = np.int64(0)
    for j in range(bits.size):
        most = max(most, bits[j] & MAGNITUDE)
    return np.int64(most).view(np.float64)
