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
                weight[v] += at_lo | at_hi ? 0.0 : w[row + v];
            }
        for (Index v = 0; v < n_lanes; ++v) {
            const double proposed = weight[v] > 0.0 ? (total[v] - fixed[v]) / weight[v] : kappa[v];
            const bool between = (below[v] < proposed) & (proposed < above[v]);
            kappa[v] = astray[v] > 0.0 ? clip(proposed, below[v], above[v]) : kappa[v];
            open[v] = between | (astray[v] == 0.0) ? open[v] : 0.0;  // at a bound by rounding: that bound is the κ
        }
    }
}

/// lower <= p <= upper, and ‖p − center‖₁ <= radius with the center within the bounds.
struct BoxSet {
    const double* lower;   ///< (n_slots,)
    const double* upper;   ///< (n_slots,)
    const double* center;  ///< (n_slots,) not read where there is no ball
    const double* radius;  ///< (n_pairs,) 2 or more: there is no ball

    bool answer(const Chunk& c, const Answers& a, Scratch&) const;

private:
    bool has_ball(const Chunk& c) const;
    void clip_to_set(const Chunk& c, const Answers& a, const double* outside, const double* norm) const;
};

inline bool BoxSet::has_ball(const Chunk& c) const {
    Index n = 0;
    for (Index v = 0; v < c.n_lanes; ++v) n += radius[c.pair + v] < 2.0;
    return n > 0;
}

/// p = w normalised where that is in the set; `clip_to_set` does the chunks where some pair is not.
inline bool BoxSet::answer(const Chunk& c, const Answers& a, Scratch&) const {
    const double* __restrict w = a.p + c.first;
    const double* __restrict lo = lower + c.first;
    const double* __restrict hi = upper + c.first;
    const double* __restrict P_hat = center + c.first;
    const double* __restrict eps = radius + c.pair;
    const Index n_lanes = c.n_lanes, n_slots = c.last - c.first;
    double norm[LANES], outside[LANES], distance[LANES];
    for (Index v = 0; v < n_lanes; ++v) norm[v] = 1.0 / a.W[c.pair + v], outside[v] = 0.0, distance[v] = 0.0;
    for (Index row = 0; row < n_slots; row += n_lanes)
        for (Index v = 0; v < n_lanes; ++v) {
            const double x = norm[v] * w[row + v];
            outside[v] = max(outside[v], max(lo[row + v] - x, x - hi[row + v]));
        }
    if (has_ball(c))
        for (Index row = 0; row < n_slots; row += n_lanes)
            for (Index v = 0; v < n_lanes; ++v) distance[v] += abs(norm[v] * w[row + v] - P_hat[row + v]);
    for (Index v = 0; v < n_lanes; ++v) {
        const bool leaves = (outside[v] > 0.0) | ((eps[v] < 2.0) & (distance[v] > eps[v]));
        outside[v] = leaves ? 1.0 : 0.0;
    }
    if (!any(outside, n_lanes)) {
        for (Index v = 0; v < n_lanes; ++v) a.label[c.first + v] = WHOLE;
        return false;
    }
    clip_to_set(c, a, outside, norm);
    return true;
}

/// The pairs of a chunk whose `outside` is 1: overwrites w by W p*, W and the labels. The others come out as they are.
inline void BoxSet::clip_to_set(const Chunk& c, const Answers& a, const double* outside,
                                const double* norm) const {
    double* __restrict p = a.p + c.first;
    double* __restrict W = a.W + c.pair;
    std::int8_t* __restrict label = a.label + c.first;
    double* __restrict first_threshold = a.thresholds[0] + c.pair;
    double* __restrict second_threshold = a.thresholds[1] + c.pair;
    const double* __restrict lo = lower + c.first;
    const double* __restrict hi = upper + c.first;
    const double* __restrict P_hat = center + c.first;
    const double* __restrict eps = radius + c.pair;
    const Index n_lanes = c.n_lanes, n_slots = c.last - c.first, rows = c.rows();

    double x[LANES], y[LANES], total[LANES] = {}, open[LANES], beyond[LANES], distance[LANES], log_W[LANES], code[LANES];
    for (Index v = 0; v < n_lanes; ++v) {
        x[v] = first_threshold[v] > 0.0 ? first_threshold[v] : norm[v];
        total[v] = 1.0;
        open[v] = outside[v];
        distance[v] = 0.0;
        log_W[v] = 0.0;
    }
    clip_scale(n_lanes, rows, p, lo, hi, total, open, x);
    for (Index v = 0; v < n_lanes; ++v) first_threshold[v] = outside[v] > 0.0 ? x[v] : first_threshold[v];

    // beyond: 1 where clip(κ w) leaves the ball
    if (has_ball(c))
        for (Index row = 0; row < n_slots; row += n_lanes)
            for (Index v = 0; v < n_lanes; ++v)
                distance[v] += abs(clip(x[v] * p[row + v], lo[row + v], hi[row + v]) - P_hat[row + v]);
    for (Index v = 0; v < n_lanes; ++v) {
        beyond[v] = (eps[v] < 2.0) & (distance[v] > eps[v]) ? outside[v] : 0.0;
        y[v] = second_threshold[v] > 0.0 ? second_threshold[v] : x[v];
    }
    if (any(beyond, n_lanes)) {
        for (Index v = 0; v < n_lanes; ++v) open[v] = beyond[v], total[v] = 1.0 + 0.5 * eps[v];
        clip_scale(n_lanes, rows, p, P_hat, hi, total, open, x);
        for (Index v = 0; v < n_lanes; ++v) open[v] = beyond[v], total[v] = 1.0 - 0.5 * eps[v];
        clip_scale(n_lanes, rows, p, lo, P_hat, total, open, y);
        for (Index v = 0; v < n_lanes; ++v) second_threshold[v] = beyond[v] > 0.0 ? y[v] : second_threshold[v];
    }

    // log W = Σ p log(w/p); entries of next to no probability count for nothing
    for (Index row = 0; row < n_slots; row += n_lanes) {
        for (Index v = 0; v < n_lanes; ++v) {
            const double w = p[row + v], up = x[v] * w, down = y[v] * w;
            const double bottom = beyond[v] > 0.0 ? P_hat[row + v] : lo[row + v];
            const double top = beyond[v] > 0.0 ? P_hat[row + v] : hi[row + v];
            const double raised = clip(up, bottom, hi[row + v]), lowered = clip(down, lo[row + v], top);
            const double answer = beyond[v] > 0.0 ? (up > bottom ? raised : lowered) : raised;
            const bool scaled_1 = (bottom < up) & (up < hi[row + v]);
            const bool scaled_2 = (up <= bottom) & (lo[row + v] < down) & (down < top) & (beyond[v] > 0.0);
            code[v] = scaled_1 ? double(SCALED_1) : (scaled_2 ? double(SCALED_2) : double(FIXED));
            log_W[v] += answer * log_normal(max(min(w / answer, 1e300), 1e-300));
            p[row + v] = outside[v] > 0.0 ? answer : w;
        }
        for (Index v = 0; v < n_lanes; ++v) label[row + v] = static_cast<std::int8_t>(code[v]);
    }
    for (Index v = 0; v < n_lanes; ++v) {
        x[v] = exp(log_W[v]);
        W[v] = outside[v] > 0.0 ? x[v] : W[v];
        x[v] = outside[v] > 0.0 ? x[v] : 1.0;
    }
    for (Index row = 0; row < n_slots; row += n_lanes)
        for (Index v = 0; v < n_lanes; ++v) p[row + v] *= x[v];
    for (Index v = 0; v < n_lanes; ++v) label[v] = outside[v] > 0.0 ? label[v] : std::int8_t(WHOLE);
}

}  // namespace tightrope
