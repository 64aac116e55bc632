"""The Hessian of the dual, in the panels of `tridiagonal.py`.

F does not change when a constant is added to β on one layer. That freedom is removed by solving for the potentials of
Σ_k Z_k instead: at Z_k = 1, and with the first layer included, its Hessian

    H = Σ_pairs q [ (e_s − p)(e_s − p)ᵀ + ∂p/∂β ]

is positive definite and block-tridiagonal over the layers, and its Newton step is that of F up to such constants.
"""

import numpy as np

from tightrope.kernels.arithmetic import dot
from tightrope.kernels.compile import jit
from tightrope.projection.kernels.sets import FIXED, LANES, SCALED_1, SCALED_2, WHOLE

MASS_1, MASS_2, ALL, MOVING, LEFT = (np.uint32(row * LANES) for row in range(5))  # in scratch


@jit
def assemble(layout, panel_ptr, damping, work):
    """The panels of H at the last evaluated β, plus damping · (inflow + outflow) on the diagonal."""
    chunk_pair, chunk_slot, layer_chunk = layout.chunk_pair, layout.chunk_slot, layout.layer_chunk
    inflow, outflow, panels, layer_state = work.inflow, work.outflow, work.panels, layout.layer_state
    L = layer_state.size - 2
    panels[:] = 0.0
    for k in range(L):
        start, n = layer_state[k], layer_state[k + 1] - layer_state[k]
        panel = panels[panel_ptr[k] : panel_ptr[k + 1]].reshape(np.int64(n), -1)
        for s in range(n):
            panel[s, s] += outflow[start + s] + damping * (inflow[start + s] + outflow[start + s])
        if k == L - 1:
            break  # everything leads to the last state, whose potential is fixed
        below = panels[panel_ptr[k + 1] : panel_ptr[k + 2]].reshape(
            np.int64(layer_state[k + 2] - layer_state[k + 1]), -1
        )
        for c in range(layer_chunk[k], layer_chunk[k + 1]):
            first, last = chunk_slot[c], chunk_slot[c + 1]
            i, lanes = chunk_pair[c], chunk_pair[c + 1] - chunk_pair[c]
            clipped = False
            for v in range(lanes):
                clipped |= work.group[first + v] != WHOLE
            connect(layout.successor, layout.origin, i, lanes, first, last, start, n, work.p, work.share, panel)
            if not clipped:
                spread(layout.successor, i, lanes, first, last, start + n, work.p, work.share, below)
            elif layout.aligned[c]:
                spread_clipped_together(
                    layout.successor, i, lanes, first, last, start + n,
                    work.p, work.share, work.W, work.group, work.scratch, work.table, below,
                )  # fmt: skip
            else:
                spread_clipped(
                    layout.successor, i, lanes, first, last, start + n, work.p, work.share, work.W, work.group, below
                )


@jit
def connect(successor, origin, i, lanes, first, last, start, n, p, share, panel):
    """−q p between each pair's state and its successors."""
    for v in range(lanes):
        s, f = origin[i + v] - start, share[i + v]
        for j in range(first + v, last, lanes):
            panel[s, successor[j] - start] -= f * p[j]


@jit
def spread(successor, i, lanes, first, last, after, p, share, below):
    """q (p pᵀ + ∂p/∂β) where all of p is scaled: p pᵀ and −p pᵀ cancel, q diag(p) is left."""
    for row in range(first, last, lanes):
        for v in range(lanes):
            t = successor[row + v] - after
            below[t, t] += share[i + v] * p[row + v]


@jit
def spread_clipped(successor, i, lanes, first, last, after, p, share, W, group, below):
    """q (p pᵀ + ∂p/∂β), pair by pair."""
    for v in range(lanes):
        f, whole = share[i + v], group[first + v] == WHOLE
        mass_1, mass_2 = 0.0, 0.0
        for j in range(first + v, last, lanes):
            mass_1 += p[j] if group[j] == SCALED_1 else 0.0
            mass_2 += p[j] if group[j] == SCALED_2 else 0.0
        apart = f / W[i + v]
        together_1 = apart - f / mass_1 if mass_1 > 0.0 else apart
        together_2 = apart - f / mass_2 if mass_2 > 0.0 else apart
        for j in range(first + v, last, lanes):
            t, label = successor[j] - after, group[j]
            if whole or label != FIXED:
                below[t, t] += f * p[j]
            if not whole:
                together = together_1 if label == SCALED_1 else (together_2 if label == SCALED_2 else apart)
                for j2 in range(j, last, lanes):
                    below[t, successor[j2] - after] += p[j] * p[j2] * (together if group[j2] == label else apart)


@jit
def spread_clipped_together(successor, i, lanes, first, last, after, p, share, W, group, z, table, below):
    """q (p pᵀ + ∂p/∂β) for pairs that share their successors, as sums over the pairs.

    Between successors t and t' that is Σ q (p_t p_t' − p_t p_t' / p(G) where both are in group G): the product of the
    rows of a table of roots √q p, √(q / p(G)) p_G, the first part with a plus, the others with a minus.
    """
    for v in range(lanes):
        z[MASS_1 + v], z[MASS_2 + v] = 0.0, 0.0
    for row in range(first, last, lanes):
        for v in range(lanes):
            z[MASS_1 + v] += p[row + v] if group[row + v] == SCALED_1 else 0.0
            z[MASS_2 + v] += p[row + v] if group[row + v] == SCALED_2 else 0.0
    for v in range(lanes):
        f = 0.0 if group[first + v] == WHOLE else share[i + v]
        z[ALL + v] = np.sqrt(f / W[i + v])
        z[MASS_1 + v] = np.sqrt(f / z[MASS_1 + v]) if z[MASS_1 + v] > 0.0 else 0.0
        z[MASS_2 + v] = np.sqrt(f / z[MASS_2 + v]) if z[MASS_2 + v] > 0.0 else 0.0
    two, width = np.uint32(2) * lanes, np.uint32(3) * lanes
    for row in range(first, last, lanes):
        at = (row - first) // lanes * width
        for v in range(lanes):  # one stream of stores to a loop: of more than a few a compiler makes no vectors
            table[at + v] = z[ALL + v] * p[row + v]
        for v in range(lanes):
            table[at + lanes + v] = z[MASS_1 + v] * p[row + v] * (group[row + v] == SCALED_1)
        for v in range(lanes):
            table[at + two + v] = z[MASS_2 + v] * p[row + v] * (group[row + v] == SCALED_2)
        for v in range(lanes):
            z[MOVING + v] = share[i + v] if group[row + v] != FIXED or z[ALL + v] == 0.0 else 0.0
        t = successor[row] - after
        below[t, t] += dot(z, MOVING, p, row, lanes)
    for row in range(first, last, lanes):
        t, at = successor[row] - after, (row - first) // lanes * width
        for v in range(lanes):
            z[LEFT + v] = table[at + v]
        for v in range(lanes, width):
            z[LEFT + v] = -table[at + v]
        for row2 in range(row, last, lanes):
            below[t, successor[row2] - after] += dot(z, LEFT, table, (row2 - first) // lanes * width, width)
