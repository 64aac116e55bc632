// Radii that hold at all times at once: how far the likelihood of counts may exceed that under the true model.
//
// For a law on d outcomes with counts M, N = ΣM, and the mixture of all laws with Jeffreys' prior (Krichevsky, Trofimov),
//
//     KT(M) = Γ(d/2) / Γ(N + d/2) · Π Γ(M + ½) / Γ(½),
//
// the ratio KT(M) / Π p^M is a martingale under p, so that with probability at least 1 − δ, for all N at once,
//
//     KL(P̂‖p) <= r = ( log(1/δ) + log ML(M) − log KT(M) ) / N,      ML(M) = Π P̂^M.
//
// Neither logarithm is formed, being of the order of N: of log Γ(M + ½) − M log M + M little is left.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "arithmetic.hpp"
#include "space.hpp"

namespace tightrope {

namespace constants {
inline constexpr double LOG_SQRT_2PI = 0.91893853320467274178;
inline constexpr double LOG_SQRT_2 = 0.34657359027997265471;
}  // namespace constants

inline constexpr std::int64_t SERIES = 16;  ///< From here on asymptotic series are exact to rounding.

/// `outcome_term` of 0 .. SERIES − 1.
inline constexpr double SMALL_OUTCOMES[SERIES] = {
    0.0,                     0.30685281944005469058,  0.32602356642832845373,  0.33277179341804506356,
    0.33619418343817965809,  0.3382594625235143338,   0.33964030156411143658,  0.34062825044683973235,
    0.34136998093761019865,  0.34194728184659395038,  0.34240934653860670591,  0.34278753286046524849,
    0.34310277155574189181,  0.34336956632002348565,  0.3435982841507642158,   0.34379653165776254694,
};

/// log Γ(m + ½) − m log m + m − log Γ(½), m >= 0: from 0 at m = 0 up to log √2.
TIGHTROPE_INLINE double outcome_term(std::int64_t m) {
    const bool small = m < SERIES;
    const double x = 1.0 / static_cast<double>(small ? SERIES : m), q = x * x;
    const double rest = x * (1.0 / 24.0 - q * (7.0 / 2880.0 - q * (31.0 / 40320.0 - q * (127.0 / 430080.0))));
    return small ? SMALL_OUTCOMES[m & (SERIES - 1)] : constants::LOG_SQRT_2 - rest;
}

/// log Γ(n + d/2) − n log n + n − log Γ(d/2), n >= 1; Γ(d/2) is remembered from one call to the next.
class TotalTerm {
public:
    double operator()(std::int64_t count, Index d) {
        if (d != d_) d_ = d, of_d_ = lgamma(0.5 * static_cast<double>(d));
        const double n = static_cast<double>(count), h = 0.5 * static_cast<double>(d), z = n + h;
        if (z < static_cast<double>(SERIES)) return lgamma(z) - n * log(n) + n - of_d_;
        const double x = 1.0 / z, q = x * x;
        const double series = x * (1.0 / 12.0 - q * (1.0 / 360.0 - q * (1.0 / 1260.0 - q / 1680.0)));
        return n * log1p(h / n) - h + (h - 0.5) * log(z) + constants::LOG_SQRT_2PI + series - of_d_;
    }

private:
    Index d_ = 0;
    double of_d_ = 0.0;
};

/// scale · r of every pair, with log(1/δ) given; infinite without visits, and where there is one successor.
inline void kl_radii(const Space& space, const std::int64_t* N, const std::int64_t* M, double log_inverse, double scale,
                     double* radius) {
    constexpr Index BLOCK = 2048;  // tuples whose terms are found side by side; more only for a pair that has more
    std::vector<double> terms(BLOCK);
    TotalTerm total_term;
    for (Index begin = 0, end = 0; begin < space.n_pairs; begin = end) {
        const Index first = space.pair_ptr[begin];
        for (end = begin + 1; end < space.n_pairs && space.pair_ptr[end + 1] - first <= BLOCK;) ++end;
        const Index n = space.pair_ptr[end] - first;
        if (static_cast<Index>(terms.size()) < n) terms.resize(n);
        for (Index j = 0; j < n; ++j) terms[j] = outcome_term(M[first + j]);
        for (Index i = begin; i < end; ++i) {
            const Index d = space.pair_ptr[i + 1] - space.pair_ptr[i];
            radius[i] = INF;
            if (d == 1 || N[i] == 0) continue;
            const double regret = log_inverse + total_term(N[i], d) - sum(terms.data() + (space.pair_ptr[i] - first), d);
            radius[i] = scale * regret / static_cast<double>(N[i]);
        }
    }
}

/// The largest p with P log(P/p) + (1 − P) log((1 − P)/(1 − p)) <= r, for n triples (P, rest, r), rest = 1 − P.
///
/// Newton's method in t = log(p/(1 − p)), in which the left side is convex, and straight in the tails. All n take their
/// steps side by side; one that has converged moves no more, so that it does not matter which others there are.
class LargestWithin {
public:
    static constexpr Index MOST = 64;  ///< triples at once

    void operator()(const double* __restrict P, const double* __restrict rest, const double* __restrict r, Index n,
                    double* __restrict p) {
        for (Index h = 0; h < n; ++h) {
            level_[h] = r[h] - P[h] * log(P[h]) - rest[h] * log(rest[h]);
            t_[h] = log(P[h] / rest[h]) + sqrt(2.0 * r[h] / (P[h] * rest[h])) + r[h] / rest[h];
            moves_[h] = P[h] > 0.0 && rest[h] > 0.0 && r[h] > 0.0 ? 1.0 : 0.0;
        }
        for (int step = 0; step < STEPS && any(n); ++step) take_step(P, n);
        for (Index h = 0; h < n; ++h) {
            const double e = exp(-abs(t_[h])), within = (t_[h] > 0.0 ? 1.0 : e) / (1.0 + e);
            const double nothing_to_solve = P[h] == 0.0 ? -expm1(-r[h]) : P[h];
            p[h] = P[h] > 0.0 && rest[h] > 0.0 && r[h] > 0.0 ? within : nothing_to_solve;
        }
    }

private:
    static constexpr int STEPS = 50;
    static constexpr double EXACT = 1e-13;

    void take_step(const double* __restrict P, Index n) {
        for (Index h = 0; h < n; ++h) {
            const double t = t_[h], e = exp(-abs(t));
            const double over = log1p(e) + max(t, 0.0) - P[h] * t - level_[h];
            const double slope = (t > 0.0 ? 1.0 : e) / (1.0 + e) - P[h];
            const double moved = t - over / slope;
            const bool done = abs(moved - t) <= EXACT * (1.0 + abs(moved)) || !(slope > 0.0);
            t_[h] = moves_[h] > 0.0 ? moved : t;
            moves_[h] = done ? 0.0 : moves_[h];
        }
    }

    bool any(Index n) const {
        double moving = 0.0;
        for (Index h = 0; h < n; ++h) moving = max(moves_[h], moving);
        return moving > 0.0;
    }

    double level_[MOST], t_[MOST], moves_[MOST];
};

/// The p with kl(P̂(s')‖p) <= scale · r for every successor by itself: happens or not, d = 2. Writes lower and upper.
///
/// δ of a pair is shared among its successors; of two only one counts, since the other is the rest. 0 and 1 where there is
/// nothing to bound.
inline void kl_bounds(const Space& space, const std::int64_t* N, const std::int64_t* M, double log_inverse, double scale,
                      double* lower, double* upper) {
    TotalTerm total_term;
    LargestWithin largest_within;
    Index at[LargestWithin::MOST], n = 0;
    double P[LargestWithin::MOST] = {}, rest[LargestWithin::MOST] = {}, r[LargestWithin::MOST] = {}, p[LargestWithin::MOST];
    const auto bound = [&] {
        largest_within(P, rest, r, n, p);
        for (Index h = 0; h < n; ++h) upper[at[h]] = max(P[h], p[h]);
        largest_within(rest, P, r, n, p);
        for (Index h = 0; h < n; ++h) lower[at[h]] = min(P[h], 1.0 - p[h]);
        n = 0;
    };
    for (Index i = 0; i < space.n_pairs; ++i) {
        const Index first = space.pair_ptr[i], last = space.pair_ptr[i + 1], d = last - first;
        std::fill(lower + first, lower + last, 0.0);
        std::fill(upper + first, upper + last, 1.0);
        if (d == 1 || N[i] == 0) continue;
        const double visits = static_cast<double>(N[i]);
        const double common = log_inverse + (d > 2 ? log(static_cast<double>(d)) : 0.0) + total_term(N[i], 2);
        for (Index j = first; j < last; ++j, ++n) {
            if (n == LargestWithin::MOST) bound();
            at[n] = j;
            r[n] = scale * (common - outcome_term(M[j]) - outcome_term(N[i] - M[j])) / visits;
            P[n] = static_cast<double>(M[j]) / visits, rest[n] = static_cast<double>(N[i] - M[j]) / visits;
        }
    }
    bound();
}

/// Whether every radius is 0 or more, and every center a distribution where the radius is less than 2.
inline bool are_balls(const Space& space, const double* center, const double* radius, double tolerance) {
    for (Index i = 0; i < space.n_pairs; ++i) {
        double total = 0.0, smallest = 0.0;
        for (Index j = space.pair_ptr[i]; j < space.pair_ptr[i + 1]; ++j) {
            total += center[j];
            smallest = min(center[j], smallest);
        }
        const bool free = radius[i] >= 2.0;
        if (!(free || (radius[i] >= 0.0 && smallest >= 0.0 && abs(total - 1.0) <= tolerance))) return false;
    }
    return true;
}

}  // namespace tightrope
