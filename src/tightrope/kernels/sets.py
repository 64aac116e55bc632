"""The pair's question, answered for each kind of confidence set.

    log W = max over p in C of  Σ p(s') log( w(s') / p(s') ),      p* the maximiser.

A set is a NamedTuple of arrays; `answers(Kind)` registers the kernel that answers for it. That kernel has the
signature answer(data, i, first, last, w, warm, p, group) -> log W, where first:last are the tuples of pair i and w
their positive weights. It writes p* into p[first:last] and labels each entry in group[first:last]: within SCALED_1
and SCALED_2 p is proportional to w (so ∂p/∂log w is diag(p_G) − p_G p_Gᵀ / p(G) on each group), FIXED entries do not
move with w. warm[i] is two numbers that the kernel may leave for its next call on the same pair; it must accept any.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from tightrope.kernels.compile import jit

FIXED, SCALED_1, SCALED_2 = 0, 1, 2

F = TypeVar("F", bound=Callable[..., object])
_ANSWERS: dict[type, Callable[..., Any]] = {}


def answers(kind: type) -> Callable[[F], F]:
    """Register a kernel as the one that answers the pair's question for sets of this kind."""

    def register(kernel: F) -> F:
        compiled = jit(kernel)
        _ANSWERS[kind] = compiled
        return compiled

    return register


def answer(data, i, first, last, w, warm, p, group):
    """The pair's question; which kernel answers is decided by the type of `data`, at compile time."""
    return _ANSWERS[type(data)](data, i, first, last, w, warm, p, group)


@overload(answer)
def _answer(data, i, first, last, w, warm, p, group):
    kernel = _ANSWERS[data.instance_class]
    return lambda data, i, first, last, w, warm, p, group: kernel(data, i, first, last, w, warm, p, group)


class L1Data(NamedTuple):
    """‖p − center‖₁ <= radius for every pair; a radius of 2 or more leaves the pair free."""

    center: NDArray[np.float64]  # (n_tuples,) P̂
    radius: NDArray[np.float64]  # (n_pairs,) ε


@answers(L1Data)
def answer_l1(data, i, first, last, w, warm, p, group):
    """p = P̂ clipped into [x·w, y·w], where Σ (x w − P̂)_+ = Σ (P̂ − y w)_+ = ε/2, or w normalised if that is inside."""
    P_hat, eps = data.center, data.radius[i]
    total = 0.0
    for j in range(first, last):
        total += w[j]
    c = 1.0 / total
    distance = 0.0
    if eps < 2.0:
        for j in range(first, last):
            distance += abs(c * w[j] - P_hat[j])
    if distance <= eps:
        for j in range(first, last):
            p[j] = c * w[j]
            group[j] = SCALED_1
        return np.log(total)

    x, y = 0.0, np.inf
    if eps > 0.0:
        x = upper_scale(P_hat, w, first, last, 0.5 * eps, warm[i, 0])
        y = lower_scale(P_hat, w, first, last, 0.5 * eps, warm[i, 1])
    warm[i, 0], warm[i, 1] = x, y
    raised, lowered, log_W = 0.0, 0.0, 0.0
    for j in range(first, last):
        up, down = x * w[j], y * w[j]
        if up > P_hat[j]:
            p[j], group[j] = up, SCALED_1
            raised += up
        elif down < P_hat[j]:
            p[j], group[j] = down, SCALED_2
            lowered += down
        else:
            p[j], group[j] = P_hat[j], FIXED
            if P_hat[j] > 0.0:
                log_W += P_hat[j] * np.log(w[j] / P_hat[j])
    if raised > 0.0:
        log_W -= raised * np.log(x)
    if lowered > 0.0:
        log_W -= lowered * np.log(y)
    return log_W


@jit
def upper_scale(P_hat, w, first, last, half, x):
    """The x with Σ (x w − P̂)_+ = half. Newton from any x: the first step lands at or above the root, the rest descend."""
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
    """The y with Σ (P̂ − y w)_+ = half. Newton from any y: the first step lands at or below the root, the rest ascend."""
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
