"""The pair's question for boxes, whole or cut by an L1 ball: all of it comes down to Σ clip(κ w, lo, hi) = total."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tightrope.kernels.compile import jit
from tightrope.projection.kernels.kinds import FIXED, SCALED_1, SCALED_2, WHOLE, implement, pair_question
from tightrope.projection.kernels.placement import LANES, extent

NORM, OUTSIDE, DISTANCE = (np.uint32(row * LANES) for row in range(3))  # rows of scratch


class BoxData(NamedTuple):
    """lower <= p <= upper, and ‖p − center‖₁ <= radius with the center within the bounds; inf: there is no ball."""

    lower: NDArray[np.float64]  # (n_slots,) 0 in the padding
    upper: NDArray[np.float64]  # (n_slots,) 0 in the padding
    center: NDArray[np.float64]  # (n_slots,) not read where there is no ball
    radius: NDArray[np.float64]  # (n_pairs,)


@implement(pair_question, BoxData)
def answer_for_boxes(data, lanes, work):
    """p = w normalised where that is in the set; `clip_to_box` has the rest."""
    lower, upper, center, radius = data.lower, data.upper, data.center, data.radius
    p, label, W, thresholds, z = work.p, work.label, work.W, work.thresholds, work.scratch
    for chunk in range(lanes.aligned.size):
        i, n_lanes, first, last = extent(lanes, chunk)
        for v in range(n_lanes):
            z[NORM + v], z[OUTSIDE + v], z[DISTANCE + v] = 1.0 / W[i + v], 0.0, 0.0
            label[first + v] = WHOLE
        for row in range(first, last, n_lanes):
            for v in range(n_lanes):
                x = z[NORM + v] * p[row + v]
                z[OUTSIDE + v] = max(z[OUTSIDE + v], max(lower[row + v] - x, x - upper[row + v]))
                z[DISTANCE + v] += abs(x - center[row + v])
        for v in range(n_lanes):
            eps = radius[i + v]
            if z[OUTSIDE + v] > 0.0 or (eps < 2.0 and z[DISTANCE + v] > eps):
                W[i + v] = clip_to_box(
                    lower, upper, center, eps, first + v, last, n_lanes, p, label, thresholds, i + v, z[NORM + v]
                )


@jit
def clip_to_box(lower, upper, center, eps, first, last, n_lanes, p, label, thresholds, i, norm):
    """One pair, in every n_lanes-th slot of first:last: overwrites its p by W p*, labels its slots and returns W.

    p* = clip(κ w, lower, upper) if that is in the ball. Otherwise half the radius lies above the center, half below:
    p* = min(x w, upper) where x w > center, max(y w, lower) where y w < center, and the center in between, with

        Σ clip(x w, center, upper) = 1 + ε/2,      Σ clip(y w, lower, center) = 1 − ε/2.
    """
    x = clip_scale(p, lower, upper, first, last, n_lanes, 1.0, thresholds[0, i] if thresholds[0, i] > 0.0 else norm)
    y, distance = x, 0.0
    thresholds[0, i] = x
    if eps < 2.0:
        for j in range(first, last, n_lanes):
            distance += abs(min(max(x * p[j], lower[j]), upper[j]) - center[j])
    in_ball = distance <= eps
    if not in_ball:
        guess = thresholds[1, i] if thresholds[1, i] > 0.0 else y
        x = clip_scale(p, center, upper, first, last, n_lanes, 1.0 + 0.5 * eps, x)
        y = clip_scale(p, lower, center, first, last, n_lanes, 1.0 - 0.5 * eps, guess)
        thresholds[1, i] = y

    scaled_1, scaled_2, log_W = 0.0, 0.0, 0.0
    for j in range(first, last, n_lanes):
        w, up, down = p[j], x * p[j], y * p[j]
        label[j] = FIXED
        if in_ball or up > center[j]:
            p[j] = min(max(up, lower[j]), upper[j])
            if lower[j] < up < upper[j]:
                label[j] = SCALED_1
                scaled_1 += up
        elif down < center[j]:
            p[j] = max(down, lower[j])
            if down > lower[j]:
                label[j] = SCALED_2
                scaled_2 += down
        else:
            p[j] = center[j]
        if label[j] == FIXED and p[j] > 0.0:
            log_W += p[j] * np.log(w / p[j])
    log_W -= scaled_1 * np.log(x) if scaled_1 > 0.0 else 0.0
    log_W -= scaled_2 * np.log(y) if scaled_2 > 0.0 else 0.0
    W = np.exp(log_W)
    for j in range(first, last, n_lanes):
        p[j] *= W
    return W


@jit
def clip_scale(w, lo, hi, first, last, n_lanes, total, kappa):
    """The κ with Σ clip(κ w, lo, hi) = total over every n_lanes-th slot of first:last, from any guess.

    Newton's method for as long as it stays between the bounds found so far, which takes it to each of the 2n + 1 linear
    pieces once at most. Where it does not, what the bounds show to be clipped is fixed and the rest scaled to what is
    left of the total: that is the answer, or it fixes one more.
    """
    below, above = 0.0, np.inf
    for _ in range(3 * ((last - first) // n_lanes) + 3):
        fixed, weight = 0.0, 0.0
        for j in range(first, last, n_lanes):
            inside = lo[j] < kappa * w[j] < hi[j]
            fixed += 0.0 if inside else min(max(kappa * w[j], lo[j]), hi[j])
            weight += w[j] if inside else 0.0
        if fixed + kappa * weight < total:
            below = kappa
        else:
            above = kappa
        proposed = (total - fixed) / weight if weight > 0.0 else kappa
        if not below < proposed < above:
            fixed, weight = 0.0, 0.0
            for j in range(first, last, n_lanes):
                at_lo, at_hi = above * w[j] <= lo[j] or w[j] == 0.0, below * w[j] >= hi[j]
                fixed += lo[j] if at_lo else (hi[j] if at_hi else 0.0)
                weight += 0.0 if at_lo or at_hi else w[j]
            proposed = (total - fixed) / weight if weight > 0.0 else kappa
            if not below < proposed < above:  # by rounding: the nearer bound it is
                return min(max(proposed, below), above)
        kappa = proposed
    return kappa
