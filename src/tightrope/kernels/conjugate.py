"""H x without H, and the conjugate gradient method on top: for models whose dense blocks would be too large.

A pair with mass q = Σ θ_j contributes to H x, besides q x_s − Σ θ_j x_j at its own state s, at each successor j

    θ_j (x_j − x_s)                                                     where all of p is scaled,
    θ_j ( Σθx/q − x_s )  +  θ_j ( x_j − Σ_G θx / Σ_G θ ) for j in G     where p is clipped, G the scaled group of j.

The preconditioner is symmetric Gauss-Seidel over the layers: one sweep of what flows forward, one of what comes back,
with H's diagonal inside the layers.
"""

from tightrope.kernels.compile import jit
from tightrope.kernels.sets import FIXED, LANES, SCALED_1, WHOLE

ALL, GROUP_1, GROUP_2, MASS_1, MASS_2 = (row * LANES for row in range(5))  # rows of scratch


@jit
def multiply(layout, damping, work, x, y):
    """y = (H + damping · diag(inflow + outflow)) x; the last state takes no part: x is 0 there."""
    chunk_pair, chunk_slot, successor, origin = layout.chunk_pair, layout.chunk_slot, layout.successor, layout.origin
    p, W, share, group, z = work.p, work.W, work.share, work.group, work.scratch
    for s in range(x.size):
        y[s] = damping * (work.inflow[s] + work.outflow[s]) * x[s]
    for c in range(chunk_pair.size - 1):
        i, lanes = chunk_pair[c], chunk_pair[c + 1] - chunk_pair[c]
        first, last = chunk_slot[c], chunk_slot[c + 1]
        clipped = False
        for v in range(lanes):
            z[ALL + v], z[GROUP_1 + v], z[GROUP_2 + v] = 0.0, 0.0, 0.0
            z[MASS_1 + v], z[MASS_2 + v] = 0.0, 0.0
            clipped |= group[first + v] != WHOLE
        for row in range(first, last, lanes):
            for v in range(lanes):
                z[ALL + v] += p[row + v] * x[successor[row + v]]
        if clipped:
            for row in range(first, last, lanes):
                for v in range(lanes):
                    one, two = group[row + v] == SCALED_1, group[row + v] > SCALED_1
                    z[GROUP_1 + v] += p[row + v] * x[successor[row + v]] if one else 0.0
                    z[MASS_1 + v] += p[row + v] if one else 0.0
                    z[GROUP_2 + v] += p[row + v] * x[successor[row + v]] if two else 0.0
                    z[MASS_2 + v] += p[row + v] if two else 0.0
        for v in range(lanes):
            y[origin[i + v]] += share[i + v] * (W[i + v] * x[origin[i + v]] - z[ALL + v])
            z[GROUP_1 + v] = z[GROUP_1 + v] / z[MASS_1 + v] if z[MASS_1 + v] > 0.0 else 0.0
            z[GROUP_2 + v] = z[GROUP_2 + v] / z[MASS_2 + v] if z[MASS_2 + v] > 0.0 else 0.0
            z[ALL + v] /= W[i + v]
        for row in range(first, last, lanes):
            for v in range(lanes):
                to, theta = successor[row + v], share[i + v] * p[row + v]
                change = x[to] - x[origin[i + v]]
                if clipped and group[first + v] != WHOLE:
                    mean = z[GROUP_1 + v] if group[row + v] == SCALED_1 else z[GROUP_2 + v]
                    moved = x[to] - mean if group[row + v] != FIXED else 0.0
                    change = z[ALL + v] - x[origin[i + v]] + moved
                y[to] += theta * change
    y[x.size - 1] = 0.0


@jit
def diagonal(layout, damping, work, d):
    """The diagonal of H + damping · diag(inflow + outflow)."""
    chunk_pair, chunk_slot, successor = layout.chunk_pair, layout.chunk_slot, layout.successor
    p, W, share, group, z = work.p, work.W, work.share, work.group, work.scratch
    for s in range(d.size):
        d[s] = work.outflow[s] + damping * (work.inflow[s] + work.outflow[s]) + 1e-290
    for c in range(chunk_pair.size - 1):
        i, lanes = chunk_pair[c], chunk_pair[c + 1] - chunk_pair[c]
        first, last = chunk_slot[c], chunk_slot[c + 1]
        for v in range(lanes):
            z[MASS_1 + v], z[MASS_2 + v] = 0.0, 0.0
        for row in range(first, last, lanes):
            for v in range(lanes):
                z[MASS_1 + v] += p[row + v] if group[row + v] == SCALED_1 else 0.0
                z[MASS_2 + v] += p[row + v] if group[row + v] > SCALED_1 else 0.0
        for row in range(first, last, lanes):
            for v in range(lanes):
                theta, part = share[i + v] * p[row + v], 1.0
                if group[first + v] != WHOLE:
                    part = p[row + v] / W[i + v]
                    if group[row + v] != FIXED:
                        part += 1.0 - p[row + v] / (z[MASS_1 + v] if group[row + v] == SCALED_1 else z[MASS_2 + v])
                d[successor[row + v]] += theta * part


@jit
def precondition(layout, work, d, r, x):
    """x = M⁻¹ r, M = (D + B)ᵀ D⁻¹ (D + B), B the blocks of H from each layer to the next."""
    chunk_pair, chunk_slot, successor, origin = layout.chunk_pair, layout.chunk_slot, layout.successor, layout.origin
    layer_state, layer_chunk, p, share, z = layout.layer_state, layout.layer_chunk, work.p, work.share, work.scratch
    L = layer_state.size - 2
    for s in range(x.size):
        x[s] = r[s]
    for k in range(L):
        for s in range(layer_state[k], layer_state[k + 1]):
            x[s] /= d[s]
        for c in range(layer_chunk[k], layer_chunk[k + 1]):
            i, lanes = chunk_pair[c], chunk_pair[c + 1] - chunk_pair[c]
            for row in range(chunk_slot[c], chunk_slot[c + 1], lanes):
                for v in range(lanes):
                    x[successor[row + v]] += share[i + v] * p[row + v] * x[origin[i + v]]
    x[x.size - 1] = 0.0
    for k in range(L - 1, -1, -1):
        for c in range(layer_chunk[k], layer_chunk[k + 1]):
            i, lanes = chunk_pair[c], chunk_pair[c + 1] - chunk_pair[c]
            for v in range(lanes):
                z[ALL + v] = 0.0
            for row in range(chunk_slot[c], chunk_slot[c + 1], lanes):
                for v in range(lanes):
                    z[ALL + v] += p[row + v] * x[successor[row + v]]
            for v in range(lanes):
                x[origin[i + v]] += share[i + v] * z[ALL + v] / d[origin[i + v]]


@jit
def conjugate_gradients(layout, damping, work, accuracy, max_iterations, x):
    """Overwrite the right-hand side x with (H + damping …)⁻¹ x, to a residual of `accuracy` relative to it, in L1."""
    d, r, z, direction, image = work.cg[0], work.cg[1], work.cg[2], work.cg[3], work.cg[4]
    diagonal(layout, damping, work, d)
    target, product = 0.0, 0.0
    for s in range(x.size):
        r[s], x[s], direction[s] = x[s], 0.0, 0.0
        target += accuracy * abs(r[s])
    for iteration in range(max_iterations):
        precondition(layout, work, d, r, z)
        old, product = product, 0.0
        for s in range(x.size):
            product += r[s] * z[s]
        ratio = product / old if iteration > 0 else 0.0
        for s in range(x.size):
            direction[s] = z[s] + ratio * direction[s]
        multiply(layout, damping, work, direction, image)
        curvature = 0.0
        for s in range(x.size):
            curvature += direction[s] * image[s]
        if not curvature > 0.0:
            return iteration
        length, left = product / curvature, 0.0
        for s in range(x.size):
            x[s] += length * direction[s]
            r[s] -= length * image[s]
            left += abs(r[s])
        if left <= target:
            return iteration + 1
    return max_iterations
