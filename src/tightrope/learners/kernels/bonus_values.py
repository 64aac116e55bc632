"""Value iteration on the frequencies, made optimistic by a bonus for what was seen seldom (UCBVI-BF)."""

import numpy as np

from tightrope.kernels.compile import jit


@jit
def bonus_values(csr, n_losses, N, M, total_loss, iota, rare, scale, Q, V, best):
    """One backward pass over losses in [0, 1], whose values Q and V are to lie below the true ones:

        Q(s,a) ← max{ Q(s,a), ℓ̂ + Σ_s' P̂(s') V(s') − scale · (b + b_ℓ) },      V(s) = min_a Q(s,a),

        b  = sqrt(8 ι Var_P̂(V) / N) + 14 H ι / (3 N) + sqrt(8 Σ_s' P̂(s') min{rare / N(s'), H²} / N),
        b_ℓ = sqrt(ι / (2 N)),

    with P̂ = M / N, ℓ̂ = total_loss / n_losses and N(s') the visits of s'. Where pairs are tied, N and M count for all
    of them and n_losses, which is in b_ℓ too, for one. A pair never visited keeps its Q. Into the last
    state, whose V is 0 beyond doubt, b is 0. Writes Q (n_pairs,), V, and best(s), the first pair of s with the least Q.
    """
    layer_ptr, state_ptr, pair_ptr, successor = csr.layer_ptr, csr.state_ptr, csr.pair_ptr, csr.successor
    H = layer_ptr.size - 2
    end, last_layer = layer_ptr[H], layer_ptr[H - 1]
    visits = np.zeros(end)
    V[end] = 0.0
    for s in range(end - 1, -1, -1):
        for i in range(state_ptr[s], state_ptr[s + 1]):
            n = N[i]
            visits[s] += n
            if n_losses[i] > 0:
                mean, bonus = 0.0, np.sqrt(0.5 * iota / n_losses[i])
                if s < last_layer:
                    square, unsure = 0.0, 0.0
                    for j in range(pair_ptr[i], pair_ptr[i + 1]):
                        if M[j] > 0:
                            p, s_next = M[j] / n, successor[j]
                            mean += p * V[s_next]
                            square += p * V[s_next] ** 2
                            unsure += p * min(rare / visits[s_next], H**2)
                    bonus += np.sqrt(8.0 * iota * max(0.0, square - mean**2) / n)
                    bonus += 14.0 * H * iota / (3.0 * n)
                    bonus += np.sqrt(8.0 * unsure / n)
                Q[i] = max(Q[i], total_loss[i] / n_losses[i] + mean - scale * bonus)
            if i == state_ptr[s] or Q[i] < V[s]:
                V[s] = Q[i]
                best[s] = i
