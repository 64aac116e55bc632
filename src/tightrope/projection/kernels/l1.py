"""The pair's question for L1 balls: p = P̂ clipped into [x·w, y·w], with two thresholds that decouple.

    Σ (x w − P̂)_+ = ε/2,      Σ (P̂ − y w)_+ = ε/2,      p = min(max(P̂, x w), y w),

unless w normalised is in the ball: then that is p.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tightrope.kernels.arithmetic import exp, log
from tightrope.kernels.compile import jit
from tightrope.projection.kernels.kinds import FIXED, SCALED_1, SCALED_2, WHOLE, implement, pair_question
from tightrope.projection.kernels.placement import LANES, extent

LARGE = 1e280  # times any weight, more than any probability


class L1Data(NamedTuple):
    """‖p − center‖₁ <= radius for every pair; a radius of 2 or more leaves the pair free."""

    center: NDArray[np.float64]  # (n_slots,) P̂, 0 in the padding
    radius: NDArray[np.float64]  # (n_pairs,) ε


# rows of scratch: one array with constant offsets, which a vectorising compiler can tell apart
NORM, DISTANCE, X, Y, UP_W, UP_P, LOW_W, LOW_P = (np.uint32(row * LANES) for row in range(8))
LOG_W = NORM  # no longer needed then


@implement(pair_question, L1Data)
def answer_for_balls(data, lanes, work):
    """p = w normalised where that is in the ball; `clip_to_balls` has the chunks where some pair is not."""
    P_hat, eps, z, p, label, W = data.center, data.radius, work.scratch, work.p, work.label, work.W
    for chunk in range(lanes.aligned.size):
        i, n_lanes, first, last = extent(lanes, chunk)
        for v in range(n_lanes):
            label[first + v] = WHOLE
        if eps[i] >= 2.0:  # pairs of one chunk are all free or all not
            continue

        for v in range(n_lanes):
            z[NORM + v] = 1.0 / W[i + v]
            z[DISTANCE + v] = 0.0
        for row in range(first, last, n_lanes):
            for v in range(n_lanes):
                z[DISTANCE + v] += abs(z[NORM + v] * p[row + v] - P_hat[row + v])
        furthest = -np.inf
        for v in range(n_lanes):
            furthest = max(furthest, z[DISTANCE + v] - eps[i + v])
        if furthest > 0.0:
            clip_to_balls(P_hat, eps, i, n_lanes, first, last, p, label, W, work.thresholds, z)


@jit
def clip_to_balls(P_hat, eps, i, n_lanes, first, last, p, label, W, thresholds, z):
    """The pairs of one chunk of which some leave their ball: both thresholds of every lane by Newton's method.

    Each equation is convex and piecewise linear, so from any start one step lands on the far side of the root, and
    the steps after it are monotone and end. W comes in as the total of w. Lanes inside their ball come out as they
    are.
    """
    for v in range(n_lanes):
        inside = z[DISTANCE + v] <= eps[i + v]
        z[X + v] = z[NORM + v] if inside else (thresholds[0, i + v] if eps[i + v] > 0.0 else 0.0)
        z[Y + v] = z[NORM + v] if inside else (thresholds[1, i + v] if eps[i + v] > 0.0 else LARGE)

    for _ in range(2 * (last - first) // n_lanes + 4):
        for v in range(n_lanes):
            z[UP_W + v], z[UP_P + v], z[LOW_W + v], z[LOW_P + v] = 0.0, 0.0, 0.0, 0.0
        for row in range(first, last, n_lanes):
            for v in range(n_lanes):
                w, P = p[row + v], P_hat[row + v]
                up, low = z[X + v] * w > P, z[Y + v] * w < P
                z[UP_W + v] += w if up else 0.0
                z[UP_P + v] += P if up else 0.0
                z[LOW_W + v] += w if low else 0.0
                z[LOW_P + v] += P if low else 0.0
                label[row + v] = SCALED_1 if up else (SCALED_2 if low else FIXED)
        changed = False
        for v in range(n_lanes):
            half = 0.5 * eps[i + v]
            if z[DISTANCE + v] > eps[i + v] and half > 0.0:
                # where no term is active, all of them are the start
                x = (half + z[UP_P + v]) / z[UP_W + v] if z[UP_W + v] > 0.0 else (half + 1.0) * z[NORM + v]
                y = (z[LOW_P + v] - half) / z[LOW_W + v] if z[LOW_P + v] > half else (1.0 - half) * z[NORM + v]
                changed |= x != z[X + v] or y != z[Y + v]
                z[X + v], z[Y + v] = x, y
        if not changed:
            break

    for v in range(
        n_lanes
    ):  # thresholds that meet: the pair is on the surface by rounding alone, and as good as inside
        met = z[X + v] >= z[Y + v]
        z[DISTANCE + v] = 0.0 if met else z[DISTANCE + v]
        z[X + v] = z[NORM + v] if met else z[X + v]
        z[Y + v] = z[NORM + v] if met else z[Y + v]
    for v in range(n_lanes):  # the scaled groups weigh UP_P + ε/2 and LOW_P − ε/2
        half = 0.5 * eps[i + v]
        raised = z[UP_P + v] + half if z[UP_W + v] > 0.0 else 0.0
        lowered = z[LOW_P + v] - half if z[LOW_W + v] > 0.0 else 0.0
        z[LOG_W + v] = -raised * log(z[X + v]) if raised > 0.0 else 0.0
        z[LOG_W + v] -= lowered * log(z[Y + v]) if lowered > 0.0 else 0.0
    for row in range(first, last, n_lanes):
        for v in range(n_lanes):
            if label[row + v] == FIXED and P_hat[row + v] > 0.0:
                z[LOG_W + v] += P_hat[row + v] * np.log(p[row + v] / P_hat[row + v])
    for v in range(n_lanes):
        clipped = z[DISTANCE + v] > eps[i + v]
        W[i + v] = exp(z[LOG_W + v]) if clipped else W[i + v]
        thresholds[0, i + v] = z[X + v] if clipped else thresholds[0, i + v]
        thresholds[1, i + v] = z[Y + v] if clipped else thresholds[1, i + v]
    for row in range(first, last, n_lanes):
        for v in range(n_lanes):
            up, low = z[X + v] * p[row + v], z[Y + v] * p[row + v]
            p[row + v] = W[i + v] * min(max(P_hat[row + v], up), low)
    for v in range(n_lanes):
        if z[DISTANCE + v] <= eps[i + v]:
            label[first + v] = WHOLE
