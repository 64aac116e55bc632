// Algorithm 1 around its subproblem: the cost and the reference that go into it, and the multipliers after it.
#pragma once

#include "occupancy.hpp"

namespace tightrope {

/// ψ/α = (V f + Σ_i Q_i g_i) / α for f (n,), Q (I,) and g (I, n). Writes psi.
inline void weigh(double V, const double* f, const double* Q, const double* g, Index n_constraints, double alpha, Index n,
                  double* psi) {
    in_blocks(n, [&](Index begin, Index end) {
        constexpr Index CACHED = 1024;  // of psi stay in the cache while rows are added
        for (Index first = begin; first < end; first += CACHED) {
            const Index length = std::min(CACHED, end - first);
            const double weight = V / alpha;
            const double* __restrict loss = f + first;
            double* __restrict out = psi + first;
            for (Index j = 0; j < length; ++j) out[j] = weight * loss[j];
            for (Index i = 0; i < n_constraints; ++i) {
                const double price = Q[i] / alpha;
                const double* __restrict row = g + i * n + first;
                for (Index j = 0; j < length; ++j) out[j] += price * row[j];
            }
        }
    });
}

/// θ̃ = (1 − λ) θ + λ uniform, uniform on the tuples of every layer. Writes reference.
inline void mix(const Space& space, const double* theta, double lambda, double* reference) {
    for (Index k = 0; k < space.n_layers; ++k) {
        const Index begin = space.first_tuple(k), n = space.first_tuple(k + 1) - begin;
        const double added = lambda / static_cast<double>(n);
        in_blocks(n, [&](Index first, Index last) {
            const double* __restrict from = theta + begin;
            double* __restrict to = reference + begin;
            for (Index j = first; j < last; ++j) to[j] = (1.0 - lambda) * from[j] + added;
        });
    }
}

/// (1 − λ) θ + λ even, of which every successor of pair i has even[i]. Writes reference.
inline void mix_pairs(const Space& space, const double* __restrict theta, double lambda, const double* even,
                      double* __restrict reference) {
    in_state_blocks(space, state_blocks(space, 0, space.last_state()), [&](Index from, Index to, Index, int) {
        for (Index i = space.state_ptr[from]; i < space.state_ptr[to]; ++i)
            for (Index j = space.pair_ptr[i]; j < space.pair_ptr[i + 1]; ++j)
                reference[j] = (1.0 - lambda) * theta[j] + lambda * even[i];
    });
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

/// mean + (x − mean) / t: the mean of t numbers, of which x is the last. Writes out (n,).
inline void average(const double* __restrict mean, const double* __restrict x, double t, Index n, double* __restrict out) {
    in_blocks(n, [=](Index first, Index last) {
        for (Index j = first; j < last; ++j) out[j] = mean[j] + (x[j] - mean[j]) / t;
    });
}

/// Whether a[j] = b[j] for all of n entries.
inline bool equal(const double* a, const double* b, Index n) { return std::equal(a, a + n, b); }

/// max{Q_i + <g_i, θ> − c_i, 0} for every i. Writes ahead (I,).
inline void dual_step(const double* Q, const double* g, const double* theta, const double* c, Index n_constraints, Index n,
                      double* ahead) {
    for (Index i = 0; i < n_constraints; ++i) ahead[i] = max(Q[i] + dot_in_blocks(g + i * n, theta, n) - c[i], 0.0);
}

}  // namespace tightrope
