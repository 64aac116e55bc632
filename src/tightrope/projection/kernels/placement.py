"""Where the projection puts each tuple: see `layout.py`."""

import numpy as np

from tightrope.kernels.compile import jit


@jit
def merge_free(csr, free, lane, origin, pair, width, row, group_ptr):
    """Give every pair a lane, all free pairs of a state the same one, and every tuple its row in the lane.

    Writes, by pair: lane. By lane: its state (origin), its first pair, how many successors it has (width). By tuple:
    row. The free lanes of layer k are group_ptr[2k]:group_ptr[2k+1], the others follow. Returns the number of lanes.
    """
    layer_ptr, state_ptr, pair_ptr, successor = csr.layer_ptr, csr.state_ptr, csr.pair_ptr, csr.successor
    seen, row_of = np.full(layer_ptr[-1], -1), np.zeros(layer_ptr[-1], np.uint32)
    n = 0
    for k in range(layer_ptr.size - 2):
        group_ptr[2 * k] = n
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
        group_ptr[2 * k + 1] = n
        for s in range(layer_ptr[k], layer_ptr[k + 1]):
            for i in range(state_ptr[s], state_ptr[s + 1]):
                if not free[i]:
                    lane[i], origin[n], pair[n], width[n] = n, s, i, pair_ptr[i + 1] - pair_ptr[i]
                    for j in range(pair_ptr[i], pair_ptr[i + 1]):
                        row[j] = j - pair_ptr[i]
                    n += 1
    group_ptr[group_ptr.size - 1] = n
    return n


@jit
def place(csr, lane, chunk_of_lane, chunk_pair, chunk_slot, slot, successor, aligned):
    """Turn every tuple's row, given in `slot`, into its slot; write where each slot leads, and which chunks align."""
    pair_ptr = csr.pair_ptr
    for i in range(lane.size):
        c = chunk_of_lane[lane[i]]
        lanes = chunk_pair[c + 1] - chunk_pair[c]
        first = chunk_slot[c] + lane[i] - chunk_pair[c]
        for j in range(pair_ptr[i], pair_ptr[i + 1]):
            slot[j] = first + slot[j] * lanes
            successor[slot[j]] = csr.successor[j]
    for c in range(aligned.size):
        lanes = chunk_pair[c + 1] - chunk_pair[c]
        aligned[c] = True
        for first in range(chunk_slot[c], chunk_slot[c + 1], lanes):
            for t in range(first, first + lanes):
                aligned[c] &= successor[t] == successor[first]
