// How the answer of the subproblem moves with its cost: what Newton's method on prices of inequalities needs.
//
// At the answer θ = q p let every log w(s,a,s') change by x(s,a,s'). With x̄ the mean of x under p, and ∂p/∂log w that of
// `sets.hpp`,
//
//     dθ = q (∂p/∂log w) x + θ (x̄ − Σ θ x),      sums over the layer,
//
// and if flow is to be conserved the potentials move too, by the dβ with H dβ = −d(inflow − outflow): then
// x = −A + dβ(s') − dβ(s) for a cost that changes by A. It all follows from θ itself, tuple by tuple.
#pragma once

#include "newton.hpp"

namespace tightrope {

namespace sensitivity {
inline constexpr double ACCURACY = 1e-9;  ///< Of dβ by conjugate gradients.
inline constexpr double LARGEST = 1e12;   ///< A dβ beyond is rounding: β stays, and θ is said to move more than it will.
}  // namespace sensitivity

/// d = q (∂p/∂log w) x for one pair that is not WHOLE, with tuples first .. last and mass q.
template <class Set>
void move_within(const Set& set, Index first, Index last, const std::uint32_t* slot, const std::int8_t* label, double q,
                 const double* theta, const double* x, double* d) {
    if constexpr (requires { &Set::move_within; }) return set.move_within(first, last, slot, label, q, theta, x, d);
    double mass_1 = 0.0, mass_2 = 0.0, mean_1 = 0.0, mean_2 = 0.0;
    for (Index j = first; j < last; ++j) {
        const std::int8_t mine = label[slot[j]];
        mass_1 += mine == SCALED_1 ? theta[j] : 0.0;
        mean_1 += mine == SCALED_1 ? theta[j] * x[j] : 0.0;
        mass_2 += mine == SCALED_2 ? theta[j] : 0.0;
        mean_2 += mine == SCALED_2 ? theta[j] * x[j] : 0.0;
    }
    mean_1 = mass_1 > 0.0 ? mean_1 / mass_1 : 0.0;
    mean_2 = mass_2 > 0.0 ? mean_2 / mass_2 : 0.0;
    for (Index j = first; j < last; ++j) {
        const std::int8_t mine = label[slot[j]];
        d[j] = mine == FIXED ? 0.0 : theta[j] * (x[j] - (mine == SCALED_1 ? mean_1 : mean_2));
    }
}

/// d = dθ as every log w changes by x, potentials aside.
template <class Set>
void move(const Space& space, const Lanes& lanes, const Set& set, const bool* free, const std::int8_t* label,
          const double* theta, const double* x, double* d) {
    for (Index k = 0; k < space.n_layers; ++k) {
        const Tuples tuples(space, k);
        double overall = 0.0;
        for (Index j = tuples.begin; j < tuples.end; ++j) overall += theta[j] * x[j];
        for (Index i = space.state_ptr[space.layer_ptr[k]]; i < space.state_ptr[space.layer_ptr[k + 1]]; ++i) {
            const Index first = space.pair_ptr[i], last = space.pair_ptr[i + 1];
            double q = 0.0, mean = 0.0;
            for (Index j = first; j < last; ++j) {
                q += theta[j];
                mean += theta[j] * x[j];
            }
            mean = q > 0.0 ? mean / q : 0.0;
            if (free[i] || label[lanes.slot[first]] == WHOLE) {
                for (Index j = first; j < last; ++j) d[j] = theta[j] * (x[j] - overall);
            } else {
                move_within(set, first, last, lanes.slot.data(), label, q, theta, x, d);
                for (Index j = first; j < last; ++j) d[j] += theta[j] * (mean - overall);
            }
        }
    }
}

/// outflow − inflow of every state under d.
inline void drain(const Space& space, const double* __restrict d, double* __restrict out) {
    std::fill(out, out + space.n_states, 0.0);
    for (Index s = 0; s < space.n_states; ++s) {
        double own = out[s];  // complete: what leads to s comes from the layer before
        for (Index j = space.pair_ptr[space.state_ptr[s]]; j < space.pair_ptr[space.state_ptr[s + 1]]; ++j) {
            own += d[j];
            out[space.successor[j]] -= d[j];
        }
        out[s] = own;
    }
}

/// x += dβ(s') − dβ(s).
inline void add_moves(const Space& space, const double* __restrict dbeta, double* __restrict x) {
    for (Index s = 0; s < space.n_states; ++s) {
        const double own = dbeta[s];
        for (Index j = space.pair_ptr[space.state_ptr[s]]; j < space.pair_ptr[space.state_ptr[s + 1]]; ++j)
            x[j] += dbeta[space.successor[j]] - own;
    }
}

/// Set dβ to 0 outside of the inner states, and everywhere if it is rounding.
inline void keep_if_sound(const Lanes& lanes, double* dbeta) {
    const Index first = lanes.first_state(1), last = lanes.first_state(lanes.n_layers());
    bool sound = true;
    for (Index s = first; s < last; ++s) sound &= abs(dbeta[s]) < sensitivity::LARGEST;
    for (Index s = 0; s < lanes.n_states(); ++s)
        if (!sound || s < first || s >= last) dbeta[s] = 0.0;
}

/// dβ (m, n_states) and dθ (m, n_tuples), the derivatives of the answer along each row of A (m, n_tuples).
///
/// θ and the workspace are those that `solve` left. A factor of H at β is left behind, where there is one.
template <class Set>
void sensitivities(const Subproblem& problem, const Lanes& lanes, const Set& set, const bool* free, Workspace& work,
                   const double* A, Index m, const double* theta, double* dbeta, double* dtheta, Interrupt& interrupt) {
    const Space& space = problem.space;
    std::vector<double> x(space.n_tuples);
    const bool logarithmic = tilt(problem, lanes, work, x.data());
    evaluate(lanes, set, work.beta.data(), logarithmic, work);
    const bool direct = !work.panels.empty();
    if (direct) {
        assemble(lanes, set, 0.0, work);
        factorise(work.panels, work.pool);
        work.factor_damping = 0.0;
    }
    for (Index i = 0; i < m; ++i, A += space.n_tuples, dbeta += space.n_states, dtheta += space.n_tuples) {
        interrupt.check();
        for (Index j = 0; j < space.n_tuples; ++j) x[j] = -A[j];
        move(space, lanes, set, free, work.label.data(), theta, x.data(), dtheta);
        drain(space, dtheta, dbeta);
        keep_if_sound(lanes, dbeta);
        if (direct)
            solve(work.panels, dbeta);
        else
            conjugate_gradients(lanes, set, true, i == 0, 0.0, sensitivity::ACCURACY, work, dbeta, interrupt);
        keep_if_sound(lanes, dbeta);
        add_moves(space, dbeta, x.data());
        move(space, lanes, set, free, work.label.data(), theta, x.data(), dtheta);
    }
}

}  // namespace tightrope
