// Lower bounds on means that hold at all times at once (empirical Bernstein; docs/explanation/theory.md).
#pragma once

#include <array>

#include "arithmetic.hpp"
#include "space.hpp"

namespace tightrope {

/// λ_k = 0.8 · 2^(−k/2), ψ(λ_k) and log((k + 1)(k + 2)) for k < 100.
struct Rates {
    static constexpr int FINEST = 100;

    struct Rate {
        double lambda, psi, log_weight;
    };
    std::array<Rate, FINEST> rate;

    Rates() {
        double power = 1.0;
        for (int k = 0; k < FINEST; ++k) {
            const double lambda = 0.8 * power * (k % 2 == 0 ? 1.0 : constants::SQRT_HALF);
            rate[k] = {lambda, -log1p(-lambda) - lambda, log((k + 1.0) * (k + 2.0))};
            power *= k % 2 == 0 ? 1.0 : 0.5;
        }
    }
};

/// min_k (log((k + 1)(k + 2)/δ) + ψ(λ_k) V) / λ_k, ψ(λ) = −log(1 − λ) − λ: it falls with k, and then rises.
inline double deviation(const Rates& rates, double V, double log_inverse) {
    double least = INF;
    for (const auto& [lambda, psi, log_weight] : rates.rate) {
        const double off = (log_inverse + log_weight + psi * V) / lambda;
        if (off >= least) break;
        least = off;
    }
    return least;
}

/// A number below the mean μ of n numbers x in [0, 1], given Σ x and V = Σ (x − x̂)², x̂ a guess at x made before it was
/// seen. With probability at least 1 − δ, for all n at once,
///
///     μ >= (Σ x − scale · deviation(V)) / n,      and 0 at the least; log(1/δ) is given, and scale is 1.
inline double lower_mean(const Rates& rates, double n, double total, double V, double log_inverse, double scale) {
    return n > 0.0 ? max((total - scale * deviation(rates, V, log_inverse)) / n, 0.0) : 0.0;
}

}  // namespace tightrope
