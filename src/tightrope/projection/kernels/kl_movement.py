"""How the answers for KL balls move with their weights.

On the surface of its ball p* = w e^{μ (P̂/p − 1)} / W (`kl.py`). With the share κ = 1 / (1 + μ P̂/p) that an entry gives
of a change of log w, its mean κ̄ = Σ p κ, and v = p (1 − κ/κ̄), the two constraints Σ p = 1 and KL(P̂‖p) = r leave

    ∂p/∂log w = diag(p κ) − (p κ)(p κ)ᵀ / κ̄ − v vᵀ / σ,      σ = Σ v² / (p κ):

a diagonal and two orthogonal directions in which p cannot move. (The groups of other sets are the case of κ = 1 in two
groups and 0 elsewhere.) Everywhere below p is W times the conditional, as in `dual.py`.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tightrope.kernels.arithmetic import dot
from tightrope.kernels.compile import jit
from tightrope.projection.kernels.conjugate import ALL, hold, respond
from tightrope.projection.kernels.hessian import LEFT, spread_moving
from tightrope.projection.kernels.kinds import WHOLE, implement
from tightrope.projection.kernels.placement import LANES, extent

MEAN, SIGMA, ROOT, ROOT_1, ROOT_2, MOMENT, ROW = (np.uint32(row * LANES) for row in range(1, 8))  # of scratch


class KLData(NamedTuple):
    """KL(center‖p) <= radius for every pair; inf leaves the pair free."""

    center: NDArray[np.float64]  # (n_slots,) P̂, 0 in the padding
    inverse: NDArray[np.float64]  # (n_slots,) 1 / P̂, and 0 where that is 0
    radius: NDArray[np.float64]  # (n_pairs,) r
    kappa: NDArray[np.float64]  # (n_slots,) written by the answer: κ, wherever a pair of the chunk is on its surface
    mean: NDArray[np.float64]  # (n_pairs,) written by `hold_kl`: κ̄
    sigma: NDArray[np.float64]  # (n_pairs,) written by `hold_kl`: σ
    table: NDArray[np.float64]  # (5 · LANES · rows of the longest chunk,) for the answer to work with
    scratch: NDArray[np.float64]  # (16 · LANES,) likewise


@jit
def weigh_kl(kappa, i, n_lanes, first, last, p, W, label, z):
    """κ̄ and W σ of every pair of a chunk into rows MEAN and SIGMA; 0 for pairs that do not move or are WHOLE."""
    for v in range(n_lanes):
        z[MEAN + v], z[SIGMA + v] = 0.0, 0.0
    for row in range(first, last, n_lanes):
        for v in range(n_lanes):
            z[MEAN + v] += p[row + v] * kappa[row + v]
    for v in range(n_lanes):
        z[MEAN + v] = z[MEAN + v] / W[i + v] if label[first + v] != WHOLE else 0.0
        z[ROW + v] = 1.0 / z[MEAN + v] if z[MEAN + v] > 0.0 else 0.0
    for row in range(first, last, n_lanes):
        for v in range(n_lanes):
            k = kappa[row + v]
            off = 1.0 - k * z[ROW + v]
            z[SIGMA + v] += p[row + v] * off * off / k if k > 0.0 else 0.0
    for v in range(n_lanes):
        z[SIGMA + v] = z[SIGMA + v] if label[first + v] != WHOLE else 0.0


@implement(spread_moving, KLData)
def spread_kl(data, lanes, chunk, after, work, below):
    """q (p pᵀ + ∂p/∂β): a diagonal, and the products of three roots that every pair has, the first with a plus."""
    i, n_lanes, first, last = extent(lanes, chunk)
    successor, p, share, W, label, z, table, kappa = (
        lanes.successor, work.p, work.share, work.W, work.label, work.scratch, work.table, data.kappa,
    )  # fmt: skip
    weigh_kl(kappa, i, n_lanes, first, last, p, W, label, z)
    for v in range(n_lanes):
        f = share[i + v] if label[first + v] != WHOLE else 0.0
        z[ROOT + v] = np.sqrt(f / W[i + v])
        z[ROOT_1 + v] = z[ROOT + v] / np.sqrt(z[MEAN + v]) if z[MEAN + v] > 0.0 else 0.0
        z[ROOT_2 + v] = np.sqrt(f / z[SIGMA + v]) if z[SIGMA + v] > 0.0 else 0.0
        z[MEAN + v] = 1.0 / z[MEAN + v] if z[MEAN + v] > 0.0 else 0.0
    two, width = np.uint32(2) * n_lanes, np.uint32(3) * n_lanes
    for row in range(first, last, n_lanes):
        at = (row - first) // n_lanes * width
        for v in range(n_lanes):
            table[at + v] = z[ROOT + v] * p[row + v]
        for v in range(n_lanes):
            table[at + n_lanes + v] = z[ROOT_1 + v] * p[row + v] * kappa[row + v]
        for v in range(n_lanes):
            table[at + two + v] = z[ROOT_2 + v] * p[row + v] * (1.0 - kappa[row + v] * z[MEAN + v])
        if lanes.aligned[chunk]:
            for v in range(n_lanes):
                z[ROW + v] = share[i + v] * kappa[row + v]
            t = successor[row] - after
            below[t, t] += dot(z, ROW, p, row, n_lanes)
        else:
            for v in range(n_lanes):
                t = successor[row + v] - after
                below[t, t] += share[i + v] * p[row + v] * kappa[row + v]
    for row in range(first, last, n_lanes):
        at = (row - first) // n_lanes * width
        if lanes.aligned[chunk]:
            t = successor[row] - after
            for v in range(n_lanes):
                z[LEFT + v] = table[at + v]
            for v in range(n_lanes, width):
                z[LEFT + v] = -table[at + v]
            for row2 in range(row, last, n_lanes):
                below[t, successor[row2] - after] += dot(z, LEFT, table, (row2 - first) // n_lanes * width, width)
        else:
            for v in range(n_lanes):
                t, a, b, e = successor[row + v] - after, table[at + v], table[at + n_lanes + v], table[at + two + v]
                for row2 in range(row, last, n_lanes):
                    to = (row2 - first) // n_lanes * width + v
                    product = a * table[to] - b * table[to + n_lanes] - e * table[to + two]
                    below[t, successor[row2 + v] - after] += product


@implement(hold, KLData)
def hold_kl(data, lanes, chunk, work, D):
    """Take θ (1 − κ) from D; κ̄ and σ are kept for `respond_kl`."""
    i, n_lanes, first, last = extent(lanes, chunk)
    successor, p, share, z, kappa = lanes.successor, work.p, work.share, work.scratch, data.kappa
    weigh_kl(kappa, i, n_lanes, first, last, p, work.W, work.label, z)
    for v in range(n_lanes):
        data.mean[i + v], data.sigma[i + v] = z[MEAN + v], z[SIGMA + v]
    for row in range(first, last, n_lanes):
        for v in range(n_lanes):
            z[ROW + v] = share[i + v] * p[row + v] * (1.0 - kappa[row + v])
        for v in range(n_lanes):
            D[successor[row + v]] -= z[ROW + v]


@implement(respond, KLData)
def respond_kl(data, lanes, chunk, work, t, y):
    """Add E t = q (p pᵀ − (p κ)(p κ)ᵀ / κ̄ − v vᵀ / σ) t to y, and Σ p t of every pair to row ALL of scratch."""
    i, n_lanes, first, last = extent(lanes, chunk)
    successor, p, W, share, label, z, kappa = (
        lanes.successor, work.p, work.W, work.share, work.label, work.scratch, data.kappa,
    )  # fmt: skip
    for v in range(n_lanes):
        z[MOMENT + v] = 0.0
    for row in range(first, last, n_lanes):
        for v in range(n_lanes):  # a loop of its own: look-ups do not vectorise
            z[ROW + v] = p[row + v] * t[successor[row + v]]
        for v in range(n_lanes):
            z[ALL + v] += z[ROW + v]
            z[MOMENT + v] += z[ROW + v] * kappa[row + v]
    for v in range(n_lanes):  # E t = q p (ROOT_1 + κ ROOT_2)
        f = share[i + v] if label[first + v] != WHOLE else 0.0
        per_mean = 1.0 / data.mean[i + v] if data.mean[i + v] > 0.0 else 0.0
        off = z[ALL + v] - z[MOMENT + v] * per_mean
        off = off / data.sigma[i + v] if data.sigma[i + v] > 0.0 else 0.0
        z[ROOT_1 + v] = f * (z[ALL + v] / W[i + v] - off)
        z[ROOT_2 + v] = f * per_mean * (off - z[MOMENT + v] / W[i + v])
    for row in range(first, last, n_lanes):
        for v in range(n_lanes):
            z[ROW + v] = p[row + v] * (z[ROOT_1 + v] + kappa[row + v] * z[ROOT_2 + v])
        for v in range(n_lanes):
            y[successor[row + v]] += z[ROW + v]
