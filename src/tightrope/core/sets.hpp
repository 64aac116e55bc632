// What a confidence set has to answer: the pair's question, and how its answer moves.
//
// For the weights w of a pair, log W = max over p in C of Σ p(s') log( w(s') / p(s') ), attained at p*. A set is a struct
// of arrays by slot and by pair (0 in the padding), and a template parameter of the solver. For one chunk it has
//
//     bool answer(const Chunk&, const Answers&, Scratch&) const
//         On entry p holds w (0 in the padding) and W its total; on exit p holds W p*, W is W, and label says how p*
//         moves. thresholds may be left for the next call on the pair; whatever is found there must be accepted.
//         Returns whether some pair of the chunk is not WHOLE.
//
// Chunks are answered side by side by several threads, each with a Scratch of its own. How p* moves with w:
//
//     WHOLE in the first slot of a pair: all of p* is w normalised. Otherwise every slot of the pair has a label: p* is
//     proportional to w within SCALED_1 and within SCALED_2, and does not move where FIXED. So
//     ∂p/∂log w = diag(p_G) − p_G p_Gᵀ / p(G) on each of the two scaled groups G.
//     A KL ball moves otherwise: CURVED in the first slot.
//
// The solver has functions that read ∂p/∂log w off the labels; a set that moves otherwise has its own (`kl_movement.hpp`).
// Each takes a chunk of which some pair is not WHOLE, and what was found there (`Flow`).
//
//     spread         adds q (p pᵀ + ∂p/∂β) to the upper triangle of a block of H, where state s has row s − after
//     hold           takes q (p − diag ∂p/∂log w) from D, the diagonal of H, as far as ∂p/∂log w is diagonal
//     respond        adds E x by row of slots, and Σ p x of every pair to `all`; E is the rest of q (p pᵀ + ∂p/∂β)
#pragma once

#include <cstdint>
#include <vector>

#include "arithmetic.hpp"
#include "lanes.hpp"

namespace tightrope {

enum Label : std::int8_t { FIXED = 0, SCALED_1 = 1, SCALED_2 = 2, WHOLE = 3, CURVED = 4 };

/// Which of eight slots have this label.
TIGHTROPE_INLINE EightFlags labelled(const std::int8_t* label, std::int64_t wanted) { return load_eight(label) == wanted; }

/// The arrays that an answer reads and writes: p and label by slot, the rest by pair.
struct Answers {
    double* p;
    double* W;
    std::int8_t* label;
    double* thresholds[2];
};

/// What was found: by slot where it leads, p = W p* and the label; by pair W and share = q / W.
struct Flow {
    const std::uint32_t* successor;
    const double* p;
    const std::int8_t* label;
    const double* W;
    const double* share;
};

/// Room for one thread to work in: rows of LANES numbers, and a table of some rows for each row of the longest chunk.
struct Scratch {
    static constexpr Index ROWS = 16;       ///< of `row`
    static constexpr Index TABLE_ROWS = 5;  ///< of `table`, for each row of slots

    explicit Scratch(Index longest_chunk_rows)
        : lanes(ROWS * LANES), rows(TABLE_ROWS * LANES * static_cast<std::size_t>(longest_chunk_rows + 8)) {}

    double* row(Index r) { return lanes.data() + r * LANES; }
    double* table() { return rows.data(); }

    std::vector<double> lanes, rows;
};

/// Whether a flag of some lane is above 0.
TIGHTROPE_INLINE bool any(const double* flags, Index n_lanes) {
    Index n = 0;
    for (Index v = 0; v < n_lanes; ++v) n += flags[v] > 0.0;
    return n > 0;
}

}  // namespace tightrope
