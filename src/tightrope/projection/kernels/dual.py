"""The subproblem  min over θ of <cost, θ> + D(θ, reference)  through its dual in the potentials β.

With u = reference · e^{−cost} and, for every pair, W and p* the answer to the pair's question for w = u · e^{β(s')},

    F(β) = Σ_k log Z_k,   Z_k = Σ_{s in layer k, a} e^{−β(s)} W(s,a),   θ = q p*,   q(s,a) = e^{−β(s)} W(s,a) / Z_k.

F is convex, θ at its minimum is the answer, and ∂F/∂β(s') is inflow minus outflow of s'. β is 0 on the first and the
last layer.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tightrope.kernels.arithmetic import dot, exp, extremes
from tightrope.kernels.compile import jit
from tightrope.projection.kernels.sets import answer

HUGE = 1e100  # weights and their inverses up to here are held as they are, beyond as logarithms
RANGE = 300.0  # of potentials in a layer, up to which e^β is taken without a shift for each pair


class Work(NamedTuple):
    """Everything a solve writes to."""

    beta: NDArray[np.float64]  # (n_states,) potentials
    trial: NDArray[np.float64]  # (n_states,) potentials tried by the line search
    step: NDArray[np.float64]  # (n_states,) Newton's step; right-hand side before
    scale: NDArray[np.float64]  # (n_states,) e^{β − the largest β of the layer}
    inflow: NDArray[np.float64]  # (n_states,)
    outflow: NDArray[np.float64]  # (n_states,)
    cg: NDArray[np.float64]  # (6, n_states) for the conjugate gradient method
    high: NDArray[np.float64]  # (L + 2,) largest potential of each layer
    W: NDArray[np.float64]  # (n_pairs,)
    share: NDArray[np.float64]  # (n_pairs,) e^{−β} / Z, so that θ = share · W p*
    warm: NDArray[np.float64]  # (2, n_pairs) what a set's kernel left for its next call
    u: NDArray[np.float64]  # (n_slots,) reference · e^{−cost} (free pairs: summed), 0 in the padding; or its logarithm
    p: NDArray[np.float64]  # (n_slots,) w, then W p*, in the end θ / u
    group: NDArray[np.int8]  # (n_slots,) which entries of p* move together
    scratch: NDArray[np.float64]  # (8 · LANES,)
    table: NDArray[np.float64]  # three times as much as the largest chunk's slots
    panels: NDArray[np.float64]  # H, then its factor; empty where steps come from conjugate gradients


@jit
def unpack(states, layers, pairs, warm, slots, group, scratch, table, panels):
    """The arrays of a solve by name: few are passed, since each costs its time at every call."""
    return Work(
        states[0], states[1], states[2], states[3], states[4], states[5], states[6:], layers,
        pairs[0], pairs[1], warm, slots[0], slots[1], group, scratch, table, panels,
    )  # fmt: skip


@jit
def tilt(layout, reference, cost, work, theta):
    """u = reference · e^{−cost}, or the logarithm of that where it leaves the range of numbers; returns which.

    θ is where every tuple's own u is kept until `divide`; those of free pairs of one state add up.
    """
    slot, u = layout.slot, work.u
    for j in range(cost.size):
        theta[j] = reference[j] * exp(-cost[j])
    smallest, largest = extremes(theta, work.scratch)
    logarithmic = not (smallest >= 1.0 / HUGE and largest <= HUGE)
    if logarithmic:
        u[:] = -np.inf
        for j in range(cost.size):
            theta[j] = np.log(reference[j]) - cost[j]
            above, below = max(u[slot[j]], theta[j]), min(u[slot[j]], theta[j])
            u[slot[j]] = above + np.log1p(np.exp(below - above))
    else:
        u[:] = 0.0
        for j in range(cost.size):
            u[slot[j]] += theta[j]
    return logarithmic


@jit
def divide(layout, logarithmic, work, theta):
    """θ of every tuple: what its slot has, in proportion to its own u."""
    chunk_pair, chunk_slot, slot = layout.chunk_pair, layout.chunk_slot, layout.slot
    u, p, share = work.u, work.p, work.share
    if logarithmic:
        for j in range(theta.size):
            theta[j] = np.exp(theta[j] - u[slot[j]])
        u[:] = 0.0  # the parts add up to 1 but for the rounding of logarithms, which may be much
        for j in range(theta.size):
            u[slot[j]] += theta[j]
    for c in range(chunk_pair.size - 1):
        i, lanes = chunk_pair[c], chunk_pair[c + 1] - chunk_pair[c]
        for row in range(chunk_slot[c], chunk_slot[c + 1], lanes):
            for v in range(lanes):
                p[row + v] = share[i + v] * p[row + v] / u[row + v]  # in this order: share / u may overflow
    for j in range(theta.size):
        theta[j] *= p[slot[j]]


@jit
def evaluate(layout, data, beta, logarithmic, work):
    """F(β) and the flow residual Σ |inflow − outflow|; writes p, group, W, share, inflow, outflow.

    `logarithmic` says that work.u holds logarithms.
    """
    layer_state, layer_chunk = layout.layer_state, layout.layer_chunk
    chunk_pair, chunk_slot, aligned = layout.chunk_pair, layout.chunk_slot, layout.aligned
    successor, origin = layout.successor, layout.origin
    scale, inflow, outflow, u, p, W, share = (
        work.scale, work.inflow, work.outflow, work.u, work.p, work.W, work.share,
    )  # fmt: skip
    L = layer_state.size - 2

    wide = logarithmic  # whether some weight may leave the range of numbers
    for k in range(L + 1):
        low, high = np.inf, -np.inf
        for s in range(layer_state[k], layer_state[k + 1]):
            low, high = min(low, beta[s]), max(high, beta[s])
        wide |= high - low > RANGE
        for s in range(layer_state[k], layer_state[k + 1]):
            scale[s] = exp(max(beta[s] - high, -RANGE))
        work.high[k] = high
    if wide:
        weigh_apart(layout, beta, logarithmic, work)
    else:
        for c in range(chunk_pair.size - 1):
            i, lanes = chunk_pair[c], chunk_pair[c + 1] - chunk_pair[c]
            for v in range(lanes):
                W[i + v] = 0.0
            for row in range(chunk_slot[c], chunk_slot[c + 1], lanes):
                if aligned[c]:
                    f = scale[successor[row]]
                    for v in range(lanes):
                        p[row + v] = u[row + v] * f
                        W[i + v] += p[row + v]
                else:
                    for v in range(lanes):
                        p[row + v] = u[row + v] * scale[successor[row + v]]
                        W[i + v] += p[row + v]
    answer(data, chunk_pair, chunk_slot, p, work.group, W, work.warm, work.scratch)

    F = 0.0
    for k in range(L):
        begin, end = chunk_pair[layer_chunk[k]], chunk_pair[layer_chunk[k + 1]]
        if wide:
            F += share_by_logarithms(begin, end, W, share)
        else:
            for i in range(begin, end):
                share[i] = 1.0 / scale[origin[i]]
            Z = dot(share, begin, W, begin, end - begin)
            norm = 1.0 / Z
            for i in range(begin, end):
                share[i] *= norm
            F += work.high[k + 1] - work.high[k] + np.log(Z)

    for s in range(layer_state[L + 1]):
        inflow[s] = 0.0
        outflow[s] = 0.0
    for c in range(chunk_pair.size - 1):
        i, lanes = chunk_pair[c], chunk_pair[c + 1] - chunk_pair[c]
        for v in range(lanes):
            outflow[origin[i + v]] += share[i + v] * W[i + v]
        for row in range(chunk_slot[c], chunk_slot[c + 1], lanes):
            if aligned[c]:
                inflow[successor[row]] += dot(share, i, p, row, lanes)
            else:
                for v in range(lanes):
                    inflow[successor[row + v]] += share[i + v] * p[row + v]

    residual = 0.0
    for s in range(layer_state[1], layer_state[L]):
        residual += abs(inflow[s] - outflow[s])
    return F, residual


@jit
def weigh_apart(layout, beta, logarithmic, work):
    """w = u · e^{β(s') − top}, the largest of each pair 1, its sum into W, and log(e^{top − β(s)}) into share."""
    chunk_pair, chunk_slot, successor = layout.chunk_pair, layout.chunk_slot, layout.successor
    u, p = work.u, work.p
    for c in range(chunk_pair.size - 1):
        i, lanes = chunk_pair[c], chunk_pair[c + 1] - chunk_pair[c]
        for v in range(lanes):
            top = -np.inf
            for j in range(chunk_slot[c] + v, chunk_slot[c + 1], lanes):
                p[j] = (u[j] if logarithmic else np.log(u[j])) + beta[successor[j]]
                top = max(top, p[j])
            work.W[i + v] = 0.0
            for j in range(chunk_slot[c] + v, chunk_slot[c + 1], lanes):
                p[j] = np.exp(max(p[j] - top, -2.0 * RANGE)) if p[j] > -np.inf else 0.0
                work.W[i + v] += p[j]
            work.share[i + v] = top - beta[layout.origin[i + v]]


@jit
def share_by_logarithms(begin, end, W, share):
    """log Z of the layer with pairs begin:end; share comes in as a logarithm and goes out as e^{−β} / Z."""
    largest = -np.inf
    for i in range(begin, end):
        largest = max(largest, share[i] + np.log(W[i]))
    Z = 0.0
    for i in range(begin, end):
        Z += np.exp(share[i] + np.log(W[i]) - largest)
    log_Z = largest + np.log(Z)
    for i in range(begin, end):
        share[i] = np.exp(share[i] + np.log(W[i]) - log_Z) / W[i]
    return log_Z
