"""Newton's step by conjugate gradients, H never formed: for models whose dense blocks would be too large.

Let θ = q p. From each layer to the next, H has the blocks B, B(s, s') = −Σ_a θ(s, a, s'). Inside a layer it is D + E:
D = inflow + outflow, without the θ of fixed entries of p; E is 0 but for clipped pairs, which add to (E x)_j

    θ_j Σ p x                               at a successor j where p is fixed,
    θ_j ( Σ p x − Σ_G p x / Σ_G p )         at one where it is scaled, with its group G.

The preconditioner is M = Uᵀ C⁻¹ U, U = C + B: one sweep over the layers forward and one back. C is what elimination
would leave on the diagonal if all that it fills in beside the diagonal, and E, were added to the diagonal. Then M and H
agree on every x that is constant on the layers, and almost on those that differ little between the successors of a
state: where H is smallest, and what would take most iterations, the more the larger the layers. `FILL` of it is added,
short of all, and nothing of what the first state fills in: its successors may be anywhere.

The two sweeps are the product with H too, since H = U + Uᵀ + D + E − 2 C: with t = U⁻¹ x

    U⁻ᵀ H U⁻¹ x = t + U⁻ᵀ (x + (D + E − 2 C) t)

(S. C. Eisenstat, Efficient implementation of a class of preconditioned conjugate gradient methods, SIAM Journal on
Scientific and Statistical Computing 2, 1981; the lumping is I. Gustafsson's modified incomplete factorisation, BIT 18,
1978).
"""

import numpy as np

from tightrope.kernels.arithmetic import dot
from tightrope.kernels.compile import jit
from tightrope.projection.kernels.sets import FIXED, LANES, SCALED_1, WHOLE

FILL = 0.99
TINY = 1e-290  # a state that nothing reaches must not divide 0 by 0

ALL, GROUP_1, GROUP_2, MASS_1, MASS_2, ROW = (np.uint32(row * LANES) for row in range(6))  # rows of scratch


@jit
def pivots(layout, damping, work, c, d):
    """C and D for H + damping · diag(inflow + outflow). C is at least the outflow, so M is positive definite."""
    chunk_pair, chunk_slot, successor, origin = layout.chunk_pair, layout.chunk_slot, layout.successor, layout.origin
    p, share, group, outflow, z = work.p, work.share, work.group, work.outflow, work.scratch
    for s in range(c.size):
        c[s] = (1.0 + damping) * (work.inflow[s] + outflow[s]) + TINY
        d[s] = c[s]
    for h in range(chunk_pair.size - 1):
        i, lanes = chunk_pair[h], chunk_pair[h + 1] - chunk_pair[h]
        first, last = chunk_slot[h], chunk_slot[h + 1]
        fill, clipped = FILL if h >= layout.layer_chunk[1] else 0.0, False
        for v in range(lanes):
            z[ROW + v] = fill * share[i + v] * outflow[origin[i + v]] / c[origin[i + v]]
            clipped |= group[first + v] != WHOLE
        for row in range(first, last, lanes):
            for v in range(lanes):
                c[successor[row + v]] -= z[ROW + v] * p[row + v]
        if clipped:
            for v in range(lanes):
                z[ROW + v] = share[i + v] if group[first + v] != WHOLE else 0.0
            for row in range(first, last, lanes):
                for v in range(lanes):
                    d[successor[row + v]] -= z[ROW + v] * p[row + v] if group[row + v] == FIXED else 0.0


@jit
def backward(layout, work, c, x, t, y):
    """t = U⁻¹ x and y = E t; the last state takes no part."""
    chunk_pair, chunk_slot, successor, origin = layout.chunk_pair, layout.chunk_slot, layout.successor, layout.origin
    layer_state, layer_chunk = layout.layer_state, layout.layer_chunk
    p, W, share, group, z = work.p, work.W, work.share, work.group, work.scratch
    t[t.size - 1] = 0.0
    for k in range(layer_state.size - 3, -1, -1):
        for s in range(layer_state[k], layer_state[k + 1]):
            t[s], y[s] = x[s], 0.0
        for h in range(layer_chunk[k], layer_chunk[k + 1]):
            i, lanes = chunk_pair[h], chunk_pair[h + 1] - chunk_pair[h]
            first, last = chunk_slot[h], chunk_slot[h + 1]
            clipped = False
            for v in range(lanes):
                z[ALL + v] = 0.0
                clipped |= group[first + v] != WHOLE
            if clipped:
                for v in range(lanes):
                    z[GROUP_1 + v], z[GROUP_2 + v], z[MASS_1 + v], z[MASS_2 + v] = 0.0, 0.0, 0.0, 0.0
                for row in range(first, last, lanes):
                    for v in range(lanes):  # a loop of its own: look-ups do not vectorise
                        z[ROW + v] = p[row + v] * t[successor[row + v]]
                    for v in range(lanes):
                        label, mass, moment = group[row + v], p[row + v], z[ROW + v]
                        z[ALL + v] += moment
                        z[GROUP_1 + v] += moment if label == SCALED_1 else 0.0
                        z[GROUP_2 + v] += moment if label > SCALED_1 else 0.0
                        z[MASS_1 + v] += mass if label == SCALED_1 else 0.0
                        z[MASS_2 + v] += mass if label > SCALED_1 else 0.0
            else:
                for row in range(first, last, lanes):
                    for v in range(lanes):
                        z[ALL + v] += p[row + v] * t[successor[row + v]]
            for v in range(lanes):
                t[origin[i + v]] += share[i + v] * z[ALL + v]
            if clipped:
                for v in range(lanes):
                    z[ALL + v] /= W[i + v]
                    z[GROUP_1 + v] = z[ALL + v] - (z[GROUP_1 + v] / z[MASS_1 + v] if z[MASS_1 + v] > 0.0 else 0.0)
                    z[GROUP_2 + v] = z[ALL + v] - (z[GROUP_2 + v] / z[MASS_2 + v] if z[MASS_2 + v] > 0.0 else 0.0)
                    z[MASS_1 + v] = share[i + v] if group[first + v] != WHOLE else 0.0
                for row in range(first, last, lanes):
                    for v in range(lanes):
                        label, fixed, one, two = group[row + v], z[ALL + v], z[GROUP_1 + v], z[GROUP_2 + v]
                        change = one if label == SCALED_1 else (two if label > SCALED_1 else fixed)
                        z[ROW + v] = z[MASS_1 + v] * p[row + v] * change
                    for v in range(lanes):
                        y[successor[row + v]] += z[ROW + v]
        for s in range(layer_state[k], layer_state[k + 1]):
            t[s] /= c[s]


@jit
def forward(layout, work, c, d, x, t, y):
    """y = t + U⁻ᵀ (y + x + (D − 2 C) t), and return x · y; the last state takes no part."""
    chunk_pair, chunk_slot, successor, origin = layout.chunk_pair, layout.chunk_slot, layout.successor, layout.origin
    layer_state, layer_chunk, p, share, z = layout.layer_state, layout.layer_chunk, work.p, work.share, work.scratch
    product = 0.0
    for k in range(layer_state.size - 2):
        begin, end = layer_state[k], layer_state[k + 1]
        for s in range(begin, end):
            y[s] = (y[s] + x[s] + (d[s] - 2.0 * c[s]) * t[s]) / c[s]
        for h in range(layer_chunk[k], layer_chunk[k + 1]):
            i, lanes = chunk_pair[h], chunk_pair[h + 1] - chunk_pair[h]
            for v in range(lanes):
                z[ROW + v] = share[i + v] * y[origin[i + v]]
            for row in range(chunk_slot[h], chunk_slot[h + 1], lanes):
                for v in range(lanes):
                    y[successor[row + v]] += z[ROW + v] * p[row + v]
        for s in range(begin, end):
            y[s] += t[s]
        product += dot(x, begin, y, begin, end - begin)
    y[y.size - 1] = 0.0
    return product


@jit
def conjugate_gradients(layout, damping, work, accuracy, max_iterations, x):
    """Overwrite the right-hand side b that x holds with (H + damping · diag(inflow + outflow))⁻¹ b.

    The unknowns are U x, the residual r is U⁻ᵀ (b − H x) and its preconditioner C. It ends when the norm √(r · C r),
    which does not depend on how much mass a state has, is down to `accuracy` times what it was.
    """
    c, d, r, direction, t, y = work.cg[0], work.cg[1], work.cg[2], work.cg[3], work.cg[4], work.cg[5]
    pivots(layout, damping, work, c, d)
    for s in range(x.size):
        r[s], x[s], direction[s], t[s] = x[s], 0.0, 0.0, 0.0
    forward(layout, work, c, d, direction, t, r)
    product = 0.0
    for s in range(x.size):
        direction[s] = c[s] * r[s]
        product += direction[s] * r[s]
    target = accuracy * accuracy * product
    for iteration in range(max_iterations):
        backward(layout, work, c, direction, t, y)
        curvature = forward(layout, work, c, d, direction, t, y)
        if not curvature > 0.0:
            return iteration
        length, old, product = product / curvature, product, 0.0
        for s in range(x.size):
            x[s] += length * t[s]
            r[s] -= length * y[s]
            product += c[s] * r[s] * r[s]
        if product <= target:
            return iteration + 1
        for s in range(x.size):
            direction[s] = c[s] * r[s] + product / old * direction[s]
    return max_iterations
