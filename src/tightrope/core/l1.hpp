// The pair's question for L1 balls: p = P̂ clipped into [x·w, y·w], with two thresholds that decouple.
//
//     Σ (x w − P̂)_+ = ε/2,      Σ (P̂ − y w)_+ = ε/2,      p = min(max(P̂, x w), y w),
//
// unless w normalised is in the ball: then that is p.
#pragma once

#include "arithmetic.hpp"
#include "sets.hpp"

namespace tightrope {

/// ‖p − P̂‖₁ <= ε.
struct L1Set {
    const double* center;  ///< (n_slots,) P̂, 0 in the padding
    const double* radius;  ///< (n_pairs,) ε; 2 or more: the pair is free

    bool answer(const Chunk& chunk, const Answers& answers, Scratch& scratch) const;

private:
    static constexpr double LARGE = 1e280;  ///< Times any weight, more than any probability.

    /// Rows of scratch.
    struct Rows {
        double *__restrict norm, *__restrict distance, *__restrict x, *__restrict y;
        double *__restrict up_w, *__restrict up_p, *__restrict low_w, *__restrict low_p;

        explicit Rows(Scratch& scratch)
            : norm(scratch.row(0)), distance(scratch.row(1)), x(scratch.row(2)), y(scratch.row(3)),
              up_w(scratch.row(4)), up_p(scratch.row(5)), low_w(scratch.row(6)), low_p(scratch.row(7)) {}
    };

    void clip(const Chunk& chunk, const Answers& answers, Rows z) const;
    void find_thresholds(const Chunk& chunk, const double* p, Rows z) const;
    bool move_thresholds(const Chunk& chunk, Rows z) const;
};

/// p = w normalised where that is in the ball; `clip` has the chunks where some pair is not.
inline bool L1Set::answer(const Chunk& chunk, const Answers& answers, Scratch& scratch) const {
    const Index n = chunk.n_lanes;
    for (Index v = 0; v < n; ++v) answers.label[chunk.first + v] = WHOLE;
    if (radius[chunk.pair] >= 2.0) return false;  // pairs of one chunk are all free or none is

    const Rows z(scratch);
    const double *__restrict p = answers.p, *__restrict P_hat = center;
    const double *__restrict W = answers.W + chunk.pair, *__restrict eps = radius + chunk.pair;
    for (Index v = 0; v < n; ++v) z.norm[v] = 1.0 / W[v];
    for (Index v = 0; v < n; ++v) z.distance[v] = 0.0;
    for (Index row = chunk.first; row < chunk.last; row += n)
        for (Index v = 0; v < n; ++v) z.distance[v] += abs(z.norm[v] * p[row + v] - P_hat[row + v]);
    bool outside = false;
    for (Index v = 0; v < n; ++v) outside |= z.distance[v] > eps[v];
    if (outside) clip(chunk, answers, z);
    return outside;
}

/// The thresholds of all pairs of a chunk by Newton's method.
///
/// Each equation is convex and piecewise linear, so from any start one step lands on the far side of the root, and the
/// steps after it are monotone and end.
inline void L1Set::find_thresholds(const Chunk& chunk, const double* __restrict p, Rows z) const {
    const Index n = chunk.n_lanes;
    const double* __restrict P_hat = center;
    for (Index passes = 2 * chunk.rows() + 4; passes > 0; --passes) {
        for (Index v = 0; v < n; ++v) z.up_w[v] = z.up_p[v] = z.low_w[v] = z.low_p[v] = 0.0;
        for (Index row = chunk.first; row < chunk.last; row += n)
            for (Index v = 0; v < n; ++v) {
                const double w = p[row + v], P = P_hat[row + v];
                const bool up = z.x[v] * w > P, low = z.y[v] * w < P;
                z.up_w[v] += up ? w : 0.0;
                z.up_p[v] += up ? P : 0.0;
                z.low_w[v] += low ? w : 0.0;
                z.low_p[v] += low ? P : 0.0;
            }
        if (passes > 1 && !move_thresholds(chunk, z)) break;  // the last sums are those at x and y
    }
}

/// One step of Newton's method in every lane outside its ball; returns whether some threshold changed.
inline bool L1Set::move_thresholds(const Chunk& chunk, Rows z) const {
    const double* __restrict eps = radius + chunk.pair;
    bool changed = false;
    for (Index v = 0; v < chunk.n_lanes; ++v) {
        const double half = 0.5 * eps[v];
        const bool moves = z.distance[v] > eps[v] && half > 0.0;
        // Where no term is active, all of them are the start.
        const double x = z.up_w[v] > 0.0 ? (half + z.up_p[v]) / z.up_w[v] : (half + 1.0) * z.norm[v];
        const double y = z.low_p[v] > half ? (z.low_p[v] - half) / z.low_w[v] : (1.0 - half) * z.norm[v];
        changed |= moves && (x != z.x[v] || y != z.y[v]);
        z.x[v] = moves ? x : z.x[v];
        z.y[v] = moves ? y : z.y[v];
    }
    return changed;
}

/// The pairs of a chunk of which some leave their ball. Lanes inside their ball come out as they are.
inline void L1Set::clip(const Chunk& chunk, const Answers& answers, Rows z) const {
    const Index n = chunk.n_lanes;
    const double *__restrict P_hat = center, *__restrict eps = radius + chunk.pair;
    double *__restrict p = answers.p, *__restrict W = answers.W + chunk.pair;
    double *__restrict old_x = answers.thresholds[0] + chunk.pair, *__restrict old_y = answers.thresholds[1] + chunk.pair;
    std::int8_t* __restrict label = answers.label;
    for (Index v = 0; v < n; ++v) {
        const bool inside = z.distance[v] <= eps[v];
        z.x[v] = inside ? z.norm[v] : (eps[v] > 0.0 ? old_x[v] : 0.0);
        z.y[v] = inside ? z.norm[v] : (eps[v] > 0.0 ? old_y[v] : LARGE);
    }
    find_thresholds(chunk, p, z);

    double log_W[LANES];
    for (Index v = 0; v < n; ++v) {
        // Thresholds that meet: the pair is on the surface by rounding alone, and as good as inside.
        const bool met = z.x[v] >= z.y[v];
        z.distance[v] = met ? 0.0 : z.distance[v];
        z.x[v] = met ? z.norm[v] : z.x[v];
        z.y[v] = met ? z.norm[v] : z.y[v];
        // The scaled groups weigh up_p + ε/2 and low_p − ε/2.
        const double raised = z.up_w[v] > 0.0 ? z.up_p[v] + 0.5 * eps[v] : 0.0;
        const double lowered = z.low_w[v] > 0.0 ? z.low_p[v] - 0.5 * eps[v] : 0.0;
        log_W[v] = (raised > 0.0 ? -raised * log(z.x[v]) : 0.0) - (lowered > 0.0 ? lowered * log(z.y[v]) : 0.0);
    }
    for (Index row = chunk.first; row < chunk.last; row += n)
        for (Index v = 0; v < n; ++v) {
            const double P = P_hat[row + v], w = p[row + v];
            const bool up = z.x[v] * w > P, low = z.y[v] * w < P;
            label[row + v] = up ? SCALED_1 : (low ? SCALED_2 : FIXED);
            if (!up && !low && P > 0.0) log_W[v] += P * log(w / P);
        }
    for (Index v = 0; v < n; ++v) {
        const bool clipped = z.distance[v] > eps[v];
        W[v] = clipped ? exp(log_W[v]) : W[v];
        old_x[v] = clipped ? z.x[v] : old_x[v];
        old_y[v] = clipped ? z.y[v] : old_y[v];
    }
    for (Index row = chunk.first; row < chunk.last; row += n)
        for (Index v = 0; v < n; ++v) p[row + v] = W[v] * min(max(P_hat[row + v], z.x[v] * p[row + v]), z.y[v] * p[row + v]);
    for (Index v = 0; v < n; ++v)
        if (z.distance[v] <= eps[v]) label[chunk.first + v] = WHOLE;
}

}  // namespace tightrope
