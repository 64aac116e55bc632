// Sums of products of rows, Σ_l A[l, i] A[l, j]: the bulk of a dense Hessian and of its factor.
//
// A tile of them is kept in registers while l runs over the rows. Each sum has one order, that of the rows, whatever the
// size of a tile: a tile may differ between machines, the bits do not.
#pragma once

#include <algorithm>

#include "arithmetic.hpp"
#include "space.hpp"

namespace tightrope {

#if defined(__AVX512F__)
inline constexpr Index TILE_ROWS = 8, TILE_EIGHTS = 2;
#else
inline constexpr Index TILE_ROWS = 4, TILE_EIGHTS = 1;
#endif
inline constexpr Index TILE_COLUMNS = 8 * TILE_EIGHTS;
inline constexpr Index OVERREAD = 16;  ///< Numbers that may be read, and are not used, beyond the end of A.

/// The sums for i .. i + TILE_ROWS and j .. j + TILE_COLUMNS.
struct Tile {
    Eight sums[TILE_ROWS][TILE_EIGHTS] = {};

    /// Add the products of `count` rows of A, which are `width` apart; sign −1 subtracts them.
    template <int sign>
    TIGHTROPE_INLINE void add(const double* __restrict A, Index width, Index count, Index i, Index j) {
        for (Index l = 0; l < count; ++l) {
            const double* __restrict row = A + l * width;
            Eight right[TILE_EIGHTS];
#pragma GCC unroll 8
            for (Index e = 0; e < TILE_EIGHTS; ++e) right[e] = load_eight(row + j + 8 * e);
#pragma GCC unroll 8
            for (Index r = 0; r < TILE_ROWS; ++r) {
                const Eight left = eight_of(sign * row[i + r]);
#pragma GCC unroll 8
                for (Index e = 0; e < TILE_EIGHTS; ++e) sums[r][e] = fma(left, right[e], sums[r][e]);
            }
        }
    }
};

/// Tile by tile, the sums of rows first .. last and columns begin .. end, from the diagonal on: i <= j.
///
/// compute(tile, i, j) makes a tile, add(i, from, until, sums) takes from it sums[j] for row i and from <= j < until.
template <class Compute, class Add>
TIGHTROPE_INLINE void each_tile(Index first, Index last, Index begin, Index end, const Compute& compute,
                                const Add& add) {
    for (Index i = first; i < last; i += TILE_ROWS)
        for (Index j = std::max(i, begin); j < end; j += TILE_COLUMNS) {
            Tile tile;
            compute(tile, i, j);
            double sums[TILE_ROWS][TILE_COLUMNS];
            for (Index r = 0; r < TILE_ROWS; ++r)
                for (Index e = 0; e < TILE_EIGHTS; ++e) store_eight(sums[r] + 8 * e, tile.sums[r][e]);
            for (Index r = 0; r < std::min(TILE_ROWS, last - i); ++r) {
                const Index from = std::max(i + r, j), until = std::min(j + TILE_COLUMNS, end);
                if (from < until) add(i + r, from, until, sums[r] - j);
            }
        }
}

}  // namespace tightrope
