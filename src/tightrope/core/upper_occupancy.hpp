// Upper occupancy bounds: how often a policy can pass a state, under the model of a box that makes it most often.
#pragma once

#include <algorithm>
#include <vector>

#include "planning.hpp"
#include "space.hpp"

namespace tightrope {

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
    const std::vector<double> nothing(space.n_pairs);
    BestInBox most_reached(space, lower, upper, 1.0, nothing.data(), nullptr);
    for (Index k = 0; k < space.n_layers; ++k) {
        const Index i = space.pair_of(path[k]);
        const Index target = std::upper_bound(space.state_ptr, space.state_ptr + space.n_states, i) - space.state_ptr - 1;
        std::fill(reach.begin(), reach.end(), 0.0);
        reach[target] = 1.0;
        backward(space, k, most_reached, Mean{pi}, reach.data());
        u[k] = pi[i] * reach[0];
    }
}

}  // namespace tightrope
