"""Where the projection puts each tuple: see `lanes.py`."""

import numpy as np

from tightrope.kernels.compile import inlined, jit

LANES = 64  # the most pairs that a chunk holds


@inlined
def extent(lanes, chunk):
    """(first pair, number of lanes, first slot, slot after the last) of a chunk."""
    pair, slot = lanes.chunk_pair, lanes.chunk_slot
    return pair[chunk], pair[chunk + 1] - pair[chunk], slot[chunk], slot[chunk + 1]


@jit
def merge_free(csr, free, lane, origin, pair, width, row, section_ptr):
    """Give every pair a lane, all free pairs of a state the same one, and every tuple its row in the lane.

    Writes, by pair: lane. By lane: its state (origin), its first pair, how many successors it has (width). By tuple:
    row. The free lanes of layer k are section_ptr[2k]:section_ptr[2k+1], the others follow. Returns the number of
    lanes.
    """
    layer_ptr, state_ptr, pair_ptr, successor = csr.layer_ptr, csr.state_ptr, csr.pair_ptr, csr.successor
    seen, row_of = np.full(layer_ptr[-1], -1), np.zeros(layer_ptr[-1], np.uint32)
    n = 0
    for k in range(layer_ptr.size - 2):
        section_ptr[2 * k] = n
        for s in range(layer_ptr[k], layer_ptr[k + 1]):
            mine = -1
            for i in range(state_ptr[s], state_ptr[s + 1]):
                if free[i]:
                    if mine < 0:
                        mine, origin[n], pair[n], width[n], n = n, s, i, 0, n + 1
                    lane[i] = mine
                    for j in range(pair_ptr[i], pair_ptr[i + 1]):
                        to = successor[j]
                        if seen[to] != mine:
                            seen[to], row_of[to] = mine, width[mine]
                            width[mine] += 1
                        row[j] = row_of[to]
        section_ptr[2 * k + 1] = n
        for s in range(layer_ptr[k], layer_ptr[k + 1]):
            for i in range(state_ptr[s], state_ptr[s + 1]):
                if not free[i]:
                    lane[i], origin[n], pair[n], width[n] = n, s, i, pair_ptr[i + 1] - pair_ptr[i]
                    for j in range(pair_ptr[i], pair_ptr[i + 1]):
                        row[j] = j - pair_ptr[i]
                    n += 1
    section_ptr[section_ptr.size - 1] = n
    return n


@jit
def place(csr, lane, chunk_of_lane, chunk_pair, chunk_slot, slot, successor, aligned):
    """Turn every tuple's row, given in `slot`, into its slot; write where each slot leads, and which chunks align."""
    pair_ptr = csr.pair_ptr
    for i in range(lane.size):
        chunk = chunk_of_lane[lane[i]]
        n_lanes = chunk_pair[chunk + 1] - chunk_pair[chunk]
        first = chunk_slot[chunk] + lane[i] - chunk_pair[chunk]
        for j in range(pair_ptr[i], pair_ptr[i + 1]):
            slot[j] = first + slot[j] * n_lanes
            successor[slot[j]] = csr.successor[j]
    for chunk in range(aligned.size):
        n_lanes = chunk_pair[chunk + 1] - chunk_pair[chunk]
        aligned[chunk] = True
        for row in range(chunk_slot[chunk], chunk_slot[chunk + 1], n_lanes):
            for j in range(row, row + n_lanes):
                aligned[chunk] &= successor[j] == successor[row]
