// Whether losses and constraints keep to their bounds.
#pragma once

#include "blocks.hpp"

namespace tightrope {

/// max |x|, NaN if one is. Without its sign bit a double is ordered like an integer, NaN above all others, and a maximum
/// of integers vectorises.
inline double largest(const double* __restrict x, Index n) {
    std::int64_t most = 0;
    for (Index j = 0; j < n; ++j) most = std::max(most, std::bit_cast<std::int64_t>(abs(x[j])));
    return std::bit_cast<double>(most);
}

/// The same, in blocks side by side.
inline double largest_in_blocks(const double* x, Index n) {
    if (n <= BLOCK) return largest(x, n);
    std::vector<double> parts((n + BLOCK - 1) / BLOCK);
    in_blocks(n, [&](Index first, Index last) { parts[first / BLOCK] = largest(x + first, last - first); });
    return largest(parts.data(), static_cast<Index>(parts.size()));
}

/// |f| <= bound and Σ_i max |g_i| <= bound, for f (n,) and g (I, n); NaN is never within.
inline bool within(const double* f, const double* g, Index n_constraints, Index n, double bound) {
    double total = 0.0;
    for (Index i = 0; i < n_constraints; ++i) total += largest_in_blocks(g + i * n, n);
    return largest_in_blocks(f, n) <= bound && total <= bound;
}

}  // namespace tightrope
