"""How the projection lays out tuples: pairs of a layer in chunks, side by side, so that loops run over pairs.

**Free pairs add up.** Where nothing is known of a pair, its answer to the pair's question is W = Σ w: two free pairs of
one state are in the dual what one free pair with the sum of their weights would be. So all free pairs of a state
become one; what each of them gets of the answer is in proportion to its weight. Early in a run that leaves as many
pairs as there are states.

**Chunks, lanes, slots.** A chunk holds up to 64 pairs of one layer, its *lanes*, either all free or all not. Its
*slots* form a table with a column for each lane and a row for the first successor of every lane, one for the second,
and so on; shorter lanes are padded with slots of no weight. A chunk of three lanes, the pairs i, i+1, i+2:

                         lane 0      lane 1      lane 2
                         pair i      pair i+1    pair i+2
    first successors    first       first+1     first+2        every row is contiguous in memory:
    second successors   first+3     first+4     first+5        the inner loop runs over the lanes,
    third successors    first+6     (padding)   first+8        and a vector unit takes eight at once
                                                 last = first+9

Rows of a few successors, which a vector unit could not use, become columns of many pairs, which it can. Every loop over
a chunk is `for row in range(first, last, n_lanes): for v in range(n_lanes): ... [row + v]`, with by-pair numbers at
[i + v]; `extent(lanes, chunk)` is (i, n_lanes, first, last). Where every row leads to one state, as in a dense layer,
the chunk is *aligned*.

    layers   |        0        |            1             |  ...     layer_chunk[k] : layer_chunk[k+1]
    chunks   |        0        |     1      |      2      |  ...     free pairs of the layer first, then the others
    pairs    |   0  1  2  3    |  4  5  6   |  7  8  9 10 |  ...     chunk_pair[c] : chunk_pair[c+1]
    slots    | 0 ........ 11   | 12 .... 20 | 21 ...   40 |  ...     chunk_slot[c] : chunk_slot[c+1]
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tightrope.projection.kernels.placement import LANES, merge_free, place
from tightrope.space import FloatArray, LayeredSpace


class Lanes(NamedTuple):
    """Indices are unsigned: numba would otherwise allow for negative ones, and not vectorise.

    A pair is, from here on, one of the space or all free ones of a state. Lane v of chunk c is pair chunk_pair[c] + v;
    its r-th successor is in slot chunk_slot[c] + r · n_lanes + v.
    """

    layer_state: NDArray[np.uint32]  # (L + 2,) the states of layer k are layer_state[k]:layer_state[k+1]
    layer_chunk: NDArray[np.uint32]  # (L + 1,) the chunks of layer k are layer_chunk[k]:layer_chunk[k+1]
    chunk_pair: NDArray[np.uint32]  # (n_chunks + 1,) first pair
    chunk_slot: NDArray[np.uint32]  # (n_chunks + 1,) first slot
    aligned: NDArray[np.bool_]  # (n_chunks,) whether every row of the chunk leads to one state
    origin: NDArray[np.uint32]  # (n_pairs,) the state of each pair
    successor: NDArray[np.uint32]  # (n_slots,) the state each slot leads to; any of the next layer for padding
    slot: NDArray[np.uint32]  # (n_tuples,) where each tuple is
    pair: NDArray[np.uint32]  # (n_pairs,) the pair of the space that each pair is, or the first of them

    def to_slots(self, values: FloatArray) -> FloatArray:
        """Flat over tuples in, flat over slots out, 0 in the padding; of free pairs, any one's."""
        slots = np.zeros(len(self.successor))
        slots[self.slot] = values
        return slots


def assign_lanes(space: LayeredSpace, free: NDArray[np.bool_]) -> Lanes:
    """The lanes of a space of whose pairs these are free.

    A section is the free pairs of a layer, or the others: it is cut into as few chunks as it takes, of even sizes.
    """
    csr, n_pairs = space.csr, space.n_pairs
    lane, origin, pair, width = (np.empty(n_pairs, dtype=np.uint32) for _ in range(4))
    slot, section_ptr = np.empty(space.n_tuples, dtype=np.uint32), np.empty(2 * space.n_layers + 1, dtype=np.int64)
    n = merge_free(csr, free, lane, origin, pair, width, slot, section_ptr)

    size = np.diff(section_ptr)
    n_chunks = -(-size // LANES)
    section = np.arange(len(size)).repeat(n_chunks)
    rank = np.arange(len(section)) - (np.cumsum(n_chunks) - n_chunks)[section]
    chunk_pair = np.append(section_ptr[section] + size[section] * rank // n_chunks[section], n)
    n_lanes = np.diff(chunk_pair)
    rows = np.maximum.reduceat(width[:n], chunk_pair[:-1])
    chunk_slot = np.concatenate([[0], np.cumsum(n_lanes * rows)])
    layer_chunk = np.concatenate([[0], np.cumsum(n_chunks)])[::2]
    next_layer = csr.layer_ptr[1:-1].repeat(np.diff(layer_chunk)).astype(np.uint32)
    successor, aligned = next_layer.repeat(n_lanes * rows), np.empty(len(n_lanes), dtype=np.bool_)
    place(csr, lane, np.arange(len(n_lanes)).repeat(n_lanes), chunk_pair, chunk_slot, slot, successor, aligned)
    return Lanes(
        layer_state=csr.layer_ptr.astype(np.uint32),
        layer_chunk=layer_chunk.astype(np.uint32),
        chunk_pair=chunk_pair.astype(np.uint32),
        chunk_slot=chunk_slot.astype(np.uint32),
        aligned=aligned,
        origin=origin[:n].copy(),
        successor=successor,
        slot=slot,
        pair=pair[:n].copy(),
    )
