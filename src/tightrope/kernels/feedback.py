"""Whether losses and constraints keep to their bounds."""

from tightrope.kernels.compile import jit


@jit
def within(f, g, bound):
    """|f| <= bound and Σ_i max |g_i| <= bound; NaN is never within."""
    outside = 0  # counted, not left early: this loop vectorises
    for j in range(f.size):
        outside += 0 if abs(f[j]) <= bound else 1
    total = 0.0
    for i in range(g.shape[0]):
        low, high = 0.0, 0.0
        for j in range(g.shape[1]):
            outside += 0 if abs(g[i, j]) <= bound else 1
            low, high = min(low, g[i, j]), max(high, g[i, j])
        total += max(high, -low)
    return outside == 0 and total <= bound
