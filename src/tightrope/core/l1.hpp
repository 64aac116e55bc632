// The pair's question for L1 balls: p = P̂ clipped into [x·w, y·w], with two thresholds that decouple.
//
//     Σ (x w − P̂)_+ = ε/2,      Σ (P̂ − y w)_+ = ε/2,      p = min(max(P̂, x w), y w),
//
// unless w normalised is in the ball: then that is p.
#pragma once

#include <cstring>

#include "arithmetic.hpp"
#include "sets.hpp"

namespace tightrope {

/// ‖p − P̂‖₁ <= ε.
struct L1Set {
    const double* center;  ///< (n_slots,) P̂, 0 in the padding
    const double* radius;  ///< (n_pairs,) ε; 2 or more: the pair is free

    bool answer(const Chunk& chunk, const Answers& answers, Scratch& scratch) const;
};

namespace l1 {

inline constexpr double LARGE = 1e280;  ///< Times any weight, more than any probability.

/// Eight lanes of a chunk: rows of slots a stride apart, and numbers by pair.
struct Group {
    Index rows, stride;
    const double* P_hat;
    double* p;
    std::int8_t* label;
    const double* eps;
    double *W, *x, *y;  ///< x and y: the thresholds of the last call
};

/// The terms of both equations that are active at some thresholds.
struct Active {
    Eight up_w = {}, up_p = {}, low_w = {}, low_p = {};

    Active(const Group& group, Eight x, Eight y) {
        for (Index j = 0; j < group.rows * group.stride; j += group.stride) {
            const Eight w = load_eight(group.p + j), P = load_eight(group.P_hat + j);
            const EightFlags up = x * w > P, low = y * w < P;
            up_w += up ? w : Eight{};
            up_p += up ? P : Eight{};
            low_w += low ? w : Eight{};
            low_p += low ? P : Eight{};
        }
    }
};

/// SCALED_1 where up, SCALED_2 where low alone, FIXED elsewhere.
TIGHTROPE_INLINE void store_labels(std::int8_t* label, EightFlags up, EightFlags low) {
    typedef std::int8_t EightLabels __attribute__((vector_size(8)));
    const std::int64_t one = SCALED_1, two = SCALED_2;
    const EightLabels labels = __builtin_convertvector((up & one) | (low & ~up & two), EightLabels);
    std::memcpy(label, &labels, sizeof labels);
}

/// The distance of w, normalised, from the center.
TIGHTROPE_INLINE Eight distance_of(const Group& group, Eight norm) {
    Eight distance = {};
    for (Index j = 0; j < group.rows * group.stride; j += group.stride)
        distance += abs(norm * load_eight(group.p + j) - load_eight(group.P_hat + j));
    return distance;
}

/// p = w normalised where that is in the ball, clipped elsewhere; returns whether some pair is clipped.
///
/// The thresholds are found by Newton's method. Each equation is convex and piecewise linear, so from any start one step
/// lands on the far side of the root, and the steps after it are monotone and end.
inline bool answer(const Group& group) {
    const Eight total = load_eight(group.W), norm = 1.0 / total, eps = load_eight(group.eps), half = 0.5 * eps;
    EightFlags outside = distance_of(group, norm) > eps;
    if (!any(outside)) return false;

    const EightFlags ball = eps > 0.0, moves = outside & ball;
    Eight x = outside ? (ball ? load_eight(group.x) : Eight{}) : norm;
    Eight y = outside ? (ball ? load_eight(group.y) : eight_of(LARGE)) : norm;
    Active active(group, x, y);
    for (Index passes = 2 * group.rows + 4; passes > 0; --passes) {
        // Where no term is active, all of them are the start.
        const Eight new_x = active.up_w > 0.0 ? (half + active.up_p) / active.up_w : (half + 1.0) * norm;
        const Eight new_y = active.low_p > half ? (active.low_p - half) / active.low_w : (1.0 - half) * norm;
        if (!any(moves & ((new_x != x) | (new_y != y)))) break;
        x = moves ? new_x : x;
        y = moves ? new_y : y;
        active = Active(group, x, y);
    }
    outside &= x < y;  // thresholds that meet: the pair is on the surface by rounding alone, and as good as inside

    // The scaled groups weigh up_p + ε/2 and low_p − ε/2.
    const Eight raised = active.up_w > 0.0 ? active.up_p + half : Eight{};
    const Eight lowered = active.low_w > 0.0 ? active.low_p - half : Eight{};
    Eight log_W = raised > 0.0 ? -raised * each<log_normal>(x) : Eight{};
    log_W -= lowered > 0.0 ? lowered * each<log_normal>(y) : Eight{};
    for (Index j = 0; j < group.rows * group.stride; j += group.stride) {
        const Eight w = load_eight(group.p + j), P = load_eight(group.P_hat + j);
        const EightFlags up = x * w > P, low = y * w < P, fixed = ~(up | low) & (P > 0.0);
        const Eight one = eight_of(1.0);
        log_W += fixed ? P * each<log_ratio>(fixed ? w : one, fixed ? P : one) : Eight{};
        store_labels(group.label + j, up, low);
    }
    const Eight W = outside ? each<exp>(log_W) : total;
    for (Index j = 0; j < group.rows * group.stride; j += group.stride) {
        const Eight w = load_eight(group.p + j), P = load_eight(group.P_hat + j);
        store_eight(group.p + j, outside ? W * min(max(P, x * w), y * w) : w);
    }
    store_eight(group.W, W);
    store_eight(group.x, outside ? x : load_eight(group.x));
    store_eight(group.y, outside ? y : load_eight(group.y));
    for (int v = 0; v < 8; ++v)
        if (!outside[v]) group.label[v] = WHOLE;
    return any(outside);
}

/// `answer` for fewer than eight lanes: in a table of eight columns, the last ones empty.
inline bool answer_some(const Group& group, Index lanes, double* table) {
    double *p = table, *P_hat = p + 8 * group.rows, by_pair[4][8];
    std::int8_t* label = reinterpret_cast<std::int8_t*>(P_hat + 8 * group.rows);
    for (Index v = 0; v < 8; ++v) {
        const bool real = v < lanes;
        by_pair[0][v] = real ? group.eps[v] : INF;
        by_pair[1][v] = real ? group.W[v] : 1.0;
        by_pair[2][v] = real ? group.x[v] : 0.0;
        by_pair[3][v] = real ? group.y[v] : 0.0;
    }
    for (Index r = 0; r < group.rows; ++r)
        for (Index v = 0; v < 8; ++v) {
            p[8 * r + v] = v < lanes ? group.p[r * group.stride + v] : 0.0;
            P_hat[8 * r + v] = v < lanes ? group.P_hat[r * group.stride + v] : 0.0;
        }
    if (!answer({group.rows, 8, P_hat, p, label, by_pair[0], by_pair[1], by_pair[2], by_pair[3]})) return false;
    for (Index v = 0; v < lanes; ++v) {
        group.W[v] = by_pair[1][v];
        group.x[v] = by_pair[2][v];
        group.y[v] = by_pair[3][v];
        for (Index r = 0; r < group.rows; ++r) {
            group.p[r * group.stride + v] = p[8 * r + v];
            group.label[r * group.stride + v] = label[8 * r + v];
        }
    }
    return true;
}

}  // namespace l1

inline bool L1Set::answer(const Chunk& chunk, const Answers& answers, Scratch& scratch) const {
    for (Index v = 0; v < chunk.n_lanes; ++v) answers.label[chunk.first + v] = WHOLE;
    if (radius[chunk.pair] >= 2.0) return false;  // pairs of one chunk are all free or none is
    bool clipped = false;
    for (Index v = 0; v < chunk.n_lanes; v += 8) {
        const Index i = chunk.pair + v, j = chunk.first + v;
        const l1::Group group{chunk.rows(), chunk.n_lanes, center + j, answers.p + j, answers.label + j, radius + i,
                              answers.W + i, answers.thresholds[0] + i, answers.thresholds[1] + i};
        const Index lanes = chunk.n_lanes - v;
        clipped |= lanes >= 8 ? l1::answer(group) : l1::answer_some(group, lanes, scratch.table());
    }
    return clipped;
}

}  // namespace tightrope
