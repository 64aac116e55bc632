// Newton's step by conjugate gradients, H never formed: for models whose dense blocks would be too large.
//
// Let θ = q p. From each layer to the next, H has the blocks B, B(s, s') = −Σ_a θ(s, a, s'). Inside a layer it is D + E:
// D = inflow + outflow, without the θ of fixed entries of p; E is 0 but for clipped pairs, which add to (E x)_j
//
//     θ_j Σ p x                               at a successor j where p is fixed,
//     θ_j ( Σ p x − Σ_G p x / Σ_G p )         at one where it is scaled, with its group G.
//
// The preconditioner is M = Uᵀ C⁻¹ U, U = C + B: one sweep over the layers forward and one back. C is what elimination
// would leave on the diagonal if all that it fills in beside the diagonal, and E, were added to the diagonal. Then M and H
// agree on every x that is constant on the layers, and almost on those that differ little between the successors of a
// state: where H is smallest, and what would take most iterations, the more the larger the layers. `FILL` of it is added,
// short of all, and nothing of what the first state fills in: its successors may be anywhere.
//
// The two sweeps are the product with H too, since H = U + Uᵀ + D + E − 2 C: with t = U⁻¹ x
//
//     U⁻ᵀ H U⁻¹ x = t + U⁻ᵀ (x + (D + E − 2 C) t)
//
// (S. C. Eisenstat, Efficient implementation of a class of preconditioned conjugate gradient methods, SIAM Journal on
// Scientific and Statistical Computing 2, 1981; the lumping is I. Gustafsson's modified incomplete factorisation, BIT 18,
// 1978).
#pragma once

#include "arithmetic.hpp"
#include "interrupt.hpp"
#include "workspace.hpp"

namespace tightrope {

inline constexpr double FILL = 0.99;

/// Take the θ of what does not move from D, for a chunk of which some pairs are not WHOLE.
template <class Set>
void hold(const Set& set, const Lanes& lanes, const Chunk& chunk, Workspace& work) {
    if constexpr (requires { &Set::hold; }) return set.hold(chunk, work.flow(lanes), work.D.data());
    const Index n = chunk.n_lanes;
    double factor[LANES];
    for (Index v = 0; v < n; ++v) factor[v] = work.label[chunk.first + v] != WHOLE ? work.share[chunk.pair + v] : 0.0;
    for (Index row = chunk.first; row < chunk.last; row += n)
        for (Index v = 0; v < n; ++v)
            work.D[lanes.successor[row + v]] -= work.label[row + v] == FIXED ? factor[v] * work.p[row + v] : 0.0;
}

/// C and D for H + damping · diag(inflow + outflow). C is at least the outflow, so M is positive definite.
template <class Set>
void find_pivots(const Lanes& lanes, const Set& set, double damping, Workspace& work) {
    double factor[LANES];
    for (Index s = 0; s < lanes.n_states(); ++s)
        work.D[s] = work.C[s] = (1.0 + damping) * (work.inflow[s] + work.outflow[s]) + TINY;
    for (Index c = 0; c < lanes.n_chunks(); ++c) {
        const Chunk chunk = lanes.chunk(c);
        const Index n = chunk.n_lanes;
        const std::uint32_t* origin = lanes.origin.data() + chunk.pair;
        const double fill = c >= lanes.first_chunk(1) ? FILL : 0.0;
        for (Index v = 0; v < n; ++v)
            factor[v] = fill * work.share[chunk.pair + v] * work.outflow[origin[v]] / work.C[origin[v]];
        for (Index row = chunk.first; row < chunk.last; row += n)
            for (Index v = 0; v < n; ++v) work.C[lanes.successor[row + v]] -= factor[v] * work.p[row + v];
        if (work.clipped[c]) hold(set, lanes, chunk, work);
    }
}

/// Add E t to y, for a chunk of which some pairs are not WHOLE, and write Σ p t of every pair into `all`.
template <class Set>
void respond(const Set& set, const Lanes& lanes, const Chunk& chunk, const Workspace& work, const double* __restrict t,
             double* __restrict y, double* __restrict all) {
    for (Index v = 0; v < chunk.n_lanes; ++v) all[v] = 0.0;
    if constexpr (requires { &Set::respond; }) return set.respond(chunk, work.flow(lanes), t, y, all);
    const Index n = chunk.n_lanes;
    const double *__restrict p = work.p.data(), *__restrict W = work.W.data() + chunk.pair;
    const double* __restrict share = work.share.data() + chunk.pair;
    const std::int8_t* __restrict label = work.label.data();
    const std::uint32_t* __restrict successor = lanes.successor.data();
    double mean[LANES], moved[LANES], factor[LANES], group_1[LANES], group_2[LANES], mass_1[LANES], mass_2[LANES];
    for (Index v = 0; v < n; ++v) group_1[v] = group_2[v] = mass_1[v] = mass_2[v] = 0.0;
    for (Index row = chunk.first; row < chunk.last; row += n) {
        for (Index v = 0; v < n; ++v) moved[v] = p[row + v] * t[successor[row + v]];  // look-ups: a loop of their own
        for (Index v = 0; v < n; ++v) {
            const std::int8_t mine = label[row + v];
            all[v] += moved[v];
            group_1[v] += mine == SCALED_1 ? moved[v] : 0.0;
            group_2[v] += mine > SCALED_1 ? moved[v] : 0.0;
            mass_1[v] += mine == SCALED_1 ? p[row + v] : 0.0;
            mass_2[v] += mine > SCALED_1 ? p[row + v] : 0.0;
        }
    }
    for (Index v = 0; v < n; ++v) {
        mean[v] = all[v] / W[v];
        group_1[v] = mean[v] - (mass_1[v] > 0.0 ? group_1[v] / mass_1[v] : 0.0);
        group_2[v] = mean[v] - (mass_2[v] > 0.0 ? group_2[v] / mass_2[v] : 0.0);
        factor[v] = label[chunk.first + v] != WHOLE ? share[v] : 0.0;
    }
    for (Index row = chunk.first; row < chunk.last; row += n) {
        for (Index v = 0; v < n; ++v) {
            const std::int8_t mine = label[row + v];
            const double change = mine == SCALED_1 ? group_1[v] : (mine > SCALED_1 ? group_2[v] : mean[v]);
            moved[v] = factor[v] * p[row + v] * change;
        }
        for (Index v = 0; v < n; ++v) y[successor[row + v]] += moved[v];
    }
}

/// t = U⁻¹ x and y = E t; the last state takes no part.
template <class Set>
void sweep_back(const Lanes& lanes, const Set& set, Workspace& work, const double* x) {
    double all[LANES], *t = work.t.data(), *y = work.y.data();
    t[lanes.n_states() - 1] = 0.0;
    for (Index k = lanes.n_layers() - 1; k >= 0; --k) {
        const Index begin = lanes.first_state(k), end = lanes.first_state(k + 1);
        for (Index s = begin; s < end; ++s) t[s] = x[s];
        for (Index s = begin; s < end; ++s) y[s] = 0.0;
        for (Index c = lanes.first_chunk(k); c < lanes.first_chunk(k + 1); ++c) {
            const Chunk chunk = lanes.chunk(c);
            const Index n = chunk.n_lanes;
            if (work.clipped[c]) {
                respond(set, lanes, chunk, work, t, y, all);
            } else {
                for (Index v = 0; v < n; ++v) all[v] = 0.0;
                for (Index row = chunk.first; row < chunk.last; row += n)
                    for (Index v = 0; v < n; ++v) all[v] += work.p[row + v] * t[lanes.successor[row + v]];
            }
            for (Index v = 0; v < n; ++v) t[lanes.origin[chunk.pair + v]] += work.share[chunk.pair + v] * all[v];
        }
        for (Index s = begin; s < end; ++s) t[s] /= work.C[s];
    }
}

/// y = t + U⁻ᵀ (y + x + (D − 2 C) t), and return x · y; the last state takes no part.
inline double sweep_forward(const Lanes& lanes, Workspace& work, const double* __restrict x) {
    double factor[LANES], *__restrict y = work.y.data();
    const double *__restrict t = work.t.data(), *__restrict C = work.C.data(), *__restrict D = work.D.data();
    const double *__restrict p = work.p.data(), *__restrict share = work.share.data();
    const std::uint32_t *__restrict successor = lanes.successor.data(), *__restrict origin = lanes.origin.data();
    double product = 0.0;
    for (Index k = 0; k < lanes.n_layers(); ++k) {
        const Index begin = lanes.first_state(k), end = lanes.first_state(k + 1);
        for (Index s = begin; s < end; ++s) y[s] = (y[s] + x[s] + (D[s] - 2.0 * C[s]) * t[s]) / C[s];
        for (Index c = lanes.first_chunk(k); c < lanes.first_chunk(k + 1); ++c) {
            const Chunk chunk = lanes.chunk(c);
            const Index n = chunk.n_lanes;
            for (Index v = 0; v < n; ++v) factor[v] = share[chunk.pair + v] * y[origin[chunk.pair + v]];
            for (Index row = chunk.first; row < chunk.last; row += n)
                for (Index v = 0; v < n; ++v) y[successor[row + v]] += factor[v] * p[row + v];
        }
        for (Index s = begin; s < end; ++s) y[s] += t[s];
        product += dot(x + begin, y + begin, end - begin);
    }
    y[lanes.n_states() - 1] = 0.0;
    return product;
}

/// Overwrite the right-hand side b that x holds with (H + damping · diag(inflow + outflow))⁻¹ b.
///
/// The unknowns are U x, the residual r is U⁻ᵀ (b − H x) and its preconditioner C. It ends when the norm √(r · C r), which
/// does not depend on how much mass a state has, is down to `accuracy` times what it was. Returns the iterations.
template <class Set>
Index conjugate_gradients(const Lanes& lanes, const Set& set, double damping, double accuracy, Index max_iterations,
                          Workspace& work, double* __restrict x, Interrupt& interrupt) {
    const Index n = lanes.n_states();
    double *__restrict r = work.r.data(), *__restrict direction = work.direction.data();
    const double *__restrict C = work.C.data(), *__restrict t = work.t.data(), *__restrict y = work.y.data();
    find_pivots(lanes, set, damping, work);
    std::fill(work.t.begin(), work.t.end(), 0.0);
    std::fill(work.direction.begin(), work.direction.end(), 0.0);
    work.y.assign(x, x + n);
    sweep_forward(lanes, work, direction);  // with t = 0 and x = 0: y = U⁻ᵀ b
    double product = 0.0;
    for (Index s = 0; s < n; ++s) {
        r[s] = y[s];
        x[s] = 0.0;
        direction[s] = C[s] * r[s];
        product += direction[s] * r[s];
    }
    const double target = accuracy * accuracy * product;
    for (Index iteration = 0; iteration < max_iterations; ++iteration) {
        interrupt.check();
        sweep_back(lanes, set, work, direction);
        const double curvature = sweep_forward(lanes, work, direction);
        if (!(curvature > 0.0)) return iteration;
        const double length = product / curvature, old = product;
        product = 0.0;
        for (Index s = 0; s < n; ++s) {
            x[s] += length * t[s];
            r[s] -= length * y[s];
            product += C[s] * r[s] * r[s];
        }
        if (product <= target) return iteration + 1;
        for (Index s = 0; s < n; ++s) direction[s] = C[s] * r[s] + product / old * direction[s];
    }
    return max_iterations;
}

}  // namespace tightrope
