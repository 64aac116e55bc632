// Solver: the projection on a confidence set.
#include <atomic>
#include <numeric>

#include "bindings.hpp"
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
    void require_states(const A& array, const char* name, int axis = 0) const {
        require_size(array, space().n_states, name, axis);
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

    std::tuple<double, double, double, Index, bool> solve_priced(Floats reference, Floats cost, Table A, Floats b,
                                                                 Floats most, double tolerance, Index patience,
                                                                 FloatsOut y, FloatsOut theta) {
        const Index m = static_cast<Index>(A.shape(0));
        require_tuples(reference, "reference");
        require_tuples(cost, "cost");
        require_tuples(A, "A", 1);
        require_size(b, m, "b");
        require_size(most, m, "most");
        require_size(y, m, "y");
        require_tuples(theta, "theta");
        const nb::gil_scoped_release unlocked;
        Turn solver(*this);
        Interrupt interrupt(raise_signals);
        try {
            const PricedOutcome found =
                solver->solve_priced(reference.data(), cost.data(), {m, A.data(), b.data(), most.data()}, tolerance,
                                     patience, y.data(), theta.data(), interrupt);
            return {found.phi, found.residual, found.missed, found.steps, found.far};
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
        require_size(factor, solver->factor().size(), "factor");
        const auto* rows = solver->thresholds();
        for (int row = 0; row < 2; ++row) std::copy(rows[row].begin(), rows[row].end(), thresholds.data() + row * space().n_pairs);
        std::copy_n(solver->factor().values.begin(), solver->factor().size(), factor.data());
    }

    void restore(Floats potentials, Table thresholds, Floats factor, double factor_damping) {
        Turn solver(*this);
        require_states(potentials, "potentials");
        require_size(thresholds, 2, "thresholds");
        require_pairs(thresholds, "thresholds", 1);
        require_size(factor, solver->factor().size(), "factor");
        solver->restore(potentials.data(), thresholds.data(), factor.data(), factor_damping);
    }

    void forget() { Turn(*this)->forget(); }
    Index factor_size() { return Turn(*this)->factor().size(); }
    double factor_damping() { return Turn(*this)->factor_damping(); }

private:
    const nb::object csr_;
    Solver solver_;
    std::atomic<bool> taken_{false};
};

template <class T>
NumpyArray<T> copied(const std::vector<T>& values) {
    T* data = new T[values.size()];
    std::copy(values.begin(), values.end(), data);
    const nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(data, {values.size()}, owner));
}

/// A solver whose parts can be called one by one, and its arrays be read: for tests, and for who wants to look.
class Parts : public BoundSolver {
public:
    using BoundSolver::BoundSolver;

    /// Tilt, and evaluate at β: F and the flow residual. By logarithms if asked to, or if it must.
    std::tuple<double, double> evaluate(Floats reference, Floats cost, Floats beta, bool logarithmic) {
        require_tuples(reference, "reference");
        require_tuples(cost, "cost");
        require_states(beta, "beta");
        Turn solver(*this);
        Workspace& work = solver->work();
        theta_.resize(space().n_tuples);
        Value value{};
        solver->visit([&](const auto& set) {
            const Subproblem problem{space(), reference.data(), cost.data()};
            logarithmic_ = tilt(problem, solver->lanes(), work, theta_.data());
            if (logarithmic && !logarithmic_) {
                logarithmic_ = true;
                for (double& u : work.u) u = log(u);
                for (double& u : theta_) u = log(u);
            }
            value = tightrope::evaluate(solver->lanes(), set, beta.data(), logarithmic_, work);
        });
        return {value.F, value.residual};
    }

    /// θ at the last evaluation; to be asked for once.
    auto divided() {
        Turn solver(*this);
        require_evaluated();
        divide(space(), solver->lanes(), logarithmic_, solver->work(), solver->work().p.data(), theta_.data());
        return copied(theta_);
    }

    /// The panels of H at the last evaluation.
    auto assembled(double damping) {
        Turn solver(*this);
        require_evaluated();
        if (solver->factor().empty()) throw std::logic_error("there are no panels: the solver is not direct");
        solver->visit([&](const auto& set) { assemble(solver->lanes(), set, damping, solver->work()); });
        const Panels& panels = solver->factor();
        return copied(std::vector<double>(panels.values.begin(), panels.values.begin() + panels.size()));
    }

    void find_pivots(double damping) {
        Turn solver(*this);
        require_evaluated();
        sweeps(solver, [&](auto& sweeps) { sweeps.find_pivots(damping); });
    }

    /// sweep_back and sweep_forward from x, which returns x · y.
    double sweep(Floats x, bool back) {
        require_states(x, "x");
        Turn solver(*this);
        require_evaluated();
        double product = 0.0;
        sweeps(solver, [&](auto& sweeps) {
            if (back)
                sweep_back(solver->lanes(), sweeps, solver->work(), x.data());
            else
                product = sweep_forward(solver->lanes(), sweeps, solver->work(), x.data());
        });
        return product;
    }

    /// Overwrite x by (H + damping · diag(inflow + outflow))⁻¹ x, and return the iterations.
    Index conjugate_gradients(double damping, double accuracy, FloatsOut x) {
        require_states(x, "x");
        Turn solver(*this);
        require_evaluated();
        Interrupt interrupt(nullptr);
        Index iterations = 0;
        solver->visit([&](const auto& set) {
            tightrope::find_pivots(solver->lanes(), set, true, damping, solver->work());
            iterations = tightrope::conjugate_gradients(solver->lanes(), set, true, accuracy, solver->work(), x.data(),
                                                        interrupt);
        });
        return iterations;
    }

    /// At the last evaluation, with H damped: what each row of A drains, its dβ, and S; (m, n_states) twice and (m, m).
    void respond(Table A, double damping, TableOut drained, TableOut dbeta, TableOut S) {
        const Index m = static_cast<Index>(A.shape(0)), n_states = space().n_states;
        require_tuples(A, "A", 1);
        for (const auto& [array, name] : {std::pair(drained, "drained"), std::pair(dbeta, "dbeta")}) {
            require_size(array, m, name);
            require_states(array, name, 1);
        }
        require_size(S, m, "S");
        require_size(S, m, "S", 1);
        Turn solver(*this);
        require_evaluated();
        Interrupt interrupt(nullptr);
        solver->visit([&](const auto& set) {
            const Lanes& lanes = solver->lanes();
            Workspace& work = solver->work();
            const bool direct = !work.panels.empty();
            std::vector<double> theta = theta_, room(lanes.n_slots()), sizes(m, 1.0);
            std::vector<Index> rows(m);
            divide(space(), lanes, logarithmic_, work, room.data(), theta.data());
            renew_hessian(lanes, set, direct, true, damping, work);
            Response response(space(), lanes, set, solver->free(), work, A.data(), sizes);
            std::iota(rows.begin(), rows.end(), Index{0});
            response.drain(rows, theta.data(), drained.data());
            std::copy_n(drained.data(), m * n_states, dbeta.data());
            for (const Index i : rows) {
                double* b = dbeta.data() + i * n_states;
                solve_newton(lanes, set, {direct, true, false, damping, 1e-13, 0.0}, work, b, interrupt);
                keep_if_sound(lanes, b);
            }
            response.curvature(rows, dbeta.data(), S.data());
        });
    }

    /// Copies of the arrays of the layout and of the workspace, by name.
    nb::dict arrays() {
        Turn solver(*this);
        const Lanes& lanes = solver->lanes();
        const Workspace& work = solver->work();
        nb::dict found;
        found["layer_chunk"] = copied(lanes.layer_chunk);
        found["chunk_pair"] = copied(lanes.chunk_pair);
        found["chunk_slot"] = copied(lanes.chunk_slot);
        found["aligned"] = copied(lanes.aligned);
        found["origin"] = copied(lanes.origin);
        found["successor"] = copied(lanes.successor);
        found["slot"] = copied(lanes.slot);
        found["pair"] = copied(lanes.pair);
        found["u"] = copied(work.u);
        found["p"] = copied(work.p);
        found["label"] = copied(work.label);
        found["W"] = copied(work.W);
        found["share"] = copied(work.share);
        found["inflow"] = copied(work.inflow);
        found["outflow"] = copied(work.outflow);
        found["C"] = copied(work.C);
        found["D"] = copied(work.D);
        found["t"] = copied(work.t);
        found["y"] = copied(work.y);
        return found;
    }

private:
    /// task(sweeps), for those that suit the model.
    template <class Task>
    void sweeps(Turn& solver, const Task& task) {
        solver->visit([&]<class Set>(const Set& set) {
            if (assembles<Set>(solver->work())) {
                Assembled assembled(solver->lanes(), set, solver->work());
                task(assembled);
            } else {
                MatrixFree free(solver->lanes(), set, solver->work());
                task(free);
            }
        });
    }

    void require_evaluated() const {
        if (theta_.empty()) throw std::logic_error("nothing was evaluated");
    }

    std::vector<double> theta_;
    bool logarithmic_ = false;
};

/// Factorise the block-tridiagonal matrix in these panels, and overwrite x by its solution.
void solve_tridiagonal(Ints sizes, FloatsOut values, FloatsOut x) {
    const std::vector<Index> layers(sizes.data(), sizes.data() + sizes.shape(0));
    const Index most = static_cast<Index>(x.shape(0));
    Index n_states = 0, size = 0;
    for (std::size_t k = 0; k < layers.size(); ++k) {
        const Index onward = k + 1 < layers.size() ? layers[k + 1] : 0;
        if (layers[k] < 1 || layers[k] > most || onward > most)
            throw nb::value_error("sizes must be 1 or more, and fit x");
        n_states += layers[k];
        size += layers[k] * (layers[k] + onward);
    }
    require_size(x, n_states, "x");
    require_size(values, size, "values");
    Panels panels(layers);
    std::copy_n(values.data(), size, panels.values.begin());
    factorise(panels, Pool());
    solve(panels, x.data());
    std::copy_n(panels.values.begin(), size, values.data());
}

}  // namespace

void bind_solver(nb::module_& m) {
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
        .def("solve_priced", &BoundSolver::solve_priced, "reference"_a.noconvert(), "cost"_a.noconvert(),
             "A"_a.noconvert(), "b"_a.noconvert(), "most"_a.noconvert(), "tolerance"_a, "patience"_a,
             "y"_a.noconvert(), "theta"_a.noconvert(),
             "As `solve` with most_i [<A_i, theta> - b_i]_+ added for each row, from the prices y, which become those of\n"
             "the answer; return phi, the flow residual, the most by which a row's condition is missed in units of its\n"
             "largest coefficient, the number of Newton steps and whether weights may have left the range of numbers.")
        .def_prop_ro("potentials", &BoundSolver::potentials, "beta itself, not a copy; the next solve starts here.")
        .def_prop_ro("factor_size", &BoundSolver::factor_size)
        .def_prop_ro("factor_damping", &BoundSolver::factor_damping, "NaN while there is no factor.")
        .def("state", &BoundSolver::state, "thresholds"_a.noconvert(), "factor"_a.noconvert(),
             "Write what the next solve starts from, potentials and factor_damping aside.")
        .def("restore", &BoundSolver::restore, "potentials"_a.noconvert(), "thresholds"_a.noconvert(),
             "factor"_a.noconvert(), "factor_damping"_a, "Go on from the state of another solver.")
        .def("forget", &BoundSolver::forget, "Start cold next time.");

    nb::class_<Parts, BoundSolver>(m, "Parts", "A solver whose parts can be called one by one, for tests.")
        .def(nb::init<nb::object, bool>(), "csr"_a, "direct"_a)
        .def("evaluate", &Parts::evaluate, "reference"_a.noconvert(), "cost"_a.noconvert(), "beta"_a.noconvert(),
             "logarithmic"_a = false, "F and the flow residual at beta.")
        .def("divided", &Parts::divided, "theta at the last evaluation; to be asked for once.")
        .def("assembled", &Parts::assembled, "damping"_a, "The panels of H at the last evaluation.")
        .def("find_pivots", &Parts::find_pivots, "damping"_a, "C and D of conjugate.hpp.")
        .def("sweep", &Parts::sweep, "x"_a.noconvert(), "back"_a, "A sweep back, or forward: then x · y is returned.")
        .def("conjugate_gradients", &Parts::conjugate_gradients, "damping"_a, "accuracy"_a, "x"_a.noconvert(),
             "Overwrite x by (H + damping diag(inflow + outflow))^-1 x, and return the iterations.")
        .def("respond", &Parts::respond, "A"_a.noconvert(), "damping"_a, "drained"_a.noconvert(), "dbeta"_a.noconvert(),
             "S"_a.noconvert(), "Write what the rows of A drain at the last evaluation, dβ and S (`sensitivity.hpp`).")
        .def("arrays", &Parts::arrays, "Copies of the arrays of the layout and of the workspace, by name.");
    m.def("solve_tridiagonal", solve_tridiagonal, "sizes"_a.noconvert(), "values"_a.noconvert(), "x"_a.noconvert(),
          "Overwrite the panels of a block-tridiagonal matrix by their factor, and x by the solution.");
}

}  // namespace tightrope
