// Whether losses and constraints keep to their bounds.
#pragma once

#include "arithmetic.hpp"
#include "space.hpp"

namespace tightrope {

/// max |x|, NaN if one is. Without its sign bit a double is ordered like an integer, NaN above all others, and a maximum
/// of integers vectorises.
inline double largest(const double* __restrict x, Index n) {
    std::int64_t most = 0;
    for (Index j = 0; j < n; ++j) most = std::max(most, std::bit_cast<std::int64_t>(abs(x[j])));
    return std::bit_cast<double>(most);
}

/// |f| <= bound and Σ_i max |g_i| <= bound, for f (n,) and g (I, n); NaN is never within.
inline bool within(const double* f, const double* g, Index n_constraints, Index n, double bound) {
    double total = 0.0;
    for (Index i = 0; i < n_constraints; ++i) total += largest(g + i * n, n);
    return largest(f, n) <= bound && total <= bound;
}

}  // namespace tightrope
