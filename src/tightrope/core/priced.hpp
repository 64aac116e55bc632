// The subproblem with priced rows: semismooth Newton over the potentials β and the prices y together.
//
//     min over θ of <cost, θ> + D(θ, reference) + Σ_i most_i [<A_i, θ> − b_i]_+
//
// is the inequality <A_i, θ> <= b_i where most_i is infinite, and an exact penalty where it is not. Its dual is
//
//     min over β and 0 <= y <= most of   φ(β, y) = F(β; cost + Σ y_i A_i) + <b, y>,
//
// F that of `dual.hpp`: convex, with gradient inflow − outflow in β and the slack b − A θ in y. With finite `most` there
// is always an answer: rows that cannot be met together are exceeded at that price.
//
// A step solves the quadratic model of φ over the box of the prices. With H the Hessian in β, as in a plain solve,
//
//     dβ_i = the move of β that conserves flow as the cost moves along A_i      (`sensitivity.hpp`)
//     S_ij = x_i · (∂θ/∂log w) x_j,   x_i = −A_i + dβ_i(s') − dβ_i(s)            curvature of φ along (dβ_i, e_i)
//     ρ_i  = slack_i + (inflow − outflow) · dβ_i                                 slope of φ along (dβ_i, e_i)
//
// the prices move by dy = argmin ½ <dy, S dy> + <ρ, dy>, and the potentials by −H⁻¹ (inflow − outflow) + Σ dy_i dβ_i.
// S is positive semidefinite and the step one of descent whatever the dβ_i are: also where H is damped. The last step of a
// search, which ends it anyhow, is taken with the H, the dβ_i and the S of the one before.
// Rows without a price that are met take no part. Rows are in units of their largest coefficient.
#pragma once

#include <optional>

#include "blocks.hpp"
#include "newton.hpp"
#include "sensitivity.hpp"
#include "small_dense.hpp"

namespace tightrope {

namespace priced {
inline constexpr double REACH = 20.0;           ///< How far a price may move in a step, in units of cost.
inline constexpr double SMALLEST_REACH = 1e-9;  ///< Where φ does not fall, less, down to this.
inline constexpr double SINGULAR = 1e-10;       ///< Of its diagonal, added to S: rows may be equal,
inline constexpr double FLAT = 1e-15;           ///< and that much: or the same for all θ. It is what rounding makes of S.
inline constexpr double ACCURACY = 1e-6;        ///< Of dβ_i by conjugate gradients.
inline constexpr Index MAX_STEPS = 60;          ///< Of an attempt that moves both together.
inline constexpr double LAST = 0.1;             ///< Of the tolerance: what a step with the H before may leave.
}  // namespace priced

/// <A_i, θ> <= b_i at prices up to most_i: A (m, n_tuples), b (m,), most (m,).
struct Rows {
    Index m;
    const double *A, *b, *most;
};

/// The end of a search: φ, flow residual, and the most by which a row's optimality condition is missed.
struct PricedOutcome {
    double phi, residual, missed;
    Index steps;
    bool far;  ///< Weights may have left the range of numbers.
};

/// β and y, and what was found there; prices, bounds and slacks in units of the rows' sizes.
struct PricedPoint {
    std::vector<double> beta, y;
    std::vector<double> slack;  ///< b − A θ
    double phi = INF;
    double residual = INF;  ///< flow residual
    double missed = INF;    ///< max_i |y_i − the y_i + (A θ − b)_i that is cut to 0 .. most_i|
};

template <class Set>
class PricedSearch {
public:
    PricedSearch(const Subproblem& problem, const Rows& rows, const Lanes& lanes, const Set& set, const bool* free,
                 double tolerance, Workspace& work, double* theta, Interrupt& interrupt)
        : space_(problem.space), problem_(problem), rows_(rows), lanes_(lanes), set_(set), tolerance_(tolerance),
          work_(work), theta_(theta), interrupt_(interrupt), size_(rows.m), limit_(rows.m), most_(rows.m),
          cost_(std::max(space_.n_tuples, lanes.n_slots())), dbeta_(rows.m * space_.n_states), S_(rows.m * rows.m),
          rho_(rows.m), dy_(rows.m) {
        for (Index i = 0; i < rows.m; ++i) {
            const Extremes found = extremes(row(i), space_.n_tuples);
            const double largest = max(found.largest, -found.smallest);
            size_[i] = largest > 0.0 ? largest : 1.0;
            limit_[i] = rows.b[i] / size_[i];
            most_[i] = largest > 0.0 ? rows.most[i] * size_[i] : 0.0;  // a row of zeros has no price
        }
        response_.emplace(space_, lanes_, set_, free, work_, rows_.A, size_);
    }

    /// Search from the prices y and the β of the workspace; write θ, or NaN if nothing was found, and the prices.
    PricedOutcome solve(double* y, Index patience) {
        here_.beta = work_.beta;
        here_.y.resize(rows_.m);
        bool warm = false;
        for (Index i = 0; i < rows_.m; ++i) {
            here_.y[i] = min(max(y[i] * size_[i], 0.0), most_[i]);
            warm |= here_.y[i] > 0.0;
        }
        const Index together = min(patience, priced::MAX_STEPS);
        bool found = (warm || settle(here_, tolerance_)) && search(false, together);
        if (!found && patience > together) found = restart() && search(false, together);
        if (!found && patience > together) found = restart() && search(true, patience - together);
        work_.beta = here_.beta;
        if (!found) std::fill(theta_, theta_ + space_.n_tuples, NaN);
        for (Index i = 0; i < rows_.m; ++i) y[i] = here_.y[i] / size_[i];
        const Extremes range = extremes(here_.beta.data(), space_.n_states);
        return {here_.phi, here_.residual, here_.missed, steps_, logarithmic_ || range.largest - range.smallest > RANGE};
    }

private:
    const double* row(Index i) const { return rows_.A + i * space_.n_tuples; }
    double* dbeta(Index i) { return dbeta_.data() + i * space_.n_states; }
    bool met(const PricedPoint& at) const { return at.residual <= tolerance_ && at.missed <= tolerance_; }

    /// Cold: the plain answer, where it exists.
    bool restart() {
        std::fill(work_.beta.begin(), work_.beta.end(), 0.0);
        work_.factor_damping = NaN;
        here_.beta = work_.beta;
        std::fill(here_.y.begin(), here_.y.end(), 0.0);
        return settle(here_, tolerance_);
    }

    /// cost + Σ y_i A_i
    void price(const std::vector<double>& y) {
        work_.pool.each(lanes_.n_layers(), [&](Index k, int) {
            const Tuples tuples(space_, k);
            double* __restrict cost = cost_.data();
            std::copy(problem_.cost + tuples.begin, problem_.cost + tuples.end, cost + tuples.begin);
            for (Index i = 0; i < rows_.m; ++i) {
                if (y[i] == 0.0) continue;
                const double* __restrict A = row(i);
                const double each = y[i] / size_[i];
                for (Index j = tuples.begin; j < tuples.end; ++j) cost[j] += each * A[j];
            }
        });
    }

    Subproblem priced_problem() const { return {space_, problem_.reference, cost_.data()}; }

    /// φ, the slack and what is missed at a point whose F and θ are known.
    void account(PricedPoint& at, Value value) {
        at.slack.resize(rows_.m);
        for (Index i = 0; i < rows_.m; ++i)
            at.slack[i] = limit_[i] - dot_in_blocks(row(i), theta_, space_.n_tuples) / size_[i];
        at.phi = value.F;
        at.residual = value.residual;
        at.missed = 0.0;
        for (Index i = 0; i < rows_.m; ++i) {
            at.phi += limit_[i] * at.y[i];
            const double bound = rows_.most[i] < INF ? most_[i] : INF;
            at.missed = max(abs(at.y[i] - min(max(at.y[i] - at.slack[i], 0.0), bound)), at.missed);
        }
    }

    /// Evaluate at a point: the workspace, θ, and what a point knows.
    void evaluate_at(PricedPoint& at) {
        price(at.y);
        logarithmic_ = tilt(priced_problem(), lanes_, work_, theta_);
        const Value value = evaluate(lanes_, set_, at.beta.data(), logarithmic_, work_);
        if (logarithmic_) kept_u_ = work_.u;
        divide(space_, lanes_, logarithmic_, work_, cost_.data(), theta_);
        if (logarithmic_) work_.u.swap(kept_u_);
        account(at, value);
    }

    /// Move β to the plain answer at the prices of a point; false, and φ is infinite, if it is not found.
    bool settle(PricedPoint& at, double tolerance) {
        price(at.y);
        work_.beta = at.beta;
        const Outcome found = tightrope::solve(priced_problem(), lanes_, set_, tolerance, work_, theta_, interrupt_);
        steps_ += found.steps;
        logarithmic_ = found.far;
        at.phi = INF;
        if (!(found.residual <= tolerance)) return false;
        at.beta = work_.beta;
        account(at, {found.F, found.residual});
        return true;
    }

    /// Newton's method from `here_` on; `centred`: with the plain answer after every step. Whether it arrived.
    bool search(bool centred, Index limit) {
        using namespace newton;
        bool renew = true;
        double damping = 0.0, reach = priced::REACH;
        bool settled = here_.phi < INF;  // then p is divided
        if (!settled) evaluate_at(here_);
        for (; !met(here_); --limit) {
            if (limit == 0 || !(damping < MAX_DAMPING) || reach < priced::SMALLEST_REACH) return false;
            interrupt_.check();
            if (settled) evaluate_at(here_);
            settled = centred;
            ++steps_;
            const bool exact = renew;
            const Step found = joint_step(renew, damping, reach);
            renew = true;
            if (!(found.longest < BELIEVABLE) && !centred) {
                if (exact) damping = max(10.0 * damping, FIRST_DAMPING);
                continue;
            }
            double t = centred ? 1.0 : min(1.0, MAX_MOVE / found.longest);
            bool accepted = false;
            for (int backtrack = 0; backtrack < (exact && !centred ? BACKTRACKS : 1) && !accepted; ++backtrack) {
                t = backtrack > 0 ? 0.5 * t : t;
                accepted = try_step(t, centred) && low_enough(value(there_), value(here_), t, found.slope, damping);
            }
            if (accepted) {
                const double then = value(there_).residual;
                renew = centred || damping > 0.0 || then * then > priced::LAST * tolerance_ * value(here_).residual;
                damping = t < 1.0 || damping > 1e-8 ? 0.1 * damping : 0.0;
                reach = min(2.0 * reach, priced::REACH);  // less than what a refused step takes
                std::swap(here_, there_);
            } else {
                if (exact) damping = centred ? 0.0 : max(10.0 * damping, FIRST_DAMPING), reach *= 0.25;
                if (!centred) evaluate_at(here_);
            }
        }
        return true;
    }

    /// φ, and one residual of both conditions.
    static Value value(const PricedPoint& at) { return {at.phi, at.residual + at.missed}; }

    /// Go to `there_`, a share t of the step; whether there is an answer.
    bool try_step(double t, bool centred) {
        const Index first = lanes_.first_state(1), last = lanes_.first_state(lanes_.n_layers());
        there_.beta = here_.beta;
        there_.y.resize(rows_.m);
        for (Index s = first; s < last; ++s) there_.beta[s] += t * work_.step[s];
        for (Index i = 0; i < rows_.m; ++i)
            there_.y[i] = t == 1.0 ? here_.y[i] + dy_[i] : min(max(here_.y[i] + t * dy_[i], 0.0), most_[i]);
        if (centred) return settle(there_, max(0.1 * tolerance_, 1e-15)) || settle(there_, tolerance_);
        evaluate_at(there_);
        return true;
    }

    /// Write the step in β into the workspace and that in y into dy_; without `renew` by the H, the dβ and the S before.
    Step joint_step(bool renew, double damping, double reach) {
        const Index first = lanes_.first_state(1), last = lanes_.first_state(lanes_.n_layers());
        const bool direct = !work_.panels.empty();
        const double accuracy = max(min(newton::FAR, here_.residual), min(newton::CLOSE, 0.3 * tolerance_ / here_.residual));
        Step found = newton_step(lanes_, set_, {direct, true, renew, damping, accuracy, 0.0}, work_, interrupt_);
        if (!(found.slope <= 0.0)) {  // H is no longer one: hold β
            std::fill(work_.step.begin(), work_.step.end(), 0.0);
            found = {0.0, 0.0};
        }
        if (renew) respond({direct, true, false, damping, priced::ACCURACY, 0.0});
        std::fill(dy_.begin(), dy_.end(), 0.0);
        if (chosen_.empty()) return found;
        for (const Index i : chosen_) {
            rho_[i] = here_.slack[i];
            for (Index s = first; s < last; ++s) rho_[i] += (work_.inflow[s] - work_.outflow[s]) * dbeta(i)[s];
        }
        move_prices(reach);
        found.longest = 0.0;
        for (const Index i : chosen_) {
            for (Index s = first; s < last; ++s) work_.step[s] += dy_[i] * dbeta(i)[s];
            found.slope += rho_[i] * dy_[i];
            found.longest = max(abs(dy_[i]), found.longest);
        }
        for (Index s = first; s < last; ++s) found.longest = max(abs(work_.step[s]), found.longest);
        return found;
    }

    /// Choose the rows that have a price or are exceeded; their dβ and S.
    void respond(const StepChoice& choice) {
        chosen_.clear();
        for (Index i = 0; i < rows_.m; ++i)
            if (most_[i] > 0.0 && (here_.y[i] > 0.0 || here_.slack[i] < 0.0)) chosen_.push_back(i);
        response_->drain(chosen_, theta_, dbeta_.data());
        for (const Index i : chosen_) {
            interrupt_.check();
            keep_if_sound(lanes_, dbeta(i));
            solve_newton(lanes_, set_, choice, work_, dbeta(i), interrupt_);
            keep_if_sound(lanes_, dbeta(i));
        }
        response_->curvature(chosen_, dbeta_.data(), S_.data());
    }

    /// dy: the model's minimum over the box of the prices, no further than `reach` away.
    void move_prices(double reach) {
        const Index n = static_cast<Index>(chosen_.size());
        std::vector<double> model(n * n), r(n), lowest(n), width(n), y(n);
        for (Index a = 0; a < n; ++a) {
            const Index i = chosen_[a];
            lowest[a] = max(here_.y[i] - reach, 0.0);
            width[a] = min(here_.y[i] + reach, most_[i]) - lowest[a];
            for (Index c = 0; c < n; ++c) model[a * n + c] = S_[a * n + c];
            model[a * n + a] = (1.0 + priced::SINGULAR) * max(model[a * n + a], 0.0) + priced::FLAT;
        }
        for (Index a = 0; a < n; ++a) {
            r[a] = -rho_[chosen_[a]];
            for (Index c = 0; c < n; ++c) r[a] += model[a * n + c] * (here_.y[chosen_[c]] - lowest[c]);
        }
        BoxQP(n).solve(model.data(), r.data(), width.data(), y.data());
        for (Index a = 0; a < n; ++a) {
            const Index i = chosen_[a];
            dy_[i] = y[a] == width[a] && !(here_.y[i] + reach < most_[i]) ? most_[i] - here_.y[i]
                                                                          : lowest[a] + y[a] - here_.y[i];
        }
    }

    const Space& space_;
    const Subproblem problem_;
    const Rows rows_;
    const Lanes& lanes_;
    const Set& set_;
    const double tolerance_;
    Workspace& work_;
    double* theta_;
    Interrupt& interrupt_;
    std::vector<double> size_, limit_, most_;  ///< (m,) the largest coefficient of each row, and b and most in its units
    std::optional<Response<Set>> response_;
    std::vector<double> cost_;                 ///< (n_tuples,) cost + Σ y_i A_i; later room for `divide`
    std::vector<double> dbeta_;                ///< (m, n_states) what a chosen row drains, then dβ
    std::vector<double> S_;                    ///< (n, n) of the chosen rows
    std::vector<double> rho_, dy_;             ///< (m,)
    std::vector<double> kept_u_;               ///< by slot, while θ is divided by logarithms
    std::vector<Index> chosen_;                ///< the rows that take part in a step
    PricedPoint here_, there_;
    Index steps_ = 0;
    bool logarithmic_ = false;
};

/// Minimise φ from the prices y and the β, the factor and the thresholds of the workspace; write θ and y.
///
/// `patience` is the number of steps in prices after which it gives up; up to MAX_STEPS nothing is tried twice.
template <class Set>
PricedOutcome solve_priced(const Subproblem& problem, const Rows& rows, const Lanes& lanes, const Set& set,
                           const bool* free, double tolerance, Index patience, Workspace& work, double* y,
                           double* theta, Interrupt& interrupt) {
    return PricedSearch<Set>(problem, rows, lanes, set, free, tolerance, work, theta, interrupt).solve(y, patience);
}

}  // namespace tightrope
