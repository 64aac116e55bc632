// Occupancy measures: from a policy and a model, and back.
#pragma once

#include <algorithm>

#include "arithmetic.hpp"
#include "space.hpp"

namespace tightrope {

/// A mass that counts as none: 1 / mass would overflow below it.
inline constexpr double NONE = 1e-300;

/// Whether the tuples first .. last of a pair lead to consecutive states, as in a dense layer: loops then vectorise.
inline bool consecutive(const Space& space, Index first, Index last) {
    return space.successor[last - 1] - space.successor[first] == last - first - 1;
}

/// d(s') += θ(s,a,s') for the tuples of one pair.
inline void pass_on(const Space& space, Index first, Index last, const double* __restrict theta, double* __restrict d) {
    if (consecutive(space, first, last)) {
        double* __restrict next = d + space.successor[first];
        for (Index j = 0; j < last - first; ++j) next[j] += theta[j];
    } else {
        for (Index j = first; j < last; ++j) d[space.successor[j]] += theta[j - first];
    }
}

/// θ(s,a,s') = d(s) π(a|s) P(s'|s,a) for the tuples of layer k, into theta, which starts at the layer's first tuple;
/// adds θ to d of the next layer.
inline void occupancy_of_layer(const Space& space, Index k, const double* __restrict pi, const double* __restrict P,
                               double* __restrict d, double* __restrict theta) {
    const Index begin = space.first_tuple(k);
    for (Index s = space.layer_ptr[k]; s < space.layer_ptr[k + 1]; ++s)
        for (Index i = space.state_ptr[s]; i < space.state_ptr[s + 1]; ++i) {
            const Index first = space.pair_ptr[i], last = space.pair_ptr[i + 1];
            const double q = d[s] * pi[i];
            for (Index j = first; j < last; ++j) theta[j - begin] = q * P[j];
            pass_on(space, first, last, theta + (first - begin), d);
        }
}

/// Start of every recursion over layers: d = 1 at the first state, 0 elsewhere.
inline void start(const Space& space, double* d) {
    std::fill(d, d + space.n_states, 0.0);
    d[0] = 1.0;
}

/// θ(s,a,s') = d(s) π(a|s) P(s'|s,a), d(s) the probability of passing through s. Writes d and theta.
inline void occupancy(const Space& space, const double* pi, const double* P, double* d, double* theta) {
    start(space, d);
    for (Index k = 0; k < space.n_layers; ++k) occupancy_of_layer(space, k, pi, P, d, theta + space.first_tuple(k));
}

/// π(a|s) ∝ Σ_s' θ(s,a,s'), uniform over the actions of a state without mass. Writes pi.
inline void policy_of(const Space& space, const double* __restrict theta, double* __restrict pi) {
    for (Index s = 0; s < space.last_state(); ++s) {
        const Index first = space.state_ptr[s], last = space.state_ptr[s + 1];
        double mass = 0.0;
        for (Index i = first; i < last; ++i) {
            pi[i] = sum(theta + space.pair_ptr[i], space.pair_ptr[i + 1] - space.pair_ptr[i]);
            mass += pi[i];
        }
        for (Index i = first; i < last; ++i)
            pi[i] = mass > NONE ? pi[i] / mass : 1.0 / static_cast<double>(last - first);
    }
}

/// p(j) ∝ θ(j) over the n tuples of one pair, uniform if they have no mass. Writes P.
inline void conditionals(const double* __restrict theta, Index n, double* __restrict P) {
    const double mass = sum(theta, n), even = 1.0 / static_cast<double>(n);
    for (Index j = 0; j < n; ++j) P[j] = mass > NONE ? theta[j] / mass : even;
}

/// P(s'|s,a) ∝ θ(s,a,s'), uniform over the successors of a pair without mass. Writes P.
inline void model_of(const Space& space, const double* theta, double* P) {
    for (Index i = 0; i < space.n_pairs; ++i) {
        const Index first = space.pair_ptr[i];
        conditionals(theta + first, space.pair_ptr[i + 1] - first, P + first);
    }
}

}  // namespace tightrope
