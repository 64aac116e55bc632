// Solver: the projection on a confidence set.
#include <atomic>

#include "bindings.hpp"
#include "prices.hpp"
#include "solver.hpp"

namespace tightrope {

namespace {

using Flags = Array<const bool, 1>;

/// Raise what a signal handler raised: KeyboardInterrupt, as a rule.
void raise_signals() {
    const nb::gil_scoped_acquire locked;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

/// A solver as Python holds it: with the space that it reads, and one call at a time.
class BoundSolver {
public:
    BoundSolver(const nb::object& csr, bool direct) : csr_(csr), solver_(nb::cast<const Csr&>(csr), direct) {}

    /// Raise RuntimeError where another thread is in a call already.
    class Turn {
    public:
        explicit Turn(BoundSolver& solver) : solver_(solver) {
            if (solver.taken_.exchange(true)) throw std::runtime_error("the solver is in use by another thread");
        }
        ~Turn() { solver_.taken_ = false; }
        Solver* operator->() { return &solver_.solver_; }

    private:
        BoundSolver& solver_;
    };

    const Space& space() const { return solver_.space(); }

    template <class A>
    void require_tuples(const A& array, const char* name, int axis = 0) const {
        require_size(array, space().n_tuples, name, axis);
    }

    template <class A>
    void require_pairs(const A& array, const char* name, int axis = 0) const {
        require_size(array, space().n_pairs, name, axis);
    }

    void set_l1(Floats center, Floats radius, Flags free) {
        require_tuples(center, "center");
        require_pairs(radius, "radius");
        require_pairs(free, "free");
        const nb::gil_scoped_release unlocked;
        Turn(*this)->use<L1Data>(free.data(), center.data(), radius.data());
    }

    void set_box(Floats lower, Floats upper, Flags free) {
        require_tuples(lower, "lower");
        require_tuples(upper, "upper");
        require_pairs(free, "free");
        const nb::gil_scoped_release unlocked;
        Turn(*this)->use<BoxData>(free.data(), lower.data(), upper.data());
    }

    void set_cut_box(Floats lower, Floats upper, Floats center, Floats radius, Flags free) {
        require_tuples(lower, "lower");
        require_tuples(upper, "upper");
        require_tuples(center, "center");
        require_pairs(radius, "radius");
        require_pairs(free, "free");
        const nb::gil_scoped_release unlocked;
        Turn(*this)->use<CutBoxData>(free.data(), lower.data(), upper.data(), center.data(), radius.data());
    }

    void set_kl(Floats center, Floats radius, Flags free) {
        require_tuples(center, "center");
        require_pairs(radius, "radius");
        require_pairs(free, "free");
        const nb::gil_scoped_release unlocked;
        Turn(*this)->use<KLData>(free.data(), free.data(), center.data(), radius.data());
    }

    std::tuple<double, double, Index, bool> solve(Floats reference, Floats cost, double tolerance, FloatsOut theta) {
        require_tuples(reference, "reference");
        require_tuples(cost, "cost");
        require_tuples(theta, "theta");
        const nb::gil_scoped_release unlocked;
        Turn solver(*this);
        Interrupt interrupt(raise_signals);
        try {
            const Outcome found = solver->solve(reference.data(), cost.data(), tolerance, theta.data(), interrupt);
            return {found.F, found.residual, found.steps, found.far};
        } catch (...) {
            solver->forget();
            throw;
        }
    }

    void sensitivities(Floats reference, Floats cost, Table A, Floats theta, TableOut dbeta, TableOut dtheta) {
        const Index m = static_cast<Index>(A.shape(0));
        require_tuples(reference, "reference");
        require_tuples(cost, "cost");
        require_tuples(A, "A", 1);
        require_tuples(theta, "theta");
        require_size(dbeta, m, "dbeta");
        require_size(dbeta, space().n_states, "dbeta", 1);
        require_size(dtheta, m, "dtheta");
        require_tuples(dtheta, "dtheta", 1);
        const nb::gil_scoped_release unlocked;
        Turn solver(*this);
        Interrupt interrupt(raise_signals);
        try {
            solver->sensitivities(reference.data(), cost.data(), A.data(), m, theta.data(), dbeta.data(), dtheta.data(),
                                  interrupt);
        } catch (...) {
            solver->forget();
            throw;
        }
    }

    /// β itself, not a copy.
    nb::ndarray<nb::numpy, double, nb::ndim<1>> potentials() {
        auto& beta = Turn(*this)->potentials();
        return {beta.data(), {beta.size()}, nb::find(this)};
    }

    /// Write the thresholds (2, n_pairs) and the factor into arrays of the caller.
    void state(TableOut thresholds, FloatsOut factor) {
        require_size(thresholds, 2, "thresholds");
        require_pairs(thresholds, "thresholds", 1);
        Turn solver(*this);
        require_size(factor, static_cast<Index>(solver->factor().size()), "factor");
        const auto* rows = solver->thresholds();
        for (int row = 0; row < 2; ++row) std::copy(rows[row].begin(), rows[row].end(), thresholds.data() + row * space().n_pairs);
        std::copy(solver->factor().begin(), solver->factor().end(), factor.data());
    }

    void restore(Floats potentials, Table thresholds, Floats factor, double factor_damping) {
        Turn solver(*this);
        require_size(potentials, space().n_states, "potentials");
        require_size(thresholds, 2, "thresholds");
        require_pairs(thresholds, "thresholds", 1);
        require_size(factor, static_cast<Index>(solver->factor().size()), "factor");
        solver->restore(potentials.data(), thresholds.data(), factor.data(), factor_damping);
    }

    void forget() { Turn(*this)->forget(); }
    Index factor_size() { return static_cast<Index>(Turn(*this)->factor().size()); }
    double factor_damping() { return Turn(*this)->factor_damping(); }

private:
    const nb::object csr_;
    Solver solver_;
    std::atomic<bool> taken_{false};
};

/// y, which has as many entries as r; S is square.
void least_prices(Table S, Floats r, FloatsOut y) {
    const Index m = static_cast<Index>(r.shape(0));
    require_size(S, m, "S");
    require_size(S, m, "S", 1);
    require_size(y, m, "y");
    const LeastPrices found(S.data(), r.data(), m);
    std::copy(found.y().begin(), found.y().end(), y.data());
}

}  // namespace

void bind_solver(nb::module_& m) {
    m.def("least_prices", least_prices, "S"_a.noconvert(), "r"_a.noconvert(), "y"_a.noconvert(),
          "Write the argmin over y >= 0 of <y, S y> / 2 - <r, y>; S is symmetric, positive definite but for rounding.");
    nb::class_<BoundSolver>(m, "Solver", "Projects on a confidence set again and again, from where the last answer was.")
        .def(nb::init<nb::object, bool>(), "csr"_a, "direct"_a,
             "direct: Newton's steps come from a factor of H; otherwise from conjugate gradients.")
        .def("set_l1", &BoundSolver::set_l1, "center"_a.noconvert(), "radius"_a.noconvert(), "free"_a.noconvert(),
             "Project on L1 balls from now on; free says which pairs may have any conditional.")
        .def("set_box", &BoundSolver::set_box, "lower"_a.noconvert(), "upper"_a.noconvert(), "free"_a.noconvert(),
             "Project on boxes from now on.")
        .def("set_cut_box", &BoundSolver::set_cut_box, "lower"_a.noconvert(), "upper"_a.noconvert(),
             "center"_a.noconvert(), "radius"_a.noconvert(), "free"_a.noconvert(),
             "Project on boxes that are cut by L1 balls from now on.")
        .def("set_kl", &BoundSolver::set_kl, "center"_a.noconvert(), "radius"_a.noconvert(), "free"_a.noconvert(),
             "Project on KL balls from now on.")
        .def("solve", &BoundSolver::solve, "reference"_a.noconvert(), "cost"_a.noconvert(), "tolerance"_a,
             "theta"_a.noconvert(),
             "Write the answer into theta, NaN if there is none; return F, the flow residual, the number of Newton steps\n"
             "and whether weights may have left the range of numbers. An interrupted solver starts cold next time.")
        .def("sensitivities", &BoundSolver::sensitivities, "reference"_a.noconvert(), "cost"_a.noconvert(),
             "A"_a.noconvert(), "theta"_a.noconvert(), "dbeta"_a.noconvert(), "dtheta"_a.noconvert(),
             "Write how potentials and answer move as the cost moves along each row of A.")
        .def_prop_ro("potentials", &BoundSolver::potentials, "beta itself, not a copy; the next solve starts here.")
        .def_prop_ro("factor_size", &BoundSolver::factor_size)
        .def_prop_ro("factor_damping", &BoundSolver::factor_damping, "NaN while there is no factor.")
        .def("state", &BoundSolver::state, "thresholds"_a.noconvert(), "factor"_a.noconvert(),
             "Write what the next solve starts from, potentials and factor_damping aside.")
        .def("restore", &BoundSolver::restore, "potentials"_a.noconvert(), "thresholds"_a.noconvert(),
             "factor"_a.noconvert(), "factor_damping"_a, "Go on from the state of another solver.")
        .def("forget", &BoundSolver::forget, "Start cold next time.");
}

}  // namespace tightrope
