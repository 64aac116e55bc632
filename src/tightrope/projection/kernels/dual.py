"""The subproblem  min over θ of <cost, θ> + D(θ, reference)  through its dual in the potentials β.

With u = reference · e^{−cost} and, for every pair, W and p* the answer to the pair's question for w = u · e^{β(s')},

    F(β) = Σ_k log Z_k,   Z_k = Σ_{s in layer k, a} e^{−β(s)} W(s,a),   θ = q p*,   q(s,a) = e^{−β(s)} W(s,a) / Z_k.

F is convex, θ at its minimum is the answer, and ∂F/∂β(s') is inflow minus outflow of s'. β is 0 on the first and the
last layer.

`tilt` makes u, `evaluate` is F and its gradient, `divide` makes θ out of the last evaluation. Numbers are held as they
are for as long as they are in range; where u is not, or the potentials of a layer are far apart, logarithms take over.
"""

import numpy as np

from tightrope.kernels.arithmetic import dot, exp, extremes
from tightrope.kernels.compile import inlined, jit
from tightrope.projection.kernels.kinds import pair_question
from tightrope.projection.kernels.placement import extent

HUGE = 1e100  # weights and their inverses up to here are held as they are, beyond as logarithms
RANGE = 300.0  # of potentials in a layer, up to which e^β is taken without a shift for each pair


@jit
def tilt(lanes, reference, cost, work, theta):
    """u = reference · e^{−cost}, or the logarithm of that where it leaves the range of numbers; returns which.

    θ is where every tuple's own u is kept until `divide`; those of free pairs of one state add up.
    """
    slot, u = lanes.slot, work.u
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
def evaluate(lanes, data, beta, logarithmic, work):
    """F(β) and the flow residual Σ |inflow − outflow|; writes p, label, W, share, inflow, outflow.

    `logarithmic` says that work.u holds logarithms.
    """
    far_apart = exponentiate(lanes.layer_state, beta, work.scale, work.top)
    by_logarithms = logarithmic or far_apart
    if by_logarithms:
        weigh_by_logarithms(lanes, beta, logarithmic, work)
    else:
        weigh(lanes, work)
    pair_question(data, lanes, work)
    F = normalise_by_logarithms(lanes, work) if by_logarithms else normalise(lanes, work)
    return F, flow(lanes, work)


@inlined
def exponentiate(layer_state, beta, scale, top):
    """e^{β − top} into scale, top the largest β of the layer; returns whether those of a layer are far apart."""
    far_apart = False
    for k in range(top.size):
        low, high = np.inf, -np.inf
        for s in range(layer_state[k], layer_state[k + 1]):
            low, high = min(low, beta[s]), max(high, beta[s])
        far_apart |= high - low > RANGE
        for s in range(layer_state[k], layer_state[k + 1]):
            scale[s] = exp(max(beta[s] - high, -RANGE))
        top[k] = high
    return far_apart


@inlined
def weigh(lanes, work):
    """w = u · scale(s') into p, its sum over each pair into W."""
    successor, aligned, scale, u, p, W = lanes.successor, lanes.aligned, work.scale, work.u, work.p, work.W
    for chunk in range(aligned.size):
        i, n_lanes, first, last = extent(lanes, chunk)
        for v in range(n_lanes):
            W[i + v] = 0.0
        for row in range(first, last, n_lanes):
            if aligned[chunk]:
                f = scale[successor[row]]
                for v in range(n_lanes):
                    p[row + v] = u[row + v] * f
                    W[i + v] += p[row + v]
            else:
                for v in range(n_lanes):
                    p[row + v] = u[row + v] * scale[successor[row + v]]
                    W[i + v] += p[row + v]


@inlined
def normalise(lanes, work):
    """F = Σ_k log Z_k, and share = e^{−β} / Z."""
    chunk_pair, layer_chunk, origin = lanes.chunk_pair, lanes.layer_chunk, lanes.origin
    scale, top, W, share = work.scale, work.top, work.W, work.share
    F = 0.0
    for k in range(layer_chunk.size - 1):
        begin, end = chunk_pair[layer_chunk[k]], chunk_pair[layer_chunk[k + 1]]
        for i in range(begin, end):
            share[i] = 1.0 / scale[origin[i]]
        Z = dot(share, begin, W, begin, end - begin)
        norm = 1.0 / Z
        for i in range(begin, end):
            share[i] *= norm
        F += top[k + 1] - top[k] + np.log(Z)
    return F


@inlined
def flow(lanes, work):
    """inflow and outflow of every state under θ = share · W p*; returns Σ |inflow − outflow| over the inner states."""
    layer_state, successor, origin, aligned = lanes.layer_state, lanes.successor, lanes.origin, lanes.aligned
    inflow, outflow, p, W, share = work.inflow, work.outflow, work.p, work.W, work.share
    for s in range(inflow.size):
        inflow[s] = 0.0
        outflow[s] = 0.0
    for chunk in range(aligned.size):
        i, n_lanes, first, last = extent(lanes, chunk)
        for v in range(n_lanes):
            outflow[origin[i + v]] += share[i + v] * W[i + v]
        for row in range(first, last, n_lanes):
            if aligned[chunk]:
                inflow[successor[row]] += dot(share, i, p, row, n_lanes)
            else:
                for v in range(n_lanes):
                    inflow[successor[row + v]] += share[i + v] * p[row + v]
    residual = 0.0
    for s in range(layer_state[1], layer_state[layer_state.size - 2]):
        residual += abs(inflow[s] - outflow[s])
    return residual


@jit
def divide(lanes, logarithmic, work, theta):
    """θ of every tuple: what its slot has, in proportion to its own u."""
    slot, u, p, share = lanes.slot, work.u, work.p, work.share
    if logarithmic:
        for j in range(theta.size):
            theta[j] = np.exp(theta[j] - u[slot[j]])
        u[:] = 0.0  # the parts add up to 1 but for the rounding of logarithms, which may be much
        for j in range(theta.size):
            u[slot[j]] += theta[j]
    for chunk in range(lanes.aligned.size):
        i, n_lanes, first, last = extent(lanes, chunk)
        for row in range(first, last, n_lanes):
            for v in range(n_lanes):
                p[row + v] = share[i + v] * p[row + v] / u[row + v]  # in this order: share / u may overflow
    for j in range(theta.size):
        theta[j] *= p[slot[j]]


@jit
def weigh_by_logarithms(lanes, beta, logarithmic, work):
    """w = u · e^{β(s') − middle}, those of each pair around 1, its sum into W, and middle − β(s) into share."""
    successor, u, p = lanes.successor, work.u, work.p
    for chunk in range(lanes.aligned.size):
        i, n_lanes, first, last = extent(lanes, chunk)
        for v in range(n_lanes):
            least, most = np.inf, -np.inf
            for j in range(first + v, last, n_lanes):
                p[j] = (u[j] if logarithmic else np.log(u[j])) + beta[successor[j]]
                least, most = min(least, p[j]) if p[j] > -np.inf else least, max(most, p[j])
            middle = most - min(0.5 * (most - least), 2.0 * RANGE)
            work.W[i + v] = 0.0
            for j in range(first + v, last, n_lanes):
                p[j] = np.exp(max(p[j] - middle, -2.0 * RANGE)) if p[j] > -np.inf else 0.0
                work.W[i + v] += p[j]
            work.share[i + v] = middle - beta[lanes.origin[i + v]]


@jit
def normalise_by_logarithms(lanes, work):
    """F = Σ_k log Z_k; share comes in as log(q Z / W) and goes out as q, p as p* and W as 1.

    H has products with q / W², which would be out of range.
    """
    chunk_pair, layer_chunk, W, share, p = lanes.chunk_pair, lanes.layer_chunk, work.W, work.share, work.p
    F = 0.0
    for k in range(layer_chunk.size - 1):
        begin, end = chunk_pair[layer_chunk[k]], chunk_pair[layer_chunk[k + 1]]
        largest = -np.inf
        for i in range(begin, end):
            share[i] += np.log(W[i])
            largest = max(largest, share[i])
        Z = 0.0
        for i in range(begin, end):
            Z += np.exp(share[i] - largest)
        log_Z = largest + np.log(Z)
        for i in range(begin, end):
            share[i] = np.exp(share[i] - log_Z)
        F += log_Z
    for chunk in range(lanes.aligned.size):
        i, n_lanes, first, last = extent(lanes, chunk)
        for row in range(first, last, n_lanes):
            for v in range(n_lanes):
                p[row + v] /= W[i + v]
    W[:] = 1.0
    return F
