// What learners compute besides their subproblem.
#include "advantages.hpp"
#include "bindings.hpp"
#include "bonus_values.hpp"
#include "lower_means.hpp"
#include "mix_gap.hpp"
#include "played.hpp"
#include "policies.hpp"
#include "primal_dual.hpp"
#include "upper_occupancy.hpp"

namespace tightrope {

namespace {

template <class Count>
using Counts = Array<const Count, 1>;

template <class A>
Index size(const A& array, int axis = 0) {
    return static_cast<Index>(array.shape(axis));
}

/// Raise ValueError unless the table has this shape.
template <class A>
void require_shape(const A& table, Index rows, Index columns, const char* name) {
    require_size(table, rows, name, 0);
    require_size(table, columns, name, 1);
}

// ------------------------------------------------------------------------------------------------ primal_dual.hpp

auto weigh_(double V, Floats f, Floats Q, Table g, double alpha) {
    const Index n = size(f), n_constraints = size(Q);
    require_shape(g, n_constraints, n, "g");
    New<double> psi(n);
    unlocked([&] { weigh(V, f.data(), Q.data(), g.data(), n_constraints, alpha, n, psi.data); });
    return psi.array;
}

auto mix_(const Csr& csr, Floats theta, double lambda) {
    const Space& space = csr;
    require_size(theta, space.n_tuples, "theta");
    New<double> reference(space.n_tuples);
    unlocked([&] { mix(space, theta.data(), lambda, reference.data); });
    return reference.array;
}

auto mix_pairs_(const Csr& csr, Floats theta, double lambda, Floats even) {
    const Space& space = csr;
    require_size(theta, space.n_tuples, "theta");
    require_size(even, space.n_pairs, "even");
    New<double> reference(space.n_tuples);
    unlocked([&] { mix_pairs(space, theta.data(), lambda, even.data(), reference.data); });
    return reference.array;
}

auto lift_(const Csr& csr, Floats theta, double floor) {
    const Space& space = csr;
    require_size(theta, space.n_tuples, "theta");
    New<double> reference(space.n_tuples);
    unlocked([&] { lift(space, theta.data(), floor, reference.data); });
    return reference.array;
}

auto average_(Table mean, Table x, double t) {
    const Index rows = size(mean), columns = size(mean, 1);
    require_shape(x, rows, columns, "x");
    if (unlocked([&] { return t > 1.0 && equal(mean.data(), x.data(), rows * columns); }))
        return NumpyArray<double>(nb::cast(mean));
    New<double> out(rows, columns);
    unlocked([&] { average(mean.data(), x.data(), t, rows * columns, out.data); });
    return out.array;
}

auto dual_step_(Floats Q, Table g, Floats theta, Floats c) {
    const Index n = size(theta), n_constraints = size(Q);
    require_shape(g, n_constraints, n, "g");
    require_size(c, n_constraints, "c");
    New<double> ahead(n_constraints);
    unlocked([&] { dual_step(Q.data(), g.data(), theta.data(), c.data(), n_constraints, n, ahead.data); });
    return ahead.array;
}

// ----------------------------------------------------------------------------------------------------- played.hpp

template <class Count>
Belief<Count> belief_of(const Space& space, const Counts<Count>& N, const Counts<Count>& M, const Floats& theta) {
    require_size(N, space.n_pairs, "N");
    require_size(M, space.n_tuples, "M");
    require_size(theta, space.n_tuples, "theta");
    return {space, N.data(), M.data(), theta.data()};
}

template <class Count>
auto believe_(const Csr& csr, Counts<Count> N, Counts<Count> M, Floats theta) {
    const Space& space = csr;
    const auto belief = belief_of(space, N, M, theta);
    New<double> P(space.n_tuples);
    unlocked([&] {
        for (Index i = 0; i < space.n_pairs; ++i) belief.row(i, P.data + space.pair_ptr[i]);
    });
    return P.array;
}

template <class Count>
auto uses_(const Csr& csr, Floats pi, Counts<Count> N, Counts<Count> M, Floats theta, Table g) {
    const Space& space = csr;
    const auto belief = belief_of(space, N, M, theta);
    const Index n = size(g);
    require_size(pi, space.n_pairs, "pi");
    require_size(g, space.n_tuples, "g", 1);
    New<double> use(n);
    unlocked([&] {
        std::vector<double> d(space.n_states);
        uses(belief, pi.data(), g.data(), n, d.data(), use.data);
    });
    return use.array;
}

template <class Count>
auto assess_(const Csr& csr, Floats pi, Counts<Count> N, Counts<Count> M, Floats theta, Floats loss, TableOut costs,
                  double realism, Floats limits) {
    const Space& space = csr;
    const auto belief = belief_of(space, N, M, theta);
    const Index n = size(limits);
    require_size(pi, space.n_pairs, "pi");
    require_size(loss, space.n_tuples, "loss");
    require_shape(costs, n, space.n_tuples, "costs");
    New<double> over(n), b(n), A(n, n), spans(n);
    unlocked([&] {
        std::vector<double> d(space.n_states);
        uses(belief, pi.data(), costs.data(), n, d.data(), over.data);
        Responses(belief, pi.data(), loss.data(), costs.data(), n, realism, d.data())(b.data, A.data);
        for (Index i = 0; i < n; ++i) {
            double* const cost = costs.data() + i * space.n_tuples;
            over.data[i] -= limits.data()[i];
            A.data[i * n + i] += LEAST_RESPONSE;
            spans.data[i] = from_least(space, cost, cost).largest;
        }
    });
    return results(over.array, b.array, A.array, spans.array);
}

// ------------------------------------------------------------------------------------------------- advantages.hpp

template <class Count>
auto advantages_(const Csr& csr, Floats pi, Counts<Count> N, Counts<Count> M, Floats theta, TableOut g, double optimism,
                 Ints steps) {
    const Space& space = csr;
    auto belief = belief_of(space, N, M, theta);
    belief.D = 1.0;
    const Index n = size(g);
    require_size(pi, space.n_pairs, "pi");
    require_size(g, space.n_tuples, "g", 1);
    require_indices(steps, space.n_tuples, "steps");
    std::vector<std::int64_t> sorted(steps.data(), steps.data() + size(steps));
    std::sort(sorted.begin(), sorted.end());
    New<double> use(n), surprise(n);
    unlocked([&] {
        std::vector<double> d(space.n_states);
        uses(belief, pi.data(), g.data(), n, d.data(), use.data);
        Advantages(belief, pi.data(), n, optimism, std::move(sorted))(g.data(), surprise.data);
    });
    return results(use.array, surprise.array);
}

double mix_gap_(const Csr& csr, Floats theta, Floats x, double eta) {
    const Space& space = csr;
    require_size(theta, space.n_tuples, "theta");
    require_size(x, space.n_tuples, "x");
    return unlocked([&] { return mix_gap(space, theta.data(), x.data(), eta); });
}

auto from_least_(const Csr& csr, Floats f) {
    const Space& space = csr;
    require_size(f, space.n_tuples, "f");
    New<double> out(space.n_tuples);
    unlocked([&] { from_least(space, f.data(), out.data); });
    return out.array;
}

double span_(const Csr& csr, Floats f) {
    const Space& space = csr;
    require_size(f, space.n_tuples, "f");
    return unlocked([&] { return span(space, f.data()); });
}

auto in_spans_(const Csr& csr, TableOut g, Floats budgets) {
    const Space& space = csr;
    const Index n = size(budgets);
    require_shape(g, n, space.n_tuples, "g");
    New<double> limits(n), units(n);
    unlocked([&] {
        for (Index i = 0; i < n; ++i) {
            const auto [limit, unit] = in_span(space, budgets.data()[i], g.data() + i * space.n_tuples);
            limits.data[i] = limit;
            units.data[i] = unit;
        }
    });
    return results(limits.array, units.array);
}

// --------------------------------------------------------------------------------------------------- policies.hpp

template <class Count>
auto evaluate_(const Csr& csr, Floats pi, Counts<Count> M, Counts<Count> n, Table R) {
    const Space& space = csr;
    const Index rows = size(R);
    require_size(pi, space.n_pairs, "pi");
    require_size(M, space.n_tuples, "M");
    require_size(n, space.n_pairs, "n");
    require_size(R, space.n_pairs, "R", 1);
    New<double> V(rows, space.n_states), Q(rows, space.n_pairs);
    unlocked([&] {
        for (Index h = 0; h < rows; ++h)
            evaluate(space, pi.data(), M.data(), n.data(), R.data() + h * space.n_pairs, V.data + h * space.n_states,
                     Q.data + h * space.n_pairs);
    });
    return results(V.array, Q.array);
}

auto mirror_step_(const Csr& csr, Floats pi, Floats q, double step) {
    const Space& space = csr;
    require_size(pi, space.n_pairs, "pi");
    require_size(q, space.n_pairs, "q");
    New<double> out(space.n_pairs);
    unlocked([&] { mirror_step(space, pi.data(), q.data(), step, out.data); });
    return out.array;
}

auto regularised_values_(const Csr& csr, Floats pi, Floats P, Table R, Floats tau) {
    const Space& space = csr;
    const Index rows = size(R);
    require_size(pi, space.n_pairs, "pi");
    require_size(P, space.n_tuples, "P");
    require_size(R, space.n_pairs, "R", 1);
    require_size(tau, rows, "tau");
    New<double> V(rows, space.n_states), Q(rows, space.n_pairs);
    unlocked([&] {
        for (Index h = 0; h < rows; ++h)
            regularised_values(space, pi.data(), P.data(), R.data() + h * space.n_pairs, tau.data()[h],
                               V.data + h * space.n_states, Q.data + h * space.n_pairs);
    });
    return results(V.array, Q.array);
}

auto regularised_step_(const Csr& csr, Floats pi, Floats q, double step, double tau) {
    const Space& space = csr;
    require_size(pi, space.n_pairs, "pi");
    require_size(q, space.n_pairs, "q");
    New<double> out(space.n_pairs);
    unlocked([&] { regularised_step(space, pi.data(), q.data(), step, tau, out.data); });
    return out.array;
}

// ----------------------------------------------- bonus_values.hpp, lower_means.hpp, upper_occupancy.hpp

auto bonus_values_(const Csr& csr, Ints n_losses, Ints N, Ints M, Floats total_loss, double iota, double rare,
                        double scale, Floats before) {
    const Space& space = csr;
    require_size(n_losses, space.n_pairs, "n_losses");
    require_size(N, space.n_pairs, "N");
    require_size(M, space.n_tuples, "M");
    require_size(total_loss, space.n_pairs, "total_loss");
    require_size(before, space.n_pairs, "before");
    New<double> Q(space.n_pairs);
    New<std::int64_t> best(space.last_state());
    unlocked([&] {
        std::copy(before.data(), before.data() + space.n_pairs, Q.data);
        const Visits seen{n_losses.data(), N.data(), M.data(), total_loss.data()};
        bonus_values(space, seen, iota, rare, scale, Q.data, best.data);
    });
    return results(Q.array, best.array);
}

auto lower_means_(Ints n, Table total, Table V, double log_inverse, double scale) {
    static const Rates rates;
    const Index rows = size(total), columns = size(n);
    require_size(total, columns, "total", 1);
    require_shape(V, rows, columns, "V");
    New<double> lower(rows, columns);
    unlocked([&] {
        for (Index k = 0; k < rows * columns; ++k)
            lower.data[k] = lower_mean(rates, static_cast<double>(n.data()[k % columns]), total.data()[k], V.data()[k],
                                       log_inverse, scale);
    });
    return lower.array;
}

auto upper_occupancy_(const Csr& csr, Floats pi, Floats lower, Floats upper, Ints path) {
    const Space& space = csr;
    require_size(pi, space.n_pairs, "pi");
    require_size(lower, space.n_tuples, "lower");
    require_size(upper, space.n_tuples, "upper");
    require_size(path, space.n_layers, "path");
    require_indices(path, space.n_tuples, "path");
    New<double> u(space.n_layers);
    unlocked([&] { upper_occupancy(space, pi.data(), lower.data(), upper.data(), path.data(), u.data); });
    return u.array;
}

/// Functions of counts, which are whole numbers, or weights that stand for them.
template <class Count>
void bind_counted(nb::module_& m) {
    m.def("believe", believe_<Count>, "csr"_a, "N"_a.noconvert(), "M"_a.noconvert(), "theta"_a.noconvert(),
          "The model (n_tuples,) that is believed after the counts N and M, and by theta where little was counted.");
    m.def("uses", uses_<Count>, "csr"_a, "pi"_a.noconvert(), "N"_a.noconvert(), "M"_a.noconvert(), "theta"_a.noconvert(),
          "g"_a.noconvert(), "What the policy uses (I,) of each constraint g under the model that is believed.");
    m.def("assess", assess_<Count>, "csr"_a, "pi"_a.noconvert(), "N"_a.noconvert(), "M"_a.noconvert(),
          "theta"_a.noconvert(), "loss"_a.noconvert(), "costs"_a.noconvert(), "realism"_a, "limits"_a.noconvert(),
          "By how much the policy is over each limit (I,) under the model that is believed, its responses b (I,) and A "
          "(I, I), and the spans (I,) of what is charged, which replaces the costs.");
    m.def("advantages", advantages_<Count>, "csr"_a, "pi"_a.noconvert(), "N"_a.noconvert(), "M"_a.noconvert(),
          "theta"_a.noconvert(), "g"_a.noconvert(), "optimism"_a, "steps"_a.noconvert(),
          "What the policy uses (I,) under the model that is believed, and what paths through these tuples, in any order, "
          "used more than that (I,); the rows A of its advantages replace g.");
    m.def("evaluate", evaluate_<Count>, "csr"_a, "pi"_a.noconvert(), "M"_a.noconvert(), "n"_a.noconvert(),
          "R"_a.noconvert(), "V (rows, n_states) and Q (rows, n_pairs) of the policy for every row of R, truncated.");
}

}  // namespace

void bind_learners(nb::module_& m) {
    m.attr("SMALLEST") = SMALLEST;
    m.def("weigh", weigh_, "V"_a, "f"_a.noconvert(), "Q"_a.noconvert(), "g"_a.noconvert(), "alpha"_a,
          "(V f + the sum of Q_i g_i) / alpha.");
    m.def("mix", mix_, "csr"_a, "theta"_a.noconvert(), "lam"_a, "(1 - lam) theta + lam uniform on every layer.");
    m.def("mix_pairs", mix_pairs_, "csr"_a, "theta"_a.noconvert(), "lam"_a, "even"_a.noconvert(),
          "(1 - lam) theta + lam even, of which every successor of pair i has even[i].");
    m.def("lift", lift_, "csr"_a, "theta"_a.noconvert(), "floor"_a,
          "theta with at least `floor` of its layer in every state and of its state in every tuple.");
    m.def("average", average_, "mean"_a.noconvert(), "x"_a.noconvert(), "t"_a,
          "mean + (x - mean) / t, (I, n_tuples): the mean of t draws, of which x is the last; `mean` itself if x is equal.");
    m.def("dual_step", dual_step_, "Q"_a.noconvert(), "g"_a.noconvert(), "theta"_a.noconvert(), "c"_a.noconvert(),
          "max(Q_i + <g_i, theta> - c_i, 0) for every i.");
    bind_counted<std::int64_t>(m);
    bind_counted<double>(m);
    m.def("mix_gap", mix_gap_, "csr"_a, "theta"_a.noconvert(), "x"_a.noconvert(), "eta"_a,
          "Σ over layers of <θ, x> + log(Σ θ e^{−η x}) / η.");
    m.def("from_least", from_least_, "csr"_a, "f"_a.noconvert(), "f - the least f of the layer.");
    m.def("span", span_, "csr"_a, "f"_a.noconvert(), "The largest span of f within a layer.");
    m.def("in_spans", in_spans_, "csr"_a, "g"_a.noconvert(), "budgets"_a.noconvert(),
          "Replace g by its distance from the least of each layer, in shares of its span; return the budgets in these "
          "units, and the units.");
    m.def("mirror_step", mirror_step_, "csr"_a, "pi"_a.noconvert(), "q"_a.noconvert(), "step"_a,
          "The policy proportional to pi exp(-step q) in every state.");
    m.def("regularised_values", regularised_values_, "csr"_a, "pi"_a.noconvert(), "P"_a.noconvert(), "R"_a.noconvert(),
          "tau"_a.noconvert(), "V (rows, n_states) and Q (rows, n_pairs) with entropy tau, for every row of R.");
    m.def("regularised_step", regularised_step_, "csr"_a, "pi"_a.noconvert(), "q"_a.noconvert(), "step"_a, "tau"_a,
          "The policy proportional to pi^(1 - step tau) exp(step q) in every state.");
    m.def("bonus_values", bonus_values_, "csr"_a, "n_losses"_a.noconvert(), "N"_a.noconvert(), "M"_a.noconvert(),
          "total_loss"_a.noconvert(), "iota"_a, "rare"_a, "scale"_a, "before"_a.noconvert(),
          "Optimistic values Q (n_pairs,), given those before, and the best pair of every state.");
    m.def("lower_means", lower_means_, "n"_a.noconvert(), "total"_a.noconvert(), "V"_a.noconvert(), "log_inverse"_a,
          "scale"_a, "Lower bounds (I, n_pairs) on means, given counts n, sums and spreads V.");
    m.def("upper_occupancy", upper_occupancy_, "csr"_a, "pi"_a.noconvert(), "lower"_a.noconvert(), "upper"_a.noconvert(),
          "path"_a.noconvert(), "The largest probability (L,) of passing each pair of the path under a model of the box.");
}

}  // namespace tightrope
