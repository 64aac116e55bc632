// Dynamic programming, the linear program over policies and models, and the Euclidean projection.
#include <nanobind/stl/optional.h>

#include "bindings.hpp"
#include "euclidean.hpp"
#include "extended_lp.hpp"
#include "planning.hpp"

namespace tightrope {

namespace {

/// Raise ValueError unless best[s] is a pair of state s, for every state but the last.
void require_actions(const Space& space, const Ints& best) {
    require_size(best, space.last_state(), "best");
    for (Index s = 0; s < space.last_state(); ++s)
        if (best.data()[s] < space.state_ptr[s] || best.data()[s] >= space.state_ptr[s + 1])
            throw nb::value_error(("best[" + std::to_string(s) + "] is not a pair of that state").c_str());
}

void require_box(const Space& space, const Floats& lower, const Floats& upper) {
    require_size(lower, space.n_tuples, "lower");
    require_size(upper, space.n_tuples, "upper");
}

auto best_actions(const Csr& csr, Floats P, Floats cost) {
    const Space& space = csr;
    require_size(P, space.n_tuples, "P");
    require_size(cost, space.n_tuples, "cost");
    New<double> V(space.n_states);
    New<std::int64_t> best(space.last_state());
    unlocked([&] { backward(space, KnownModel(space, P.data(), cost.data()), Least{best.data}, V.data); });
    return results(V.array, best.array);
}

auto extended_values(const Csr& csr, Floats center, Floats radius, Floats cost) {
    const Space& space = csr;
    require_size(center, space.n_tuples, "center");
    require_size(radius, space.n_pairs, "radius");
    require_size(cost, space.n_tuples, "cost");
    New<double> V(space.n_states);
    New<std::int64_t> best(space.last_state());
    unlocked([&] {
        std::vector<double> p(space.n_tuples);
        BestIn<InBall> q(space, {center.data(), radius.data()}, -1.0, cost.data(), p.data());
        backward(space, q, Least{best.data}, V.data);
    });
    return results(V.array, best.array);
}

/// V and p, and best if there is no policy.
template <class Set>
auto largest_values_in(const Space& space, Set set, Floats cost, std::optional<Floats> pi) {
    require_size(cost, space.n_tuples, "cost");
    if (pi) require_size(*pi, space.n_pairs, "pi");
    New<double> V(space.n_states), p(space.n_tuples);
    New<std::int64_t> best(pi ? 0 : space.last_state());
    unlocked([&] {
        BestIn<Set> q(space, set, 1.0, cost.data(), p.data);
        if (pi)
            backward(space, q, Mean{pi->data()}, V.data);
        else
            backward(space, q, Largest{best.data}, V.data);
    });
    return results(V.array, best.array, p.array);
}

auto largest_values(const Csr& csr, bool curved, Floats lower, Floats upper, Floats center, Floats radius, Floats cost,
                    std::optional<Floats> pi) {
    const Space& space = csr;
    require_box(space, lower, upper);
    require_size(center, space.n_tuples, "center");
    require_size(radius, space.n_pairs, "radius");
    if (curved) return largest_values_in(space, InKLBall{center.data(), radius.data()}, cost, pi);
    return largest_values_in(space, InCutBall{lower.data(), upper.data(), center.data(), radius.data()}, cost, pi);
}

auto optimistic_actions(const Csr& csr, Floats lower, Floats upper, Floats cost) {
    const Space& space = csr;
    require_box(space, lower, upper);
    require_size(cost, space.n_pairs, "cost");
    New<double> V(space.n_states), p(space.n_tuples);
    New<std::int64_t> best(space.last_state());
    unlocked([&] {
        BestInBox q(space, lower.data(), upper.data(), -1.0, cost.data(), p.data);
        backward(space, q, Least{best.data}, V.data);
    });
    return results(V.array, best.array, p.array);
}

auto dearest_values(const Csr& csr, Floats lower, Floats upper, Floats pi, Floats cost) {
    const Space& space = csr;
    require_box(space, lower, upper);
    require_size(pi, space.n_pairs, "pi");
    require_size(cost, space.n_pairs, "cost");
    New<double> V(space.n_states);
    unlocked([&] {
        BestInBox q(space, lower.data(), upper.data(), 1.0, cost.data(), nullptr);
        backward(space, q, Mean{pi.data()}, V.data);
    });
    return V.array;
}

auto visits_of(const Csr& csr, Ints best, Floats p) {
    const Space& space = csr;
    require_actions(space, best);
    require_size(p, space.n_tuples, "p");
    New<double> x(space.n_pairs);
    unlocked([&] {
        std::vector<double> d(space.n_states);
        visits(space, best.data(), p.data(), d.data(), x.data);
    });
    return x.array;
}

auto best_mixture(const Csr& csr, Floats lower, Floats upper, Floats c, Table D, Floats alpha, double tolerance,
                  Index max_pivots) {
    const Space& space = csr;
    const Index n_rows = static_cast<Index>(alpha.shape(0));
    require_box(space, lower, upper);
    require_size(c, space.n_pairs, "c");
    require_size(D, n_rows, "D", 0);
    require_size(D, space.n_pairs, "D", 1);
    New<double> multipliers(n_rows), x(space.n_pairs);
    const bool over = unlocked([&] {
        ExtendedLP program(space, lower.data(), upper.data(), c.data(), D.data(), alpha.data(), n_rows);
        return program.solve(tolerance, max_pivots, multipliers.data, x.data);
    });
    return results(over, multipliers.array, x.array);
}

auto euclidean_point_of(const Csr& csr, Floats P, Floats y, Floats beta) {
    const Space& space = csr;
    require_size(P, space.n_tuples, "P");
    require_size(y, space.n_pairs, "y");
    require_size(beta, space.n_states, "beta");
    New<double> x(space.n_pairs), residual(space.n_states);
    const EuclideanPoint point =
        unlocked([&] { return euclidean_point(space, P.data(), y.data(), beta.data(), x.data, residual.data); });
    return results(x.array, residual.array, point.residual_norm, point.value);
}

auto euclidean_step_of(const Csr& csr, Floats P, Floats x, Floats residual, double mu) {
    const Space& space = csr;
    require_size(P, space.n_tuples, "P");
    require_size(x, space.n_pairs, "x");
    require_size(residual, space.n_states, "residual");
    New<double> step(space.n_states);
    unlocked([&] { euclidean_step(space, P.data(), x.data(), residual.data(), mu, step.data); });
    return step.array;
}

}  // namespace

void bind_planning(nb::module_& m) {
    m.def("best_actions", best_actions, "space"_a, "P"_a.noconvert(), "cost"_a.noconvert(),
          "V(s) = min_a sum_s' P(s'|s,a) (cost(s,a,s') + V(s')), V = 0 at the last state.\n\n"
          "Returns V (n_states,) and best (n_states - 1,), the first pair of each state that attains the minimum.");
    m.def("extended_values", extended_values, "space"_a, "center"_a.noconvert(), "radius"_a.noconvert(),
          "cost"_a.noconvert(),
          "V(s) = min_a min_p sum_s' p(s') (cost(s,a,s') + V(s')) over the p with L1 distance to the center <= radius.\n\n"
          "A radius of 2 or more leaves the pair free: its center is not read. Returns V (n_states,) and best\n"
          "(n_states - 1,), the first pair of each state that attains the minimum.");
    m.def("largest_values", largest_values, "space"_a, "curved"_a, "lower"_a.noconvert(), "upper"_a.noconvert(),
          "center"_a.noconvert(), "radius"_a.noconvert(), "cost"_a.noconvert(), "pi"_a.noconvert().none(),
          "V(s) = sum_a pi(a|s) max_p sum_s' p(s') (cost(s,a,s') + V(s')); without pi the largest over a, too.\n\n"
          "curved: KL(center || p) <= radius. Otherwise lower <= p <= upper and the L1 distance to the center <= radius,\n"
          "the center within the bounds. Returns V (n_states,); best (n_states - 1,), the first of the best pairs of each\n"
          "state, empty with pi; and p (n_tuples,), which attains V.");
    m.def("optimistic_actions", optimistic_actions, "space"_a, "lower"_a.noconvert(), "upper"_a.noconvert(),
          "cost"_a.noconvert(),
          "V(s) = min_a [cost(s,a) + min_p sum_s' p(s') V(s')], lower <= p <= upper.\n\n"
          "Returns V (n_states,), best (n_states - 1,), the first pair of each state that attains the minimum, and p\n"
          "(n_tuples,), the minimiser of every pair.");
    m.def("dearest_values", dearest_values, "space"_a, "lower"_a.noconvert(), "upper"_a.noconvert(), "pi"_a.noconvert(),
          "cost"_a.noconvert(),
          "V(s) = sum_a pi(a|s) [cost(s,a) + max_p sum_s' p(s') V(s')], lower <= p <= upper. Returns V (n_states,).");
    m.def("visits", visits_of, "space"_a, "best"_a.noconvert(), "p"_a.noconvert(),
          "x (n_pairs,): how likely an episode is to pass each pair, if best[s] is taken at s under the model p.");
    m.def("best_mixture", best_mixture, "space"_a, "lower"_a.noconvert(), "upper"_a.noconvert(), "c"_a.noconvert(),
          "D"_a.noconvert(), "alpha"_a.noconvert(), "tolerance"_a, "max_pivots"_a,
          "min <c, x> over the x (n_pairs,) of all policies and all models between the bounds with D x <= alpha.\n\n"
          "Returns whether no x is within alpha (then x is one of least excess), the multipliers of alpha, and x.");
    m.def("euclidean_point", euclidean_point_of, "space"_a, "P"_a.noconvert(), "y"_a.noconvert(), "beta"_a.noconvert(),
          "x = [y + A'beta]_+, the residual Ax - b, the sum of its absolute values, and F(beta).");
    m.def("euclidean_step", euclidean_step_of, "space"_a, "P"_a.noconvert(), "x"_a.noconvert(), "residual"_a.noconvert(),
          "mu"_a, "The Newton step -(A D A' + mu)^-1 (Ax - b), D the pairs with x > 0; 0 at the last state.");
}

}  // namespace tightrope
