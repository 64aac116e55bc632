// Steps of the Euclidean projection onto the occupancy measures of a known model (learners/drift_plus_penalty.py has the
// mathematics): A has a row for every state but the last, Ax = b conserves flow.
#pragma once

#include <algorithm>
#include <vector>

#include "arithmetic.hpp"
#include "space.hpp"

namespace tightrope {

struct EuclideanPoint {
    double residual_norm;  ///< Σ |Ax − b|
    double value;          ///< F(β)
};

/// Write x = [y + Aᵀβ]_+ (n_pairs,) and the residual Ax − b (n_states,), 0 at the last state, as β is.
inline EuclideanPoint euclidean_point(const Space& space, const double* P, const double* y, const double* beta, double* x,
                                      double* residual) {
    const Index end = space.last_state();
    std::fill(residual, residual + space.n_states, 0.0);
    residual[0] = -1.0;
    double F = -beta[0], norm = 0.0;
    for (Index s = 0; s < end; ++s)
        for (Index i = space.state_ptr[s]; i < space.state_ptr[s + 1]; ++i) {
            double v = y[i] + beta[s];
            for (Index j = space.pair_ptr[i]; j < space.pair_ptr[i + 1]; ++j) v -= P[j] * beta[space.successor[j]];
            x[i] = max(v, 0.0);
            if (!(v > 0.0)) continue;
            F += 0.5 * v * v;
            residual[s] += v;
            for (Index j = space.pair_ptr[i]; j < space.pair_ptr[i + 1]; ++j) residual[space.successor[j]] -= P[j] * v;
        }
    residual[end] = 0.0;
    for (Index s = 0; s < end; ++s) norm += abs(residual[s]);
    return {norm, F};
}

/// A symmetric matrix with few diagonals: row s holds the entries (s + d, s), d = 0 .. width.
class Band {
public:
    Band(Index n, Index width) : n_(n), width_(width), entries_(n * width) {}

    double* operator[](Index s) { return entries_.data() + s * width_; }

    /// x ← S⁻¹ x by LDLᵀ, for S = M + μ, M positive semidefinite; no pivot is below μ but by rounding. Overwrites S.
    void solve(double mu, double* x) {
        for (Index s = 0; s < n_; ++s) {
            double* __restrict column = (*this)[s];
            const Index last = std::min(width_, n_ - s);
            column[0] = max(column[0], mu);
            for (Index d = 1; d < last; ++d) {
                const double l = column[d] / column[0];
                if (l == 0.0) continue;
                double* __restrict other = (*this)[s + d];
                for (Index e = d; e < last; ++e) other[e - d] -= l * column[e];
                x[s + d] -= l * x[s];
            }
        }
        for (Index s = n_ - 1; s >= 0; --s) {
            const double* column = (*this)[s];
            double rest = x[s];
            for (Index d = 1; d < std::min(width_, n_ - s); ++d) rest -= column[d] * x[s + d];
            x[s] = rest / column[0];
        }
    }

private:
    Index n_, width_;
    std::vector<double> entries_;
};

/// A D Aᵀ + μ, D the pairs with x > 0: states are coupled to those of their layer and of the next.
inline Band newton_matrix(const Space& space, const double* P, const double* x, double mu) {
    const Index end = space.last_state();
    Index width = 1;
    for (Index k = 0; k < space.n_layers; ++k)
        width = std::max(width, std::min(space.layer_ptr[k + 2], end) - space.layer_ptr[k]);
    Band band(end, width);
    for (Index s = 0; s < end; ++s) {
        band[s][0] += mu;
        for (Index i = space.state_ptr[s]; i < space.state_ptr[s + 1]; ++i) {
            if (!(x[i] > 0.0)) continue;
            band[s][0] += 1.0;
            for (Index j = space.pair_ptr[i]; j < space.pair_ptr[i + 1]; ++j) {
                const Index t = space.successor[j];
                if (t >= end) continue;
                band[s][t - s] -= P[j];
                for (Index k = j; k < space.pair_ptr[i + 1]; ++k) band[t][space.successor[k] - t] += P[j] * P[k];
            }
        }
    }
    return band;
}

/// −(A D Aᵀ + μ)⁻¹ (Ax − b), 0 at the last state. Writes step (n_states,).
inline void euclidean_step(const Space& space, const double* P, const double* x, const double* residual, double mu,
                           double* step) {
    Band matrix = newton_matrix(space, P, x, mu);
    for (Index s = 0; s < space.last_state(); ++s) step[s] = -residual[s];
    step[space.last_state()] = 0.0;
    matrix.solve(mu, step);
}

}  // namespace tightrope
