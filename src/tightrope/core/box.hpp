// The pair's question for boxes, whole or cut by an L1 ball: all of it comes down to Σ clip(κ w, lo, hi) = total.
//
//     p* = w normalised                   where that is in the set;
//     p* = clip(κ w, lower, upper)        where that is in the ball;
//
// otherwise half of the radius ε lies above the center and half below, with a scale for each: p* = min(x w, upper) where
// x w > center, max(y w, lower) where y w < center, and the center in between, with
//
//     Σ clip(x w, center, upper) = 1 + ε/2,      Σ clip(y w, lower, center) = 1 − ε/2.
#pragma once

#include "arithmetic.hpp"
#include "sets.hpp"

namespace tightrope {

TIGHTROPE_INLINE double clip(double x, double lo, double hi) { return min(max(x, lo), hi); }

/// The κ with Σ clip(κ w, lo, hi) = total in every lane of a table whose `open` is 1, from any guess in κ.
///
/// Newton's method for as long as it stays between the bounds found so far, which takes it to each of the 2n + 1 linear
/// pieces once at most. Where it does not, what the bounds show to be clipped is fixed and the rest scaled to what is
/// left of the total: that is the answer, or it fixes one more. A lane is open (1) until its κ is found (0).
inline void clip_scale(Index n_lanes, Index rows, const double* __restrict w, const double* __restrict lo,
                       const double* __restrict hi, const double* __restrict total, double* __restrict open,
                       double* __restrict kappa) {
    double below[LANES], above[LANES], fixed[LANES], weight[LANES], astray[LANES];
    for (Index v = 0; v < n_lanes; ++v) below[v] = 0.0, above[v] = INF;
    for (Index pass = 0; pass < 3 * rows + 3; ++pass) {
        for (Index v = 0; v < n_lanes; ++v) fixed[v] = 0.0, weight[v] = 0.0;
        for (Index row = 0; row < rows * n_lanes; row += n_lanes)
            for (Index v = 0; v < n_lanes; ++v) {
                const double x = kappa[v] * w[row + v], clipped = clip(x, lo[row + v], hi[row + v]);
                const bool inside = (lo[row + v] < x) & (x < hi[row + v]);
                fixed[v] += inside ? 0.0 : clipped;
                weight[v] += inside ? w[row + v] : 0.0;
            }
        for (Index v = 0; v < n_lanes; ++v) {
            const bool low = fixed[v] + kappa[v] * weight[v] < total[v];
            below[v] = low ? kappa[v] : below[v];
            above[v] = low ? above[v] : kappa[v];
            const double proposed = (total[v] - fixed[v]) / weight[v];
            const bool found = (proposed == kappa[v]) & (weight[v] > 0.0);  // the same piece, so the same numbers
            const bool between = (below[v] < proposed) & (proposed < above[v]) & (weight[v] > 0.0);
            open[v] = found ? 0.0 : open[v];
            astray[v] = between ? 0.0 : open[v];
            kappa[v] = (between & (open[v] > 0.0)) ? proposed : kappa[v];
        }
        if (!any(open, n_lanes)) return;
        if (!any(astray, n_lanes)) continue;

        for (Index v = 0; v < n_lanes; ++v) fixed[v] = 0.0, weight[v] = 0.0;
        for (Index row = 0; row < rows * n_lanes; row += n_lanes)
            for (Index v = 0; v < n_lanes; ++v) {
                const bool at_lo = (above[v] * w[row + v] <= lo[row + v]) | (w[row + v] == 0.0);
                const bool at_hi = below[v] * w[row + v] >= hi[row + v];
                fixed[v] += at_lo ? lo[row + v] : (at_hi ? hi[row + v] : 0.0);
                weight[v] += (at_lo | at_hi) ? 0.0 : w[row + v];
            }
        for (Index v = 0; v < n_lanes; ++v) {
            const double proposed = weight[v] > 0.0 ? (total[v] - fixed[v]) / weight[v] : kappa[v];
            const bool between = (below[v] < proposed) & (proposed < above[v]);
            kappa[v] = astray[v] > 0.0 ? clip(proposed, below[v], above[v]) : kappa[v];
            open[v] = (between | (astray[v] == 0.0)) ? open[v] : 0.0;  // at a bound by rounding: that bound is the κ
        }
    }
}

/// lower <= p <= upper, and ‖p − center‖₁ <= radius with the center within the bounds.
struct BoxSet {
    const double* lower;   ///< (n_slots,)
    const double* upper;   ///< (n_slots,)
    const double* center;  ///< (n_slots,) not read where there is no ball
    const double* radius;  ///< (n_pairs,) 2 or more: there is no ball

    bool answer(const Chunk& c, const Answers& a, Scratch& scratch) const;
};

namespace box {

/// Pairs side by side: those of a chunk, or copies of some of them. Tables have a row for each row of slots.
struct Pairs {
    Index n_lanes, rows;
    double* p;             ///< a table
    double* code;          ///< a table, written: the labels
    const double *lower, *upper, *center;  ///< tables
    const double* radius;  ///< by lane, as the rest
    double* W;
    double *x, *y;  ///< the thresholds
};

/// Overwrite w by W p* and find W and the labels, in the lanes whose `outside` is 1; the others come out as they are.
inline void clip_to_set(const Pairs& pairs, const double* __restrict outside, const double* __restrict norm) {
    const Index n_lanes = pairs.n_lanes, rows = pairs.rows, n_slots = rows * n_lanes;
    double *__restrict p = pairs.p, *__restrict code = pairs.code, *__restrict W = pairs.W;
    double *__restrict old_x = pairs.x, *__restrict old_y = pairs.y;
    const double *__restrict lo = pairs.lower, *__restrict hi = pairs.upper, *__restrict P_hat = pairs.center;
    const double* __restrict eps = pairs.radius;

    double x[LANES], y[LANES], total[LANES] = {}, open[LANES], ball[LANES], beyond[LANES], distance[LANES], log_W[LANES];
    for (Index v = 0; v < n_lanes; ++v) {
        x[v] = old_x[v] > 0.0 ? old_x[v] : norm[v];
        total[v] = 1.0;
        open[v] = outside[v];
        ball[v] = eps[v] < 2.0 ? outside[v] : 0.0;
        distance[v] = 0.0;
        log_W[v] = 0.0;
    }
    clip_scale(n_lanes, rows, p, lo, hi, total, open, x);
    for (Index v = 0; v < n_lanes; ++v) old_x[v] = outside[v] > 0.0 ? x[v] : old_x[v];

    // beyond: 1 where clip(κ w) leaves the ball
    if (any(ball, n_lanes))
        for (Index row = 0; row < n_slots; row += n_lanes)
            for (Index v = 0; v < n_lanes; ++v)
                distance[v] += abs(clip(x[v] * p[row + v], lo[row + v], hi[row + v]) - P_hat[row + v]);
    for (Index v = 0; v < n_lanes; ++v) {
        beyond[v] = distance[v] > eps[v] ? ball[v] : 0.0;
        y[v] = old_y[v] > 0.0 ? old_y[v] : x[v];
    }
    if (any(beyond, n_lanes)) {
        for (Index v = 0; v < n_lanes; ++v) open[v] = beyond[v], total[v] = 1.0 + 0.5 * eps[v];
        clip_scale(n_lanes, rows, p, P_hat, hi, total, open, x);
        for (Index v = 0; v < n_lanes; ++v) open[v] = beyond[v], total[v] = 1.0 - 0.5 * eps[v];
        clip_scale(n_lanes, rows, p, lo, P_hat, total, open, y);
        for (Index v = 0; v < n_lanes; ++v) old_y[v] = beyond[v] > 0.0 ? y[v] : old_y[v];
    }

    // log W = Σ p log(w/p); entries of next to no probability count for nothing
    for (Index row = 0; row < n_slots; row += n_lanes)
        for (Index v = 0; v < n_lanes; ++v) {
            const double w = p[row + v], up = x[v] * w, down = y[v] * w;
            const double bottom = beyond[v] > 0.0 ? P_hat[row + v] : lo[row + v];
            const double top = beyond[v] > 0.0 ? P_hat[row + v] : hi[row + v];
            const double raised = clip(up, bottom, hi[row + v]), lowered = clip(down, lo[row + v], top);
            const double answer = beyond[v] > 0.0 ? (up > bottom ? raised : lowered) : raised;
            const bool scaled_1 = (bottom < up) & (up < hi[row + v]);
            const bool scaled_2 = (up <= bottom) & (lo[row + v] < down) & (down < top) & (beyond[v] > 0.0);
            code[row + v] = scaled_1 ? double(SCALED_1) : (scaled_2 ? double(SCALED_2) : double(FIXED));
            log_W[v] += answer * log_normal(max(min(w / answer, 1e300), 1e-300));
            p[row + v] = outside[v] > 0.0 ? answer : w;
        }
    for (Index v = 0; v < n_lanes; ++v) {
        const double new_W = exp(log_W[v]);
        W[v] = outside[v] > 0.0 ? new_W : W[v];
        x[v] = outside[v] > 0.0 ? new_W : 1.0;
        code[v] = outside[v] > 0.0 ? code[v] : double(WHOLE);
    }
    for (Index row = 0; row < n_slots; row += n_lanes)
        for (Index v = 0; v < n_lanes; ++v) p[row + v] *= x[v];
}

/// The same for the few pairs of a chunk that are `outside`: copied, eight at least, answered and copied back.
inline void clip_copies(const Pairs& all, std::int8_t* label, const double* outside, const double* norm,
                        double* tables) {
    Index at[LANES], n = 0;
    for (Index v = 0; v < all.n_lanes; ++v)
        if (outside[v] > 0.0) at[n++] = v;
    const Index found = n;
    for (; n % ABREAST != 0; ++n) at[n] = at[0];  // of which nothing is copied back

    double *p = tables, *lower = p + n * all.rows, *upper = lower + n * all.rows, *center = upper + n * all.rows;
    double radius[LANES], W[LANES], x[LANES], y[LANES], here[LANES], scale[LANES];
    const Pairs few = {n, all.rows, p, center + n * all.rows, lower, upper, center, radius, W, x, y};
    for (Index v = 0; v < n; ++v) {
        radius[v] = all.radius[at[v]], W[v] = all.W[at[v]], x[v] = all.x[at[v]], y[v] = all.y[at[v]];
        here[v] = 1.0, scale[v] = norm[at[v]];
    }
    for (Index row = 0; row < all.rows; ++row)
        for (Index v = 0; v < n; ++v) {
            const Index from = row * all.n_lanes + at[v], to = row * n + v;
            p[to] = all.p[from], lower[to] = all.lower[from], upper[to] = all.upper[from], center[to] = all.center[from];
        }
    clip_to_set(few, here, scale);
    for (Index v = 0; v < all.n_lanes; ++v) label[v] = WHOLE;
    for (Index v = 0; v < found; ++v) all.W[at[v]] = W[v], all.x[at[v]] = x[v], all.y[at[v]] = y[v];
    for (Index row = 0; row < all.rows; ++row)
        for (Index v = 0; v < found; ++v) {
            all.p[row * all.n_lanes + at[v]] = p[row * n + v];
            label[row * all.n_lanes + at[v]] = static_cast<std::int8_t>(few.code[row * n + v]);
        }
}

}  // namespace box

/// p = w normalised where that is in the set; the other pairs are clipped.
inline bool BoxSet::answer(const Chunk& c, const Answers& a, Scratch& scratch) const {
    const double *__restrict w = a.p + c.first, *__restrict lo = lower + c.first, *__restrict hi = upper + c.first;
    const double *__restrict P_hat = center + c.first, *__restrict eps = radius + c.pair;
    std::int8_t* __restrict label = a.label + c.first;
    const Index n_lanes = c.n_lanes, n_slots = c.last - c.first;
    double norm[LANES], outside[LANES], ball[LANES], distance[LANES];
    for (Index v = 0; v < n_lanes; ++v) {
        norm[v] = 1.0 / a.W[c.pair + v];
        outside[v] = 0.0;
        ball[v] = eps[v] < 2.0 ? 1.0 : 0.0;
        distance[v] = 0.0;
    }
    for (Index row = 0; row < n_slots; row += n_lanes)
        for (Index v = 0; v < n_lanes; ++v) {
            const double x = norm[v] * w[row + v];
            outside[v] = max(outside[v], max(lo[row + v] - x, x - hi[row + v]));
        }
    if (any(ball, n_lanes))
        for (Index row = 0; row < n_slots; row += n_lanes)
            for (Index v = 0; v < n_lanes; ++v) distance[v] += abs(norm[v] * w[row + v] - P_hat[row + v]);
    Index n_outside = 0;
    for (Index v = 0; v < n_lanes; ++v) {
        const bool leaves = (outside[v] > 0.0) | ((ball[v] > 0.0) & (distance[v] > eps[v]));
        outside[v] = leaves ? 1.0 : 0.0;
        n_outside += leaves;
    }
    if (n_outside == 0) {
        for (Index v = 0; v < n_lanes; ++v) label[v] = WHOLE;
        return false;
    }
    const box::Pairs all = {n_lanes, c.rows(), a.p + c.first, scratch.table(), lo, hi, P_hat, eps, a.W + c.pair,
                            a.thresholds[0] + c.pair, a.thresholds[1] + c.pair};
    if (2 * n_outside <= n_lanes && n_lanes >= 2 * ABREAST) {
        box::clip_copies(all, label, outside, norm, scratch.table());
    } else {
        box::clip_to_set(all, outside, norm);
        for (Index j = 0; j < n_slots; ++j) label[j] = static_cast<std::int8_t>(all.code[j]);
    }
    return true;
}

}  // namespace tightrope
