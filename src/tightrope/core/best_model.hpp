// The best conditional of a confidence set: max over p in C of Σ p(s') v(s'), for one pair and values v of its successors.
//
// `fill` answers for a box, `transport` for an L1 ball cut by a box, `tilt` for a KL ball. Each takes the n successors of
// one pair, writes p and returns Σ p v. To minimise, negate v. Ties go by the order of successors, so the answer is the
// same on every machine; values that are not finite give an answer that is not finite, and nothing worse.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "arithmetic.hpp"
#include "space.hpp"

namespace tightrope {

/// Positions 0 .. n sorted by a value; of equal values the first position comes first.
class Order {
public:
    void ascending(const double* v, Index n) { sort(v, n, 1.0); }
    void descending(const double* v, Index n) { sort(v, n, -1.0); }
    Index operator[](Index rank) const { return entries_[rank].position; }

private:
    struct Entry {
        std::int64_t key;
        Index position;
        bool operator<(const Entry& other) const {
            return key < other.key || (key == other.key && position < other.position);
        }
    };

    /// The bits of a number as an integer in the same order. NaN has a place too: a sort needs a total order.
    static std::int64_t key_of(double x) {
        const auto bits = std::bit_cast<std::int64_t>(x + 0.0);  // −0 becomes 0
        return bits ^ static_cast<std::int64_t>(static_cast<std::uint64_t>(bits >> 63) >> 1);
    }

    void sort(const double* v, Index n, double sign) {
        if (static_cast<Index>(entries_.size()) < n) entries_.resize(n);
        for (Index r = 0; r < n; ++r) entries_[r] = {key_of(sign * v[r]), r};
        std::sort(entries_.begin(), entries_.begin() + n);
    }

    std::vector<Entry> entries_;
};

/// p between lower and upper: every successor gets its lower bound, and what is left of the mass goes to those of the
/// largest v first. `descending` has the successors in that order.
inline double fill(const double* lower, const double* upper, const double* v, const Order& descending, Index n, double* p) {
    double left = 1.0, value = 0.0;
    for (Index r = 0; r < n; ++r) left -= lower[r];
    for (Index rank = 0; rank < n; ++rank) {
        const Index r = descending[rank];
        const double more = max(min(upper[r] - lower[r], left), 0.0);
        left -= more;
        p[r] = lower[r] + more;
        value += p[r] * v[r];
    }
    return value;
}

/// Bounds on every p(s') for `transport`: none but 0 and 1, or those of a box.
struct Unbounded {
    double lower(Index) const { return 0.0; }
    double upper(Index) const { return 1.0; }
};

struct Between {
    const double *low, *high;
    double lower(Index r) const { return low[r]; }
    double upper(Index r) const { return high[r]; }
};

/// Σ |p − center| <= radius within bounds, which hold for the center: p takes what it may, half the radius at the most,
/// from the successors of least v to those of the largest.
template <class Bounds>
double transport(const Bounds& bounds, const double* center, double radius, const double* v, Order& order, Index n,
                 double* p) {
    std::copy(center, center + n, p);
    double left = 0.5 * radius;
    if (left > 0.0) order.ascending(v, n);
    for (Index low = 0, high = n - 1; low < high && left > 0.0;) {
        const Index giver = order[low], taker = order[high];
        const double spare = p[giver] - bounds.lower(giver), room = bounds.upper(taker) - p[taker];
        const double moved = max(min(min(spare, room), left), 0.0);
        p[giver] -= moved;
        p[taker] += moved;
        left -= moved;
        low += !(spare > room);  // one of the two at least, also where a bound is NaN
        high -= !(room > spare);
    }
    double value = 0.0;
    for (Index r = 0; r < n; ++r) value += p[r] * v[r];
    return value;
}

namespace tilting {

inline constexpr int STEPS = 100;        // of Newton's method, which halves its bracket otherwise
inline constexpr double LONGEST = 5.0;   // of its steps, in log g
inline constexpr double FAR = 300.0;     // smaller than e^−300 is no g: its square would be no number
inline constexpr double EXACT = 1e-13;   // log g is known to that

struct Divergence {
    double value, slope;
};

/// KL(P̂‖p) of p ∝ P̂ / (g + u): Σ P̂ log(g + u) + log Σ P̂ / (g + u), and its derivative by g.
inline Divergence divergence(const double* center, const double* u, double g, Index n) {
    double mean = 0.0, inverse = 0.0, squares = 0.0;
    for (Index r = 0; r < n; ++r)
        if (center[r] > 0.0) {
            const double away = g + u[r];
            mean += center[r] * log(away);
            inverse += center[r] / away;
            squares += center[r] / (away * away);
        }
    return {mean + log(inverse), inverse - squares / inverse};
}

/// log g at which the divergence is the radius. It is at most log(1 + 1/g): where that is the radius the bracket ends.
inline double log_gap(const double* center, const double* u, double radius, Index n) {
    double above = -log(expm1(min(radius, EXP_RANGE))), below = min(above, 0.0) - FAR;
    double x = min(above, -0.5 * log(radius));
    for (int step = 0; step < STEPS; ++step) {
        const double g = exp(x);
        const auto [over, slope] = divergence(center, u, g, n);
        (over > radius ? below : above) = x;
        const double move = slope < 0.0 ? (radius - over) / (slope * g) : -LONGEST;
        double moved = x + min(max(move, -LONGEST), LONGEST);
        if (!(below < moved && moved < above)) moved = 0.5 * (below + above);
        const bool done = abs(moved - x) <= EXACT * (1.0 + abs(x));
        x = moved;
        if (done) break;
    }
    return x;
}

}  // namespace tilting

/// KL(center‖p) <= radius: p ∝ P̂ / (ν − v), with the ν at which the divergence is the radius. If some v that was never
/// seen is larger than that ν would be, ν is the largest v, and what is left of p goes there.
///
/// With u = (max v − v) / span, in 0 .. 1, and ν = max v + g span, the question does not depend on the scale of v.
/// `u` is room for n numbers.
inline double tilt(const double* center, double radius, const double* v, double* u, Index n, double* p) {
    Index top = 0;
    double least = v[0], seen = -INF;
    for (Index r = 0; r < n; ++r) {
        top = v[r] > v[top] ? r : top;
        least = min(v[r], least);
        if (center[r] > 0.0) seen = max(v[r], seen);
    }
    const double most = v[top], span = most - least;
    if (!(span > 0.0) || !(span < INF) || radius == 0.0 || center[top] == 1.0) {
        std::copy(center, center + n, p);
    } else if (radius == INF) {
        for (Index r = 0; r < n; ++r) p[r] = r == top ? 1.0 : 0.0;
    } else {
        for (Index r = 0; r < n; ++r) u[r] = (most - v[r]) / span;
        double g = 0.0, rest = 0.0;
        const double unseen = most > seen ? tilting::divergence(center, u, 0.0, n).value : INF;
        if (unseen <= radius)
            rest = -expm1(unseen - radius);
        else
            g = exp(tilting::log_gap(center, u, radius, n));
        double total = 0.0;
        for (Index r = 0; r < n; ++r) {
            p[r] = center[r] > 0.0 ? center[r] / (g + u[r]) : 0.0;
            total += p[r];
        }
        for (Index r = 0; r < n; ++r) p[r] *= (1.0 - rest) / total;
        p[top] += rest;
    }
    double value = 0.0;
    for (Index r = 0; r < n; ++r) value += p[r] * v[r];
    return value;
}

}  // namespace tightrope
