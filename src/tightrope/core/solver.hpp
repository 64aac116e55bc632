// Solves the subproblem again and again on one space, each time from where the last answer was.
#pragma once

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <utility>
#include <variant>

#include "confidence.hpp"
#include "newton.hpp"
#include "priced.hpp"

namespace tightrope {

/// Owns the layout, the confidence set in that layout and the workspace. Vectors are by tuple, pair or state of the space.
class Solver {
public:
    /// `direct`: Newton's steps come from a factor of H; otherwise from conjugate gradients.
    Solver(const Space& space, bool direct) : space_(space), free_(new bool[space.n_pairs]) {
        if (direct) {
            std::vector<Index> sizes;
            for (Index k = 0; k < space.n_layers; ++k) sizes.push_back(space.layer_ptr[k + 1] - space.layer_ptr[k]);
            work_.panels = Panels(std::move(sizes));
        } else if (SparsePattern::fits(space)) {
            pattern_ = std::make_shared<SparsePattern>(space);
        }
        work_.beta.assign(space.n_states, 0.0);
        for (auto& row : thresholds_) row.assign(space.n_pairs, 0.0);
    }

    const Space& space() const { return space_; }
    const bool* free() const { return free_.get(); }
    std::vector<double>& potentials() { return work_.beta; }        ///< β; the next solve starts here.
    const Panels& factor() const { return work_.panels; }
    double factor_damping() const { return work_.factor_damping; }  ///< NaN while there is no factor

    /// What the pair's question left for its next call, (n_pairs,) each.
    const std::vector<double>* thresholds() {
        if (ready())
            for (int row = 0; row < 2; ++row)
                for (Index i = 0; i < lanes_.n_pairs(); ++i) thresholds_[row][lanes_.pair[i]] = work_.thresholds[row][i];
        return thresholds_;
    }

    /// Project on another set; the tuples are laid out anew if other pairs than before are free.
    template <class Data, class... Arrays>
    void use(const bool* free, const Arrays*... arrays) {
        const bool same_free = laid_out_ && std::equal(free, free + space_.n_pairs, free_.get());
        set_ = std::monostate();  // its memory is needed
        if (!same_free) lay_out(free);
        set_.emplace<Data>(space_, lanes_, arrays...);
    }

    bool ready() const { return laid_out_; }
    const Lanes& lanes() const { return lanes_; }
    Workspace& work() { return work_; }

    /// Start cold next time.
    void forget() {
        std::fill(work_.beta.begin(), work_.beta.end(), 0.0);
        for (auto& row : thresholds_) std::fill(row.begin(), row.end(), 0.0);
        for (auto& row : work_.thresholds) std::fill(row.begin(), row.end(), 0.0);
        work_.factor_damping = NaN;
    }

    /// Go on from the state of another solver.
    void restore(const double* potentials, const double* thresholds, const double* factor, double factor_damping) {
        std::copy_n(potentials, space_.n_states, work_.beta.begin());
        std::copy_n(factor, work_.panels.size(), work_.panels.values.begin());
        work_.factor_damping = factor_damping;
        for (int row = 0; row < 2; ++row) std::copy_n(thresholds + row * space_.n_pairs, space_.n_pairs, thresholds_[row].begin());
        if (ready()) scatter_thresholds();
    }

    /// visitor(set), for the set that is in use.
    template <class Visitor>
    void visit(const Visitor& visitor) {
        std::visit(
            [&](auto& data) {
                if constexpr (requires { data.set(); })
                    visitor(data.set());
                else
                    throw std::logic_error("the solver was given no confidence set");
            },
            set_);
    }

    Outcome solve(const double* reference, const double* cost, double tolerance, double* theta, Interrupt& interrupt) {
        Outcome found;
        visit([&](const auto& set) {
            found = tightrope::solve({space_, reference, cost}, lanes_, set, tolerance, work_, theta, interrupt);
        });
        return found;
    }

    /// With rows at prices y, which are where the search starts and then those of the answer.
    PricedOutcome solve_priced(const double* reference, const double* cost, const Rows& rows, double tolerance,
                               Index patience, double* y, double* theta, Interrupt& interrupt) {
        PricedOutcome found;
        visit([&](const auto& set) {
            found = tightrope::solve_priced({space_, reference, cost}, rows, lanes_, set, free_.get(), tolerance, patience,
                                            work_, y, theta, interrupt);
        });
        return found;
    }

private:
    void lay_out(const bool* free) {
        thresholds();
        laid_out_ = false;
        lanes_ = Lanes();  // their memory is needed
        work_.sparse.reset();
        lanes_ = Lanes(space_, free);
        work_.fit(lanes_);
        if (pattern_) work_.sparse = std::make_shared<SparseHessian>(space_, lanes_, pattern_);
        std::copy_n(free, space_.n_pairs, free_.get());
        laid_out_ = true;
        scatter_thresholds();
    }

    void scatter_thresholds() {
        for (int row = 0; row < 2; ++row)
            for (Index i = 0; i < lanes_.n_pairs(); ++i) work_.thresholds[row][i] = thresholds_[row][lanes_.pair[i]];
    }

    const Space& space_;
    bool laid_out_ = false;
    std::unique_ptr<bool[]> free_;  ///< (n_pairs,)
    Lanes lanes_;
    std::variant<std::monostate, L1Data, BoxData, CutBoxData, KLData> set_;
    std::vector<double> thresholds_[2];  ///< by pair of the space, up to date while nothing is laid out
    std::shared_ptr<const SparsePattern> pattern_;  ///< null where H is not assembled sparsely
    Workspace work_;
};

}  // namespace tightrope
