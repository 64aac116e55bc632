"""The pair's question, answered for each kind of confidence set.

    log W = max over p in C of  Σ p(s') log( w(s') / p(s') ),      p* the maximiser.

A set is a NamedTuple of arrays in the layout of `layout.py`; `answers(Kind)` registers the kernel that answers for it.
That kernel has the signature answer(data, chunk_pair, chunk_slot, p, group, W, warm, scratch) and answers for all
pairs at once. p holds the weights w of their slots, 0 in the padding, and is overwritten by W p*; W (by pair) holds
their totals and is overwritten by W. group (by slot) says how p* moves with w: WHOLE in a pair's first slot if all of
p* is w normalised; otherwise every slot of the pair is labelled SCALED_1 or SCALED_2 (p* proportional to w within each
of the two) or FIXED (it does not move), so that ∂p/∂log w is diag(p_G) − p_G p_Gᵀ / p(G) on each group. warm[:, i] is
two numbers that the kernel may leave for its next call on pair i; it must accept whatever it finds there. scratch is
8 · LANES numbers to work with. Pairs that the set calls free may be several of a state in one, in a chunk of their own;
they are always WHOLE.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from tightrope.kernels.arithmetic import exp, log
from tightrope.kernels.compile import Kernel, depend_on, jit

FIXED, SCALED_1, SCALED_2, WHOLE = 0, 1, 2, 3
LANES = 64  # the most pairs that a chunk holds
LARGE = 1e280  # times any weight, more than any probability

_ANSWERS: dict[type, Kernel] = {}


def answers(kind: type) -> Callable[[Kernel], Kernel]:
    """Register a kernel as the one that answers the pair's question for sets of this kind."""

    def register(kernel: Kernel) -> Kernel:
        depend_on(kernel.__code__.co_filename)
        compiled = jit(kernel)
        _ANSWERS[kind] = compiled
        return compiled

    return register


def answer(data, chunk_pair, chunk_slot, p, group, W, warm, scratch):
    """Every pair's question; which kernel answers is decided by the type of `data`, at compile time."""
    _ANSWERS[type(data)](data, chunk_pair, chunk_slot, p, group, W, warm, scratch)


@overload(answer)
def _answer(data, chunk_pair, chunk_slot, p, group, W, warm, scratch):
    kernel = _ANSWERS[data.instance_class]

    def call(data, chunk_pair, chunk_slot, p, group, W, warm, scratch):
        kernel(data, chunk_pair, chunk_slot, p, group, W, warm, scratch)

    return call


class L1Data(NamedTuple):
    """‖p − center‖₁ <= radius for every pair; a radius of 2 or more leaves the pair free."""

    center: NDArray[np.float64]  # (n_slots,) P̂, 0 in the padding
    radius: NDArray[np.float64]  # (n_pairs,) ε


# rows of scratch: one array with constant offsets, which a vectorising compiler can tell apart
NORM, DISTANCE, X, Y, UP_W, UP_P, LOW_W, LOW_P = (np.uint32(row * LANES) for row in range(8))
LOG_W = NORM  # no longer needed then


@answers(L1Data)
def answer_l1(data, chunk_pair, chunk_slot, p, group, W, warm, scratch):
    """p = P̂ clipped into [x·w, y·w], where Σ (x w − P̂)_+ = Σ (P̂ − y w)_+ = ε/2, or w normalised if that is inside."""
    P_hat, eps, z = data.center, data.radius, scratch
    for c in range(chunk_pair.size - 1):
        i, lanes = chunk_pair[c], chunk_pair[c + 1] - chunk_pair[c]
        first, last = chunk_slot[c], chunk_slot[c + 1]
        for v in range(lanes):
            group[first + v] = WHOLE
        if eps[i] >= 2.0:  # pairs of one chunk are all free or all not
            continue

        for v in range(lanes):
            z[NORM + v] = 1.0 / W[i + v]
            z[DISTANCE + v] = 0.0
        for row in range(first, last, lanes):
            for v in range(lanes):
                z[DISTANCE + v] += abs(z[NORM + v] * p[row + v] - P_hat[row + v])
        furthest = -np.inf
        for v in range(lanes):
            furthest = max(furthest, z[DISTANCE + v] - eps[i + v])
        if furthest > 0.0:
            clip_l1(P_hat, eps, i, lanes, first, last, p, group, W, warm, z)


@jit
def clip_l1(P_hat, eps, i, lanes, first, last, p, group, W, warm, z):
    """The pairs of one chunk of which some leave their ball: both thresholds of every lane by Newton's method.

    Each equation is convex and piecewise linear, so from any start one step lands on the far side of the root, and
    the steps after it are monotone and end. W comes in as the total of w; lanes inside their ball come out as they are.
    """
    for v in range(lanes):
        inside = z[DISTANCE + v] <= eps[i + v]
        z[X + v] = z[NORM + v] if inside else (warm[0, i + v] if eps[i + v] > 0.0 else 0.0)
        z[Y + v] = z[NORM + v] if inside else (warm[1, i + v] if eps[i + v] > 0.0 else LARGE)

    for _ in range(2 * (last - first) // lanes + 4):
        for v in range(lanes):
            z[UP_W + v], z[UP_P + v], z[LOW_W + v], z[LOW_P + v] = 0.0, 0.0, 0.0, 0.0
        for row in range(first, last, lanes):
            for v in range(lanes):
                w, P = p[row + v], P_hat[row + v]
                up, low = z[X + v] * w > P, z[Y + v] * w < P
                z[UP_W + v] += w if up else 0.0
                z[UP_P + v] += P if up else 0.0
                z[LOW_W + v] += w if low else 0.0
                z[LOW_P + v] += P if low else 0.0
                group[row + v] = SCALED_1 if up else (SCALED_2 if low else FIXED)
        changed = False
        for v in range(lanes):
            half = 0.5 * eps[i + v]
            if z[DISTANCE + v] > eps[i + v] and half > 0.0:
                # where no term is active, all of them are the start
                x = (half + z[UP_P + v]) / z[UP_W + v] if z[UP_W + v] > 0.0 else (half + 1.0) * z[NORM + v]
                y = (z[LOW_P + v] - half) / z[LOW_W + v] if z[LOW_P + v] > half else (1.0 - half) * z[NORM + v]
                changed |= x != z[X + v] or y != z[Y + v]
                z[X + v], z[Y + v] = x, y
        if not changed:
            break

    for v in range(lanes):  # thresholds that meet: the pair is on the surface by rounding alone, and as good as inside
        met = z[X + v] >= z[Y + v]
        z[DISTANCE + v] = 0.0 if met else z[DISTANCE + v]
        z[X + v] = z[NORM + v] if met else z[X + v]
        z[Y + v] = z[NORM + v] if met else z[Y + v]
    for v in range(lanes):  # the scaled groups weigh UP_P + ε/2 and LOW_P − ε/2
        half = 0.5 * eps[i + v]
        raised = z[UP_P + v] + half if z[UP_W + v] > 0.0 else 0.0
        lowered = z[LOW_P + v] - half if z[LOW_W + v] > 0.0 else 0.0
        z[LOG_W + v] = -raised * log(z[X + v]) if raised > 0.0 else 0.0
        z[LOG_W + v] -= lowered * log(z[Y + v]) if lowered > 0.0 else 0.0
    for row in range(first, last, lanes):
        for v in range(lanes):
            if group[row + v] == FIXED and P_hat[row + v] > 0.0:
                z[LOG_W + v] += P_hat[row + v] * np.log(p[row + v] / P_hat[row + v])
    for v in range(lanes):
        clipped = z[DISTANCE + v] > eps[i + v]
        W[i + v] = exp(z[LOG_W + v]) if clipped else W[i + v]
        warm[0, i + v] = z[X + v] if clipped else warm[0, i + v]
        warm[1, i + v] = z[Y + v] if clipped else warm[1, i + v]
    for row in range(first, last, lanes):
        for v in range(lanes):
            up, low = z[X + v] * p[row + v], z[Y + v] * p[row + v]
            p[row + v] = W[i + v] * min(max(P_hat[row + v], up), low)
    for v in range(lanes):
        if z[DISTANCE + v] <= eps[i + v]:
            group[first + v] = WHOLE
