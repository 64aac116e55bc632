"""The whole solve in plain NumPy, pair by pair: what the kernels compute, in the order in which one would derive it.

    min over θ of <cost, θ> + D(θ, reference),      θ an occupancy measure with conditionals in C

Fix a potential β(s) for every state, 0 on the first and the last layer, and let w = reference · e^{β(s') − cost}. Every
pair has one small question of its own (`pair_question`), and all the rest is a convex function of β (`dual`),

    log W = max over p in C of Σ p log(w/p),      F(β) = Σ_k log Σ_{pairs of layer k} e^{−β(s)} W(s,a),

whose gradient is inflow minus outflow of each state under θ = q p*, q the share of e^{−β} W in its layer. Where that is
0, θ is the answer (`solve`). Slow, and for instances that are small; the kernels are tested against it.
"""

from typing import NamedTuple

import numpy as np

from tightrope.confidence import Box, L1Ball
from tightrope.space import FloatArray, LayeredSpace

SPREAD = 600.0  # between the logarithms of a pair's weights; beyond, the smaller ones count as that much smaller


class Answer(NamedTuple):
    """Of one pair's question."""

    log_W: float
    p: FloatArray  #: (n_successors,) p*
    movement: FloatArray  #: (n_successors, n_successors) ∂p*/∂log w


def pair_question(
    log_w: FloatArray, lower: FloatArray, upper: FloatArray, center: FloatArray | None = None, eps: float = np.inf
) -> Answer:
    """max Σ p log(w/p) over the distributions with lower <= p <= upper and, given a center, ‖p − center‖₁ <= eps.

    p* is w scaled and clipped: p = clip(κ w, lower, upper), Σ p = 1. Where that is outside the ball, half of eps lies
    above the center and half below, with a scale for each. What is clipped does not move; the rest of either part moves
    in proportion to w and keeps its sum.
    """
    w = np.exp(np.maximum(log_w - log_w.max(), -SPREAD))
    kappa = clip_scale(w, lower, upper, 1.0)
    p, parts = np.clip(kappa * w, lower, upper), [(lower < kappa * w) & (kappa * w < upper)]
    if center is not None and np.abs(p - center).sum() > eps:
        x, y = clip_scale(w, center, upper, 1 + eps / 2), clip_scale(w, lower, center, 1 - eps / 2)
        p = np.clip(x * w, center, upper) + np.clip(y * w, lower, center) - center
        parts = [(center < x * w) & (x * w < upper), (lower < y * w) & (y * w < center)]
    logarithm = np.log(p, where=p > 0, out=np.zeros_like(p))
    log_W = float(np.sum(p * (log_w - logarithm), where=p > 0))
    movement = np.zeros((len(w), len(w)))
    for part in parts:
        p_G = np.where(part, p, 0.0)
        if p_G.sum() > 0:
            movement += np.diag(p_G) - np.outer(p_G, p_G) / p_G.sum()
    return Answer(log_W, p, movement)


def clip_scale(w: FloatArray, lower: FloatArray, upper: FloatArray, total: float) -> float:
    """The κ with Σ clip(κ w, lower, upper) = total: the sum is piecewise linear in κ, so interpolate between kinks."""
    kinks = np.sort(np.concatenate([lower / w, upper / w]))
    sums = np.clip(kinks[:, None] * w, lower, upper).sum(axis=1)
    return float(np.interp(total, sums, kinks))


class Dual(NamedTuple):
    """The dual at one β."""

    F: float
    theta: FloatArray  #: (n_tuples,) q p*
    inflow: FloatArray  #: (n_states,)
    outflow: FloatArray  #: (n_states,)
    H: FloatArray  #: (n_states, n_states) Σ_pairs q [ (e_s − p)(e_s − p)ᵀ + ∂p/∂β ], as in `kernels/hessian.py`


def dual(
    space: LayeredSpace, reference: FloatArray, cost: FloatArray, confidence: L1Ball | Box, beta: FloatArray
) -> Dual:
    """F(β), its gradient (inflow − outflow) and H."""
    n, ptr, successor = space.n_states, space.csr.pair_ptr, space.tuples[:, 2]
    log_w = np.log(reference) - cost + beta[successor]
    rows = [slice(ptr[i], ptr[i + 1]) for i in range(space.n_pairs)]
    answers = [pair_question(log_w[here], *_set_of_pair(confidence, i, here)) for i, here in enumerate(rows)]
    log_shares = np.array([answer.log_W for answer in answers]) - beta[space.pairs[:, 0]]
    log_Z = np.array([np.logaddexp.reduce(log_shares[space.layer_of_pair == k]) for k in range(space.n_layers)])
    q = np.exp(log_shares - log_Z[space.layer_of_pair])
    H, theta = np.zeros((n, n)), np.concatenate([q[i] * answer.p for i, answer in enumerate(answers)])
    for i, answer in enumerate(answers):
        to, leaving = successor[rows[i]], np.zeros(n)
        leaving[space.pairs[i, 0]] = 1.0
        leaving[to] = -answer.p
        H += q[i] * np.outer(leaving, leaving)
        H[np.ix_(to, to)] += q[i] * answer.movement
    inflow, outflow = np.zeros((2, n))
    np.add.at(inflow, successor, theta)
    np.add.at(outflow, space.tuples[:, 0], theta)
    return Dual(float(log_Z.sum()), theta, inflow, outflow, H)


def _set_of_pair(
    confidence: L1Ball | Box, i: int, here: slice
) -> tuple[FloatArray, FloatArray, FloatArray | None, float]:
    """(lower, upper, center, eps) of pair i, whose tuples are `here`; a ball is a box from 0 to 1 cut by it."""
    n = here.stop - here.start
    ball = confidence.ball if isinstance(confidence, Box) else confidence
    lower, upper = np.zeros(n), np.ones(n)
    if isinstance(confidence, Box):
        lower, upper = confidence.lower[here], confidence.upper[here]
    if ball is None or ball.radius[i] >= 2:
        return lower, upper, None, np.inf
    return lower, upper, ball.center[here], float(ball.radius[i])


def solve(
    space: LayeredSpace, reference: FloatArray, cost: FloatArray, confidence: L1Ball | Box, tolerance: float = 1e-10
) -> FloatArray:
    """θ, by Newton's method on F: H is damped by its diagonal's size until a step does not take F up.

    The last state's potential is fixed, and its row of H left out.
    """
    beta, damping = np.zeros(space.n_states), 1.0
    at = dual(space, reference, cost, confidence, beta)
    for _ in range(300):
        gradient = at.inflow - at.outflow
        gradient[[0, -1]] = 0.0
        if np.abs(gradient).sum() <= tolerance:
            return at.theta
        size = at.inflow + at.outflow + 1e-100
        step = -np.linalg.solve((at.H + damping * np.diag(size))[:-1, :-1], gradient[:-1])
        step = np.append(step, 0.0)
        step[0] = 0.0
        new = dual(space, reference, cost, confidence, beta + step)
        better = 1e-12 * (1 + abs(at.F)) >= new.F - at.F
        damping *= 0.1 if better else 10.0
        at, beta = (new, beta + step) if better else (at, beta)
    raise RuntimeError("this instance is beyond the reference")
