"""What a policy can cost when each P(s'|s,a) is only known to lie between lower and upper."""

import numpy as np

from tightrope.kernels.compile import jit


@jit
def dearest_values(csr, lower, upper, pi, c, V):
    """V(s) = Σ_a π(a|s) [c(s,a) + max_p Σ_s' p(s') V(s')], p between lower and upper; V = 0 at the last state.

    Writes V. What lower leaves of the mass goes to the successors of largest V first.
    """
    V[V.size - 1] = 0.0
    for s in range(V.size - 2, -1, -1):
        V[s] = 0.0
        for i in range(csr.state_ptr[s], csr.state_ptr[s + 1]):
            first, end = csr.pair_ptr[i], csr.pair_ptr[i + 1]
            q, left = c[i], 1.0
            for j in range(first, end):
                left -= lower[j]
            order = np.argsort(-V[csr.successor[first:end]])
            for h in order:
                more = max(min(upper[first + h] - lower[first + h], left), 0.0)
                left -= more
                q += (lower[first + h] + more) * V[csr.successor[first + h]]
            V[s] += pi[i] * q
