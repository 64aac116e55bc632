// The simplex method on few rows, D x <= alpha and Σ_k w_k = 1, by the inverse of its basis.
//
// A column is what a policy uses of every row, and 1 for its weight. The caller finds the columns (`extended_lp.hpp`).
#pragma once

#include <vector>

#include "arithmetic.hpp"
#include "space.hpp"

namespace tightrope {

class Simplex {
public:
    static constexpr double NO_STEP = 1e-11;  ///< What is no more than this of a step is rounding.
    static constexpr Index NONE = -1;

    /// The slacks of all rows are basic, and nothing costs; alpha (n_rows,).
    Simplex(const double* alpha, Index n_rows)
        : m_(n_rows + 1), table_(m_ * m_), weight_(alpha, alpha + n_rows), cost_(m_), price_(m_), direction_(m_) {
        weight_.push_back(1.0);
        for (Index k = 0; k < m_; ++k) table_[k * m_ + k] = 1.0;
    }

    Index size() const { return m_; }
    double weight(Index k) const { return weight_[k]; }
    /// The price of the row Σ_k w_k = 1.
    double price_of_weight() const { return price_[m_ - 1]; }
    /// The basic column of relief, which allows every row the same excess, or NONE.
    Index relief() const { return relief_; }

    /// A column (m,) takes the place of the basic column `leaving`.
    void enter(const double* column, Index leaving, double cost) {
        yields(column);
        replace(leaving, cost);
    }

    /// A column (m,) takes the place of the basic column that has no weight left first; returns which, or NONE.
    Index enter(const double* column, double cost) {
        yields(column);
        const Index leaving = first_to_leave();
        if (leaving != NONE) replace(leaving, cost);
        return leaving;
    }

    /// The column of relief takes the place of the basic column `leaving`; nothing else costs until it has left.
    void enter_relief(Index leaving) {
        std::vector<double> column(m_, -1.0);
        column[m_ - 1] = 0.0;
        enter(column.data(), leaving, 0.0);
        relief_ = leaving;
    }

    /// The prices of all rows, and −price, or 0 where that is negative, as the multipliers (n_rows,) of D x <= alpha.
    /// Returns the row whose multiplier is the most negative, beyond the tolerance: its slack is worth having; or NONE.
    Index price(double tolerance, double* multipliers) {
        Index slack = NONE;
        double least = -tolerance;
        for (Index h = 0; h < m_; ++h) {
            price_[h] = relief_ != NONE ? table_[relief_ * m_ + h] : 0.0;
            if (relief_ == NONE)
                for (Index k = 0; k < m_; ++k) price_[h] += cost_[k] * table_[k * m_ + h];
            if (h == m_ - 1) break;
            multipliers[h] = price_[h] < 0.0 ? -price_[h] : 0.0;
            if (-price_[h] < least) slack = h, least = -price_[h];
        }
        return slack;
    }

private:
    /// direction = table · column: what the basic columns yield to a new one.
    void yields(const double* column) {
        for (Index k = 0; k < m_; ++k) {
            direction_[k] = 0.0;
            for (Index h = 0; h < m_; ++h) direction_[k] += table_[k * m_ + h] * column[h];
        }
    }

    /// The basic column that has no weight left first, relief before its equals; or NONE.
    Index first_to_leave() const {
        Index leaving = NONE;
        double step = INF;
        for (Index k = 0; k < m_; ++k) {
            if (!(direction_[k] > NO_STEP)) continue;
            const double ratio = max(weight_[k], 0.0) / direction_[k];
            if (ratio < step || (ratio == step && k == relief_)) leaving = k, step = ratio;
        }
        return leaving;
    }

    void replace(Index leaving, double cost) {
        weight_[leaving] /= direction_[leaving];
        for (Index h = 0; h < m_; ++h) table_[leaving * m_ + h] /= direction_[leaving];
        for (Index k = 0; k < m_; ++k) {
            if (k == leaving) continue;
            weight_[k] -= direction_[k] * weight_[leaving];
            for (Index h = 0; h < m_; ++h) table_[k * m_ + h] -= direction_[k] * table_[leaving * m_ + h];
        }
        cost_[leaving] = cost;
        if (leaving == relief_) relief_ = NONE;
    }

    Index m_, relief_ = NONE;
    std::vector<double> table_, weight_, cost_, price_, direction_;
};

}  // namespace tightrope
