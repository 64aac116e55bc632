// Algorithm 1 around its subproblem: the cost and the reference that go into it, and the multipliers after it.
#pragma once

#include "occupancy.hpp"

namespace tightrope {

/// ψ/α = (V f + Σ_i Q_i g_i) / α for f (n,), Q (I,) and g (I, n). Writes psi.
inline void weigh(double V, const double* __restrict f, const double* Q, const double* g, Index n_constraints, double alpha,
                  Index n, double* __restrict psi) {
    constexpr Index BLOCK = 1024;  // of psi, which stays in the cache meanwhile
    for (Index first = 0; first < n; first += BLOCK) {
        const Index last = std::min(first + BLOCK, n);
        const double weight = V / alpha;
        for (Index j = first; j < last; ++j) psi[j] = weight * f[j];
        for (Index i = 0; i < n_constraints; ++i) {
            const double price = Q[i] / alpha;
            const double* __restrict row = g + i * n;
            for (Index j = first; j < last; ++j) psi[j] += price * row[j];
        }
    }
}

/// θ̃ = (1 − λ) θ + λ uniform, uniform on the tuples of every layer. Writes reference.
inline void mix(const Space& space, const double* __restrict theta, double lambda, double* __restrict reference) {
    for (Index k = 0; k < space.n_layers; ++k) {
        const Index first = space.first_tuple(k), last = space.first_tuple(k + 1);
        const double added = lambda / static_cast<double>(last - first);
        for (Index j = first; j < last; ++j) reference[j] = (1.0 - lambda) * theta[j] + added;
    }
}

/// (1 − λ) θ + λ even, of which every successor of pair i has even[i]. Writes reference.
inline void mix_pairs(const Space& space, const double* __restrict theta, double lambda, const double* even,
                      double* __restrict reference) {
    for (Index i = 0; i < space.n_pairs; ++i)
        for (Index j = space.pair_ptr[i]; j < space.pair_ptr[i + 1]; ++j)
            reference[j] = (1.0 - lambda) * theta[j] + lambda * even[i];
}

/// θ with at least `floor` of its layer in every state, and at least `floor` of its state in every tuple. A state is
/// lifted as a whole, so that its policy stays the same. Writes reference.
inline void lift(const Space& space, const double* __restrict theta, double floor, double* __restrict reference) {
    for (Index s = 0; s < space.last_state(); ++s) {
        const Index first = space.pair_ptr[space.state_ptr[s]], last = space.pair_ptr[space.state_ptr[s + 1]];
        const double mass = sum(theta + first, last - first);
        const double scale = NONE < mass && mass < floor ? floor / mass : 1.0;
        const double least = floor * max(mass, floor);
        for (Index j = first; j < last; ++j) reference[j] = max(scale * theta[j], least);
    }
}

/// max{Q_i + <g_i, θ> − c_i, 0} for every i. Writes ahead (I,).
inline void dual_step(const double* Q, const double* g, const double* theta, const double* c, Index n_constraints, Index n,
                      double* ahead) {
    for (Index i = 0; i < n_constraints; ++i) ahead[i] = max(Q[i] + dot(g + i * n, theta, n) - c[i], 0.0);
}

}  // namespace tightrope
