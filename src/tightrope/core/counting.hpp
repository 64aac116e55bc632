// Visits counted along paths, when an epoch is over, and what the counts say of the dynamics.
#pragma once

#include "blocks.hpp"

namespace tightrope {

/// The most visits that an epoch may count: they are held in 32 bits.
inline constexpr double FULL = 2147483647.0;

/// Whether n visits inside the epoch, after N before it, end the epoch: n >= max(1, growth · N), or n is full.
inline bool ends_epoch(std::int64_t n, std::int64_t N, double growth) {
    return static_cast<double>(n) >= min(max(1.0, growth * static_cast<double>(N)), FULL);
}

/// Add one to n and m for every pair and tuple on the path; return whether some pair on it ends the epoch.
inline bool count(const Space& space, const std::int64_t* path, const std::int64_t* N, double growth, std::int32_t* n,
                  std::int32_t* m) {
    bool over = false;
    for (Index k = 0; k < space.n_layers; ++k) {
        const Index i = space.pair_of(path[k]);
        n[i] += 1;
        m[path[k]] += 1;
        over |= ends_epoch(n[i], N[i], growth);
    }
    return over;
}

/// Add one to n for the law of every step; return whether some law on the path ends the epoch.
inline bool count_laws(const Space& space, const std::int64_t* path, const std::int64_t* law, const std::int64_t* N,
                       double growth, std::int64_t* n) {
    bool over = false;
    for (Index k = 0; k < space.n_layers; ++k) {
        const Index i = law[space.pair_of(path[k])];
        n[i] += 1;
        over |= ends_epoch(n[i], N[i], growth);
    }
    return over;
}

/// P̂(s'|s,a) = M(s,a,s') / max(1, N(s,a)). Writes P_hat.
inline void frequencies(const Space& space, const std::int64_t* __restrict N, const std::int64_t* __restrict M,
                        double* __restrict P_hat) {
    in_state_blocks(space, state_blocks(space, 0, space.last_state()), [&](Index from, Index to, Index, int) {
        for (Index i = space.state_ptr[from]; i < space.state_ptr[to]; ++i) {
            const double visits = static_cast<double>(std::max<std::int64_t>(1, N[i]));
            for (Index j = space.pair_ptr[i]; j < space.pair_ptr[i + 1]; ++j)
                P_hat[j] = static_cast<double>(M[j]) / visits;
        }
    });
}

}  // namespace tightrope
