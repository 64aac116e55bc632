// What the policy just played uses, as far as is known, and how its use responds to prices.
#pragma once

#include <vector>

#include "occupancy.hpp"

namespace tightrope {

inline constexpr double LEAST_RESPONSE = 1e-5;  ///< Added to every A_ii, in shares of the constraint's span squared.
inline constexpr double ROUNDING = 1e-13;       ///< A span that is this small relative to its numbers is none.
inline constexpr double SMALLEST = 1e-290;      ///< A span that is too small to divide by.

/// The model that is believed: the counts, and as many visits more as there are successors, spent as θ has it,
///
///     P(s'|s,a) = (M(s,a,s') + D p(s'|s,a)) / (N(s,a) + D),
///
/// p the conditionals of θ and D the number of successors. A pair without visits leads where θ has it lead.
template <class Count>
struct Belief {
    const Space& space;
    const Count* N;
    const Count* M;
    const double* theta;

    /// P(·|s,a) of pair i, into P.
    void row(Index i, double* __restrict P) const {
        const Index first = space.pair_ptr[i], n = space.pair_ptr[i + 1] - first;
        const double D = static_cast<double>(n), visits = static_cast<double>(N[i]) + D;
        conditionals(theta + first, n, P);
        for (Index j = 0; j < n; ++j) P[j] = (static_cast<double>(M[first + j]) + D * P[j]) / visits;
    }
};

/// The most successors that a pair has: the length of a row.
inline Index longest_row(const Space& space) {
    Index longest = 0;
    for (Index i = 0; i < space.n_pairs; ++i) longest = std::max(longest, space.pair_ptr[i + 1] - space.pair_ptr[i]);
    return longest;
}

/// <g_i, θ> for every i, θ the occupancy measure of the policy under the believed model. Writes d, the probability of
/// passing through each state, and use (I,).
template <class Count>
void uses(const Belief<Count>& belief, const double* pi, const double* g, Index n_constraints, double* d, double* use) {
    const Space& space = belief.space;
    std::vector<double> row(longest_row(space));
    start(space, d);
    std::fill(use, use + n_constraints, 0.0);
    for (Index s = 0; s < space.last_state(); ++s)
        for (Index k = space.state_ptr[s]; k < space.state_ptr[s + 1]; ++k) {
            const Index first = space.pair_ptr[k], last = space.pair_ptr[k + 1];
            belief.row(k, row.data());
            for (Index j = 0; j < last - first; ++j) row[j] *= d[s] * pi[k];
            pass_on(space, first, last, row.data(), d);
            for (Index i = 0; i < n_constraints; ++i)
                use[i] += dot(g + i * space.n_tuples + first, row.data(), last - first);
        }
}

/// How fast the use of each budget falls when losses and prices are followed: b (I,) and A (I, I),
///
///     A_ij = Σ_s d(s) Cov_{a~π}(Q_i(s,a), Q_j(s,a)),      b_i = the same of Q_i and Q_f,
///
/// Q_i and Q_f what g_i and f cost from (s,a) on. For π'(a|s) ∝ π(a|s) e^{−η (Q_f + Σ_j w_j Q_j)}, the derivative of
/// <g_i, θ> in η at 0 is −(b + A w)_i. d is that of `uses`. Writes b and A, and in place of g_i what is charged,
/// r (Q_i(s,a) − V_i(s)) + (1 − r) g_i, r the realism.
template <class Count>
void responses(const Belief<Count>& belief, const double* pi, const double* f, double* g, Index n_constraints, double realism,
               const double* d, double* b, double* A) {
    const Space& space = belief.space;
    const Index n = n_constraints, n_states = space.n_states;
    std::vector<double> P(longest_row(space)), V((n + 1) * n_states), q(n + 1), moments((n + 1) * n);
    std::fill(b, b + n, 0.0);
    std::fill(A, A + n * n, 0.0);
    for (Index s = space.last_state() - 1; s >= 0; --s) {
        std::fill(moments.begin(), moments.end(), 0.0);
        for (Index k = space.state_ptr[s]; k < space.state_ptr[s + 1]; ++k) {
            const Index first = space.pair_ptr[k], length = space.pair_ptr[k + 1] - first;
            const std::int32_t* const successor = space.successor + first;
            belief.row(k, P.data());
            for (Index h = 0; h <= n; ++h) {  // the loss comes last
                const double* const cost = (h < n ? g + h * space.n_tuples : f) + first;
                const double* const next = V.data() + h * n_states;
                q[h] = 0.0;
                for (Index j = 0; j < length; ++j) q[h] += P[j] * (cost[j] + next[successor[j]]);
                V[h * n_states + s] += pi[k] * q[h];
            }
            for (Index h = 0; h <= n; ++h)
                for (Index i = 0; i < n; ++i) moments[h * n + i] += pi[k] * q[h] * q[i];
            for (Index i = 0; i < n; ++i)
                for (Index j = first; j < first + length; ++j) {
                    double& charged = g[i * space.n_tuples + j];
                    charged = realism * q[i] + (1.0 - realism) * charged;
                }
        }
        const double* const here = V.data() + s;  // V_h(s) is here[h · n_states]
        for (Index i = 0; i < n; ++i) {
            const double value = here[i * n_states];
            double* const row = g + i * space.n_tuples;
            for (Index j = space.pair_ptr[space.state_ptr[s]]; j < space.pair_ptr[space.state_ptr[s + 1]]; ++j)
                row[j] -= realism * value;
            b[i] += d[s] * (moments[n * n + i] - here[n * n_states] * value);
            for (Index h = 0; h < n; ++h) A[h * n + i] += d[s] * (moments[h * n + i] - here[h * n_states] * value);
        }
    }
}

struct Extremes {
    double most, least;
};

/// The largest and the least entry: eight of each side by side, then the rest.
inline Extremes extremes(const double* x, Index n) {
    Eight lows = Eight{} + INF, highs = Eight{} - INF;
    Index j = 0;
    for (; j + 8 <= n; j += 8) {
        const Eight at = load_eight(x + j);
        lows = at < lows ? at : lows;
        highs = at > highs ? at : highs;
    }
    double low = INF, high = -INF;
    for (int v = 0; v < 8; ++v) {
        low = min(lows[v], low);
        high = max(highs[v], high);
    }
    for (; j < n; ++j) {
        low = min(x[j], low);
        high = max(x[j], high);
    }
    return {high, low};
}

/// The largest span of f within a layer, and the sum over layers of the least f.
struct Spans {
    double largest, least;
};

/// f − the least f of the layer, which changes no choice. Writes out, which may be f.
inline Spans from_least(const Space& space, const double* f, double* out) {
    Spans spans{0.0, 0.0};
    for (Index k = 0; k < space.n_layers; ++k) {
        const Index first = space.first_tuple(k), last = space.first_tuple(k + 1);
        const auto [high, low] = extremes(f + first, last - first);
        for (Index j = first; j < last; ++j) out[j] = f[j] - low;
        spans = {max(high - low, spans.largest), spans.least + low};
    }
    return spans;
}

/// The largest span of f within a layer.
inline double span(const Space& space, const double* f) {
    double largest = 0.0;
    for (Index k = 0; k < space.n_layers; ++k) {
        const auto [high, low] = extremes(f + space.first_tuple(k), space.first_tuple(k + 1) - space.first_tuple(k));
        largest = max(high - low, largest);
    }
    return largest;
}

/// g_i from the least of each layer, in shares of its span, into cost; the budget in the same units; and the span as the
/// unit, 1 where it is none, since no policy makes a difference then.
struct Unit {
    double limit, unit;
};

inline Unit in_span(const Space& space, const double* g, double budget, double* __restrict cost) {
    const auto [most, least] = from_least(space, g, cost);
    const auto [high, low] = extremes(g, space.n_tuples);
    const double largest = max(abs(high), abs(low));
    const bool none = most <= ROUNDING * largest || most < SMALLEST;
    const double unit = none ? 1.0 : most;
    for (Index j = 0; j < space.n_tuples; ++j) cost[j] = none ? 0.0 : cost[j] / unit;
    return {(budget - least) / unit, unit};
}

/// argmin over w >= 0 of ½ wᵀ A w − v·w by coordinate descent, A (n, n) positive definite. Writes w.
inline void least_prices(const double* A, const double* v, Index n, double* w) {
    constexpr int SWEEPS = 1000;      // at the most; one is enough for one budget
    constexpr double EXACT = 1e-12;   // relative change of the prices at which it has converged
    std::fill(w, w + n, 0.0);
    for (int sweep = 0; sweep < SWEEPS; ++sweep) {
        double moved = 0.0, largest = 0.0;
        for (Index i = 0; i < n; ++i) {
            double rest = v[i];
            for (Index j = 0; j < n; ++j) rest -= j != i ? A[i * n + j] * w[j] : 0.0;
            const double better = max(rest / A[i * n + i], 0.0);
            moved = max(abs(better - w[i]), moved);
            largest = max(better, largest);
            w[i] = better;
        }
        if (moved <= EXACT * largest) break;
    }
}

}  // namespace tightrope
