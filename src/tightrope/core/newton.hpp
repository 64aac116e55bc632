// Semismooth Newton on the dual of the subproblem: three loops, one inside the other.
//
//     attempts       from where β is; if that fails from 0; if that fails too, by conjugate gradients with H as a sum,
//                    not as a matrix; and at last with states of next to no mass held back
//     steps          −H⁻¹ (inflow − outflow), until the flow residual is within the tolerance
//     line search    half of the step, and half of that, until F is low enough
//
// A factor of H is kept, over episodes too, and renewed when one more step with it would not end the search. Where a step
// is too long to be believed, or no part of it is good enough, H gets a multiple of its own diagonal's size: the step then
// turns towards (inflow − outflow) / (inflow + outflow), which is never longer than 1. That slows all states down, be it
// for the sake of some that nothing depends on: in the last attempt these alone are held back (`restrain`).
#pragma once

#include "conjugate.hpp"
#include "dual.hpp"
#include "hessian.hpp"
#include "interrupt.hpp"

namespace tightrope {

namespace newton {
inline constexpr double ARMIJO = 1e-4;         ///< Share of the promised decrease of F that a step has to bring.
inline constexpr int BACKTRACKS = 4;           ///< Lengths of a step tried before H is damped.
inline constexpr double BELIEVABLE = 200.0;    ///< Move of a potential up to which a step is shortened to MAX_MOVE.
inline constexpr double CLOSE = 0.03;          ///< Accuracy of a step from conjugate gradients, close to the solution.
inline constexpr double FAR = 0.5;             ///< The same far from it: a step that is cut short goes less astray.
inline constexpr double DAMPED_GAIN = 0.98;    ///< Of the residual, in a damped step where F is all rounding.
inline constexpr double FIRST_DAMPING = 1e-4;
inline constexpr double MAX_DAMPING = 1e8;
inline constexpr double MAX_MOVE = 20.0;       ///< Of a potential in one step: e^20 in the weights.
inline constexpr Index MAX_STEPS = 500;        ///< Of one attempt.
inline constexpr double ROUNDING = 1e-11;      ///< Of F, relative.
inline constexpr double UNSEEN = 1e-6;         ///< Share of the tolerance; a state with less mass is next to nothing.
}  // namespace newton

/// The end of a search.
struct Outcome {
    double F = INF, residual = INF;
    Index steps = 0;
    bool far = false;  ///< Weights may have left the range of numbers.
};

/// How a step is computed.
struct StepChoice {
    bool direct;      ///< from the factor of H; otherwise by conjugate gradients
    bool assembled;   ///< H of conjugate gradients may be assembled
    bool renew;       ///< from a new factor
    double damping;
    double accuracy;  ///< relative, of conjugate gradients
    double unseen;    ///< States with less mass are held back.
};

/// A step: F's slope along it, and max |step|.
struct Step {
    double slope, longest;
};

/// No further than to where a state would have `unseen` for its mass, and a little: nobody else is moved by that.
inline double restrain(double move, double mass, double unseen) {
    const double most = min(1.0 + log(unseen / mass), newton::MAX_MOVE);
    return min(max(move, -most), most);
}

/// Make H of the last evaluation, damped, the matrix of the steps that follow: its factor, or pivots.
template <class Set>
void renew_hessian(const Lanes& lanes, const Set& set, bool direct, bool assembled, double damping, Workspace& work) {
    if (!direct) return find_pivots(lanes, set, assembled, damping, work);
    assemble(lanes, set, damping, work);
    factorise(work.panels, work.pool);
    work.factor_damping = damping;
}

/// Overwrite x with H⁻¹ x.
template <class Set>
void solve_newton(const Lanes& lanes, const Set& set, const StepChoice& choice, Workspace& work, double* x,
                  Interrupt& interrupt) {
    if (choice.direct)
        solve(work.panels, x);
    else
        conjugate_gradients(lanes, set, choice.assembled, choice.accuracy, work, x, interrupt);
}

/// Write the step −H⁻¹ (inflow − outflow).
template <class Set>
Step newton_step(const Lanes& lanes, const Set& set, const StepChoice& choice, Workspace& work, Interrupt& interrupt) {
    const Index first = lanes.first_state(1), last = lanes.first_state(lanes.n_layers());
    double* step = work.step.data();
    step[0] = step[last] = 0.0;
    for (Index s = first; s < last; ++s) step[s] = work.outflow[s] - work.inflow[s];
    if (choice.renew || !choice.direct) renew_hessian(lanes, set, choice.direct, choice.assembled, choice.damping, work);
    solve_newton(lanes, set, choice, work, step, interrupt);
    Step found{0.0, 0.0};
    for (Index s = first; s < last; ++s) {
        const double mass = work.inflow[s] + work.outflow[s];
        if (mass < choice.unseen) step[s] = restrain(step[s], mass, choice.unseen);
        found.slope += (work.inflow[s] - work.outflow[s]) * step[s];
        found.longest = max(abs(step[s]), found.longest);
    }
    return found;
}

/// Armijo's rule; and at the floor of rounding, where F no longer tells better from worse, the residual.
///
/// A step with the whole of H halves it at the least; a damped one falls short of that by design.
inline bool low_enough(Value trial, Value now, double t, double slope, double damping) {
    const double enough = damping == 0.0 ? 0.5 : newton::DAMPED_GAIN;
    const bool level =
        trial.F <= now.F + newton::ROUNDING * (1.0 + abs(now.F)) && trial.residual <= enough * now.residual;
    return level || trial.F <= now.F + newton::ARMIJO * t * slope;
}

/// Minimise F and write the θ of its minimum, NaN if the flow residual stays above the tolerance.
///
/// The search starts from the β, the factor and the thresholds of the workspace, and leaves its own.
template <class Set>
Outcome solve(const Subproblem& problem, const Lanes& lanes, const Set& set, double tolerance, Workspace& work,
              double* __restrict theta, Interrupt& interrupt) {
    using namespace newton;
    const Index first = lanes.first_state(1), last = lanes.first_state(lanes.n_layers());
    double *__restrict beta = work.beta.data(), *__restrict trial = work.trial.data();
    const double* __restrict step = work.step.data();
    const bool logarithmic = tilt(problem, lanes, work, theta);
    Value now{INF, INF};
    Index steps = 0;
    work.trial = work.beta;

    for (int attempt = 0; attempt < 4; ++attempt) {
        if (attempt == 2 && work.panels.empty() && !work.sparse) continue;  // that was how attempt 1 went
        if (attempt > 0) {  // cold
            std::fill(work.beta.begin(), work.beta.end(), 0.0);
            work.factor_damping = NaN;
        }
        const bool as_matrix = attempt < 2, direct = as_matrix && !work.panels.empty();
        const double unseen = attempt == 3 ? UNSEEN * tolerance : 0.0;
        const Index limit = steps + MAX_STEPS;
        bool renew = work.factor_damping != 0.0;
        double damping = 0.0;
        now = evaluate(lanes, set, beta, logarithmic, work);

        while (!(now.residual <= tolerance)) {  // NaN is not
            bool believable = false, exact = false;
            Step found{0.0, 0.0};
            while (!believable && damping < MAX_DAMPING && steps < limit) {
                ++steps;
                interrupt.check();
                exact = renew || !direct;  // H is that of β, not of some β before
                const double accuracy = max(min(FAR, now.residual), min(CLOSE, 0.3 * tolerance / now.residual));
                found = newton_step(lanes, set, {direct, as_matrix, renew, damping, accuracy, unseen}, work, interrupt);
                believable = found.longest < BELIEVABLE;
                renew = !believable;
                if (!believable && exact) damping = max(10.0 * damping, FIRST_DAMPING);
            }
            if (!believable) break;

            double t = min(1.0, MAX_MOVE / found.longest);
            bool accepted = false;
            Value then{INF, INF};
            for (int backtrack = 0; backtrack < (exact ? BACKTRACKS : 1) && !accepted; ++backtrack) {
                t = backtrack > 0 ? 0.5 * t : t;
                for (Index s = first; s < last; ++s) trial[s] = beta[s] + t * step[s];
                then = evaluate(lanes, set, trial, logarithmic, work);
                accepted = low_enough(then, now, t, found.slope, damping);
            }
            if (accepted) {
                renew = damping > 0.0 || then.residual * then.residual > tolerance * now.residual;
                damping = t < 1.0 || damping > 1e-8 ? 0.1 * damping : 0.0;
                now = then;
                for (Index s = first; s < last; ++s) beta[s] = trial[s];
            } else {  // back to β for a better H, or a shorter step
                renew = true;
                damping = exact ? max(10.0 * damping, FIRST_DAMPING) : damping;
                now = evaluate(lanes, set, beta, logarithmic, work);
            }
        }
        if (now.residual <= tolerance) break;
    }

    if (now.residual <= tolerance)
        divide(problem.space, lanes, logarithmic, work, work.p.data(), theta);
    else
        std::fill(theta, theta + problem.space.n_tuples, NaN);
    const Extremes found = extremes(beta, lanes.n_states());
    return {now.F, now.residual, steps, logarithmic || found.largest - found.smallest > RANGE};
}

}  // namespace tightrope
