// Small dense linear algebra with the same bits on every machine: what LAPACK would be asked for elsewhere.
//
// Matrices are symmetric, positive semidefinite but for rounding, and held by rows. Every sum runs in index order.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "arithmetic.hpp"
#include "space.hpp"

namespace tightrope {

/// Q S Qᵀ = L D Lᵀ of a principal submatrix of S, the permutation Q chosen by symmetric pivoting.
///
/// The next pivot is the row that has lost the smallest share of its diagonal to those before it, the first of equals. A
/// row that has lost all but DEPENDENT of it depends on the others: it is left out, and its unknown is 0.
class PivotedCholesky {
public:
    static constexpr double DEPENDENT = 1e-15;

    explicit PivotedCholesky(Index n) : order_(n), L_(n * n), D_(n), left_(n) {}

    /// Factor the rows and columns `rows` of S (n, n).
    void factor(const double* S, Index n, const std::vector<Index>& rows) {
        order_ = rows;
        const Index m = static_cast<Index>(rows.size());
        stride_ = m;
        for (Index k = 0; k < m; ++k) left_[k] = S[rows[k] * n + rows[k]];
        for (rank_ = 0; rank_ < m; ++rank_) {
            const Index k = next_pivot(S, n);
            if (k < 0) break;
            bring_forward(k);
            eliminate(S, n);
        }
    }

    /// x[i] for the factored rows i, so that S x = b on those that are not left out; b and x are indexed like S.
    void solve(const double* b, double* x) const {
        for (Index k = 0; k < rank_; ++k) {
            double rest = b[order_[k]];
            for (Index h = 0; h < k; ++h) rest -= L_[k * stride_ + h] * x[order_[h]];
            x[order_[k]] = rest;
        }
        for (Index k = rank_ - 1; k >= 0; --k) {
            double rest = x[order_[k]] / D_[k];
            for (Index h = k + 1; h < rank_; ++h) rest -= L_[h * stride_ + k] * x[order_[h]];
            x[order_[k]] = rest;
        }
        for (Index k = rank_; k < static_cast<Index>(order_.size()); ++k) x[order_[k]] = 0.0;
    }

private:
    Index next_pivot(const double* S, Index n) const {
        Index best = -1;
        double share = DEPENDENT;
        for (Index k = rank_; k < static_cast<Index>(order_.size()); ++k) {
            const double diagonal = S[order_[k] * n + order_[k]];
            if (diagonal > 0.0 && left_[k] / diagonal > share) best = k, share = left_[k] / diagonal;
        }
        return best;
    }

    void bring_forward(Index k) {
        std::swap(order_[k], order_[rank_]);
        std::swap(left_[k], left_[rank_]);
        for (Index h = 0; h < rank_; ++h) std::swap(L_[k * stride_ + h], L_[rank_ * stride_ + h]);
    }

    void eliminate(const double* S, Index n) {
        D_[rank_] = left_[rank_];
        for (Index k = rank_ + 1; k < static_cast<Index>(order_.size()); ++k) {
            double rest = S[order_[k] * n + order_[rank_]];
            for (Index h = 0; h < rank_; ++h) rest -= L_[k * stride_ + h] * D_[h] * L_[rank_ * stride_ + h];
            L_[k * stride_ + rank_] = rest / D_[rank_];
            left_[k] -= rest * (rest / D_[rank_]);
        }
    }

    std::vector<Index> order_;
    Index rank_ = 0, stride_ = 0;
    std::vector<double> L_, D_, left_;
};

/// y = argmin over 0 <= y <= most of ½ <y, S y> − <r, y> by an active-set method (Lawson and Hanson), S (n, n).
///
/// `most` may be infinite. Entries enter in the order of their relative slope, the first of equals. An entry without
/// curvature (S_ii <= 0, as that of an empty row) or without a slope stays exactly 0.
class BoxQP {
public:
    explicit BoxQP(Index n) : n_(n), factor_(n), z_(n), rest_(n), place_(n), blocked_(n) { rows_.reserve(n); }

    void solve(const double* S, const double* r, const double* most, double* y) {
        for (Index i = 0; i < n_; ++i) y[i] = 0.0, place_[i] = LOWEST, blocked_[i] = false;
        for (Index step = 0; step < STEPS_PER_ENTRY * n_; ++step) {
            const Index entering = steepest(S, r, y);
            if (entering < 0) break;
            const Place from = place_[entering];
            place_[entering] = INSIDE;
            if (minimise_inside(S, r, most, y, entering, from)) {
                std::fill(blocked_.begin(), blocked_.end(), false);
            } else {
                place_[entering] = from;
                blocked_[entering] = true;
            }
        }
    }

private:
    enum Place : char { LOWEST, INSIDE, HIGHEST };

    static constexpr Index STEPS_PER_ENTRY = 30;  ///< Entering takes about one; rounding must not make it go on for ever.
    static constexpr double ROUNDING = 4e-15;     ///< A slope of this share of its summands is 0.

    /// The entry at a bound with the steepest descent |r − S y|_i / (|r_i| + Σ |S_ij| y_j) away from it, or −1.
    Index steepest(const double* S, const double* r, const double* y) const {
        Index best = -1;
        double steepest = ROUNDING;
        for (Index i = 0; i < n_; ++i) {
            if (place_[i] == INSIDE || blocked_[i] || !(S[i * n_ + i] > 0.0)) continue;
            double slope = r[i], size = abs(r[i]);
            for (Index j = 0; j < n_; ++j) {
                slope -= S[i * n_ + j] * y[j];
                size += abs(S[i * n_ + j]) * y[j];
            }
            if (place_[i] == HIGHEST) slope = -slope;
            if (slope > steepest * size) best = i, steepest = slope / size;
        }
        return best;
    }

    /// Go to the minimum over the entries inside; those that reach a bound on the way stay there. False, and nothing is
    /// changed, if the entering one would not move into the box.
    bool minimise_inside(const double* S, const double* r, const double* most, double* y, Index entering, Place from) {
        for (Index i = 0; i < n_; ++i) {
            rest_[i] = r[i];
            for (Index j = 0; j < n_; ++j)
                if (place_[j] == HIGHEST) rest_[i] -= S[i * n_ + j] * y[j];
        }
        for (bool first = true; collect_inside(); first = false) {
            factor_.factor(S, n_, rows_);
            factor_.solve(rest_.data(), z_.data());
            if (first && !(from == LOWEST ? z_[entering] > 0.0 : z_[entering] < y[entering])) return false;
            double share = 1.0;
            Index leaving = -1;
            for (const Index i : rows_) {
                if (z_[i] > 0.0 && z_[i] < most[i]) continue;
                const double way = z_[i] > 0.0 ? z_[i] - y[i] : y[i] - z_[i];
                const double room = z_[i] > 0.0 ? most[i] - y[i] : y[i];
                const double reached = way > 0.0 ? room / way : 0.0;
                if (leaving < 0 || reached < share) leaving = i, share = min(reached, 1.0);
            }
            for (const Index i : rows_) y[i] = leaving < 0 ? z_[i] : min(max(y[i] + share * (z_[i] - y[i]), 0.0), most[i]);
            if (leaving < 0) return true;
            leave(leaving, z_[leaving] > 0.0 ? HIGHEST : LOWEST, S, most, y);
            for (const Index i : rows_)
                if (place_[i] == INSIDE && !(y[i] > 0.0)) leave(i, LOWEST, S, most, y);
        }
        return true;
    }

    /// The entries inside into rows_; returns whether there are any.
    bool collect_inside() {
        rows_.clear();
        for (Index i = 0; i < n_; ++i)
            if (place_[i] == INSIDE) rows_.push_back(i);
        return !rows_.empty();
    }

    void leave(Index i, Place to, const double* S, const double* most, double* y) {
        place_[i] = to;
        y[i] = to == HIGHEST ? most[i] : 0.0;
        if (to == HIGHEST)
            for (Index k = 0; k < n_; ++k) rest_[k] -= S[k * n_ + i] * y[i];
    }

    Index n_;
    PivotedCholesky factor_;
    std::vector<double> z_, rest_;
    std::vector<Place> place_;
    std::vector<char> blocked_;
    std::vector<Index> rows_;
};

}  // namespace tightrope
