"""Backward dynamic programming on a layered model."""

from tightrope.kernels.compile import jit


@jit
def best_actions(csr, P, f, V, best):
    """V(s) = min_a Σ_s' P(s'|s,a) (f(s,a,s') + V(s')), V = 0 at the last state. Writes V and best.

    best(s) is the pair of s that attains the minimum, the first one of equals.
    """
    end = csr.layer_ptr[csr.layer_ptr.size - 2]
    V[end] = 0.0
    for s in range(end - 1, -1, -1):
        for i in range(csr.state_ptr[s], csr.state_ptr[s + 1]):
            q = 0.0
            for j in range(csr.pair_ptr[i], csr.pair_ptr[i + 1]):
                q += P[j] * (f[j] + V[csr.successor[j]])
            if i == csr.state_ptr[s] or q < V[s]:
                V[s] = q
                best[s] = i
