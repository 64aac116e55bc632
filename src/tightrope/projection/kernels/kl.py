"""The pair's question for KL balls: the p nearest to w, KL(p‖w) smallest, with KL(P̂‖p) <= r.

If w̄ = w / Σw is in the ball it is the answer. Otherwise, with multipliers μ of the ball and λ of Σ p = 1,

    log p − log w̄ + λ = μ (P̂/p − 1),      W = e^λ Σw,      0 < μ <= K/r,      −K <= λ <= 0,      K = KL(P̂‖w̄).

In τ = P̂/p − 1 that is one equation for every successor with P̂ > 0,

    μ τ + log(1 + τ) = λ − log(w̄/P̂),                                                            (1)

and p = w̄ e^{−μ−λ} where P̂ = 0. The multipliers are found by Newton's method in two unknowns on

    Σ p − 1 = 0,      Σ P̂ (log(1 + τ) − τ / (1 + τ)) + Σ_{P̂=0} p − r = 0                          (2)

(KL(P̂‖p) + Σ p − 1: nothing cancels where p is close to P̂), whose derivatives along λ and μ are −Σ p κ b b ᵀ with
b = (1, −τ), or (1, 1) where P̂ = 0, and κ = 1 / (1 + μ (1 + τ)), or 1. The first is taken as a logarithm, the second as
r^−½, in which it is nearly linear in μ. All pairs of a chunk do it side by side; the τ are not solved for anew in every
step but moved along and corrected. Pairs that this does not settle are bracketed, one by one.
"""

import numpy as np

from tightrope.kernels.arithmetic import exp, fma, log
from tightrope.kernels.compile import jit
from tightrope.projection.kernels.kinds import WHOLE, implement, pair_question
from tightrope.projection.kernels.kl_movement import KLData as KLData
from tightrope.projection.kernels.placement import LANES, extent

CURVED = WHOLE + 1  # in the first slot of a pair on the surface of its ball: it moves as `kl_movement.py` says
PASSES = 12  # of Newton's method before pairs are bracketed
CLOSE = 1e-5  # relative error at which one more step is the last
STEADY = 1e-11  # error of log(1 + τ), likewise
ASTRAY = 1e-4  # the same from which on it is found anew
SHORT, LONG = 0.03, 0.25  # changes of log(1 + τ) up to which 1 + τ follows by a series, and by a quotient
STARTS = 8  # steps of Newton's method on all τ of a chunk
LEAST = 1e-300  # of w̄/P̂
BRACKETS = 200  # narrowings of a bracket
ROUNDING, TINY = 1e-16, 1e-280  # of what is about 1; not to divide by 0

(
    NORM, DISTANCE, UNSEEN, MU, LAMBDA, STEP_MU, STEP_LAMBDA, OPEN, MOVE, ONE, B, BB, TOTAL, KL,
) = (np.uint32(row * LANES) for row in range(14))  # rows of data.scratch  # fmt: skip
OUTSIDE, ON_SURFACE, FACTOR = OPEN, MOVE, UNSEEN  # no longer needed then
G, TAU, U, L, KAPPA = (np.uint32(row * LANES) for row in range(5))  # of every row of slots, in data.table
STRIDE, ONE_ROW = np.uint32(5 * LANES), np.uint32(1)


@implement(pair_question, KLData)
def answer_for_kl_balls(data, lanes, work):
    """p = w normalised where that is in the ball; `clip_kl` has the chunks where some pair is not."""
    P_hat, inverse, r, z, table = data.center, data.inverse, data.radius, data.scratch, data.table
    p, label, W = work.p, work.label, work.W
    for chunk in range(lanes.aligned.size):
        i, n_lanes, first, last = extent(lanes, chunk)
        for v in range(n_lanes):
            label[first + v] = WHOLE
        if r[i] == np.inf:  # pairs of one chunk are all free or all not
            continue

        for v in range(n_lanes):
            z[NORM + v], z[DISTANCE + v], z[UNSEEN + v] = 1.0 / W[i + v], 0.0, 0.0
        for row in range(first, last, n_lanes):
            at = (row - first) // n_lanes * STRIDE
            for v in range(n_lanes):
                w, P = p[row + v] * z[NORM + v], P_hat[row + v]
                ratio = w * inverse[row + v]
                ratio = ratio if ratio > LEAST else LEAST
                log_ratio = log(ratio if P > 0.0 else 1.0)
                table[at + G + v] = log_ratio
                # KL(P̂‖w̄) + Σ w̄ − 1 as in (2): to rounding no other where w̄ is close to P̂, so that p* does not jump
                z[DISTANCE + v] += P * (ratio - 1.0 - log_ratio) if P > 0.0 else w
                z[UNSEEN + v] += 0.0 if P > 0.0 else w
        furthest = -np.inf
        for v in range(n_lanes):
            furthest = max(furthest, z[DISTANCE + v] - r[i + v])
        if furthest > 0.0:
            clip_kl(data, i, n_lanes, first, last, p, label, W, work.thresholds, z)


@jit
def clip_kl(data, i, n_lanes, first, last, p, label, W, thresholds, z):
    """The pairs of one chunk of which some leave their ball; log(w̄/P̂) is in the table."""
    P_hat, r, kappa, table = data.center, data.radius, data.kappa, data.table
    for v in range(n_lanes):
        K, radius, mu, lam = z[DISTANCE + v], r[i + v], thresholds[0, i + v], thresholds[1, i + v]
        outside = (radius < K) & (radius > 0.0)
        # near the center KL(P̂‖p) is quadratic, and p as far from P̂ as from w̄ in the ratio 1 : μ
        ratio = np.sqrt(K / radius) if outside else 1.0
        known = outside & (mu > 0.0) & (mu <= ratio * ratio) & (lam >= -K) & (lam <= 0.0)
        z[MU + v] = mu if known else ratio - 1.0
        z[LAMBDA + v] = lam if known else (-K * (1.0 - 1.0 / ratio) ** 2 if outside else 0.0)
        z[OPEN + v] = 1.0 if outside else -1.0  # 0 once it is settled
    far = -1.0
    for v in range(n_lanes):
        far = max(far, z[OPEN + v])
    for _ in range(PASSES):
        if far < 0.0:
            break
        if far > ASTRAY:
            start_tau(table, n_lanes, first, last, z)
        move_tau(P_hat, table, n_lanes, first, last, z)
        far = step_kl(r, i, n_lanes, z)
    for v in range(n_lanes):
        if z[OPEN + v] > 0.0:
            bracket_kl(P_hat, table, r[i + v], v, n_lanes, first, last, z)

    for v in range(n_lanes):  # a loop to each array, for vectors
        curved = r[i + v] > 0.0
        z[OUTSIDE + v] = 1.0 if z[DISTANCE + v] > r[i + v] else 0.0
        z[ON_SURFACE + v] = 1.0 if curved else 0.0
        z[TOTAL + v] = exp(z[LAMBDA + v] if curved else -z[DISTANCE + v])
        z[FACTOR + v] = exp(-z[MU + v]) if curved else 0.0  # of w, where P̂ = 0
    for v in range(n_lanes):
        W[i + v] *= z[TOTAL + v] if z[OUTSIDE + v] > 0.0 else 1.0
    for v in range(n_lanes):
        thresholds[0, i + v] = z[MU + v] if z[OUTSIDE + v] > 0.0 else thresholds[0, i + v]
    for v in range(n_lanes):
        thresholds[1, i + v] = z[LAMBDA + v] if z[OUTSIDE + v] > 0.0 else thresholds[1, i + v]
    for v in range(n_lanes):
        label[first + v] = CURVED if z[OUTSIDE + v] > 0.0 else WHOLE
        z[TOTAL + v] = W[i + v]
    for row in range(first, last, n_lanes):
        at = (row - first) // n_lanes * STRIDE
        for v in range(n_lanes):
            P, mu, u = P_hat[row + v], z[MU + v], table[at + U + v]
            move = table[at + KAPPA + v] * (z[STEP_LAMBDA + v] - table[at + TAU + v] * z[STEP_MU + v])
            u = fma(u, fma(0.5 * move, move, move), u)
            y = fma(mu, u, 1.0)
            both = 1.0 / (u * y)
            outside, curved = z[OUTSIDE + v] > 0.0, z[ON_SURFACE + v] > 0.0
            on = z[TOTAL + v] * P * (both * y if curved else 1.0)
            off = z[FACTOR + v] * p[row + v]
            p[row + v] = (on if P > 0.0 else off) if outside else p[row + v]
            kappa[row + v] = ((both * u if P > 0.0 else 1.0) if curved else 0.0) if outside else 1.0


@jit
def start_tau(table, n_lanes, first, last, z):
    """τ, 1 + τ and its logarithm L by (1), and κ, for all successors of a chunk.

    Newton's method in L, in which (1) is convex, with a term for its curvature; it starts where (1) would have τ if L
    were τ (1 + b τ) / (1 + (b + ½) τ), with a b for τ < 0 and one for τ > 0.
    """
    for v in range(n_lanes):
        z[STEP_MU + v], z[STEP_LAMBDA + v] = 0.0, 0.0
    for row in range(np.uint32(0), (last - first) // n_lanes, ONE_ROW):
        at = row * STRIDE
        for v in range(n_lanes):
            mu, a = z[MU + v], z[LAMBDA + v] - table[at + G + v]
            b = 0.3 if a < 0.0 else 0.04
            c = b + 0.5
            half = 0.5 * (1.0 + mu - a * c)
            t = a / (half + np.sqrt(half * half + a * fma(mu, c, b)))
            t = t if t > -0.97 else -0.97
            table[at + TAU + v] = t
            table[at + U + v] = 1.0 + t
        for _ in range(STARTS):
            far = 0
            for v in range(n_lanes):
                mu, t, u = z[MU + v], table[at + TAU + v], table[at + U + v]
                log_u = log(u) + (t - (u - 1.0) if u < 2.0 else 0.0)
                k = 1.0 / fma(mu, u, 1.0)
                move = k * (z[LAMBDA + v] - table[at + G + v] - mu * t - log_u)
                move *= 1.0 - 0.5 * (1.0 - k) * move if abs(move) < 1.0 else 1.0
                far += 1 if abs(move) > LONG and z[OPEN + v] >= 0.0 else 0
                square = move * move  # Padé's approximant of e^move − 1
                even = fma(square, fma(square, 1.0 / 1680.0, 3.0 / 28.0), 1.0)
                odd = move * fma(square, 1.0 / 84.0, 0.5)
                grown = u * (2.0 * odd / (even - odd))
                table[at + TAU + v] = t + grown
                table[at + U + v] = u + grown
                table[at + L + v] = log_u + move
                table[at + KAPPA + v] = k
            if far == 0:
                break
            for v in range(n_lanes):
                table[at + U + v] = exp(table[at + L + v])
                table[at + TAU + v] = table[at + U + v] - 1.0


@jit
def exp_minus_1(x):
    """e^x − 1 for |x| <= SHORT."""
    y = fma(x, 1.0 / 720.0, 1.0 / 120.0)
    y = fma(x, y, 1.0 / 24.0)
    y = fma(x, y, 1.0 / 6.0)
    return x * fma(x, fma(x, y, 0.5), 1.0)


@jit
def move_tau(P_hat, table, n_lanes, first, last, z):
    """Move τ along with the last step of the multipliers, correct it once, and sum up all that (2) needs."""
    for v in range(n_lanes):
        z[MOVE + v], z[ONE + v], z[B + v], z[BB + v], z[TOTAL + v], z[KL + v] = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for row in range(first, last, n_lanes):
        at = (row - first) // n_lanes * STRIDE
        for v in range(n_lanes):
            mu, t, u, k = z[MU + v], table[at + TAU + v], table[at + U + v], table[at + KAPPA + v]
            shift = k * (z[STEP_LAMBDA + v] - t * z[STEP_MU + v])
            shift = shift if shift < LONG else LONG
            shift = shift if shift > -LONG else -LONG
            log_u = table[at + L + v] + shift
            grown = u * exp_minus_1(shift)
            t += grown
            u += grown
            k = 1.0 / fma(mu, u, 1.0)
            move = k * (z[LAMBDA + v] - table[at + G + v] - mu * t - log_u)
            move *= 1.0 - 0.5 * (1.0 - k) * move
            move = move if move < LONG else LONG
            move = move if move > -LONG else -LONG
            grown = u * exp_minus_1(move)
            t += grown
            u += grown
            table[at + TAU + v] = t
            table[at + U + v] = u
            table[at + L + v] = log_u + move
            left = abs(move * move * move) if abs(shift) <= SHORT else 1.0
            z[MOVE + v] = left if left > z[MOVE + v] else z[MOVE + v]
        for v in range(n_lanes):
            P, mu, t, u, log_u = P_hat[row + v], z[MU + v], table[at + TAU + v], table[at + U + v], table[at + L + v]
            y = fma(mu, u, 1.0)
            both = 1.0 / (u * y)
            q, k = P * (both * y), both * u
            table[at + KAPPA + v] = k
            d, qt = q * k, q * t
            z[ONE + v] += d
            z[B + v] -= d * t
            z[BB + v] += d * t * t
            z[TOTAL + v] -= qt
            z[KL + v] += P * log_u - qt


@jit
def step_kl(r, i, n_lanes, z):
    """One step of Newton's method on (2) in every lane.

    Returns the error of log(1 + τ) in those that need another; −1 if none does.
    """
    for v in range(n_lanes):
        radius, mu, lam, K = r[i + v], z[MU + v], z[LAMBDA + v], z[DISTANCE + v]
        off = z[UNSEEN + v] * exp(-mu - lam)
        one, b, bb = z[ONE + v] + off, z[B + v] + off, z[BB + v] + off
        more, kl = z[TOTAL + v] + off, z[KL + v] + off
        kl = kl if kl > TINY else TINY
        total = 1.0 + more if more > -1.0 + 1e-3 else 1e-3
        log_total, ratio = log(total), kl / radius
        s_1 = total * log_total if abs(more) > 0.01 else more * (1.0 + 0.5 * more)
        # K^−½ is nearly straight in μ close to the center, log K far from it
        s_2 = 2.0 * kl * (np.sqrt(ratio) - 1.0) if abs(ratio - 1.0) < 0.5 else kl * log(ratio)
        per_one = 1.0 / one
        new_mu = mu + (s_2 - b * per_one * s_1) / (bb - b * per_one * b)
        new_mu = new_mu if new_mu > 0.0 else 0.01 * mu
        new_mu = new_mu if new_mu * radius <= K and abs(log_total) < 0.5 else mu
        new_lam = lam + (s_1 - b * (new_mu - mu)) * per_one
        new_lam = new_lam if new_lam < 0.0 else 0.0
        new_lam = new_lam if new_lam > -K else -K
        least = radius if radius < 1.0 else 1.0 / radius
        close = (abs(kl - radius) <= CLOSE * least) & (more * more <= CLOSE * CLOSE * least) & (z[MOVE + v] <= STEADY)
        going = z[OPEN + v] > 0.0
        z[STEP_MU + v] = new_mu - mu if going else 0.0
        z[STEP_LAMBDA + v] = new_lam - lam if going else 0.0
        z[MU + v] = new_mu if going else mu
        z[LAMBDA + v] = new_lam if going else lam
        z[OPEN + v] = 0.0 if close else z[OPEN + v]
        z[MOVE + v] = -1.0 if close else (z[MOVE + v] if going else -1.0)
    far = -1.0
    for v in range(n_lanes):
        far = max(far, z[MOVE + v])
    return far


@jit
def bracket_kl(P_hat, table, radius, v, n_lanes, first, last, z):
    """The multipliers of one pair, bounds kept on both: λ for each μ, since Σ p falls with λ and KL(P̂‖p) with μ."""
    K = z[DISTANCE + v]
    low, high = 0.0, K / radius
    mu, lam = min(np.sqrt(K / radius), high), -0.5 * K
    for n in range(BRACKETS):
        below, above = -K - ROUNDING, ROUNDING
        for _ in range(BRACKETS):
            one, b, bb, more, kl = sum_kl(P_hat, table, mu, lam, v, n_lanes, first, last, z)
            below, above = (lam, above) if more > 0.0 else (below, lam)
            new = lam + (1.0 + more) * np.log1p(more) / one
            new = new if below < new < above else 0.5 * (below + above)
            if new == lam or abs(more) <= ROUNDING:
                break
            lam = new
        low, high = (mu, high) if kl > radius else (low, mu)
        step = kl * np.log(kl / radius) / (bb - b / one * b)
        new = mu + step
        if not low < new < high:  # a μ that is small: by its logarithm
            new = mu * np.exp(step / mu)
        if n % 3 == 2 or not low < new < high:  # Newton's method may go from one side to the other, and get nowhere
            new = np.sqrt(low * high) if low > 0.0 else 1e-3 * high
        if new == mu or abs(kl - radius) <= 1e-14 * radius:
            break
        mu = new
    for j in range(first + v, last, n_lanes):
        at = (j - first) // n_lanes * STRIDE + v
        x = solve_log(lam - table[at + G], mu)
        table[at + TAU], table[at + U], table[at + KAPPA] = np.expm1(x), np.exp(x), 1.0 / (1.0 + mu * np.exp(x))
    z[MU + v], z[LAMBDA + v], z[STEP_MU + v], z[STEP_LAMBDA + v] = mu, lam, 0.0, 0.0


@jit
def sum_kl(P_hat, table, mu, lam, v, n_lanes, first, last, z):
    """What (2) needs of one pair: Σ p κ, Σ p κ b, Σ p κ b², Σ p − 1 and KL(P̂‖p) + Σ p − 1."""
    off = z[UNSEEN + v] * np.exp(-mu - lam)
    one, b, bb, more, kl = off, off, off, off, off
    for j in range(first + v, last, n_lanes):
        if P_hat[j] > 0.0:
            x = solve_log(lam - table[(j - first) // n_lanes * STRIDE + G + v], mu)
            t, q = np.expm1(x), P_hat[j] * np.exp(-x)
            d = q / (1.0 + mu * np.exp(x))
            one, b, bb = one + d, b - d * t, bb + d * t * t
            more, kl = more - q * t, kl + P_hat[j] * x - q * t
    return one, b, bb, more, kl


@jit
def solve_log(a, mu):
    """The x with μ (e^x − 1) + x = a: convex, so that Newton's method comes down to it from the bounds above it."""
    x = min(a / (1.0 + mu), a + mu) if a < 0.0 or mu == 0.0 else min(a / (1.0 + mu), np.log1p(a / mu))
    for _ in range(BRACKETS):
        new = x - (mu * np.expm1(x) + x - a) / (1.0 + mu * np.exp(x))
        if abs(new - x) <= ROUNDING * abs(new):
            break
        x = new
    return x
