// Cholesky for symmetric positive definite block-tridiagonal matrices with dense blocks, in place.
//
// The rows of layer k, n states, form one panel of n × (n + m) numbers, row-major: the layer's own block (upper
// triangle), then the block towards the m states of layer k + 1. Layers 0 .. L − 1 take part; m = 0 for the last.
#pragma once

#include <vector>

#include "arithmetic.hpp"
#include "pool.hpp"
#include "products.hpp"
#include "space.hpp"

namespace tightrope {

inline constexpr double TINY = 1e-290;  ///< Added to pivots: a state without mass has a row of 0, or by rounding less.

/// The panels of a block-tridiagonal matrix, or of its factor.
struct Panels {
    std::vector<Index> sizes;     ///< (L,) states of each layer
    std::vector<Index> starts;    ///< (L + 1,) where the panel of each layer begins in `values`
    std::vector<double> values;   ///< and OVERREAD numbers of no meaning

    Panels() = default;

    explicit Panels(std::vector<Index> layer_sizes) : sizes(std::move(layer_sizes)), starts{0} {
        for (Index k = 0; k < layers(); ++k) starts.push_back(starts[k] + sizes[k] * width(k));
        values.assign(starts.back() + OVERREAD, 0.0);
    }

    Index size() const { return starts.empty() ? 0 : starts.back(); }
    Index layers() const { return static_cast<Index>(sizes.size()); }
    bool empty() const { return sizes.empty(); }
    Index width(Index k) const { return sizes[k] + (k + 1 < layers() ? sizes[k + 1] : 0); }
    double* panel(Index k) { return values.data() + starts[k]; }
    const double* panel(Index k) const { return values.data() + starts[k]; }
};

/// row[j] −= Σ_i U[i, column] U[i, j] for first <= j < last; U has `count` rows of `width`.
TIGHTROPE_INLINE void subtract_rows(const double* __restrict U, Index width, Index count, Index column,
                                    double* __restrict row, Index first, Index last) {
    Index i = 0;
    for (; i + 4 <= count; i += 4) {
        const double *u0 = U + i * width, *u1 = u0 + width, *u2 = u1 + width, *u3 = u2 + width;
        const double f0 = -u0[column], f1 = -u1[column], f2 = -u2[column], f3 = -u3[column];
        for (Index j = first; j < last; ++j) {
            const double x = fma(f0, u0[j], fma(f1, u1[j], row[j]));
            row[j] = fma(f2, u2[j], fma(f3, u3[j], x));
        }
    }
    for (; i < count; ++i) {
        const double* u0 = U + i * width;
        const double f0 = u0[column];
        for (Index j = first; j < last; ++j) row[j] -= f0 * u0[j];
    }
}

/// row(i)[j] −= Σ_l U[l, i] U[l, j] over `count` rows of U, for first <= i < last and i <= j, begin <= j < end.
template <class Row>
void subtract_products(const double* U, Index width, Index count, Index first, Index last, Index begin, Index end,
                       const Row& row) {
    if (count == 0) return;
    each_tile(
        first, last, begin, end, [&](Tile& tile, Index i, Index j) { tile.add<1>(U, width, count, i, j); },
        [&](Index i, Index from, Index until, const double* __restrict sums) {
            double* __restrict to = row(i);
            for (Index j = from; j < until; ++j) to[j] -= sums[j];
        });
}

/// H = Uᵀ U: overwrite every panel by its rows of U, with the reciprocals of the diagonal.
inline void factorise(Panels& panels, const Pool& pool) {
    constexpr Index BLOCK = 8;     // rows that are finished together
    constexpr Index COLUMNS = 64;  // for one thread at a time
    for (Index k = 0; k < panels.layers(); ++k) {
        const Index n = panels.sizes[k], width = panels.width(k);
        double* __restrict U = panels.panel(k);
        for (Index block = 0; block < n; block += BLOCK) {
            const Index end = std::min(block + BLOCK, n);
            pool.ranges(block, width, COLUMNS, [&](Index from, Index until) {
                subtract_products(U, width, block, block, end, from, until, [&](Index i) { return U + i * width; });
            });
            for (Index r = block; r < end; ++r) {
                double* __restrict row = U + r * width;
                subtract_rows(U + block * width, width, r - block, r, row, r, width);
                const double pivot = 1.0 / sqrt(max(row[r], 0.0) + TINY);
                for (Index j = r + 1; j < width; ++j) row[j] *= pivot;
                row[r] = pivot;
            }
        }
        if (n == width) continue;
        const Index below = panels.width(k + 1);  // the next layer's block loses Bᵀ H⁻¹ B
        double* next = panels.panel(k + 1);
        pool.ranges(n, width, BLOCK, [&](Index from, Index until) {
            subtract_products(U, width, n, from, until, from, width, [&](Index i) { return next + (i - n) * below - n; });
        });
    }
}

/// Overwrite the right-hand side x (by state) with H⁻¹ x, given the factor.
inline void solve(const Panels& panels, double* __restrict x) {
    double* from = x;
    for (Index k = 0; k < panels.layers(); ++k) {
        const Index n = panels.sizes[k], width = panels.width(k);
        for (Index r = 0; r < n; ++r) {
            const double* __restrict row = panels.panel(k) + r * width;
            const double f = from[r] * row[r];
            from[r] = f;
            for (Index j = r + 1; j < width; ++j) from[j] = fma(-f, row[j], from[j]);
        }
        from += n;
    }
    for (Index k = panels.layers() - 1; k >= 0; --k) {
        const Index n = panels.sizes[k], width = panels.width(k);
        from -= n;
        for (Index r = n - 1; r >= 0; --r) {
            const double* row = panels.panel(k) + r * width;
            from[r] = (from[r] - dot(row + r + 1, from + r + 1, width - r - 1)) * row[r];
        }
    }
}

}  // namespace tightrope
