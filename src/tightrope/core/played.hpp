// What the policy just played uses, as far as is known, and how its use responds to prices.
#pragma once

#include <vector>

#include "occupancy.hpp"

namespace tightrope {

inline constexpr double LEAST_RESPONSE = 1e-5;  ///< Added to every A_ii, in shares of the constraint's span squared.
inline constexpr double ROUNDING = 1e-13;       ///< A span that is this small relative to its numbers is none.
inline constexpr double SMALLEST = 1e-290;      ///< A span that is too small to divide by.

/// The model that is believed: the counts, and D visits more, spent as θ has it,
///
///     P(s'|s,a) = (M(s,a,s') + D p(s'|s,a)) / (N(s,a) + D),
///
/// p the conditionals of θ and D a given number, or that of the successors. A pair without visits leads where θ has it
/// lead.
template <class Count>
struct Belief {
    const Space& space;
    const Count* N;
    const Count* M;
    const double* theta;
    double D = 0.0;  ///< 0: as many as there are successors

    double visits_more(Index n_successors) const { return D > 0.0 ? D : static_cast<double>(n_successors); }

    /// P(·|s,a) of pair i, into P.
    void row(Index i, double* __restrict P) const {
        const Index first = space.pair_ptr[i], n = space.pair_ptr[i + 1] - first;
        const double more = visits_more(n), visits = static_cast<double>(N[i]) + more;
        conditionals(theta + first, n, P);
        for (Index j = 0; j < n; ++j) P[j] = (static_cast<double>(M[first + j]) + more * P[j]) / visits;
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
    const Index n = n_constraints;
    auto rows = room_for_workers(space, longest_row(space));
    std::vector<double> parts(n * (1 + space.widest_layer() / BLOCK));  // of the blocks of a layer
    std::fill(use, use + n, 0.0);
    forward(
        space, d,
        [&](Index from, Index to, Index block, int worker, const Next& next) {
            std::vector<double>& row = rows[worker];
            double* const part = parts.data() + block * n;
            std::fill(part, part + n, 0.0);
            for (Index s = from; s < to; ++s)
                for (Index k = space.state_ptr[s]; k < space.state_ptr[s + 1]; ++k) {
                    const Index first = space.pair_ptr[k], last = space.pair_ptr[k + 1];
                    belief.row(k, row.data());
                    for (Index j = 0; j < last - first; ++j) row[j] *= d[s] * pi[k];
                    next.add(space, first, last, row.data());
                    for (Index i = 0; i < n; ++i)
                        part[i] += dot(g + i * space.n_tuples + first, row.data(), last - first);
                }
        },
        [&](Index n_blocks) {
            for (Index block = 0; block < n_blocks; ++block)
                for (Index i = 0; i < n; ++i) use[i] += parts[block * n + i];
        });
}

/// How fast the use of each budget falls when losses and prices are followed: b (I,) and A (I, I),
///
///     A_ij = Σ_s d(s) Cov_{a~π}(Q_i(s,a), Q_j(s,a)),      b_i = the same of Q_i and Q_f,
///
/// Q_i and Q_f what g_i and f cost from (s,a) on. For π'(a|s) ∝ π(a|s) e^{−η (Q_f + Σ_j w_j Q_j)}, the derivative of
/// <g_i, θ> in η at 0 is −(b + A w)_i. d is that of `uses`. Writes b and A, and in place of g_i what is charged,
/// r (Q_i(s,a) − V_i(s)) + (1 − r) g_i, r the realism.
template <class Count>
class Responses {
public:
    Responses(const Belief<Count>& belief, const double* pi, const double* f, double* g, Index n_constraints, double realism,
              const double* d)
        : belief_(belief), space_(belief.space), pi_(pi), f_(f), g_(g), n_(n_constraints), realism_(realism), d_(d),
          rows_(room_for_workers(space_, longest_row(space_))), sums_(room_for_workers(space_, (n_ + 1) * (n_ + 1))),
          V_((n_ + 1) * space_.n_states) {}

    /// Backwards over the layers. Blocks of a layer run side by side, and their parts are summed up in order.
    void operator()(double* b, double* A) {
        std::fill(b, b + n_, 0.0);
        std::fill(A, A + n_ * n_, 0.0);
        const Index size = n_ + n_ * n_;
        std::vector<double> parts;
        for (Index k = space_.n_layers - 1; k >= 0; --k) {
            const std::vector<Index> cuts = state_blocks(space_, space_.layer_ptr[k], space_.layer_ptr[k + 1]);
            parts.assign(size * (cuts.size() - 1), 0.0);
            in_state_blocks(space_, cuts, [&](Index from, Index to, Index block, int worker) {
                states(from, to, worker, parts.data() + block * size, parts.data() + block * size + n_);
            });
            for (std::size_t block = 0; block + 1 < cuts.size(); ++block)
                for (Index i = 0; i < size; ++i) (i < n_ ? b[i] : A[i - n_]) += parts[block * size + i];
        }
    }

private:
    /// V of the states, what is charged there, and their part of b and A.
    void states(Index from, Index to, int worker, double* b, double* A) {
        const Index n = n_, n_states = space_.n_states;
        double* const P = rows_[worker].data();
        double* const q = sums_[worker].data();  // (I + 1,)
        double* const moments = q + n + 1;       // (I + 1, I)
        for (Index s = from; s < to; ++s) {
            std::fill(moments, moments + (n + 1) * n, 0.0);
            for (Index k = space_.state_ptr[s]; k < space_.state_ptr[s + 1]; ++k) {
                const Index first = space_.pair_ptr[k], length = space_.pair_ptr[k + 1] - first;
                belief_.row(k, P);
                for (Index h = 0; h <= n; ++h) {  // the loss comes last
                    const double* const cost = (h < n ? g_ + h * space_.n_tuples : f_) + first;
                    q[h] = dot(P, cost, length) + ahead(P, V_.data() + h * n_states, first, length);
                    V_[h * n_states + s] += pi_[k] * q[h];
                }
                for (Index h = 0; h <= n; ++h)
                    for (Index i = 0; i < n; ++i) moments[h * n + i] += pi_[k] * q[h] * q[i];
                for (Index i = 0; i < n; ++i) {
                    double* __restrict charged = g_ + i * space_.n_tuples + first;
                    for (Index j = 0; j < length; ++j) charged[j] = realism_ * q[i] + (1.0 - realism_) * charged[j];
                }
            }
            const double* const here = V_.data() + s;  // V_h(s) is here[h · n_states]
            const Index first = space_.pair_ptr[space_.state_ptr[s]], last = space_.pair_ptr[space_.state_ptr[s + 1]];
            for (Index i = 0; i < n; ++i) {
                const double value = here[i * n_states], less = realism_ * value;
                double* __restrict charged = g_ + i * space_.n_tuples;
                for (Index j = first; j < last; ++j) charged[j] -= less;
                b[i] += d_[s] * (moments[n * n + i] - here[n * n_states] * value);
                for (Index h = 0; h < n; ++h) A[h * n + i] += d_[s] * (moments[h * n + i] - here[h * n_states] * value);
            }
        }
    }

    /// Σ_s' P(s') V(s') over the successors of a pair.
    double ahead(const double* P, const double* V, Index first, Index length) const {
        if (consecutive(space_, first, first + length)) return dot(P, V + space_.successor[first], length);
        double total = 0.0;
        for (Index j = 0; j < length; ++j) total += P[j] * V[space_.successor[first + j]];
        return total;
    }

    const Belief<Count>& belief_;
    const Space& space_;
    const double* pi_;
    const double* f_;
    double* g_;
    Index n_;
    double realism_;
    const double* d_;
    std::vector<std::vector<double>> rows_, sums_;
    std::vector<double> V_;  // (I + 1, n_states)
};

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
    std::vector<Extremes> of_layer(space.n_layers);
    Pool(space.n_tuples).each(space.n_layers, [&](Index k, int) {
        const Index first = space.first_tuple(k), last = space.first_tuple(k + 1);
        of_layer[k] = extremes(f + first, last - first);
        for (Index j = first; j < last; ++j) out[j] = f[j] - of_layer[k].least;
    });
    Spans spans{0.0, 0.0};
    for (const auto& [most, least] : of_layer) spans = {max(most - least, spans.largest), spans.least + least};
    return spans;
}

/// The largest span of f within a layer.
inline double span(const Space& space, const double* f) {
    std::vector<double> of_layer(space.n_layers);
    Pool(space.n_tuples).each(space.n_layers, [&](Index k, int) {
        const auto [most, least] = extremes(f + space.first_tuple(k), space.first_tuple(k + 1) - space.first_tuple(k));
        of_layer[k] = most - least;
    });
    return extremes(of_layer.data(), space.n_layers).most;
}

/// A budget in units of its constraint's span, and that unit.
struct Unit {
    double limit, unit;
};

/// Replace g_i by its distance from the least of each layer, in shares of its span. Where the span is none the unit is 1
/// and all distances are 0, since no policy makes a difference then.
inline Unit in_span(const Space& space, double budget, double* g) {
    const auto [high, low] = extremes(g, space.n_tuples);
    const double largest = max(abs(high), abs(low));
    const auto [most, least] = from_least(space, g, g);
    const bool none = most <= ROUNDING * largest || most < SMALLEST;
    const double unit = none ? 1.0 : most;
    in_blocks(space.n_tuples, [=](Index first, Index last) {
        for (Index j = first; j < last; ++j) g[j] = none ? 0.0 : g[j] / unit;
    });
    return {(budget - least) / unit, unit};
}

}  // namespace tightrope
