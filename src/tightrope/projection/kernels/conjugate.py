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
from tightrope.projection.kernels.kinds import FIXED, SCALED_1, WHOLE, by_kind, some_clipped
from tightrope.projection.kernels.placement import LANES, extent

FILL = 0.99
TINY = 1e-290  # a state that nothing reaches must not divide 0 by 0

ALL, MEAN, GROUP_1, GROUP_2, MASS_1, MASS_2, ROW = (np.uint32(row * LANES) for row in range(7))  # rows of scratch


@jit
def conjugate_gradients(lanes, data, damping, accuracy, max_iterations, work, x):
    """Overwrite the right-hand side b that x holds with (H + damping · diag(inflow + outflow))⁻¹ b.

    The unknowns are U x, the residual r is U⁻ᵀ (b − H x) and its preconditioner C. It ends when the norm √(r · C r),
    which does not depend on how much mass a state has, is down to `accuracy` times what it was.
    """
    C, D, r, direction, t, y = work.cg[0], work.cg[1], work.cg[2], work.cg[3], work.cg[4], work.cg[5]
    pivots(lanes, data, damping, work, C, D)
    for s in range(x.size):
        r[s], x[s], direction[s], t[s] = x[s], 0.0, 0.0, 0.0
    forward(lanes, work, C, D, direction, t, r)
    product = 0.0
    for s in range(x.size):
        direction[s] = C[s] * r[s]
        product += direction[s] * r[s]
    target = accuracy * accuracy * product
    for iteration in range(max_iterations):
        backward(lanes, data, work, C, direction, t, y)
        curvature = forward(lanes, work, C, D, direction, t, y)
        if not curvature > 0.0:
            return iteration
        length, old, product = product / curvature, product, 0.0
        for s in range(x.size):
            x[s] += length * t[s]
            r[s] -= length * y[s]
            product += C[s] * r[s] * r[s]
        if product <= target:
            return iteration + 1
        for s in range(x.size):
            direction[s] = C[s] * r[s] + product / old * direction[s]
    return max_iterations


@jit
def pivots(lanes, data, damping, work, C, D):
    """C and D for H + damping · diag(inflow + outflow). C is at least the outflow, so M is positive definite."""
    successor, origin, p, share, outflow, z = (
        lanes.successor, lanes.origin, work.p, work.share, work.outflow, work.scratch,
    )  # fmt: skip
    for s in range(C.size):
        C[s] = (1.0 + damping) * (work.inflow[s] + outflow[s]) + TINY
        D[s] = C[s]
    for chunk in range(lanes.aligned.size):
        i, n_lanes, first, last = extent(lanes, chunk)
        fill = FILL if chunk >= lanes.layer_chunk[1] else 0.0
        for v in range(n_lanes):
            z[ROW + v] = fill * share[i + v] * outflow[origin[i + v]] / C[origin[i + v]]
        for row in range(first, last, n_lanes):
            for v in range(n_lanes):
                C[successor[row + v]] -= z[ROW + v] * p[row + v]
        if some_clipped(lanes, chunk, work.label):
            hold(data, lanes, chunk, work, D)


@jit
def backward(lanes, data, work, C, x, t, y):
    """t = U⁻¹ x and y = E t; the last state takes no part."""
    successor, origin, layer_state, layer_chunk = lanes.successor, lanes.origin, lanes.layer_state, lanes.layer_chunk
    p, share, z = work.p, work.share, work.scratch
    t[t.size - 1] = 0.0
    for k in range(layer_state.size - 3, -1, -1):
        for s in range(layer_state[k], layer_state[k + 1]):
            t[s], y[s] = x[s], 0.0
        for chunk in range(layer_chunk[k], layer_chunk[k + 1]):
            i, n_lanes, first, last = extent(lanes, chunk)
            for v in range(n_lanes):
                z[ALL + v] = 0.0
            if some_clipped(lanes, chunk, work.label):
                respond(data, lanes, chunk, work, t, y)
            else:
                for row in range(first, last, n_lanes):
                    for v in range(n_lanes):
                        z[ALL + v] += p[row + v] * t[successor[row + v]]
            for v in range(n_lanes):
                t[origin[i + v]] += share[i + v] * z[ALL + v]
        for s in range(layer_state[k], layer_state[k + 1]):
            t[s] /= C[s]


@jit
def forward(lanes, work, C, D, x, t, y):
    """y = t + U⁻ᵀ (y + x + (D − 2 C) t), and return x · y; the last state takes no part."""
    successor, origin, layer_state, layer_chunk = lanes.successor, lanes.origin, lanes.layer_state, lanes.layer_chunk
    p, share, z = work.p, work.share, work.scratch
    product = 0.0
    for k in range(layer_state.size - 2):
        begin, end = layer_state[k], layer_state[k + 1]
        for s in range(begin, end):
            y[s] = (y[s] + x[s] + (D[s] - 2.0 * C[s]) * t[s]) / C[s]
        for chunk in range(layer_chunk[k], layer_chunk[k + 1]):
            i, n_lanes, first, last = extent(lanes, chunk)
            for v in range(n_lanes):
                z[ROW + v] = share[i + v] * y[origin[i + v]]
            for row in range(first, last, n_lanes):
                for v in range(n_lanes):
                    y[successor[row + v]] += z[ROW + v] * p[row + v]
        for s in range(begin, end):
            y[s] += t[s]
        product += dot(x, begin, y, begin, end - begin)
    y[y.size - 1] = 0.0
    return product


@by_kind
def hold(data, lanes, chunk, work, D):
    """Take the θ of what does not move from D, for a chunk of which some pairs are not WHOLE."""
    successor, p, share, label, z = lanes.successor, work.p, work.share, work.label, work.scratch
    i, n_lanes, first, last = extent(lanes, chunk)
    for v in range(n_lanes):
        z[ROW + v] = share[i + v] if label[first + v] != WHOLE else 0.0
    for row in range(first, last, n_lanes):
        for v in range(n_lanes):
            D[successor[row + v]] -= z[ROW + v] * p[row + v] if label[row + v] == FIXED else 0.0


@by_kind
def respond(data, lanes, chunk, work, t, y):
    """Add E t to y, for a chunk of which some pairs are not WHOLE, and Σ p t of every pair to row ALL of scratch."""
    successor, p, W, share, label, z = lanes.successor, work.p, work.W, work.share, work.label, work.scratch
    i, n_lanes, first, last = extent(lanes, chunk)
    for v in range(n_lanes):
        z[GROUP_1 + v], z[GROUP_2 + v], z[MASS_1 + v], z[MASS_2 + v] = 0.0, 0.0, 0.0, 0.0
    for row in range(first, last, n_lanes):
        for v in range(n_lanes):  # a loop of its own: look-ups do not vectorise
            z[ROW + v] = p[row + v] * t[successor[row + v]]
        for v in range(n_lanes):
            mine, mass, moment = label[row + v], p[row + v], z[ROW + v]
            z[ALL + v] += moment
            z[GROUP_1 + v] += moment if mine == SCALED_1 else 0.0
            z[GROUP_2 + v] += moment if mine > SCALED_1 else 0.0
            z[MASS_1 + v] += mass if mine == SCALED_1 else 0.0
            z[MASS_2 + v] += mass if mine > SCALED_1 else 0.0
    for v in range(n_lanes):
        z[MEAN + v] = z[ALL + v] / W[i + v]
        z[GROUP_1 + v] = z[MEAN + v] - (z[GROUP_1 + v] / z[MASS_1 + v] if z[MASS_1 + v] > 0.0 else 0.0)
        z[GROUP_2 + v] = z[MEAN + v] - (z[GROUP_2 + v] / z[MASS_2 + v] if z[MASS_2 + v] > 0.0 else 0.0)
        z[MASS_1 + v] = share[i + v] if label[first + v] != WHOLE else 0.0
    for row in range(first, last, n_lanes):
        for v in range(n_lanes):
            mine, fixed, one, two = label[row + v], z[MEAN + v], z[GROUP_1 + v], z[GROUP_2 + v]
            change = one if mine == SCALED_1 else (two if mine > SCALED_1 else fixed)
            z[ROW + v] = z[MASS_1 + v] * p[row + v] * change
        for v in range(n_lanes):
            y[successor[row + v]] += z[ROW + v]
