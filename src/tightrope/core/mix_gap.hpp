// What an entropic step loses to its own mixture: the cost of having moved too far, or not far enough.
#pragma once

#include <vector>

#include "arithmetic.hpp"
#include "pool.hpp"
#include "space.hpp"

namespace tightrope {

/// Σ_k <θ, x>_k + (1/η) log Σ_j θ(j) e^{−η x(j)}, sums over the tuples j of layer k: at least 0, and η Var_θ(x) / 2 for
/// small η x.
inline double mix_gap(const Space& space, const double* theta, const double* x, double eta) {
    std::vector<double> gaps(space.n_layers);
    Pool(space.n_tuples).each(space.n_layers, [&](Index k, int) {
        const Index first = space.first_tuple(k), last = space.first_tuple(k + 1);
        double least = INF;
        for (Index j = first; j < last; ++j) least = min(x[j], least);
        double mass = 0.0, mean = 0.0, mixture = 0.0;
        for (Index j = first; j < last; ++j) {
            mass += theta[j];
            mean += theta[j] * (x[j] - least);
            mixture += theta[j] * exp(-eta * (x[j] - least));
        }
        gaps[k] = max(mean / mass + log(mixture / mass) / eta, 0.0);
    });
    double total = 0.0;
    for (const double gap : gaps) total += gap;
    return total;
}

}  // namespace tightrope
