"""The pair's question, answered for each kind of confidence set.

    log W = max over p in C of  Σ p(s') log( w(s') / p(s') ),      p* the maximiser.

A set is a NamedTuple of arrays; `answers(Kind)` registers the kernel that answers for it. That kernel has the
signature answer(data, begin, end, pair_ptr, p, group, W, warm) and answers for the pairs begin:end. The tuples of
pair i are first:last = pair_ptr[i]:pair_ptr[i+1]; p[first:last] holds their weights w >= 0, not all 0, and is
overwritten by p*; W[i] is written, 0 where the set allows no p on the support of w. group says how p* moves with w:
group[first] = WHOLE if all of it is w normalised; otherwise every entry of the pair is labelled SCALED_1 or SCALED_2
(p proportional to w within each of the two) or FIXED (p does not move), so that ∂p/∂log w is
diag(p_G) − p_G p_Gᵀ / p(G) on each group. warm[i] is two numbers that the kernel may leave for its next call on the
same pair; it must accept whatever it finds there.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from tightrope.kernels.compile import Kernel, jit

FIXED, SCALED_1, SCALED_2, WHOLE = 0, 1, 2, 3

_ANSWERS: dict[type, Kernel] = {}


def answers(kind: type) -> Callable[[Kernel], Kernel]:
    """Register a kernel as the one that answers the pair's question for sets of this kind."""

    def register(kernel: Kernel) -> Kernel:
        compiled = jit(kernel)
        _ANSWERS[kind] = compiled
        return compiled

    return register


def answer(data, begin, end, pair_ptr, p, group, W, warm):
    """The question for the pairs begin:end; which kernel answers is decided by the type of `data`, at compile time."""
    _ANSWERS[type(data)](data, begin, end, pair_ptr, p, group, W, warm)


@overload(answer)
def _answer(data, begin, end, pair_ptr, p, group, W, warm):
    kernel = _ANSWERS[data.instance_class]

    def call(data, begin, end, pair_ptr, p, group, W, warm):
        kernel(data, begin, end, pair_ptr, p, group, W, warm)

    return call


class L1Data(NamedTuple):
    """‖p − center‖₁ <= radius for every pair; a radius of 2 or more leaves the pair free."""

    center: NDArray[np.float64]  # (n_tuples,) P̂
    radius: NDArray[np.float64]  # (n_pairs,) ε


@answers(L1Data)
def answer_l1(data, begin, end, pair_ptr, p, group, W, warm):
    """p = P̂ clipped into [x·w, y·w], where Σ (x w − P̂)_+ = Σ (P̂ − y w)_+ = ε/2, or w normalised if that is inside."""
    P_hat, radius = data.center, data.radius
    for i in range(begin, end):
        first, last, eps = pair_ptr[i], pair_ptr[i + 1], radius[i]
        total = 0.0
        for j in range(first, last):
            total += p[j]
        c = 1.0 / total
        distance = 0.0
        if eps < 2.0:
            for j in range(first, last):
                distance += abs(c * p[j] - P_hat[j])
        if distance <= eps:
            for j in range(first, last):
                p[j] *= c
            group[first] = WHOLE
            W[i] = total
            continue

        x, y = 0.0, np.inf
        if eps > 0.0:
            x = upper_scale(P_hat, p, first, last, 0.5 * eps, warm[i, 0])
            y = lower_scale(P_hat, p, first, last, 0.5 * eps, warm[i, 1])
            warm[i, 0], warm[i, 1] = x, y
        raised, lowered, log_W = 0.0, 0.0, 0.0
        for j in range(first, last):
            up, down = x * p[j], y * p[j]
            if up > P_hat[j]:
                p[j], group[j] = up, SCALED_1
                raised += up
            elif down < P_hat[j]:
                p[j], group[j] = down, SCALED_2
                lowered += down
            else:
                if P_hat[j] > 0.0:
                    log_W += P_hat[j] * np.log(p[j] / P_hat[j])
                p[j], group[j] = P_hat[j], FIXED
        if raised > 0.0:
            log_W -= raised * np.log(x)
        if lowered > 0.0:
            log_W -= lowered * np.log(y)
        W[i] = np.exp(log_W)


@jit
def upper_scale(P_hat, w, first, last, half, x):
    """The x with Σ (x w − P̂)_+ = half. Newton from any x: after one step from above."""
    for _ in range(2 * (last - first) + 4):
        slope, fixed = 0.0, half
        for j in range(first, last):
            if x * w[j] > P_hat[j]:
                slope += w[j]
                fixed += P_hat[j]
        if slope == 0.0:  # x lies below every term: start from all of them instead
            for j in range(first, last):
                slope += w[j]
                fixed += P_hat[j]
        if x == fixed / slope:
            break
        x = fixed / slope
    return x


@jit
def lower_scale(P_hat, w, first, last, half, y):
    """The y with Σ (P̂ − y w)_+ = half. Newton from any y: after one step from below."""
    for _ in range(2 * (last - first) + 4):
        slope, fixed = 0.0, -half
        for j in range(first, last):
            if y * w[j] < P_hat[j]:
                slope += w[j]
                fixed += P_hat[j]
        if fixed <= 0.0:  # y lies beyond the root of these terms: start from all of them instead
            slope, fixed = 0.0, -half
            for j in range(first, last):
                if P_hat[j] > 0.0:
                    slope += w[j]
                    fixed += P_hat[j]
        if y == fixed / slope:
            break
        y = fixed / slope
    return y
