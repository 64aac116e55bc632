// How the solver lays out tuples: pairs of a layer in chunks, side by side, so that loops run over pairs.
//
// A chunk holds up to LANES pairs of one layer, its lanes. Its slots form a table with a column for each lane and a row
// for the first successor of every lane, one for the second, and so on; shorter lanes are padded with slots of no weight:
//
//                          lane 0      lane 1      lane 2
//                          pair i      pair i+1    pair i+2
//     first successors    first       first+1     first+2        every row is contiguous in memory:
//     second successors   first+3     first+4     first+5        the inner loop runs over the lanes,
//     third successors    first+6     (padding)   first+8        and a vector unit takes eight at once
//                                                  last = first+9
//
// Rows of a few successors, which a vector unit could not use, become columns of many pairs, which it can.
#pragma once

#include <cstdint>

#include "space.hpp"

namespace tightrope {

inline constexpr Index LANES = 64;  ///< The most pairs that a chunk holds.

/// One chunk: pairs pair .. pair + n_lanes, slots first .. last in rows of n_lanes.
struct Chunk {
    Index pair, n_lanes, first, last;
    bool aligned;  ///< Every row leads to one state, as in a dense layer.

    Index rows() const { return (last - first) / n_lanes; }
};

}  // namespace tightrope
