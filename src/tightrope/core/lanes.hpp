// How the solver lays out tuples: pairs of a layer in chunks, side by side, so that loops run over pairs.
//
// Free pairs add up. Where nothing is known of a pair, its answer to the pair's question is W = Σ w: two free pairs of
// one state are in the dual what one free pair with the sum of their weights would be. So all free pairs of a state
// become one; each of them gets its share of the answer in proportion to its weight. From here on a pair is one of the
// space or all free ones of a state.
//
// A chunk holds up to LANES pairs of one layer, its lanes, either all free or none. Its slots form a table with a column
// for each lane and a row for the first successor of every lane, one for the second, and so on; shorter lanes are padded
// with slots of no weight:
//
//                          lane 0      lane 1      lane 2
//                          pair i      pair i+1    pair i+2
//     first successors    first       first+1     first+2        every row is contiguous in memory:
//     second successors   first+3     first+4     first+5        the inner loop runs over the lanes,
//     third successors    first+6     (padding)   first+8        and a vector unit takes eight at once
//                                                  last = first+9
//
// Rows of a few successors, which a vector unit could not use, become columns of many pairs, which it can. The chunks of
// a layer follow each other, first those of free pairs:
//
//     layers   |        0        |            1             |  ...     layer_chunk[k] .. layer_chunk[k+1]
//     chunks   |        0        |     1      |      2      |  ...     chunk_pair[c]  .. chunk_pair[c+1]
//     pairs    |   0  1  2  3    |  4  5  6   |  7  8  9 10 |  ...     chunk_slot[c]  .. chunk_slot[c+1]
//     slots    | 0 ........ 11   | 12 .... 20 | 21 ...   40 |  ...
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

#include "space.hpp"

namespace tightrope {

inline constexpr Index LANES = 64;  ///< The most pairs that a chunk holds.
inline constexpr Index ABREAST = 8;  ///< All chunks of a section but the last have a multiple of so many pairs.

/// One chunk: pairs pair .. pair + n_lanes, slots first .. last in rows of n_lanes.
struct Chunk {
    Index pair, n_lanes, first, last;
    bool aligned;  ///< Every row leads to one state, as in a dense layer.

    Index rows() const { return (last - first) / n_lanes; }
};

/// The layout of a space, given which of its pairs are free.
class Lanes {
public:
    Lanes() = default;
    Lanes(const Space& space, const bool* free);

    Index n_layers() const { return static_cast<Index>(layer_chunk.size()) - 1; }
    Index n_chunks() const { return static_cast<Index>(aligned.size()); }
    Index n_pairs() const { return static_cast<Index>(origin.size()); }
    Index n_slots() const { return static_cast<Index>(successor.size()); }
    Index n_tuples() const { return static_cast<Index>(slot.size()); }
    Index n_states() const { return layer_state.back(); }
    Index longest() const { return longest_; }  ///< The most rows of a chunk.

    Index first_state(Index layer) const { return layer_state[layer]; }
    Index first_chunk(Index layer) const { return layer_chunk[layer]; }
    Index first_pair(Index layer) const { return chunk_pair[layer_chunk[layer]]; }
    Index first_slot(Index layer) const { return chunk_slot[layer_chunk[layer]]; }

    Chunk chunk(Index c) const {
        return {chunk_pair[c], chunk_pair[c + 1] - chunk_pair[c], chunk_slot[c], chunk_slot[c + 1], aligned[c] != 0};
    }

    std::vector<std::uint32_t> layer_state;  ///< (L + 2,) the states of layer k are layer_state[k] .. layer_state[k + 1]
    std::vector<std::uint32_t> layer_chunk;  ///< (L + 1,)
    std::vector<std::uint32_t> chunk_pair;   ///< (n_chunks + 1,)
    std::vector<std::uint32_t> chunk_slot;   ///< (n_chunks + 1,)
    std::vector<std::uint8_t> aligned;       ///< (n_chunks,) whether every row of the chunk leads to one state
    std::vector<std::uint32_t> origin;       ///< (n_pairs,) the state of each pair
    std::vector<std::uint32_t> successor;    ///< (n_slots,) the state of each slot; for padding any of the next layer
    std::vector<std::uint32_t> slot;         ///< (n_tuples,) where each tuple is
    std::vector<std::uint32_t> pair;         ///< (n_pairs,) the pair of the space that each pair is, or the first of them

private:
    Index longest_ = 0;

    void merge_free(const Space& space, const bool* free, std::vector<std::uint32_t>& lane,
                    std::vector<std::uint32_t>& width, std::vector<Index>& section_ptr);
    void cut(const std::vector<std::uint32_t>& width, const std::vector<Index>& section_ptr);
    void place(const Space& space, const std::vector<std::uint32_t>& lane);
};

inline Lanes::Lanes(const Space& space, const bool* free)
    : layer_state(space.layer_ptr, space.layer_ptr + space.n_layers + 2), slot(space.n_tuples) {
    std::vector<std::uint32_t> lane(space.n_pairs), width;
    std::vector<Index> section_ptr;
    merge_free(space, free, lane, width, section_ptr);
    cut(width, section_ptr);
    place(space, lane);
}

/// Give every pair a lane, all free pairs of a state the same one, and every tuple its row in the lane, kept in `slot`.
///
/// Writes the lane of every pair of the space, and the width (number of successors) of every lane. The free lanes of
/// layer k are section_ptr[2k] .. section_ptr[2k + 1], the others follow.
inline void Lanes::merge_free(const Space& space, const bool* free, std::vector<std::uint32_t>& lane,
                              std::vector<std::uint32_t>& width, std::vector<Index>& section_ptr) {
    constexpr std::uint32_t NONE = std::numeric_limits<std::uint32_t>::max();
    std::vector<std::uint32_t> seen(space.n_states, NONE), row_of(space.n_states);
    const auto open = [&](Index s, Index i) {
        origin.push_back(static_cast<std::uint32_t>(s));
        pair.push_back(static_cast<std::uint32_t>(i));
        width.push_back(0);
        return static_cast<std::uint32_t>(width.size() - 1);
    };
    for (Index k = 0; k < space.n_layers; ++k) {
        section_ptr.push_back(static_cast<Index>(width.size()));
        for (Index s = space.layer_ptr[k]; s < space.layer_ptr[k + 1]; ++s) {
            std::uint32_t mine = NONE;
            for (Index i = space.state_ptr[s]; i < space.state_ptr[s + 1]; ++i) {
                if (!free[i]) continue;
                if (mine == NONE) mine = open(s, i);
                lane[i] = mine;
                for (Index j = space.pair_ptr[i]; j < space.pair_ptr[i + 1]; ++j) {
                    const std::int32_t to = space.successor[j];
                    if (seen[to] != mine) {
                        seen[to] = mine;
                        row_of[to] = width[mine]++;
                    }
                    slot[j] = row_of[to];
                }
            }
        }
        section_ptr.push_back(static_cast<Index>(width.size()));
        for (Index s = space.layer_ptr[k]; s < space.layer_ptr[k + 1]; ++s)
            for (Index i = space.state_ptr[s]; i < space.state_ptr[s + 1]; ++i) {
                if (free[i]) continue;
                lane[i] = open(s, i);
                for (Index j = space.pair_ptr[i]; j < space.pair_ptr[i + 1]; ++j) slot[j] = width[lane[i]]++;
            }
    }
    section_ptr.push_back(static_cast<Index>(width.size()));
}

/// Cut every section into as few chunks as it takes, of about even sizes.
inline void Lanes::cut(const std::vector<std::uint32_t>& width, const std::vector<Index>& section_ptr) {
    Index slots = 0;
    for (std::size_t section = 0; section + 1 < section_ptr.size(); ++section) {
        if (section % 2 == 0) layer_chunk.push_back(static_cast<std::uint32_t>(chunk_pair.size()));
        const Index begin = section_ptr[section], size = section_ptr[section + 1] - begin;
        const Index chunks = (size + LANES - 1) / LANES, units = (size + ABREAST - 1) / ABREAST;
        for (Index rank = 0; rank < chunks; ++rank) {
            const Index from = begin + ABREAST * (units * rank / chunks);
            const Index to = begin + std::min(ABREAST * (units * (rank + 1) / chunks), size);
            const Index rows = *std::max_element(width.begin() + from, width.begin() + to);
            chunk_pair.push_back(static_cast<std::uint32_t>(from));
            chunk_slot.push_back(static_cast<std::uint32_t>(slots));
            slots += rows * (to - from);
            longest_ = std::max(longest_, rows);
        }
    }
    if (slots > std::numeric_limits<std::uint32_t>::max()) throw std::length_error("the space has too many tuples");
    layer_chunk.push_back(static_cast<std::uint32_t>(chunk_pair.size()));
    chunk_pair.push_back(static_cast<std::uint32_t>(width.size()));
    chunk_slot.push_back(static_cast<std::uint32_t>(slots));
}

/// Turn the row of every tuple, given in `slot`, into its slot; write where each slot leads, and which chunks align.
inline void Lanes::place(const Space& space, const std::vector<std::uint32_t>& lane) {
    const Index chunks = static_cast<Index>(chunk_pair.size()) - 1;
    std::vector<std::uint32_t> chunk_of(n_pairs());
    successor.resize(chunk_slot.back());
    for (Index k = 0; k < n_layers(); ++k)
        std::fill(successor.begin() + first_slot(k), successor.begin() + first_slot(k + 1), layer_state[k + 1]);
    for (Index c = 0; c < chunks; ++c)
        std::fill(chunk_of.begin() + chunk_pair[c], chunk_of.begin() + chunk_pair[c + 1], static_cast<std::uint32_t>(c));
    for (Index i = 0; i < space.n_pairs; ++i) {
        const std::uint32_t c = chunk_of[lane[i]], n_lanes = chunk_pair[c + 1] - chunk_pair[c];
        const std::uint32_t first = chunk_slot[c] + lane[i] - chunk_pair[c];
        for (Index j = space.pair_ptr[i]; j < space.pair_ptr[i + 1]; ++j) {
            slot[j] = first + slot[j] * n_lanes;
            successor[slot[j]] = static_cast<std::uint32_t>(space.successor[j]);
        }
    }
    aligned.assign(chunks, 1);
    for (Index c = 0; c < chunks; ++c) {
        const Chunk all = chunk(c);
        for (Index row = all.first; row < all.last; row += all.n_lanes)
            for (Index v = 0; v < all.n_lanes; ++v) aligned[c] &= successor[row + v] == successor[row];
    }
}

}  // namespace tightrope
