"""Extended value iteration: dynamic programming that picks the model, too, out of an L1 ball around the frequencies."""

import numpy as np

from tightrope.kernels.compile import jit


@jit
def extended_values(csr, P_hat, eps, cost, V, best):
    """V(s) = min_a min_p Σ_s' p(s') (cost(s,a,s') + V(s')) over ‖p − P̂(·|s,a)‖₁ <= ε(s,a). Writes V and best.

    best(s) is the pair of s that attains the minimum, the first one of equals; V = 0 at the last state. An ε of 2 or
    more leaves the pair free: P̂ is not looked at. Otherwise p takes ε/2 from the dearest successors to the cheapest.
    """
    layer_ptr, state_ptr, pair_ptr, successor = csr.layer_ptr, csr.state_ptr, csr.pair_ptr, csr.successor
    end = layer_ptr[layer_ptr.size - 2]
    V[end] = 0.0
    for s in range(end - 1, -1, -1):
        for i in range(state_ptr[s], state_ptr[s + 1]):
            first, last = pair_ptr[i], pair_ptr[i + 1]
            v = np.empty(last - first)
            cheapest, mean = 0, 0.0
            for r in range(v.size):
                v[r] = cost[first + r] + V[successor[first + r]]
                mean += P_hat[first + r] * v[r]
                if v[r] < v[cheapest]:
                    cheapest = r
            q = v[cheapest]
            if eps[i] < 2.0:
                q = mean
                left = min(0.5 * eps[i], 1.0 - P_hat[first + cheapest])
                if left > 0.0:
                    order = np.argsort(v)
                    for r in range(v.size - 1, 0, -1):
                        moved = min(left, P_hat[first + order[r]])
                        q -= moved * (v[order[r]] - v[cheapest])
                        left -= moved
                        if left <= 0.0:
                            break
            if i == state_ptr[s] or q < V[s]:
                V[s] = q
                best[s] = i
