// Occupancy measures: from a policy and a model, and back.
#pragma once

#include <algorithm>

#include "blocks.hpp"

namespace tightrope {

/// A mass that counts as none: 1 / mass would overflow below it.
inline constexpr double NONE = 1e-300;

/// Whether the tuples first .. last of a pair lead to consecutive states, as in a dense layer: loops then vectorise.
inline bool consecutive(const Space& space, Index first, Index last) {
    return space.successor[last - 1] - space.successor[first] == last - first - 1;
}

/// d of the states of one layer, as a block of the layer before adds to it.
struct Next {
    double* d;
    Index first_state;  ///< of the layer: d[s − first_state] is that of s

    /// d(s') += θ(s,a,s') for the tuples first .. last of one pair; theta starts at the first of them.
    void add(const Space& space, Index first, Index last, const double* __restrict theta) const {
        if (consecutive(space, first, last)) {
            double* __restrict next = d + (space.successor[first] - first_state);
            for (Index j = 0; j < last - first; ++j) next[j] += theta[j];
        } else {
            for (Index j = first; j < last; ++j) d[space.successor[j] - first_state] += theta[j - first];
        }
    }
};

/// Pass through the layers from the first to the last: block(first, last, i, worker, next) for the i-th block of states of a
/// layer, of which d is known, adds θ(s,a,s') to `next`; then done(n) when all n blocks of the layer are through. Blocks
/// of a layer run side by side, and what they add is summed up in their order.
template <class Block, class Done>
void forward(const Space& space, double* d, const Block& block, const Done& done) {
    std::fill(d, d + space.n_states, 0.0);
    d[0] = 1.0;
    std::vector<double> parts;
    for (Index k = 0; k < space.n_layers; ++k) {
        const Index next = space.layer_ptr[k + 1], width = space.layer_ptr[k + 2] - next;
        Index n = 1;
        if (space.first_tuple(k + 1) - space.first_tuple(k) <= BLOCK) {
            block(space.layer_ptr[k], next, Index{0}, 0, Next{d + next, next});
        } else {
            const std::vector<Index> cuts = state_blocks(space, space.layer_ptr[k], next);
            n = static_cast<Index>(cuts.size()) - 1;
            parts.assign(n * width, 0.0);
            in_state_blocks(space, cuts, [&](Index first, Index last, Index i, int worker) {
                block(first, last, i, worker, Next{parts.data() + i * width, next});
            });
            for (Index i = 0; i < n; ++i)
                for (Index s = 0; s < width; ++s) d[next + s] += parts[i * width + s];
        }
        done(n);
    }
}

/// θ(s,a,s') = d(s) π(a|s) P(s'|s,a) for the tuples of the states from .. to, into theta, which starts at the first of
/// them; adds θ to `next`.
inline void occupancy_of_states(const Space& space, Index from, Index to, const double* __restrict pi,
                                const double* __restrict P, const double* d, double* __restrict theta, const Next& next) {
    const Index begin = space.pair_ptr[space.state_ptr[from]];
    for (Index s = from; s < to; ++s)
        for (Index i = space.state_ptr[s]; i < space.state_ptr[s + 1]; ++i) {
            const Index first = space.pair_ptr[i], last = space.pair_ptr[i + 1];
            const double q = d[s] * pi[i];
            for (Index j = first; j < last; ++j) theta[j - begin] = q * P[j];
            next.add(space, first, last, theta + (first - begin));
        }
}

/// θ(s,a,s') = d(s) π(a|s) P(s'|s,a), d(s) the probability of passing through s. Writes d and theta.
inline void occupancy(const Space& space, const double* pi, const double* P, double* d, double* theta) {
    forward(
        space, d,
        [&](Index from, Index to, Index, int, const Next& next) {
            occupancy_of_states(space, from, to, pi, P, d, theta + space.pair_ptr[space.state_ptr[from]], next);
        },
        [](Index) {});
}

/// π(a|s) ∝ Σ_s' θ(s,a,s'), uniform over the actions of a state without mass. Writes pi.
inline void policy_of(const Space& space, const double* theta, double* pi) {
    in_state_blocks(space, state_blocks(space, 0, space.last_state()), [&](Index from, Index to, Index, int) {
        for (Index s = from; s < to; ++s) {
            const Index first = space.state_ptr[s], last = space.state_ptr[s + 1];
            double mass = 0.0;
            for (Index i = first; i < last; ++i) {
                pi[i] = sum(theta + space.pair_ptr[i], space.pair_ptr[i + 1] - space.pair_ptr[i]);
                mass += pi[i];
            }
            for (Index i = first; i < last; ++i)
                pi[i] = mass > NONE ? pi[i] / mass : 1.0 / static_cast<double>(last - first);
        }
    });
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
