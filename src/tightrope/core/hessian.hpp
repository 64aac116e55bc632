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

/// `spread_moving` for pairs that share their successors, as sums over the pairs.
///
/// Between successors t and t' that is Σ q (p_t p_t' − p_t p_t' / p(G) where both are in group G): the product of the
/// rows of a table of roots √q p, √(q / p(G)) p_G, the first part with a plus, the others with a minus.
inline void spread_together(const Lanes& lanes, const Chunk& chunk, const Workspace& work, Block block, Scratch& scratch) {
    const Index n = chunk.n_lanes;
    const double *__restrict p = work.p.data(), *__restrict share = work.share.data() + chunk.pair;
    const double* __restrict W = work.W.data() + chunk.pair;
    const std::int8_t* __restrict label = work.label.data();
    double *__restrict mass_1 = scratch.row(0), *__restrict mass_2 = scratch.row(1), *__restrict all = scratch.row(2);
    double *__restrict moving = scratch.row(3), *__restrict left = scratch.row(4), *__restrict table = scratch.table();
    for (Index v = 0; v < n; ++v) mass_1[v] = mass_2[v] = 0.0;
    for (Index row = chunk.first; row < chunk.last; row += n)
        for (Index v = 0; v < n; ++v) {
            mass_1[v] += label[row + v] == SCALED_1 ? p[row + v] : 0.0;
            mass_2[v] += label[row + v] == SCALED_2 ? p[row + v] : 0.0;
        }
    for (Index v = 0; v < n; ++v) {
        const double f = label[chunk.first + v] == WHOLE ? 0.0 : share[v];
        all[v] = sqrt(f / W[v]);
        mass_1[v] = mass_1[v] > 0.0 ? sqrt(f / mass_1[v]) : 0.0;
        mass_2[v] = mass_2[v] > 0.0 ? sqrt(f / mass_2[v]) : 0.0;
    }
    const Index width = 3 * n;
    for (Index row = chunk.first; row < chunk.last; row += n) {
        double* __restrict at = table + (row - chunk.first) * 3;
        for (Index v = 0; v < n; ++v) at[v] = all[v] * p[row + v];
        for (Index v = 0; v < n; ++v) at[n + v] = label[row + v] == SCALED_1 ? mass_1[v] * p[row + v] : 0.0;
        for (Index v = 0; v < n; ++v) at[2 * n + v] = label[row + v] == SCALED_2 ? mass_2[v] * p[row + v] : 0.0;
        for (Index v = 0; v < n; ++v) moving[v] = label[row + v] != FIXED || all[v] == 0.0 ? share[v] : 0.0;
        const Index t = lanes.successor[row];
        block.row(t)[t] += dot(moving, p + row, n);
    }
    for (Index row = chunk.first; row < chunk.last; row += n) {
        const double* __restrict at = table + (row - chunk.first) * 3;
        for (Index v = 0; v < n; ++v) left[v] = at[v];
        for (Index v = n; v < width; ++v) left[v] = -at[v];
        double* to = block.row(lanes.successor[row]);
        for (Index row2 = row; row2 < chunk.last; row2 += n)
            to[lanes.successor[row2]] += dot(left, table + (row2 - chunk.first) * 3, width);
    }
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
