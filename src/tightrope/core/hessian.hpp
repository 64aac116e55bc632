// The Hessian of the dual, in the panels of `tridiagonal.hpp`.
//
// F does not change when a constant is added to β on one layer. That freedom is removed by solving for the potentials of
// Σ_k Z_k instead: at Z_k = 1, and with the first layer included, its Hessian
//
//     H = Σ_pairs q [ (e_s − p)(e_s − p)ᵀ + ∂p/∂β ]
//
// is positive definite and block-tridiagonal over the layers, and its Newton step is that of F up to such constants.
#pragma once

#include "arithmetic.hpp"
#include "products.hpp"
#include "workspace.hpp"

namespace tightrope {

/// A panel of H, whose rows and columns are states from `first` on.
struct Block {
    double* values;
    Index width, first;

    double* row(Index s) const { return values + (s - first) * width - first; }  ///< indexed by state
};

/// −q p between each pair's state and its successors.
TIGHTROPE_INLINE void connect(const Lanes& lanes, const Chunk& chunk, const Workspace& work, Block block) {
    for (Index v = 0; v < chunk.n_lanes; ++v) {
        const double f = work.share[chunk.pair + v];
        double* row = block.row(lanes.origin[chunk.pair + v]);
        for (Index j = chunk.first + v; j < chunk.last; j += chunk.n_lanes) row[lanes.successor[j]] -= f * work.p[j];
    }
}

/// q (p pᵀ + ∂p/∂β) where all of p is scaled: p pᵀ and −p pᵀ cancel, q diag(p) is left.
TIGHTROPE_INLINE void spread_whole(const Lanes& lanes, const Chunk& chunk, const Workspace& work, Block block) {
    const double* share = work.share.data() + chunk.pair;
    for (Index row = chunk.first; row < chunk.last; row += chunk.n_lanes) {
        if (chunk.aligned) {
            const Index t = lanes.successor[row];
            block.row(t)[t] += dot(share, work.p.data() + row, chunk.n_lanes);
        } else {
            for (Index v = 0; v < chunk.n_lanes; ++v) {
                const Index t = lanes.successor[row + v];
                block.row(t)[t] += share[v] * work.p[row + v];
            }
        }
    }
}

/// `spread_moving` pair by pair.
inline void spread_one_by_one(const Lanes& lanes, const Chunk& chunk, const Workspace& work, Block block) {
    const Index n = chunk.n_lanes;
    const auto& p = work.p;
    const auto& label = work.label;
    for (Index v = 0; v < n; ++v) {
        const double f = work.share[chunk.pair + v];
        const bool whole = label[chunk.first + v] == WHOLE;
        double mass_1 = 0.0, mass_2 = 0.0;
        for (Index j = chunk.first + v; j < chunk.last; j += n) {
            mass_1 += label[j] == SCALED_1 ? p[j] : 0.0;
            mass_2 += label[j] == SCALED_2 ? p[j] : 0.0;
        }
        const double apart = f / work.W[chunk.pair + v];
        const double together_1 = mass_1 > 0.0 ? apart - f / mass_1 : apart;
        const double together_2 = mass_2 > 0.0 ? apart - f / mass_2 : apart;
        for (Index j = chunk.first + v; j < chunk.last; j += n) {
            const Index t = lanes.successor[j];
            const std::int8_t mine = label[j];
            double* row = block.row(t);
            if (whole || mine != FIXED) row[t] += f * p[j];
            if (whole) continue;
            const double together = mine == SCALED_1 ? together_1 : (mine == SCALED_2 ? together_2 : apart);
            for (Index j2 = j; j2 < chunk.last; j2 += n)
                row[lanes.successor[j2]] += p[j] * p[j2] * (label[j2] == mine ? together : apart);
        }
    }
}

/// The roots of q (p pᵀ − p_G p_Gᵀ / p(G)) for every pair of a chunk that is not WHOLE: a row of numbers by successor.
///
/// Rows √(q/W) p come first; rows √(q / p(G)) p_G of both groups, whose products are subtracted, follow.
struct Roots {
    const double* rows;
    Index width, plus, minus;

    Roots(const Chunk& chunk, const Workspace& work, Scratch& scratch);
};

inline Roots::Roots(const Chunk& chunk, const Workspace& work, Scratch& scratch)
    : rows(scratch.table()), width((chunk.rows() + 7) / 8 * 8), plus(0), minus(0) {
    const Index n = chunk.n_lanes, n_rows = chunk.rows();
    const double *__restrict p = work.p.data() + chunk.first, *__restrict share = work.share.data() + chunk.pair;
    const double* __restrict W = work.W.data() + chunk.pair;
    const std::int8_t* __restrict label = work.label.data() + chunk.first;
    double mass_1[LANES + 8] = {}, mass_2[LANES + 8] = {}, root[3][LANES + 8] = {};
    for (Index v = 0; v < n; v += 8) {
        Eight sum_1 = {}, sum_2 = {};
        for (Index j = v; j < n_rows * n; j += n) {
            sum_1 += labelled(label + j, SCALED_1) ? load_eight(p + j) : Eight{};
            sum_2 += labelled(label + j, SCALED_2) ? load_eight(p + j) : Eight{};
        }
        store_eight(mass_1 + v, sum_1);
        store_eight(mass_2 + v, sum_2);
    }
    for (Index v = 0; v < n; ++v) {
        const double q = label[v] == WHOLE ? 0.0 : share[v];
        root[0][v] = sqrt(q / W[v]);
        root[1][v] = mass_1[v] > 0.0 ? sqrt(q / mass_1[v]) : 0.0;
        root[2][v] = mass_2[v] > 0.0 ? sqrt(q / mass_2[v]) : 0.0;
    }
    double* to[LANES];
    double* end = scratch.table();
    for (const int group : {0, 1, 2}) {
        for (Index v = 0; v < n; ++v) {
            to[v] = root[group][v] != 0.0 ? end : nullptr;
            end += to[v] != nullptr ? width : 0;
        }
        for (Index v = 0; v < n; v += 8)
            for (Index r = 0; r < n_rows; r += 8) {
                Eight block[8] = {};
                for (Index b = 0; b < std::min<Index>(8, n_rows - r); ++b) {
                    const Index j = (r + b) * n + v;
                    const EightFlags within = labelled(label + j, group);
                    const Eight product = load_eight(root[group] + v) * load_eight(p + j);
                    block[b] = group == 0 ? product : (within ? product : Eight{});
                }
                transpose(block);
                for (Index b = 0; b < std::min<Index>(8, n - v); ++b)
                    if (to[v + b] != nullptr) store_eight(to[v + b] + r, block[b]);
            }
        (group == 0 ? plus : minus) = (end - rows) / width - (group == 0 ? 0 : plus);
    }
}

/// `spread_moving` for pairs that share their successors: sums of products over the pairs.
inline void spread_together(const Lanes& lanes, const Chunk& chunk, const Workspace& work, Block block, Scratch& scratch) {
    const Index n = chunk.n_lanes, rows = chunk.rows();
    const double *__restrict p = work.p.data() + chunk.first, *__restrict share = work.share.data() + chunk.pair;
    const std::int8_t* __restrict label = work.label.data() + chunk.first;
    double moving[LANES], whole[LANES];
    for (Index v = 0; v < n; ++v) whole[v] = label[v] == WHOLE ? share[v] : 0.0;
    for (Index r = 0; r < rows; ++r) {
        for (Index v = 0; v < n; ++v) moving[v] = label[r * n + v] != FIXED ? share[v] : whole[v];
        const Index t = lanes.successor[chunk.first + r * n];
        block.row(t)[t] += dot(moving, p + r * n, n);
    }
    const Roots roots(chunk, work, scratch);
    each_tile(
        0, rows, 0, rows,
        [&](Tile& tile, Index i, Index j) {
            tile.add<1>(roots.rows, roots.width, roots.plus, i, j);
            tile.add<-1>(roots.rows + roots.plus * roots.width, roots.width, roots.minus, i, j);
        },
        [&](Index i, Index begin, Index end, const double* sums) {
            double* to = block.row(lanes.successor[chunk.first + i * n]);
            for (Index j = begin; j < end; ++j) to[lanes.successor[chunk.first + j * n]] += sums[j];
        });
}

/// q (p pᵀ + ∂p/∂β) for a chunk of which some pairs are not WHOLE, added to the upper triangle of the block.
template <class Set>
void spread_moving(const Set& set, const Lanes& lanes, const Chunk& chunk, const Workspace& work, Block block,
                   Scratch& scratch) {
    if constexpr (requires { &Set::spread; })
        set.spread(chunk, work.flow(lanes), block.first, block.width, block.values, scratch);
    else if (chunk.aligned)
        spread_together(lanes, chunk, work, block, scratch);
    else
        spread_one_by_one(lanes, chunk, work, block);
}

/// The panels of H at the last evaluated β, plus damping · (inflow + outflow) on the diagonal.
template <class Set>
void assemble(const Lanes& lanes, const Set& set, double damping, Workspace& work) {
    const Index L = lanes.n_layers();
    work.pool.each(L, [&](Index k, int worker) {
        Panels& panels = work.panels;
        const Index first = lanes.first_state(k), width = panels.width(k);
        const Block block{panels.panel(k), width, first};
        std::fill(block.values, block.values + panels.sizes[k] * width, 0.0);
        for (Index c = k > 0 ? lanes.first_chunk(k - 1) : 0; c < lanes.first_chunk(k); ++c) {
            const Chunk chunk = lanes.chunk(c);
            if (work.clipped[c])
                spread_moving(set, lanes, chunk, work, block, work.scratch[worker]);
            else
                spread_whole(lanes, chunk, work, block);
        }
        for (Index s = first; s < first + panels.sizes[k]; ++s)
            block.row(s)[s] += work.outflow[s] + damping * (work.inflow[s] + work.outflow[s]);
        if (k + 1 == L) return;  // everything leads to the last state, whose potential is fixed
        for (Index c = lanes.first_chunk(k); c < lanes.first_chunk(k + 1); ++c)
            connect(lanes, lanes.chunk(c), work, block);
    });
}

}  // namespace tightrope
