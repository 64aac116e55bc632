// Planning within budgets when each P(s'|s,a) is only known to lie between lower and upper.
//
//     min <c, x>   over the x of all policies and all models between lower and upper with   D x <= alpha
//
// Costs are by pair: c (n_pairs,), D (n_rows, n_pairs). x(s,a) is the probability that an episode passes through (s,a).
#pragma once

#include <vector>

#include "arithmetic.hpp"
#include "planning.hpp"
#include "simplex.hpp"
#include "space.hpp"

namespace tightrope {

/// The simplex method on the rows D x <= alpha and Σ_k w_k = 1, where x = Σ_k w_k x_k.
///
/// Its columns are the deterministic policies, each with a model; a basis mixes at most n_rows + 1 of them, and dynamic
/// programming on c + λ D, λ the multipliers, finds the one of least reduced cost. If the policy that is best for c alone
/// exceeds alpha, a column of relief, which allows every row the same excess, is in the basis and first driven out of it;
/// if that cannot be, the answer is the x of least excess, and λ, which then sums to 1, proves it.
class ExtendedLP {
public:
    ExtendedLP(const Space& space, const double* lower, const double* upper, const double* c, const double* D,
               const double* alpha, Index n_rows)
        : space_(space), lower_(lower), upper_(upper), c_(c), D_(D), alpha_(alpha), n_rows_(n_rows), basis_(alpha, n_rows),
          V_(space.n_states), d_(space.n_states), p_(space.n_tuples), r_(c, c + space.n_pairs), x_(space.n_pairs),
          column_(n_rows + 1), best_(space.n_states), X_((n_rows + 1) * space.n_pairs) {}

    /// Write multipliers (n_rows,) and x (n_pairs,); return whether x exceeds alpha, by the least that is possible. After
    /// `max_pivots` it stops where it is.
    bool solve(double tolerance, Index max_pivots, double* multipliers, double* x) {
        best_policy();
        basis_.enter(column_.data(), n_rows_, total(c_));
        keep(n_rows_);
        if (const Index row = most_exceeded(tolerance); row != Simplex::NONE) basis_.enter_relief(row);
        for (Index pivot = 0; pivot < max_pivots; ++pivot) {
            const Index slack = basis_.price(tolerance, multipliers);
            if (slack != Simplex::NONE)
                slack_of(slack);
            else if (!cheaper_policy(tolerance, multipliers))
                break;
            const Index leaving = basis_.enter(column_.data(), slack != Simplex::NONE ? 0.0 : total(c_));
            if (leaving == Simplex::NONE) break;
            keep(leaving);
        }
        std::fill(x, x + space_.n_pairs, 0.0);
        for (Index k = 0; k < basis_.size(); ++k) {
            const double weight = max(basis_.weight(k), 0.0);
            for (Index i = 0; i < space_.n_pairs; ++i) x[i] += weight * X_[k * space_.n_pairs + i];
        }
        return basis_.relief() != Simplex::NONE;
    }

private:
    /// x and the column of the policy that is best for the costs r_, under the model that is best for it.
    void best_policy() {
        backward(space_, BestInBox(space_, lower_, upper_, -1.0, r_.data(), p_.data()), Least{best_.data()}, V_.data());
        visits(space_, best_.data(), p_.data(), d_.data(), x_.data());
        for (Index h = 0; h < n_rows_; ++h) column_[h] = total(D_ + h * space_.n_pairs);
        column_[n_rows_] = 1.0;
    }

    /// <r, x_>: x_ is 0 but at the pairs best_.
    double total(const double* r) const {
        double value = 0.0;
        for (Index s = 0; s < space_.last_state(); ++s) value += r[best_[s]] * x_[best_[s]];
        return value;
    }

    /// The row that the column exceeds most, by more than the tolerance, or NONE.
    Index most_exceeded(double tolerance) const {
        Index row = Simplex::NONE;
        double excess = tolerance;
        for (Index h = 0; h < n_rows_; ++h)
            if (column_[h] - alpha_[h] > excess) row = h, excess = column_[h] - alpha_[h];
        return row;
    }

    void slack_of(Index row) {
        std::fill(column_.begin(), column_.end(), 0.0);
        std::fill(x_.begin(), x_.end(), 0.0);
        column_[row] = 1.0;
    }

    /// The policy of least reduced cost at these multipliers; false if that is 0.
    bool cheaper_policy(double tolerance, const double* multipliers) {
        for (Index i = 0; i < space_.n_pairs; ++i) {
            r_[i] = basis_.relief() == Simplex::NONE ? c_[i] : 0.0;
            for (Index h = 0; h < n_rows_; ++h) r_[i] += multipliers[h] * D_[h * space_.n_pairs + i];
        }
        best_policy();
        return V_[0] - basis_.price_of_weight() < -tolerance;
    }

    /// x_ is what the basic column k stands for.
    void keep(Index k) { std::copy(x_.begin(), x_.end(), X_.begin() + k * space_.n_pairs); }

    const Space& space_;
    const double *lower_, *upper_, *c_, *D_, *alpha_;
    Index n_rows_;
    Simplex basis_;
    std::vector<double> V_, d_, p_, r_, x_, column_;
    std::vector<std::int64_t> best_;
    std::vector<double> X_;
};

}  // namespace tightrope
