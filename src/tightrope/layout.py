"""How the projection lays out tuples: the pairs of a layer in chunks, side by side, so that loops run over pairs.

A chunk holds up to 64 consecutive pairs of one layer, its *lanes*. Its slots form a table with one row for the
first successor of every lane, one for the second, and so on; shorter lanes are padded with slots of no weight.
Rows of a few successors, which a vector unit could not use, become columns of many pairs, which it can.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tightrope.kernels.sets import LANES
from tightrope.space import FloatArray, LayeredSpace


class Layout(NamedTuple):
    """Indices are unsigned: numba would otherwise allow for negative ones, and not vectorise.

    Lane l of chunk c is pair chunk_pair[c] + l; its r-th successor is in slot chunk_slot[c] + r · lanes + l.
    """

    layer_state: NDArray[np.uint32]  # (L + 2,) the states of layer k are layer_state[k]:layer_state[k+1]
    layer_chunk: NDArray[np.uint32]  # (L + 1,) the chunks of layer k are layer_chunk[k]:layer_chunk[k+1]
    chunk_pair: NDArray[np.uint32]  # (n_chunks + 1,) first pair
    chunk_slot: NDArray[np.uint32]  # (n_chunks + 1,) first slot
    aligned: NDArray[np.bool_]  # (n_chunks,) whether every row of the chunk leads to one state
    origin: NDArray[np.uint32]  # (n_pairs,) the state of each pair
    successor: NDArray[np.uint32]  # (n_slots,) the state each slot leads to; any of the next layer for padding
    slot: NDArray[np.uint32]  # (n_tuples,) where each tuple is
    pair_tuple: NDArray[np.uint32]  # (n_pairs + 1,) first tuple of each pair

    def spread(self, values: FloatArray) -> FloatArray:
        """Flat over tuples in, flat over slots out, 0 in the padding."""
        slots = np.zeros(len(self.successor))
        slots[self.slot] = values
        return slots


def lay_out(space: LayeredSpace) -> Layout:
    """The layout of a space."""
    csr = space.csr
    pairs_before = csr.state_ptr[csr.layer_ptr[:-1]]
    n_chunks = -(-np.diff(pairs_before) // LANES)
    chunk_pair = np.concatenate(
        [
            np.linspace(a, b, n, endpoint=False).astype(np.int64)
            for a, b, n in zip(pairs_before[:-1], pairs_before[1:], n_chunks, strict=True)
        ]
        + [pairs_before[-1:]]
    )
    lanes = np.diff(chunk_pair)
    width = np.maximum.reduceat(space.successors_per_pair, chunk_pair[:-1])
    chunk_slot = np.concatenate([[0], np.cumsum(lanes * width)])

    chunk_of_pair = np.repeat(np.arange(len(lanes)), lanes)
    row = np.arange(space.n_tuples) - np.repeat(csr.pair_ptr[:-1], space.successors_per_pair)
    lane = chunk_slot[chunk_of_pair] + np.arange(space.n_pairs) - chunk_pair[chunk_of_pair]
    slot = space.expand_to_tuples(lane) + row * space.expand_to_tuples(lanes[chunk_of_pair])

    next_layer = csr.layer_ptr[np.repeat(np.arange(1, space.n_layers + 1), n_chunks)]
    successor = np.repeat(next_layer, lanes * width)
    successor[slot] = csr.successor
    starts = np.concatenate(
        [np.arange(s, t, n) for s, t, n in zip(chunk_slot[:-1], chunk_slot[1:], lanes, strict=True)]
    )
    one_state = np.minimum.reduceat(successor, starts) == np.maximum.reduceat(successor, starts)
    aligned = np.logical_and.reduceat(one_state, np.cumsum(width) - width)
    return Layout(
        layer_state=csr.layer_ptr.astype(np.uint32),
        layer_chunk=np.concatenate([[0], np.cumsum(n_chunks)]).astype(np.uint32),
        chunk_pair=chunk_pair.astype(np.uint32),
        chunk_slot=chunk_slot.astype(np.uint32),
        aligned=aligned,
        origin=space.pairs[:, 0].astype(np.uint32),
        successor=successor.astype(np.uint32),
        slot=slot.astype(np.uint32),
        pair_tuple=csr.pair_ptr.astype(np.uint32),
    )
