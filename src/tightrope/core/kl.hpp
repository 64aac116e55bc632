// The pair's question for KL balls: the p nearest to w, KL(p‖w) smallest, with KL(P̂‖p) <= r.
//
// If w̄ = w / Σw is in the ball it is the answer. Otherwise, with multipliers μ of the ball and λ of Σ p = 1,
//
//     log p − log w̄ + λ = μ (P̂/p − 1),      W = e^λ Σw,      0 < μ <= K/r,      −K <= λ <= 0,      K = KL(P̂‖w̄).
//
// In τ = P̂/p − 1 that is one equation for every successor with P̂ > 0,
//
//     μ τ + log(1 + τ) = λ − log(w̄/P̂),                                                            (1)
//
// and p = w̄ e^{−μ−λ} where P̂ = 0. The multipliers are found by Newton's method in two unknowns on
//
//     Σ p − 1 = 0,      Σ P̂ (log(1 + τ) − τ / (1 + τ)) + Σ_{P̂=0} p − r = 0                          (2)
//
// (KL(P̂‖p) + Σ p − 1: nothing cancels where p is close to P̂), whose derivatives along λ and μ are −Σ p κ b bᵀ with
// b = (1, −τ), or (1, 1) where P̂ = 0, and κ = 1 / (1 + μ (1 + τ)), or 1. The first is taken as a logarithm, the second
// as r^−½, in which it is nearly linear in μ. All pairs of a chunk do it side by side; the τ are not solved for anew in
// every step but moved along and corrected. Pairs that this does not settle are bracketed, one by one.
#pragma once

#include "arithmetic.hpp"
#include "sets.hpp"

namespace tightrope {

/// KL(center‖p) <= radius. `kl_movement.hpp` has the functions that say how an answer moves.
struct KLSet {
    const double* center;   ///< (n_slots,) P̂
    const double* inverse;  ///< (n_slots,) 1 / P̂, and 0 where that is 0
    const double* radius;   ///< (n_pairs,) r; infinite: the pair is free
    double* kappa;          ///< (n_slots,) written by `answer`: κ, in chunks where some pair is CURVED
    double* mean;           ///< (n_pairs,) written by `spread` and by `hold`: κ̄
    double* sigma;          ///< (n_pairs,) written by `spread` and by `hold`: W σ

    bool answer(const Chunk& c, const Answers& a, Scratch& scratch) const;

    void spread(const Chunk& c, const Flow& f, Index after, Index stride, double* below, Scratch& scratch) const;
    void hold(const Chunk& c, const Flow& f, double* D) const;

    template <class Read, class Add>
    void respond(const Chunk& c, const Flow& f, const Read& read, const Add& add, double* all) const;
};

namespace kl {

inline constexpr int PASSES = 12;        ///< of Newton's method before pairs are bracketed
inline constexpr double CLOSE = 1e-5;    ///< relative error at which one more step is the last
inline constexpr double STEADY = 1e-11;  ///< error of log(1 + τ), likewise
inline constexpr double ASTRAY = 1e-4;   ///< error of log(1 + τ) from which on it is found anew
inline constexpr double SHORT = 0.03, LONG = 0.25;  ///< changes of log(1 + τ) that 1 + τ follows: well, and at all
inline constexpr int STARTS = 8;                    ///< steps of Newton's method on all τ of a chunk
inline constexpr double LEAST = 1e-300;             ///< of w̄/P̂
inline constexpr int BRACKETS = 200;                ///< narrowings of a bracket
inline constexpr double ROUNDING = 1e-16, TINY = 1e-280;  ///< of what is about 1; not to divide by 0

/// By lane: the unknowns of (2), their last steps, and what a step of Newton's method sums up.
struct Unknowns {
    double distance[LANES];                  ///< K, as in (2)
    double unseen[LANES];                    ///< Σ w̄ where P̂ = 0
    double mu[LANES], lambda[LANES];         ///< the multipliers
    double step_mu[LANES], step_lambda[LANES];
    double open[LANES];                      ///< 1 until they are found, then 0; −1 where they are not wanted
    double move[LANES];                      ///< the error left in log(1 + τ)
    double one[LANES], b[LANES], bb[LANES];  ///< Σ p κ, Σ p κ b, Σ p κ b²
    double total[LANES], kl[LANES];          ///< Σ p − 1 and KL(P̂‖p) + Σ p − 1
};

/// By slot, a row of LANES numbers for each row of a chunk.
struct Table {
    explicit Table(Scratch& scratch, Index rows)
        : log_ratio(scratch.table()), tau(log_ratio + rows * LANES), u(tau + rows * LANES), log_u(u + rows * LANES),
          kappa(log_u + rows * LANES) {}

    double* log_ratio;  ///< log(w̄/P̂)
    double* tau;        ///< τ
    double* u;          ///< 1 + τ
    double* log_u;      ///< log(1 + τ)
    double* kappa;      ///< κ
};

/// e^x − 1 for |x| <= SHORT.
TIGHTROPE_INLINE double expm1_short(double x) {
    double y = fma(x, 1.0 / 720.0, 1.0 / 120.0);
    y = fma(x, y, 1.0 / 24.0);
    y = fma(x, y, 1.0 / 6.0);
    return x * fma(x, fma(x, y, 0.5), 1.0);
}

/// τ, 1 + τ and its logarithm by (1), and κ, for all successors of a chunk.
///
/// Newton's method in log(1 + τ), in which (1) is convex, with a term for its curvature; it starts where (1) would have
/// τ if log(1 + τ) were τ (1 + b τ) / (1 + (b + ½) τ), with a b for τ < 0 and one for τ > 0.
inline void start_tau(Index n_lanes, Index rows, Unknowns& __restrict z, const Table& table) {
    for (Index v = 0; v < n_lanes; ++v) z.step_mu[v] = 0.0, z.step_lambda[v] = 0.0;
    for (Index row = 0; row < rows; ++row) {
        const double* __restrict log_ratio = table.log_ratio + row * LANES;
        double* __restrict tau = table.tau + row * LANES;
        double* __restrict u = table.u + row * LANES;
        double* __restrict log_u = table.log_u + row * LANES;
        double* __restrict kappa = table.kappa + row * LANES;
        for (Index v = 0; v < n_lanes; ++v) {
            const double mu = z.mu[v], a = z.lambda[v] - log_ratio[v];
            const double b = a < 0.0 ? 0.3 : 0.04, c = b + 0.5;
            const double half = 0.5 * (1.0 + mu - a * c);
            const double t = max(a / (half + sqrt(half * half + a * fma(mu, c, b))), -0.97);
            tau[v] = t;
            u[v] = 1.0 + t;
        }
        for (int start = 0; start < STARTS; ++start) {
            double far[LANES];
            for (Index v = 0; v < n_lanes; ++v) {
                const double mu = z.mu[v], t = tau[v], u_v = u[v];
                const double l = log_normal(u_v) + (u_v < 2.0 ? t - (u_v - 1.0) : 0.0);
                const double k = 1.0 / fma(mu, u_v, 1.0);
                double move = k * (z.lambda[v] - log_ratio[v] - mu * t - l);
                move *= abs(move) < 1.0 ? 1.0 - 0.5 * (1.0 - k) * move : 1.0;
                far[v] = ((abs(move) > LONG) & (z.open[v] >= 0.0)) ? 1.0 : 0.0;
                const double square = move * move;  // Padé's approximant of e^move − 1
                const double even = fma(square, fma(square, 1.0 / 1680.0, 3.0 / 28.0), 1.0);
                const double odd = move * fma(square, 1.0 / 84.0, 0.5);
                const double grown = u_v * (2.0 * odd / (even - odd));
                tau[v] = t + grown;
                u[v] = u_v + grown;
                log_u[v] = l + move;
                kappa[v] = k;
            }
            if (!any(far, n_lanes)) break;
            for (Index v = 0; v < n_lanes; ++v) {
                u[v] = exp(log_u[v]);
                tau[v] = u[v] - 1.0;
            }
        }
    }
}

/// Move τ along with the last step of the multipliers, correct it once, and sum up all that (2) needs.
inline void move_tau(Index n_lanes, Index rows, const double* P_hat, Unknowns& __restrict z, const Table& table) {
    for (Index v = 0; v < n_lanes; ++v) z.move[v] = z.one[v] = z.b[v] = z.bb[v] = z.total[v] = z.kl[v] = 0.0;
    for (Index row = 0; row < rows; ++row) {
        const double* __restrict P_row = P_hat + row * n_lanes;
        const double* __restrict log_ratio = table.log_ratio + row * LANES;
        double* __restrict tau = table.tau + row * LANES;
        double* __restrict u = table.u + row * LANES;
        double* __restrict log_u = table.log_u + row * LANES;
        double* __restrict kappa = table.kappa + row * LANES;
        for (Index v = 0; v < n_lanes; ++v) {
            const double mu = z.mu[v], wanted = kappa[v] * (z.step_lambda[v] - tau[v] * z.step_mu[v]);
            const double shift = max(min(wanted, LONG), -LONG);
            double grown = u[v] * expm1_short(shift), t = tau[v] + grown, u_v = u[v] + grown, l = log_u[v] + shift;
            const double k = 1.0 / fma(mu, u_v, 1.0);
            double move = k * (z.lambda[v] - log_ratio[v] - mu * t - l);
            move *= 1.0 - 0.5 * (1.0 - k) * move;
            move = max(min(move, LONG), -LONG);
            grown = u_v * expm1_short(move);
            tau[v] = t + grown;
            u[v] = u_v + grown;
            log_u[v] = l + move;
            z.move[v] = max(abs(shift) <= SHORT ? abs(move * move * move) : 1.0, z.move[v]);
        }
        for (Index v = 0; v < n_lanes; ++v) {
            const double P = P_row[v], t = tau[v], y = fma(z.mu[v], u[v], 1.0), both = 1.0 / (u[v] * y);
            const double p = P * (both * y), k = both * u[v], d = p * k, pt = p * t;
            kappa[v] = k;
            z.one[v] += d;
            z.b[v] -= d * t;
            z.bb[v] += d * t * t;
            z.total[v] -= pt;
            z.kl[v] += P * log_u[v] - pt;
        }
    }
}

/// One step of Newton's method on (2) in every lane.
///
/// Returns the largest error of log(1 + τ) among the lanes that need another step; −1 if none does.
inline double step_multipliers(Index n_lanes, const double* __restrict radius, Unknowns& __restrict z) {
    for (Index v = 0; v < n_lanes; ++v) {
        const double r = radius[v], mu = z.mu[v], lambda = z.lambda[v], K = z.distance[v];
        const double off = z.unseen[v] * exp(-mu - lambda);
        const double one = z.one[v] + off, b = z.b[v] + off, bb = z.bb[v] + off;
        const double more = z.total[v] + off, kl = max(z.kl[v] + off, TINY);
        const double total = more > -1.0 + 1e-3 ? 1.0 + more : 1e-3;
        const double log_total = log_normal(total), ratio = kl / r, per_one = 1.0 / one;
        const double s_1 = abs(more) > 0.01 ? total * log_total : more * (1.0 + 0.5 * more);
        // K^−½ is nearly straight in μ close to the center, log K far from it
        const double s_2 = abs(ratio - 1.0) < 0.5 ? 2.0 * kl * (sqrt(ratio) - 1.0) : kl * log_normal(ratio);
        double new_mu = mu + (s_2 - b * per_one * s_1) / (bb - b * per_one * b);
        new_mu = new_mu > 0.0 ? new_mu : 0.01 * mu;
        new_mu = ((new_mu * r <= K) & (abs(log_total) < 0.5)) ? new_mu : mu;
        const double new_lambda = max(min(lambda + (s_1 - b * (new_mu - mu)) * per_one, 0.0), -K);
        const double least = r < 1.0 ? r : 1.0 / r;
        const bool close =
            (abs(kl - r) <= CLOSE * least) & (more * more <= CLOSE * CLOSE * least) & (z.move[v] <= STEADY);
        const bool going = z.open[v] > 0.0;
        z.step_mu[v] = going ? new_mu - mu : 0.0;
        z.step_lambda[v] = going ? new_lambda - lambda : 0.0;
        z.mu[v] = going ? new_mu : mu;
        z.lambda[v] = going ? new_lambda : lambda;
        z.open[v] = close ? 0.0 : z.open[v];
        z.move[v] = (going & !close) ? z.move[v] : -1.0;
    }
    double far = -1.0;
    for (Index v = 0; v < n_lanes; ++v) far = max(z.move[v], far);
    return far;
}

/// The x with μ (e^x − 1) + x = a: convex, so that Newton's method comes down to it from the bounds above it.
inline double solve_log(double a, double mu) {
    double x = a < 0.0 || mu == 0.0 ? min(a / (1.0 + mu), a + mu) : min(a / (1.0 + mu), log1p(a / mu));
    for (int n = 0; n < BRACKETS; ++n) {
        const double next = x - (mu * expm1(x) + x - a) / (1.0 + mu * exp(x));
        if (!(next < x)) break;
        x = next;
    }
    return x;
}

/// What (2) needs of one pair: Σ p κ, Σ p κ b, Σ p κ b², Σ p − 1 and KL(P̂‖p) + Σ p − 1.
struct Sums {
    double one, b, bb, more, kl;
};

inline Sums sum_up(Index v, Index n_lanes, Index rows, const double* P_hat, double mu, double lambda, const Unknowns& __restrict z,
                   const Table& table) {
    const double off = z.unseen[v] * exp(-mu - lambda);
    Sums s = {off, off, off, off, off};
    for (Index row = 0; row < rows; ++row) {
        const double P = P_hat[row * n_lanes + v];
        if (P > 0.0) {
            const double x = solve_log(lambda - table.log_ratio[row * LANES + v], mu);
            const double t = expm1(x), p = P * exp(-x), d = p / (1.0 + mu * exp(x));
            s.one += d;
            s.b -= d * t;
            s.bb += d * t * t;
            s.more -= p * t;
            s.kl += P * x - p * t;
        }
    }
    return s;
}

/// The multipliers of one pair, bounds kept on both: λ for each μ, since Σ p falls with λ and KL(P̂‖p) with μ.
inline void bracket(Index v, Index n_lanes, Index rows, const double* P_hat, double radius, Unknowns& __restrict z,
                    const Table& table) {
    const double K = z.distance[v];
    double low = 0.0, high = K / radius;
    double mu = min(sqrt(K / radius), high), lambda = -0.5 * K;
    for (int n = 0; n < BRACKETS; ++n) {
        double below = -K - ROUNDING, above = ROUNDING;
        Sums s = {};
        for (int m = 0; m < BRACKETS; ++m) {
            s = sum_up(v, n_lanes, rows, P_hat, mu, lambda, z, table);
            (s.more > 0.0 ? below : above) = lambda;
            double next = lambda + (1.0 + s.more) * log1p(s.more) / s.one;
            if (!(below < next && next < above)) next = 0.5 * (below + above);
            if (next == lambda || abs(s.more) <= ROUNDING) break;
            lambda = next;
        }
        (s.kl > radius ? low : high) = mu;
        const double step = s.kl * log(s.kl / radius) / (s.bb - s.b / s.one * s.b);
        double next = mu + step;
        if (!(low < next && next < high)) next = mu * exp(step / mu);  // a μ that is small: by its logarithm
        if (n % 3 == 2 || !(low < next && next < high))  // Newton's method may go from side to side, and get nowhere
            next = low > 0.0 ? sqrt(low * high) : 1e-3 * high;
        if (next == mu || abs(s.kl - radius) <= 1e-14 * radius) break;
        mu = next;
    }
    for (Index row = 0; row < rows; ++row) {
        const Index at = row * LANES + v;
        const double x = solve_log(lambda - table.log_ratio[at], mu), u = exp(x);
        table.tau[at] = expm1(x);
        table.u[at] = u;
        table.kappa[at] = 1.0 / (1.0 + mu * u);
    }
    z.mu[v] = mu, z.lambda[v] = lambda, z.step_mu[v] = 0.0, z.step_lambda[v] = 0.0;
}

/// The multipliers of the pairs of one chunk of which some leave their ball; log(w̄/P̂) is in the table.
inline void find_multipliers(Index n_lanes, Index rows, const double* P_hat, const double* __restrict radius,
                             const double* __restrict old_mu, const double* __restrict old_lambda, Unknowns& __restrict z,
                             const Table& table) {
    for (Index v = 0; v < n_lanes; ++v) {
        const double K = z.distance[v], r = radius[v], mu = old_mu[v], lambda = old_lambda[v];
        const bool outside = (r < K) & (r > 0.0);
        // near the center KL(P̂‖p) is quadratic, and p as far from P̂ as from w̄ in the ratio 1 : μ
        const double ratio = outside ? sqrt(K / r) : 1.0, rest = 1.0 - 1.0 / ratio;
        const bool known = outside & (mu > 0.0) & (mu <= ratio * ratio) & (lambda >= -K) & (lambda <= 0.0);
        z.mu[v] = known ? mu : ratio - 1.0;
        z.lambda[v] = known ? lambda : (outside ? -K * rest * rest : 0.0);
        z.open[v] = outside ? 1.0 : -1.0;
        z.step_mu[v] = 0.0;
        z.step_lambda[v] = 0.0;
    }
    double far = any(z.open, n_lanes) ? 1.0 : -1.0;
    for (int pass = 0; pass < PASSES && far >= 0.0; ++pass) {
        if (far > ASTRAY) start_tau(n_lanes, rows, z, table);
        move_tau(n_lanes, rows, P_hat, z, table);
        far = step_multipliers(n_lanes, radius, z);
    }
    for (Index v = 0; v < n_lanes; ++v)
        if (z.open[v] > 0.0) bracket(v, n_lanes, rows, P_hat, radius[v], z, table);
}

/// W, W p* and κ of the pairs that are outside of their ball; τ has yet to follow the last step of the multipliers.
inline void write_answer(Index n_lanes, Index rows, const double* __restrict P_hat, const double* __restrict radius,
                         const double* __restrict outside, const Unknowns& __restrict z, const Table& table,
                         double* __restrict p, double* __restrict W, double* __restrict kappa) {
    double ball[LANES], factor[LANES];  // 1 where the ball is more than a point; of w, where P̂ = 0
    for (Index v = 0; v < n_lanes; ++v) {
        ball[v] = radius[v] > 0.0 ? 1.0 : 0.0;
        factor[v] = exp(-z.mu[v]) * ball[v];
        const double change = exp(ball[v] > 0.0 ? z.lambda[v] : -z.distance[v]);
        W[v] *= outside[v] > 0.0 ? change : 1.0;
    }
    for (Index row = 0; row < rows; ++row) {
        const double* __restrict tau = table.tau + row * LANES;
        const double* __restrict last_u = table.u + row * LANES;
        const double* __restrict last_kappa = table.kappa + row * LANES;
        for (Index v = 0; v < n_lanes; ++v) {
            const Index j = row * n_lanes + v;
            const double P = P_hat[j], move = last_kappa[v] * (z.step_lambda[v] - tau[v] * z.step_mu[v]);
            const double u = fma(last_u[v], fma(0.5 * move, move, move), last_u[v]);
            const double y = fma(z.mu[v], u, 1.0), both = 1.0 / (u * y);
            const double on = W[v] * P * (ball[v] > 0.0 ? both * y : 1.0), off = factor[v] * p[j];
            const double moving = ball[v] > 0.0 ? (P > 0.0 ? both * u : 1.0) : 0.0;
            p[j] = outside[v] > 0.0 ? (P > 0.0 ? on : off) : p[j];
            kappa[j] = outside[v] > 0.0 ? moving : 1.0;
        }
    }
}

}  // namespace kl

/// p = w normalised where that is in the ball; the other pairs need their multipliers.
inline bool KLSet::answer(const Chunk& c, const Answers& a, Scratch& scratch) const {
    const Index n_lanes = c.n_lanes, rows = c.rows();
    double* __restrict p = a.p + c.first;
    double* __restrict W = a.W + c.pair;
    std::int8_t* __restrict label = a.label + c.first;
    const double* __restrict P_hat = center + c.first;
    const double* __restrict per_P_hat = inverse + c.first;
    const double* __restrict r = radius + c.pair;
    for (Index v = 0; v < n_lanes; ++v) label[v] = WHOLE;
    if (r[0] == INF) return false;  // pairs of one chunk are all free or all not

    kl::Unknowns z;
    const kl::Table table(scratch, rows);
    double norm[LANES], outside[LANES];
    for (Index v = 0; v < n_lanes; ++v) norm[v] = 1.0 / W[v], z.distance[v] = 0.0, z.unseen[v] = 0.0;
    for (Index row = 0; row < rows; ++row) {
        double* __restrict logs = table.log_ratio + row * LANES;
        for (Index v = 0; v < n_lanes; ++v) {
            const Index j = row * n_lanes + v;
            const double w = p[j] * norm[v], P = P_hat[j];
            const double ratio = max(w * per_P_hat[j], kl::LEAST);
            const double log_ratio = log_normal(P > 0.0 ? ratio : 1.0);
            logs[v] = log_ratio;
            // KL(P̂‖w̄) + Σ w̄ − 1 as in (2): to rounding no other where w̄ is close to P̂, so that p* does not jump
            z.distance[v] += P > 0.0 ? P * (ratio - 1.0 - log_ratio) : w;
            z.unseen[v] += P > 0.0 ? 0.0 : w;
        }
    }
    for (Index v = 0; v < n_lanes; ++v) outside[v] = z.distance[v] > r[v] ? 1.0 : 0.0;
    if (!any(outside, n_lanes)) return false;

    double* __restrict old_mu = a.thresholds[0] + c.pair;
    double* __restrict old_lambda = a.thresholds[1] + c.pair;
    kl::find_multipliers(n_lanes, rows, P_hat, r, old_mu, old_lambda, z, table);
    kl::write_answer(n_lanes, rows, P_hat, r, outside, z, table, p, W, kappa + c.first);
    for (Index v = 0; v < n_lanes; ++v) old_mu[v] = outside[v] > 0.0 ? z.mu[v] : old_mu[v];
    for (Index v = 0; v < n_lanes; ++v) old_lambda[v] = outside[v] > 0.0 ? z.lambda[v] : old_lambda[v];
    for (Index v = 0; v < n_lanes; ++v) label[v] = outside[v] > 0.0 ? CURVED : WHOLE;
    return true;
}

}  // namespace tightrope
