// A layered space in compressed rows.
//
// The states of layer k are layer_ptr[k] .. layer_ptr[k + 1], the pairs of state s are state_ptr[s] .. state_ptr[s + 1],
// the tuples of pair i are pair_ptr[i] .. pair_ptr[i + 1]. Layers 0 .. L − 1 have actions; layer L is the last state.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tightrope {

using Index = std::int64_t;

struct Space {
    Index n_layers, n_states, n_pairs, n_tuples;
    const std::int64_t* layer_ptr;   // (L + 2,)
    const std::int64_t* state_ptr;   // (n_states + 1,)
    const std::int64_t* pair_ptr;    // (n_pairs + 1,)
    const std::int32_t* action;      // (n_pairs,)
    const std::int32_t* successor;   // (n_tuples,)

    Index last_state() const { return n_states - 1; }
    Index first_tuple(Index k) const { return pair_ptr[state_ptr[layer_ptr[k]]]; }  ///< of layer k; n_tuples for k = L

    /// The pair that tuple j belongs to.
    Index pair_of(Index j) const { return std::upper_bound(pair_ptr, pair_ptr + n_pairs + 1, j) - pair_ptr - 1; }

    /// The most tuples that a layer has.
    Index widest_layer() const {
        Index widest = 0;
        for (Index k = 0; k < n_layers; ++k) widest = std::max(widest, first_tuple(k + 1) - first_tuple(k));
        return widest;
    }
};

}  // namespace tightrope
