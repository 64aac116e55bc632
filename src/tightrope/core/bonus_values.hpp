// Value iteration on the frequencies, made optimistic by a bonus for what was seen seldom (UCBVI-BF).
#pragma once

#include <vector>

#include "arithmetic.hpp"
#include "space.hpp"

namespace tightrope {

/// What was counted at the pairs. Where pairs are tied, N and M count for all of them and n_losses for one.
struct Visits {
    const std::int64_t* n_losses;  // (n_pairs,)
    const std::int64_t* N;         // (n_pairs,)
    const std::int64_t* M;         // (n_tuples,)
    const double* total_loss;      // (n_pairs,)
};

/// One backward pass over losses in [0, 1], whose values Q and V are to lie below the true ones:
///
///     Q(s,a) ← max{ Q(s,a), ℓ̂ + Σ_s' P̂(s') V(s') − scale · (b + b_ℓ) },      V(s) = min_a Q(s,a),
///
///     b   = sqrt(8 ι Var_P̂(V) / N) + 14 H ι / (3 N) + sqrt(8 Σ_s' P̂(s') min{rare / N(s'), H²} / N),
///     b_ℓ = sqrt(ι / (2 n_losses)),
///
/// with P̂ = M / N, ℓ̂ = total_loss / n_losses and N(s') the visits of s'. A pair without losses keeps its Q. For steps
/// into the last state, whose V is 0 beyond doubt, b is 0. Writes Q (n_pairs,), and best(s), the first pair of s with the
/// least Q.
inline void bonus_values(const Space& space, const Visits& seen, double iota, double rare, double scale, double* Q,
                         std::int64_t* best) {
    const double H = static_cast<double>(space.n_layers);
    const Index last_layer = space.layer_ptr[space.n_layers - 1];
    std::vector<double> V(space.n_states), visits(space.n_states);
    for (Index s = space.last_state() - 1; s >= 0; --s)
        for (Index i = space.state_ptr[s]; i < space.state_ptr[s + 1]; ++i) {
            const double n = static_cast<double>(seen.N[i]), n_losses = static_cast<double>(seen.n_losses[i]);
            visits[s] += n;
            if (n_losses > 0) {
                double mean = 0.0, bonus = sqrt(0.5 * iota / n_losses);
                if (s < last_layer) {
                    double square = 0.0, unsure = 0.0;
                    for (Index j = space.pair_ptr[i]; j < space.pair_ptr[i + 1]; ++j) {
                        if (seen.M[j] <= 0) continue;
                        const double p = static_cast<double>(seen.M[j]) / n, v = V[space.successor[j]];
                        mean += p * v;
                        square += p * (v * v);
                        unsure += p * min(rare / visits[space.successor[j]], H * H);
                    }
                    bonus += sqrt(8.0 * iota * max(square - mean * mean, 0.0) / n);
                    bonus += 14.0 * H * iota / (3.0 * n);
                    bonus += sqrt(8.0 * unsure / n);
                }
                Q[i] = max(seen.total_loss[i] / n_losses + mean - scale * bonus, Q[i]);
            }
            if (i == space.state_ptr[s] || Q[i] < V[s]) {
                V[s] = Q[i];
                best[s] = i;
            }
        }
}

}  // namespace tightrope
