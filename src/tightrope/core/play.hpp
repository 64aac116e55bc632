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

/// The costs of an episode: f (n_tuples,), g and its mean, which may be g itself, (I, n_tuples).
struct Costs {
    const double* f;
    const double* g;
    const double* mean;
    Index n_constraints;
};

/// What the policy costs in exact expectation, and total_f += f: in one pass, in which θ̄ is never in memory as a whole.
inline Expectations account(const Space& space, const double* pi, const double* P, const Costs& costs, double* total_f) {
    const Index n = costs.n_constraints;
    std::vector<double> d(space.n_states);
    auto room = room_for_workers(space, longest_block(space));
    Expectations all{0.0, std::vector<double>(n), std::vector<double>(n)};
    std::vector<Expectations> parts(1 + space.widest_layer() / BLOCK, all);  // of the blocks of a layer
    forward(
        space, d.data(),
        [&](Index from, Index to, Index i, int worker, const Next& next) {
            const Index first = space.pair_ptr[space.state_ptr[from]], last = space.pair_ptr[space.state_ptr[to]];
            std::vector<double>& theta = room[worker];
            occupancy_of_states(space, from, to, pi, P, d.data(), theta.data(), next);
            parts[i].f = dot(costs.f + first, theta.data(), last - first);
            for (Index h = 0; h < n; ++h) {
                const Index row = h * space.n_tuples + first;
                parts[i].g[h] = dot(costs.g + row, theta.data(), last - first);
                parts[i].mean[h] =
                    costs.mean == costs.g ? parts[i].g[h] : dot(costs.mean + row, theta.data(), last - first);
            }
            for (Index j = first; j < last; ++j) total_f[j] += costs.f[j];
        },
        [&](Index n_blocks) {
            for (Index i = 0; i < n_blocks; ++i) {
                all.f += parts[i].f;
                for (Index h = 0; h < n; ++h) {
                    all.g[h] += parts[i].g[h];
                    all.mean[h] += parts[i].mean[h];
                }
            }
        });
    return all;
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
