// Trajectories: look one up, sample one; and what the policy that played it costs in exact expectation.
#pragma once

#include <vector>

#include "occupancy.hpp"

namespace tightrope {

/// The index in lo .. hi at which the running sum of p exceeds u; never one of probability 0, if there is another.
inline Index draw(const double* p, Index lo, Index hi, double u) {
    Index chosen = lo;
    double total = 0.0;
    for (Index i = lo; i < hi; ++i) {
        if (!(p[i] > 0.0)) continue;
        chosen = i;
        total += p[i];
        if (u < total) break;
    }
    return chosen;
}

/// One episode by inversion: uniforms[2k] draws the action of step k, uniforms[2k + 1] the successor. Writes states
/// (L + 1,), actions (L,) and steps (L,), the tuple of each step.
inline void sample_path(const Space& space, const double* pi, const double* P, const double* uniforms,
                        std::int64_t* states, std::int64_t* actions, std::int64_t* steps) {
    Index s = 0;
    for (Index k = 0; k < space.n_layers; ++k) {
        const Index i = draw(pi, space.state_ptr[s], space.state_ptr[s + 1], uniforms[2 * k]);
        const Index j = draw(P, space.pair_ptr[i], space.pair_ptr[i + 1], uniforms[2 * k + 1]);
        states[k] = s;
        actions[k] = space.action[i];
        steps[k] = j;
        s = space.successor[j];
    }
    states[space.n_layers] = s;
}

/// The tuple (s, a, s') if layer k has it, else −1; any numbers may be asked for.
inline Index find_tuple(const Space& space, Index k, std::int64_t s, std::int64_t a, std::int64_t s_next) {
    if (s < space.layer_ptr[k] || s >= space.layer_ptr[k + 1]) return -1;
    for (Index i = space.state_ptr[s]; i < space.state_ptr[s + 1]; ++i) {
        if (space.action[i] != a) continue;
        const std::int32_t* const end = space.successor + space.pair_ptr[i + 1];
        const std::int32_t* const found = std::lower_bound(space.successor + space.pair_ptr[i], end, s_next);
        if (found != end && *found == s_next) return found - space.successor;
    }
    return -1;
}

/// The tuple of each step of a trajectory, −1 from the first step on that is no tuple of its layer. Writes steps.
inline void find_path(const Space& space, const std::int64_t* states, const std::int64_t* actions, std::int64_t* steps) {
    Index j = 0;
    for (Index k = 0; k < space.n_layers; ++k) {
        if (j >= 0) j = find_tuple(space, k, states[k], actions[k], states[k + 1]);
        steps[k] = j;
    }
}

/// <f, θ̄>, <g_i, θ̄> and <E g_i, θ̄>, θ̄ the true occupancy measure of the policy played.
struct Expectations {
    double f = 0.0;
    std::vector<double> g, mean;
};

/// Layer by layer, so that θ̄ is never in memory as a whole. `mean` may be g.
inline Expectations expectations(const Space& space, const double* pi, const double* P, const double* f, const double* g,
                                 const double* mean, Index n_constraints) {
    std::vector<double> d(space.n_states), theta(space.widest_layer());
    Expectations e{0.0, std::vector<double>(n_constraints), std::vector<double>(n_constraints)};
    start(space, d.data());
    for (Index k = 0; k < space.n_layers; ++k) {
        const Index first = space.first_tuple(k), n = space.first_tuple(k + 1) - first;
        occupancy_of_layer(space, k, pi, P, d.data(), theta.data());
        e.f += dot(f + first, theta.data(), n);
        for (Index i = 0; i < n_constraints; ++i) {
            const Index row = i * space.n_tuples + first;
            e.g[i] += dot(g + row, theta.data(), n);
            e.mean[i] = mean == g ? e.g[i] : e.mean[i] + dot(mean + row, theta.data(), n);
        }
    }
    return e;
}

/// total += f, over n entries.
inline void add(const double* __restrict f, Index n, double* __restrict total) {
    for (Index j = 0; j < n; ++j) total[j] += f[j];
}

/// ‖[u − c]_+‖₂.
inline double excess(const double* u, const double* c, Index n) {
    double squares = 0.0;
    for (Index i = 0; i < n; ++i) {
        const double over = max(u[i] - c[i], 0.0);
        squares += over * over;
    }
    return sqrt(squares);
}

}  // namespace tightrope
