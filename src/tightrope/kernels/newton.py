"""The subproblem  min over θ of <cost, θ> + D(θ, reference)  through its dual in the potentials β.

With u = reference · e^{−cost} and, for every pair, W and p* the answer to the pair's question for w = u · e^{β(s')},

    F(β) = Σ_k log Z_k,   Z_k = Σ_{s in layer k, a} e^{−β(s)} W(s,a),   θ = q p*,   q(s,a) = e^{−β(s)} W(s,a) / Z_k.

∂F/∂β(s') is inflow minus outflow of s'. β is 0 on the first and the last layer. F does not change when a constant
is added to β on one layer; that freedom is removed by solving for the potentials of Σ_k Z_k instead, whose Hessian at
Z_k = 1, first layer included, is the positive definite, block-tridiagonal

    H = Σ_pairs q [ (e_s − p)(e_s − p)ᵀ + ∂p/∂β ],

and gives the same step up to such constants. Semismooth Newton with a line search on F.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tightrope.kernels.compile import jit
from tightrope.kernels.sets import FIXED, SCALED_1, SCALED_2, answer
from tightrope.kernels.tridiagonal import factorise, solve

ARMIJO = 1e-4
MAX_BACKTRACKS = 4
MAX_MOVE = 20.0  # of a potential in one step: e^20 in the weights
LINEAR_RANGE = 300.0  # of a logarithm that may be exponentiated without a shift of its own
SMALLEST = 1e-200  # total weight below which a pair is shifted by itself


class Work(NamedTuple):
    """Everything a solve writes to; sized by `Projector`."""

    beta: NDArray[np.float64]  # (n_states,) potentials
    trial: NDArray[np.float64]  # (n_states,) potentials tried by the line search
    step: NDArray[np.float64]  # (n_states,) Newton's step; right-hand side before
    scale: NDArray[np.float64]  # (n_states,) e^{β − max over the layer}
    inflow: NDArray[np.float64]  # (n_states,)
    outflow: NDArray[np.float64]  # (n_states,)
    u: NDArray[np.float64]  # (n_tuples,) reference · e^{−cost − offset}
    w: NDArray[np.float64]  # (n_tuples,) u · scale
    p: NDArray[np.float64]  # (n_tuples,) p*
    group: NDArray[np.int8]  # (n_tuples,) which entries of p* move together
    offset: NDArray[np.float64]  # (n_pairs,) what was taken out of u, as a logarithm
    q: NDArray[np.float64]  # (n_pairs,) log(e^{−β} W), then its mass
    warm: NDArray[np.float64]  # (n_pairs, 2) what a set's kernel left for its next call
    diagonal: NDArray[np.float64]  # blocks of H, layer after layer, then their factors
    upper: NDArray[np.float64]  # blocks of H between layers k and k + 1


@jit
def weigh(csr, reference, cost, work):
    """u = reference · e^{−cost}, with each pair's smallest cost taken out where the plain product could underflow."""
    largest = 0.0
    for j in range(cost.size):
        largest = max(largest, abs(cost[j]))
    for i in range(csr.pair_ptr.size - 1):
        smallest = 0.0
        if largest > LINEAR_RANGE:
            smallest = cost[csr.pair_ptr[i]]
            for j in range(csr.pair_ptr[i], csr.pair_ptr[i + 1]):
                smallest = min(smallest, cost[j])
        work.offset[i] = -smallest
        for j in range(csr.pair_ptr[i], csr.pair_ptr[i + 1]):
            work.u[j] = reference[j] * np.exp(smallest - cost[j])


@jit
def evaluate(csr, data, beta, work):
    """F(β) and the flow residual Σ |inflow − outflow|; writes w, p, group, q, inflow, outflow."""
    L = csr.layer_ptr.size - 2
    F = 0.0
    work.inflow[:] = 0.0
    for k in range(L):
        top = beta[csr.layer_ptr[k + 1]]
        for s in range(csr.layer_ptr[k + 1], csr.layer_ptr[k + 2]):
            top = max(top, beta[s])
        for s in range(csr.layer_ptr[k + 1], csr.layer_ptr[k + 2]):
            work.scale[s] = np.exp(beta[s] - top)

        largest = -np.inf
        for s in range(csr.layer_ptr[k], csr.layer_ptr[k + 1]):
            for i in range(csr.state_ptr[s], csr.state_ptr[s + 1]):
                log_W = ask(csr, data, i, top, beta, work) + work.offset[i]
                work.q[i] = log_W - beta[s]
                largest = max(largest, work.q[i])

        Z = 0.0
        for i in range(csr.state_ptr[csr.layer_ptr[k]], csr.state_ptr[csr.layer_ptr[k + 1]]):
            work.q[i] = np.exp(work.q[i] - largest)
            Z += work.q[i]
        F += largest + np.log(Z)

        for s in range(csr.layer_ptr[k], csr.layer_ptr[k + 1]):
            work.outflow[s] = 0.0
            for i in range(csr.state_ptr[s], csr.state_ptr[s + 1]):
                q = work.q[i] / Z
                work.q[i] = q
                work.outflow[s] += q
                for j in range(csr.pair_ptr[i], csr.pair_ptr[i + 1]):
                    work.inflow[csr.successor[j]] += q * work.p[j]

    residual = 0.0
    for s in range(csr.layer_ptr[1], csr.layer_ptr[L]):
        residual += abs(work.inflow[s] - work.outflow[s])
    return F, residual


@jit
def ask(csr, data, i, top, beta, work):
    """Weigh the successors of pair i, then put the pair's question to its set."""
    first, last = csr.pair_ptr[i], csr.pair_ptr[i + 1]
    total = 0.0
    for j in range(first, last):
        work.w[j] = work.u[j] * work.scale[csr.successor[j]]
        total += work.w[j]
    if total < SMALLEST:
        top = -np.inf
        for j in range(first, last):
            if work.u[j] > 0.0:
                top = max(top, beta[csr.successor[j]])
        if top == -np.inf:
            return -np.inf
        for j in range(first, last):
            work.w[j] = work.u[j] * np.exp(beta[csr.successor[j]] - top)
    return top + answer(data, i, first, last, work.w, work.warm, work.p, work.group)


@jit
def assemble(csr, block, damping, work):
    """The blocks of H at the last evaluated β. Row-major; the diagonal blocks' upper triangles alone are used."""
    L = csr.layer_ptr.size - 2
    work.diagonal[:] = 0.0
    work.upper[:] = 0.0
    for k in range(L):
        start, n = csr.layer_ptr[k], csr.layer_ptr[k + 1] - csr.layer_ptr[k]
        here = work.diagonal[block[k, 0] : block[k, 0] + n * n].reshape(n, n)
        for s in range(n):
            here[s, s] += work.outflow[start + s] + damping * (work.inflow[start + s] + work.outflow[start + s])
        if k == L - 1:
            break  # everything leads to the last state, whose potential is fixed
        after, m = csr.layer_ptr[k + 1], csr.layer_ptr[k + 2] - csr.layer_ptr[k + 1]
        there = work.diagonal[block[k + 1, 0] : block[k + 1, 0] + m * m].reshape(m, m)
        between = work.upper[block[k, 1] : block[k, 1] + n * m].reshape(n, m)
        for s in range(n):
            for i in range(csr.state_ptr[start + s], csr.state_ptr[start + s + 1]):
                add_pair(csr, i, s, after, work, there, between)


@jit
def add_pair(csr, i, s, after, work, there, between):
    """One pair's part of H: −q p towards its own state, q (p pᵀ + ∂p/∂β) among its successors."""
    p, group, q = work.p, work.group, work.q[i]
    first, last = csr.pair_ptr[i], csr.pair_ptr[i + 1]
    mass_1, mass_2, free = 0.0, 0.0, True
    for j in range(first, last):
        mass_1 += p[j] if group[j] == SCALED_1 else 0.0
        mass_2 += p[j] if group[j] == SCALED_2 else 0.0
        free &= group[j] == SCALED_1
    for j in range(first, last):
        t = csr.successor[j] - after
        between[s, t] -= q * p[j]
        if group[j] != FIXED:
            there[t, t] += q * p[j]
    if free:
        return  # p pᵀ and −p pᵀ cancel
    share_1 = 1.0 / mass_1 if mass_1 > 0.0 else 0.0
    share_2 = 1.0 / mass_2 if mass_2 > 0.0 else 0.0
    for j in range(first, last):
        share = share_1 if group[j] == SCALED_1 else share_2
        for j2 in range(j, last):
            together = group[j] == group[j2] and group[j] != FIXED
            value = 1.0 - share if together else 1.0
            there[csr.successor[j] - after, csr.successor[j2] - after] += q * p[j] * p[j2] * value


@jit
def newton(csr, data, block, work, tolerance, max_steps):
    """Minimise F from work.beta; returns F, the flow residual and the number of steps. Leaves the answer in work.

    Where the line search finds Newton's step too long to be believed, H gets a multiple of its own diagonal's size:
    the step then turns towards (inflow − outflow) / (inflow + outflow), which is never longer than 1.
    """
    L = csr.layer_ptr.size - 2
    first, last = csr.layer_ptr[1], csr.layer_ptr[L]
    F, residual = evaluate(csr, data, work.beta, work)
    damping, steps = 0.0, 0
    while residual > tolerance and steps < max_steps:
        assemble(csr, block, damping, work)
        factorise(csr.layer_ptr, block, work.diagonal, work.upper)
        work.step[0] = 0.0
        for s in range(first, last):
            work.step[s] = work.outflow[s] - work.inflow[s]
        solve(csr.layer_ptr, block, work.diagonal, work.upper, work.step)

        slope, longest = 0.0, 0.0
        for s in range(first, last):
            slope += (work.inflow[s] - work.outflow[s]) * work.step[s]
            longest = max(longest, abs(work.step[s]))
        t = min(1.0, MAX_MOVE / longest)
        moved = False
        for _ in range(MAX_BACKTRACKS):
            for s in range(first, last):
                work.trial[s] = work.beta[s] + t * work.step[s]
            F_trial, residual_trial = evaluate(csr, data, work.trial, work)
            # at the floor of rounding F no longer tells better from worse: the residual does
            if F_trial <= F + ARMIJO * t * slope or residual_trial <= 0.5 * residual:
                moved = True
                break
            t *= 0.5
        steps += 1
        if moved:
            work.beta[first:last] = work.trial[first:last]
            F, residual = F_trial, residual_trial
            damping = damping * 0.1 if t == 1.0 and damping > 1e-8 else damping if t<1 else 0.0
        else:
            F, residual = evaluate(csr, data, work.beta, work)
            damping = max(10.0 * damping, 1e-4)
            if damping > 1e8:
                break
    return F, residual, steps


@jit
def compose(csr, work, theta):
    """θ = q p*."""
    for i in range(csr.pair_ptr.size - 1):
        for j in range(csr.pair_ptr[i], csr.pair_ptr[i + 1]):
            theta[j] = work.q[i] * work.p[j]
