"""The Hessian of the dual, in the panels of `tridiagonal.py`.

F does not change when a constant is added to β on one layer. That freedom is removed by solving for the potentials of
Σ_k Z_k instead: at Z_k = 1, and with the first layer included, its Hessian

    H = Σ_pairs q [ (e_s − p)(e_s − p)ᵀ + ∂p/∂β ]

is positive definite and block-tridiagonal over the layers, and its Newton step is that of F up to such constants.
"""

import numpy as np

from tightrope.kernels.arithmetic import dot
from tightrope.kernels.compile import inlined, jit
from tightrope.projection.kernels.kinds import FIXED, SCALED_1, SCALED_2, WHOLE, by_kind, some_clipped
from tightrope.projection.kernels.placement import LANES, extent

MASS_1, MASS_2, ALL, MOVING, LEFT = (np.uint32(row * LANES) for row in range(5))  # rows of scratch; LEFT is three


@jit
def assemble(lanes, data, damping, work):
    """The panels of H at the last evaluated β, plus damping · (inflow + outflow) on the diagonal."""
    layer_chunk, layer_state, panel_ptr, panels = lanes.layer_chunk, lanes.layer_state, work.panel_ptr, work.panels
    inflow, outflow = work.inflow, work.outflow
    L = layer_state.size - 2
    panels[:] = 0.0
    for k in range(L):
        start, n = layer_state[k], layer_state[k + 1] - layer_state[k]
        panel = panels[panel_ptr[k] : panel_ptr[k + 1]].reshape(np.int64(n), -1)
        for s in range(n):
            panel[s, s] += outflow[start + s] + damping * (inflow[start + s] + outflow[start + s])
        if k == L - 1:
            break  # everything leads to the last state, whose potential is fixed
        after = start + n
        below = panels[panel_ptr[k + 1] : panel_ptr[k + 2]].reshape(np.int64(layer_state[k + 2] - after), -1)
        for chunk in range(layer_chunk[k], layer_chunk[k + 1]):
            connect(lanes, chunk, start, work, panel)
            if some_clipped(lanes, chunk, work.label):
                spread_moving(data, lanes, chunk, after, work, below)
            else:
                spread_whole(lanes, chunk, after, work, below)


@inlined
def connect(lanes, chunk, start, work, panel):
    """−q p between each pair's state and its successors."""
    successor, origin, p, share = lanes.successor, lanes.origin, work.p, work.share
    i, n_lanes, first, last = extent(lanes, chunk)
    for v in range(n_lanes):
        s, f = origin[i + v] - start, share[i + v]
        for j in range(first + v, last, n_lanes):
            panel[s, successor[j] - start] -= f * p[j]


@inlined
def spread_whole(lanes, chunk, after, work, below):
    """q (p pᵀ + ∂p/∂β) where all of p is scaled: p pᵀ and −p pᵀ cancel, q diag(p) is left."""
    successor, p, share = lanes.successor, work.p, work.share
    i, n_lanes, first, last = extent(lanes, chunk)
    for row in range(first, last, n_lanes):
        for v in range(n_lanes):
            t = successor[row + v] - after
            below[t, t] += share[i + v] * p[row + v]


@by_kind
def spread_moving(data, lanes, chunk, after, work, below):
    """q (p pᵀ + ∂p/∂β) for a chunk of which some pairs are not WHOLE, added to the upper triangle of `below`."""
    if lanes.aligned[chunk]:
        spread_together(lanes, chunk, after, work, below)
    else:
        spread_one_by_one(lanes, chunk, after, work, below)


@inlined
def spread_one_by_one(lanes, chunk, after, work, below):
    """`spread_moving` pair by pair."""
    successor, p, share, W, label = lanes.successor, work.p, work.share, work.W, work.label
    i, n_lanes, first, last = extent(lanes, chunk)
    for v in range(n_lanes):
        f, whole = share[i + v], label[first + v] == WHOLE
        mass_1, mass_2 = 0.0, 0.0
        for j in range(first + v, last, n_lanes):
            mass_1 += p[j] if label[j] == SCALED_1 else 0.0
            mass_2 += p[j] if label[j] == SCALED_2 else 0.0
        apart = f / W[i + v]
        together_1 = apart - f / mass_1 if mass_1 > 0.0 else apart
        together_2 = apart - f / mass_2 if mass_2 > 0.0 else apart
        for j in range(first + v, last, n_lanes):
            t, mine = successor[j] - after, label[j]
            if whole or mine != FIXED:
                below[t, t] += f * p[j]
            if not whole:
                together = together_1 if mine == SCALED_1 else (together_2 if mine == SCALED_2 else apart)
                for j2 in range(j, last, n_lanes):
                    below[t, successor[j2] - after] += p[j] * p[j2] * (together if label[j2] == mine else apart)


@inlined
def spread_together(lanes, chunk, after, work, below):
    """`spread_moving` for pairs that share their successors, as sums over the pairs.

    Between successors t and t' that is Σ q (p_t p_t' − p_t p_t' / p(G) where both are in group G): the product of the
    rows of a table of roots √q p, √(q / p(G)) p_G, the first part with a plus, the others with a minus.
    """
    successor, p, share, W, label = lanes.successor, work.p, work.share, work.W, work.label
    z, table = work.scratch, work.table
    i, n_lanes, first, last = extent(lanes, chunk)
    for v in range(n_lanes):
        z[MASS_1 + v], z[MASS_2 + v] = 0.0, 0.0
    for row in range(first, last, n_lanes):
        for v in range(n_lanes):
            z[MASS_1 + v] += p[row + v] if label[row + v] == SCALED_1 else 0.0
            z[MASS_2 + v] += p[row + v] if label[row + v] == SCALED_2 else 0.0
    for v in range(n_lanes):
        f = 0.0 if label[first + v] == WHOLE else share[i + v]
        z[ALL + v] = np.sqrt(f / W[i + v])
        z[MASS_1 + v] = np.sqrt(f / z[MASS_1 + v]) if z[MASS_1 + v] > 0.0 else 0.0
        z[MASS_2 + v] = np.sqrt(f / z[MASS_2 + v]) if z[MASS_2 + v] > 0.0 else 0.0
    two, width = np.uint32(2) * n_lanes, np.uint32(3) * n_lanes
    for row in range(first, last, n_lanes):
        at = (row - first) // n_lanes * width
        for v in range(n_lanes):  # one stream of stores to a loop: of more than a few a compiler makes no vectors
            table[at + v] = z[ALL + v] * p[row + v]
        for v in range(n_lanes):
            table[at + n_lanes + v] = z[MASS_1 + v] * p[row + v] * (label[row + v] == SCALED_1)
        for v in range(n_lanes):
            table[at + two + v] = z[MASS_2 + v] * p[row + v] * (label[row + v] == SCALED_2)
        for v in range(n_lanes):
            z[MOVING + v] = share[i + v] if label[row + v] != FIXED or z[ALL + v] == 0.0 else 0.0
        t = successor[row] - after
        below[t, t] += dot(z, MOVING, p, row, n_lanes)
    for row in range(first, last, n_lanes):
        t, at = successor[row] - after, (row - first) // n_lanes * width
        for v in range(n_lanes):
            z[LEFT + v] = table[at + v]
        for v in range(n_lanes, width):
            z[LEFT + v] = -table[at + v]
        for row2 in range(row, last, n_lanes):
            below[t, successor[row2] - after] += dot(z, LEFT, table, (row2 - first) // n_lanes * width, width)
