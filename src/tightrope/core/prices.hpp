// The nonnegative minimum of a small quadratic function: prices of inequalities in a step of Newton's method.
#pragma once

#include <algorithm>
#include <vector>

#include "arithmetic.hpp"
#include "space.hpp"

namespace tightrope {

/// argmin over y >= 0 of ½ <y, S y> − <r, y>, S (m, m) symmetric and positive definite but for rounding.
///
/// An active set (C. L. Lawson and R. J. Hanson, Solving Least Squares Problems, 1974): prices leave 0 one by one, where
/// the function falls fastest, and return to 0 where the minimum over those that have left is beyond it.
class LeastPrices {
public:
    LeastPrices(const double* S, const double* r, Index m)
        : S_(S), r_(r), m_(m), positive_(m, false), refused_(m, false), y_(m, 0.0), z_(m, 0.0), L_(m * m) {
        for (Index i = 0; i < m; ++i) floor_ = max(S[i * m + i] * SINGULAR, floor_);
        for (Index round = 0; round < ROUNDS * m + ROUNDS; ++round) {
            const Index added = steepest();
            if (added < 0) break;
            positive_[added] = true;
            minimise();
            refused_[added] = !(z_[added] > 0.0);  // by rounding: it is 0
            if (refused_[added]) {
                positive_[added] = false;
            } else {
                std::fill(refused_.begin(), refused_.end(), false);
                while (!step()) minimise();
            }
        }
    }

    const std::vector<double>& y() const { return y_; }

private:
    static constexpr double SINGULAR = 1e-20;  ///< The least pivot, relative to the largest entry.
    static constexpr double ROUNDING = 1e-15;  ///< Of a slope, relative to its terms.
    static constexpr Index ROUNDS = 10;

    /// The price at 0 along which the function falls fastest; −1 if it falls along none.
    Index steepest() const {
        Index best = -1;
        double fastest = 0.0;
        for (Index i = 0; i < m_; ++i) {
            if (positive_[i] || refused_[i]) continue;
            double slope = r_[i], size = abs(r_[i]);
            for (Index j = 0; j < m_; ++j) {
                slope -= S_[i * m_ + j] * y_[j];
                size += abs(S_[i * m_ + j] * y_[j]);
            }
            if (slope > ROUNDING * size && slope > fastest) {
                fastest = slope;
                best = i;
            }
        }
        return best;
    }

    /// z, the minimum over the positive prices alone, by Cholesky's factorisation.
    void minimise() {
        std::vector<Index> at;
        for (Index i = 0; i < m_; ++i)
            if (positive_[i]) at.push_back(i);
        const Index n = static_cast<Index>(at.size());
        std::vector<double> x(n);
        for (Index i = 0; i < n; ++i) {
            for (Index j = 0; j <= i; ++j) {
                double entry = S_[at[i] * m_ + at[j]];
                for (Index k = 0; k < j; ++k) entry -= L_[i * m_ + k] * L_[j * m_ + k];
                L_[i * m_ + j] = i == j ? sqrt(max(entry, floor_)) : entry / L_[j * m_ + j];
            }
            x[i] = r_[at[i]];
            for (Index k = 0; k < i; ++k) x[i] -= L_[i * m_ + k] * x[k];
            x[i] /= L_[i * m_ + i];
        }
        for (Index i = n - 1; i >= 0; --i) {
            for (Index k = i + 1; k < n; ++k) x[i] -= L_[k * m_ + i] * x[k];
            x[i] /= L_[i * m_ + i];
            z_[at[i]] = x[i];
        }
    }

    /// Go from y towards z for as long as no price falls below 0; returns whether that is all the way.
    bool step() {
        double share = 1.0;
        Index stops = -1;
        for (Index i = 0; i < m_; ++i)
            if (positive_[i] && z_[i] <= 0.0) {
                const double until = y_[i] / (y_[i] - z_[i]);
                if (stops < 0 || until < share) {
                    share = until;
                    stops = i;
                }
            }
        for (Index i = 0; i < m_; ++i)
            if (positive_[i]) y_[i] = stops < 0 ? z_[i] : y_[i] + share * (z_[i] - y_[i]);
        if (stops < 0) return true;
        for (Index i = 0; i < m_; ++i)
            if (positive_[i] && (i == stops || !(y_[i] > 0.0))) {
                positive_[i] = false;
                y_[i] = 0.0;
            }
        return false;
    }

    const double *S_, *r_;
    Index m_;
    std::vector<bool> positive_, refused_;
    std::vector<double> y_, z_, L_;
    double floor_ = 0.0;
};

}  // namespace tightrope
