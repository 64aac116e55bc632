"""How the projection lays out tuples: pairs of a layer in chunks, side by side, so that loops run over pairs.

**Free pairs add up.** Where nothing is known of a pair, its answer to the pair's question is W = Σ w: two free pairs of
one state are in the dual what one free pair with the sum of their weights would be. So all free pairs of a state
become one; what each of them gets of the answer is in proportion to its weight. Early in a run that leaves as many
pairs as there are states.

**Lanes.** A chunk holds up to 64 pairs of one layer, its *lanes*, either all free or all not. Its slots form a table
with one row for the first successor of every lane, one for the second, and so on; shorter lanes are padded with slots
of no weight. Rows of a few successors, which a vector unit could not use, become columns of many pairs, which it can.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tightrope.projection.kernels.placement import merge_free, place
from tightrope.projection.kernels.sets import LANES
from tightrope.space import FloatArray, LayeredSpace


class Layout(NamedTuple):
    """Indices are unsigned: numba would otherwise allow for negative ones, and not vectorise.

    A pair is, from here on, one of the space or all free ones of a state. Lane l of chunk c is pair chunk_pair[c] + l;
    its r-th successor is in slot chunk_slot[c] + r · lanes + l.
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

    def spread(self, values: FloatArray) -> FloatArray:
        """Flat over tuples in, flat over slots out, 0 in the padding; of free pairs, any one's."""
        slots = np.zeros(len(self.successor))
        slots[self.slot] = values
        return slots


def lay_out(space: LayeredSpace, free: NDArray[np.bool_]) -> Layout:
    """The layout of a space of whose pairs these are free."""
    csr, n_pairs = space.csr, space.n_pairs
    lane, origin, pair, width = (np.empty(n_pairs, dtype=np.uint32) for _ in range(4))
    slot, group_ptr = np.empty(space.n_tuples, dtype=np.uint32), np.empty(2 * space.n_layers + 1, dtype=np.int64)
    n = merge_free(csr, free, lane, origin, pair, width, slot, group_ptr)

    size = np.diff(group_ptr)
    n_chunks = -(-size // LANES)
    group = np.arange(len(size)).repeat(n_chunks)
    rank = np.arange(len(group)) - (np.cumsum(n_chunks) - n_chunks)[group]
    chunk_pair = np.append(group_ptr[group] + size[group] * rank // n_chunks[group], n)
    lanes = np.diff(chunk_pair)
    rows = np.maximum.reduceat(width[:n], chunk_pair[:-1])
    chunk_slot = np.concatenate([[0], np.cumsum(lanes * rows)])
    layer_chunk = np.concatenate([[0], np.cumsum(n_chunks)])[::2]
    next_layer = csr.layer_ptr[1:-1].repeat(np.diff(layer_chunk)).astype(np.uint32)
    successor, aligned = next_layer.repeat(lanes * rows), np.empty(len(lanes), dtype=np.bool_)
    place(csr, lane, np.arange(len(lanes)).repeat(lanes), chunk_pair, chunk_slot, slot, successor, aligned)
    return Layout(
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
