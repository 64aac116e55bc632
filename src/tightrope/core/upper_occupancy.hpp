// Upper occupancy bounds: how often a policy can pass a state, under the model of a box that makes it most often.
#pragma once

#include <numeric>
#include <vector>

#include "arithmetic.hpp"
#include "space.hpp"

namespace tightrope {

/// max_p Σ_s' p(s') reach(s') over lower <= p <= upper for the tuples first .. last of a pair: every s' gets its lower
/// bound, and the rest goes where reach is largest. `order` has the states of the next layer by falling reach.
inline double most_reached(const Space& space, Index first, Index last, const double* lower, const double* upper,
                           const double* reach, const std::vector<Index>& order) {
    double value = 0.0, left = 1.0;
    for (Index m = first; m < last; ++m) {
        value += lower[m] * reach[space.successor[m]];
        left -= lower[m];
    }
    const std::int32_t* const begin = space.successor + first;
    const std::int32_t* const end = space.successor + last;
    for (const Index s_next : order) {
        if (left <= 0.0 || reach[s_next] == 0.0) break;
        const std::int32_t* const found = std::lower_bound(begin, end, s_next);
        if (found == end || *found != s_next) continue;
        const Index m = found - space.successor;
        const double added = min(left, upper[m] - lower[m]);
        value += added * reach[s_next];
        left -= added;
    }
    return value;
}

/// u(k) = π(a_k|s_k) max over the models P in [lower, upper] of the probability to pass s_k (Comp-UOB).
///
/// `path` (L,) holds the tuple of each step k, from which s_k and a_k are read. For each s_k backwards from its layer,
///
///     reach(s) = Σ_a π(a|s) max_p Σ_s' p(s') reach(s'),      reach = 1 at s_k, 0 elsewhere in its layer.
///
/// The sets of the pairs do not depend on each other, so one model attains all these maxima for s_k. Writes u (L,).
inline void upper_occupancy(const Space& space, const double* pi, const double* lower, const double* upper,
                            const std::int64_t* path, double* u) {
    std::vector<double> reach(space.n_states);
    std::vector<Index> order;
    for (Index k = 0; k < space.n_layers; ++k) {
        const Index i = space.pair_of(path[k]);
        const Index target = std::upper_bound(space.state_ptr, space.state_ptr + space.n_states, i) - space.state_ptr - 1;
        std::fill(reach.begin(), reach.end(), 0.0);
        reach[target] = 1.0;
        for (Index layer = k - 1; layer >= 0; --layer) {
            order.resize(space.layer_ptr[layer + 2] - space.layer_ptr[layer + 1]);
            std::iota(order.begin(), order.end(), space.layer_ptr[layer + 1]);
            std::sort(order.begin(), order.end(), [&](Index a, Index b) {  // as integers: a total order, NaN included
                const auto x = std::bit_cast<std::int64_t>(reach[a]), y = std::bit_cast<std::int64_t>(reach[b]);
                return x > y || (x == y && a < b);
            });
            for (Index s = space.layer_ptr[layer]; s < space.layer_ptr[layer + 1]; ++s)
                for (Index j = space.state_ptr[s]; j < space.state_ptr[s + 1]; ++j)
                    if (pi[j] > 0.0)
                        reach[s] += pi[j] * most_reached(space, space.pair_ptr[j], space.pair_ptr[j + 1], lower, upper,
                                                         reach.data(), order);
        }
        u[k] = pi[i] * reach[0];
    }
}

}  // namespace tightrope
