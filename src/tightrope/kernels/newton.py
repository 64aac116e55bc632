"""The subproblem  min over θ of <cost, θ> + D(θ, reference)  through its dual in the potentials β.

With u = reference · e^{−cost} and, for every pair, W and p* the answer to the pair's question for w = u · e^{β(s')},

    F(β) = Σ_k log Z_k,   Z_k = Σ_{s in layer k, a} e^{−β(s)} W(s,a),   θ = q p*,   q(s,a) = e^{−β(s)} W(s,a) / Z_k.

∂F/∂β(s') is inflow minus outflow of s'. β is 0 on the first and the last layer. F does not change when a constant
is added to β on one layer; that freedom is removed by solving for the potentials of Σ_k Z_k instead, whose Hessian at
Z_k = 1, first layer included, is positive definite and block-tridiagonal,

    H = Σ_pairs q [ (e_s − p)(e_s − p)ᵀ + ∂p/∂β ],

and gives the same step up to such constants. Semismooth Newton with a line search; a factor of H serves for as long
as its steps shrink the residual well, over episodes too.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tightrope.kernels.compile import jit
from tightrope.kernels.sets import FIXED, SCALED_1, SCALED_2, WHOLE, answer
from tightrope.kernels.tridiagonal import factorise, solve

ARMIJO = 1e-4
BACKTRACKS = 4
CONTRACTION = 0.1  # a factor that shrinks the residual less than this is renewed
MAX_MOVE = 20.0  # of a potential in one step: e^20 in the weights
RANGE = 300.0  # of a logarithm that may be exponentiated without a shift of its own


class Work(NamedTuple):
    """Everything a solve writes to; sized by `Projector`."""

    beta: NDArray[np.float64]  # (n_states,) potentials
    trial: NDArray[np.float64]  # (n_states,) potentials tried by the line search
    step: NDArray[np.float64]  # (n_states,) Newton's step; right-hand side before
    scale: NDArray[np.float64]  # (n_states,) e^{β} of the layer moved to, up to a factor
    inflow: NDArray[np.float64]  # (n_states,)
    outflow: NDArray[np.float64]  # (n_states,)
    u: NDArray[np.float64]  # (n_tuples,) reference · e^{−cost − offset}
    p: NDArray[np.float64]  # (n_tuples,) w, then p*
    group: NDArray[np.int8]  # (n_tuples,) which entries of p* move together
    offset: NDArray[np.float64]  # (n_pairs,) logarithm taken out of u
    q: NDArray[np.float64]  # (n_pairs,) W, then the mass of the pair
    warm: NDArray[np.float64]  # (n_pairs, 2) what a set's kernel left for its next call
    diagonal: NDArray[np.float64]  # blocks of H, layer after layer, then their factors
    upper: NDArray[np.float64]  # blocks of H between layers k and k + 1
    damped: NDArray[np.float64]  # (1,) how much damping the factor holds; NaN while there is no factor


@jit
def offset_costs(pair_ptr, reference, cost, work):
    """u = reference · e^{−cost} where e^{−cost} itself could overflow: each pair's smallest cost goes to `offset`."""
    for i in range(pair_ptr.size - 1):
        smallest = np.inf
        for j in range(pair_ptr[i], pair_ptr[i + 1]):
            smallest = min(smallest, cost[j])
        work.offset[i] = -smallest
        for j in range(pair_ptr[i], pair_ptr[i + 1]):
            work.u[j] = reference[j] * np.exp(smallest - cost[j])


@jit
def evaluate(csr, data, beta, shifted, work):
    """F(β) and the flow residual Σ |inflow − outflow|; writes p, group, q, inflow, outflow.

    `shifted` says that offsets are in use; otherwise they are 0 and not read.
    """
    layer_ptr, state_ptr, pair_ptr, successor = csr.layer_ptr, csr.state_ptr, csr.pair_ptr, csr.successor
    scale, inflow, outflow, u, p, q = work.scale, work.inflow, work.outflow, work.u, work.p, work.q
    L = layer_ptr.size - 2
    F = 0.0
    inflow[:] = 0.0
    below, top = 0.0, 0.0  # smallest and largest potential of the layer at hand
    for k in range(L):
        begin, end = state_ptr[layer_ptr[k]], state_ptr[layer_ptr[k + 1]]
        span, bottom = top - below, below
        below, top = np.inf, -np.inf
        for s in range(layer_ptr[k + 1], layer_ptr[k + 2]):
            below, top = min(below, beta[s]), max(top, beta[s])
        if shifted or max(span, top - below) > RANGE:
            Z = mass_by_logarithms(csr, data, k, beta, work)
            F += Z
            Z = 1.0
        else:
            for s in range(layer_ptr[k + 1], layer_ptr[k + 2]):
                scale[s] = np.exp(beta[s] - top)
            for j in range(pair_ptr[begin], pair_ptr[end]):
                p[j] = u[j] * scale[successor[j]]
            answer(data, begin, end, pair_ptr, p, work.group, q, work.warm)
            Z = 0.0
            for s in range(layer_ptr[k], layer_ptr[k + 1]):
                share = np.exp(bottom - beta[s])
                for i in range(state_ptr[s], state_ptr[s + 1]):
                    q[i] *= share
                    Z += q[i]
            F += top - bottom + np.log(Z)

        shrink = 1.0 / Z
        for s in range(layer_ptr[k], layer_ptr[k + 1]):
            out = 0.0
            for i in range(state_ptr[s], state_ptr[s + 1]):
                mass = q[i] * shrink
                q[i] = mass
                out += mass
                first, last = pair_ptr[i], pair_ptr[i + 1]
                if successor[last - 1] - successor[first] == last - first - 1:  # one run: no look-ups
                    to = successor[first]
                    for r in range(last - first):
                        inflow[to + r] += mass * p[first + r]
                else:
                    for j in range(first, last):
                        inflow[successor[j]] += mass * p[j]
            outflow[s] = out

    residual = 0.0
    for s in range(layer_ptr[1], layer_ptr[L]):
        residual += abs(inflow[s] - outflow[s])
    return F, residual


@jit
def mass_by_logarithms(csr, data, k, beta, work):
    """log Z_k, with p and q of layer k written, where exponentials without a shift per pair could leave the range."""
    pair_ptr, successor, u, p, q = csr.pair_ptr, csr.successor, work.u, work.p, work.q
    begin, end = csr.state_ptr[csr.layer_ptr[k]], csr.state_ptr[csr.layer_ptr[k + 1]]
    for i in range(begin, end):
        top = -np.inf
        for j in range(pair_ptr[i], pair_ptr[i + 1]):
            if u[j] > 0.0:
                top = max(top, beta[successor[j]])
        for j in range(pair_ptr[i], pair_ptr[i + 1]):
            p[j] = u[j] * np.exp(min(beta[successor[j]] - top, 0.0))
    answer(data, begin, end, pair_ptr, p, work.group, q, work.warm)
    largest = -np.inf
    for s in range(csr.layer_ptr[k], csr.layer_ptr[k + 1]):
        for i in range(csr.state_ptr[s], csr.state_ptr[s + 1]):
            top = -np.inf
            for j in range(pair_ptr[i], pair_ptr[i + 1]):
                if u[j] > 0.0:
                    top = max(top, beta[successor[j]])
            q[i] = np.log(q[i]) + top + work.offset[i] - beta[s]
            largest = max(largest, q[i])
    Z = 0.0
    for i in range(begin, end):
        Z += np.exp(q[i] - largest)
    log_Z = largest + np.log(Z)
    for i in range(begin, end):
        q[i] = np.exp(q[i] - log_Z)
    return log_Z


@jit
def assemble(csr, block, damping, work):
    """The blocks of H at the last evaluated β, plus damping · (inflow + outflow) on the diagonal. Row-major."""
    layer_ptr, state_ptr, pair_ptr, successor = csr.layer_ptr, csr.state_ptr, csr.pair_ptr, csr.successor
    inflow, outflow, p, q, group = work.inflow, work.outflow, work.p, work.q, work.group
    L = layer_ptr.size - 2
    work.diagonal[:] = 0.0
    work.upper[:] = 0.0
    for k in range(L):
        start, n = layer_ptr[k], layer_ptr[k + 1] - layer_ptr[k]
        here = work.diagonal[block[k, 0] : block[k, 0] + n * n].reshape(n, n)
        for s in range(n):
            here[s, s] += outflow[start + s] + damping * (inflow[start + s] + outflow[start + s])
        if k == L - 1:
            break  # everything leads to the last state, whose potential is fixed
        after, m = layer_ptr[k + 1], layer_ptr[k + 2] - layer_ptr[k + 1]
        there = work.diagonal[block[k + 1, 0] : block[k + 1, 0] + m * m].reshape(m, m)
        between = work.upper[block[k, 1] : block[k, 1] + n * m].reshape(n, m)
        for s in range(n):
            for i in range(state_ptr[start + s], state_ptr[start + s + 1]):
                first, last, mass = pair_ptr[i], pair_ptr[i + 1], q[i]
                if successor[last - 1] - successor[first] == last - first - 1:
                    to = successor[first] - after
                    for r in range(last - first):
                        between[s, to + r] -= mass * p[first + r]
                else:
                    for j in range(first, last):
                        between[s, successor[j] - after] -= mass * p[j]
                if group[first] == WHOLE:  # p pᵀ and −p pᵀ cancel, diag(p) is left
                    for j in range(first, last):
                        there[successor[j] - after, successor[j] - after] += mass * p[j]
                    continue
                mass_1, mass_2 = 0.0, 0.0
                for j in range(first, last):
                    mass_1 += p[j] if group[j] == SCALED_1 else 0.0
                    mass_2 += p[j] if group[j] == SCALED_2 else 0.0
                share_1 = 1.0 / mass_1 if mass_1 > 0.0 else 0.0
                share_2 = 1.0 / mass_2 if mass_2 > 0.0 else 0.0
                for j in range(first, last):
                    row = there[successor[j] - after]
                    label, share = group[j], 0.0
                    if label != FIXED:
                        row[successor[j] - after] += mass * p[j]
                        share = share_1 if label == SCALED_1 else share_2
                    factor = mass * p[j]
                    for j2 in range(j, last):
                        row[successor[j2] - after] += factor * (p[j2] * (1.0 - share if group[j2] == label else 1.0))


@jit
def newton(csr, data, block, work, shifted, tolerance, max_steps, theta):
    """Minimise F from work.beta and write θ = q p*; returns F, the flow residual and the number of steps.

    Where the line search finds Newton's step too long to be believed, H gets a multiple of its own diagonal's size:
    the step then turns towards (inflow − outflow) / (inflow + outflow), which is never longer than 1.
    """
    beta, trial, step, inflow, outflow = work.beta, work.trial, work.step, work.inflow, work.outflow
    first, last = csr.layer_ptr[1], csr.layer_ptr[csr.layer_ptr.size - 2]
    F, residual = evaluate(csr, data, beta, shifted, work)
    damping, steps = 0.0, 0
    fresh = False
    stale = work.damped[0] != 0.0
    while residual > tolerance and steps < max_steps:
        if stale:
            assemble(csr, block, damping, work)
            factorise(csr.layer_ptr, block, work.diagonal, work.upper)
            work.damped[0] = damping
            stale, fresh = False, True
        step[0] = 0.0
        for s in range(first, last):
            step[s] = outflow[s] - inflow[s]
        solve(csr.layer_ptr, block, work.diagonal, work.upper, step)

        slope, longest = 0.0, 0.0
        for s in range(first, last):
            slope += (inflow[s] - outflow[s]) * step[s]
            longest = max(longest, abs(step[s]))
        t = min(1.0, MAX_MOVE / longest)
        moved = False
        for _ in range(BACKTRACKS if fresh else 1):
            for s in range(first, last):
                trial[s] = beta[s] + t * step[s]
            F_trial, residual_trial = evaluate(csr, data, trial, shifted, work)
            # at the floor of rounding F no longer tells better from worse: the residual does
            if F_trial <= F + ARMIJO * t * slope or residual_trial <= 0.5 * residual:
                moved = True
                break
            t *= 0.5
        steps += 1
        if moved:
            stale = damping > 0.0 or residual_trial > CONTRACTION * residual
            if t == 1.0:
                damping = 0.1 * damping if damping > 1e-8 else 0.0
            beta[first:last] = trial[first:last]
            F, residual = F_trial, residual_trial
        else:
            F, residual = evaluate(csr, data, beta, shifted, work)
            stale = True
            if fresh:
                damping = max(10.0 * damping, 1e-4)
                if damping > 1e8:
                    break
        fresh = fresh and not stale
    for i in range(csr.pair_ptr.size - 1):
        for j in range(csr.pair_ptr[i], csr.pair_ptr[i + 1]):
            theta[j] = work.q[i] * work.p[j]
    return F, residual, steps
