// Policies that are evaluated on an estimated model, and improved by a step.
#pragma once

#include "arithmetic.hpp"
#include "space.hpp"

namespace tightrope {

/// A policy keeps this much of every action, so that a mirror step can bring it back.
inline constexpr double FLOOR = 1e-300;

/// Q(s,a) = R(s,a) + Σ_s' M(s,a,s')/n(s,a) V(s'), V(s) = Σ_a π(a|s) Q(s,a). Q is truncated to lie between 0 and the
/// number of steps left. Writes V and Q.
template <class Count>
void evaluate(const Space& space, const double* pi, const Count* M, const Count* n, const double* R, double* V, double* Q) {
    V[space.last_state()] = 0.0;
    for (Index k = space.n_layers - 1; k >= 0; --k)
        for (Index s = space.layer_ptr[k]; s < space.layer_ptr[k + 1]; ++s) {
            V[s] = 0.0;
            for (Index i = space.state_ptr[s]; i < space.state_ptr[s + 1]; ++i) {
                double q = 0.0;
                for (Index j = space.pair_ptr[i]; j < space.pair_ptr[i + 1]; ++j)
                    q += static_cast<double>(M[j]) * V[space.successor[j]];
                q = R[i] + q / static_cast<double>(n[i]);
                Q[i] = min(max(q, 0.0), static_cast<double>(space.n_layers - k));
                V[s] += pi[i] * Q[i];
            }
        }
}

/// argmin over π' of step <q, π'(·|s)> + KL(π'(·|s), π(·|s)): π'(a|s) ∝ π(a|s) exp(−step q(s,a)). Writes out.
inline void mirror_step(const Space& space, const double* pi, const double* q, double step, double* out) {
    for (Index s = 0; s < space.last_state(); ++s) {
        const Index first = space.state_ptr[s], last = space.state_ptr[s + 1];
        double least = INF, mass = 0.0;
        for (Index i = first; i < last; ++i) least = min(q[i], least);
        for (Index i = first; i < last; ++i) {
            out[i] = max(pi[i], FLOOR) * exp(-step * (q[i] - least));
            mass += out[i];
        }
        for (Index i = first; i < last; ++i) out[i] /= mass;
    }
}

/// Q(s,a) = R(s,a) + Σ_s' P(s'|s,a) V(s'), V(s) = Σ_a π(a|s) (Q(s,a) − τ log π(a|s)). Q is at most 1 + τ log|A| for every
/// step left. Writes V and Q.
inline void regularised_values(const Space& space, const double* pi, const double* P, const double* R, double tau, double* V,
                               double* Q) {
    const std::int32_t n_actions = *std::max_element(space.action, space.action + space.n_pairs) + 1;
    const double most = 1.0 + tau * log(static_cast<double>(n_actions));
    V[space.last_state()] = 0.0;
    for (Index k = space.n_layers - 1; k >= 0; --k)
        for (Index s = space.layer_ptr[k]; s < space.layer_ptr[k + 1]; ++s) {
            V[s] = 0.0;
            for (Index i = space.state_ptr[s]; i < space.state_ptr[s + 1]; ++i) {
                double q = R[i];
                for (Index j = space.pair_ptr[i]; j < space.pair_ptr[i + 1]; ++j) q += P[j] * V[space.successor[j]];
                Q[i] = min(q, most * static_cast<double>(space.n_layers - k));
                V[s] += pi[i] * (Q[i] - tau * log(max(pi[i], FLOOR)));
            }
        }
}

/// π'(a|s) ∝ π(a|s)^(1 − step·τ) exp(step q(s,a)). Writes out.
inline void regularised_step(const Space& space, const double* pi, const double* q, double step, double tau, double* out) {
    for (Index s = 0; s < space.last_state(); ++s) {
        const Index first = space.state_ptr[s], last = space.state_ptr[s + 1];
        double largest = -INF, mass = 0.0;
        for (Index i = first; i < last; ++i) {
            out[i] = (1.0 - step * tau) * log(max(pi[i], FLOOR)) + step * q[i];
            largest = max(out[i], largest);
        }
        for (Index i = first; i < last; ++i) {
            out[i] = exp(out[i] - largest);
            mass += out[i];
        }
        for (Index i = first; i < last; ++i) out[i] /= mass;
    }
}

}  // namespace tightrope
