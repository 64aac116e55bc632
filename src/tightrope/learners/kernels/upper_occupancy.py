"""Upper occupancy bounds: how often a policy can pass a state, under the model of a box that makes it most often."""

import numpy as np

from tightrope.kernels.compile import jit


@jit
def upper_occupancy(csr, pi, lower, upper, path, reach, u):
    """u(k) = π(a_k|s_k) max over the models P in [lower, upper] of the probability to pass s_k (Comp-UOB).

    `path` (L,) holds the tuple of each step k, from which s_k and a_k are read. For each s_k backwards from its layer,

        reach(s) = Σ_a π(a|s) max_p Σ_s' p(s') reach(s'),      reach = 1 at s_k, 0 elsewhere in its layer,

    and the largest value is found greedily: every s' gets its lower bound, the rest goes where reach is largest. The
    sets of the pairs do not depend on each other, so one model attains all these maxima for s_k. Writes reach and u.
    """
    layer_ptr, state_ptr, pair_ptr, successor = csr.layer_ptr, csr.state_ptr, csr.pair_ptr, csr.successor
    for k in range(path.size):
        i = np.searchsorted(pair_ptr, path[k], side="right") - 1
        target = np.searchsorted(state_ptr, i, side="right") - 1
        reach[layer_ptr[k] : layer_ptr[k + 1]] = 0.0
        reach[target] = 1.0
        for layer in range(k - 1, -1, -1):
            begin = layer_ptr[layer + 1]
            order = np.argsort(-reach[begin : layer_ptr[layer + 2]])
            for s in range(layer_ptr[layer], layer_ptr[layer + 1]):
                total = 0.0
                for j in range(state_ptr[s], state_ptr[s + 1]):
                    if pi[j] > 0.0:
                        first, last = pair_ptr[j], pair_ptr[j + 1]
                        value, left = 0.0, 1.0
                        for m in range(first, last):
                            value += lower[m] * reach[successor[m]]
                            left -= lower[m]
                        for r in range(order.size):
                            s_next = begin + order[r]
                            if left <= 0.0 or reach[s_next] == 0.0:
                                break
                            m = first + np.searchsorted(successor[first:last], s_next)
                            if m < last and successor[m] == s_next:
                                added = min(left, upper[m] - lower[m])
                                value += added * reach[s_next]
                                left -= added
                        total += pi[j] * value
                reach[s] = total
        u[k] = pi[i] * reach[0]
