// Work in blocks for several threads. Blocks do not depend on how many threads there are, nor does what is summed.
#pragma once

#include <vector>

#include "arithmetic.hpp"
#include "pool.hpp"
#include "space.hpp"

namespace tightrope {

inline constexpr Index BLOCK = 1 << 15;  ///< Tuples in a block, about.

/// task(first, last) for consecutive ranges that make up 0 .. n, side by side.
template <class Task>
void in_blocks(Index n, const Task& task) {
    Pool(n).each((n + BLOCK - 1) / BLOCK, [&](Index i, int) { task(i * BLOCK, std::min((i + 1) * BLOCK, n)); });
}

/// Σ a[j] b[j]: the blocks' sums, added up in order.
inline double dot_in_blocks(const double* a, const double* b, Index n) {
    if (n <= BLOCK) return dot(a, b, n);
    std::vector<double> parts((n + BLOCK - 1) / BLOCK);
    in_blocks(n, [&](Index first, Index last) { parts[first / BLOCK] = dot(a + first, b + first, last - first); });
    double total = 0.0;
    for (const double part : parts) total += part;
    return total;
}

/// Consecutive states from..to cut into blocks of whole states, of at least BLOCK tuples but for the last: the first
/// state of each block, and `to`.
inline std::vector<Index> state_blocks(const Space& space, Index from, Index to) {
    std::vector<Index> cuts{from};
    for (Index s = from + 1; s < to; ++s)
        if (space.pair_ptr[space.state_ptr[s]] - space.pair_ptr[space.state_ptr[cuts.back()]] >= BLOCK) cuts.push_back(s);
    cuts.push_back(to);
    return cuts;
}

/// task(first, last, block, worker) for the blocks of states that `cuts` bound, side by side. Tasks must not throw: what
/// they need room for is allocated before, for each of the `workers`.
template <class Task>
void in_state_blocks(const Space& space, const std::vector<Index>& cuts, const Task& task) {
    Pool(space.n_tuples).each(static_cast<Index>(cuts.size()) - 1,
                              [&](Index i, int worker) { task(cuts[i], cuts[i + 1], i, worker); });
}

/// The most tuples that a block of states of one layer has.
inline Index longest_block(const Space& space) {
    Index longest = space.widest_layer();
    if (longest <= BLOCK) return longest;
    longest = 0;
    for (Index k = 0; k < space.n_layers; ++k) {
        const std::vector<Index> cuts = state_blocks(space, space.layer_ptr[k], space.layer_ptr[k + 1]);
        for (std::size_t i = 1; i < cuts.size(); ++i)
            longest = std::max(longest, space.pair_ptr[space.state_ptr[cuts[i]]] - space.pair_ptr[space.state_ptr[cuts[i - 1]]]);
    }
    return longest;
}

/// Room for each worker: n numbers, all 0.
inline std::vector<std::vector<double>> room_for_workers(const Space& space, Index n) {
    return std::vector<std::vector<double>>(Pool(space.n_tuples).workers(), std::vector<double>(n));
}

}  // namespace tightrope
