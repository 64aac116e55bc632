// Occupancy measures, trajectories, counts and the bounds of feedback.
#include "bindings.hpp"
#include "counting.hpp"
#include "feedback.hpp"
#include "play.hpp"

namespace tightrope {

namespace {

auto occupancy_(const Csr& csr, Floats pi, Floats P) {
    const Space& space = csr;
    require_size(pi, space.n_pairs, "pi");
    require_size(P, space.n_tuples, "P");
    New<double> theta(space.n_tuples);
    unlocked([&] {
        std::vector<double> d(space.n_states);
        occupancy(space, pi.data(), P.data(), d.data(), theta.data);
    });
    return theta.array;
}

auto policy_of_(const Csr& csr, Floats theta) {
    const Space& space = csr;
    require_size(theta, space.n_tuples, "theta");
    New<double> pi(space.n_pairs);
    unlocked([&] { policy_of(space, theta.data(), pi.data); });
    return pi.array;
}

auto model_of_(const Csr& csr, Floats theta) {
    const Space& space = csr;
    require_size(theta, space.n_tuples, "theta");
    New<double> P(space.n_tuples);
    unlocked([&] { model_of(space, theta.data(), P.data); });
    return P.array;
}

Index draw_(Floats p, Index lo, Index hi, double u) {
    if (lo < 0 || lo >= hi || hi > static_cast<Index>(p.shape(0)))
        throw nb::value_error(("lo is " + std::to_string(lo) + " and hi " + std::to_string(hi) +
                               "; expected 0 <= lo < hi <= " + std::to_string(p.shape(0)))
                                  .c_str());
    return draw(p.data(), lo, hi, u);
}

/// A trajectory as new arrays.
struct Path {
    explicit Path(const Space& space) : states(space.n_layers + 1), actions(space.n_layers), steps(space.n_layers) {}
    New<std::int64_t> states, actions, steps;
};

void require_played(const Space& space, const Floats& pi, const Floats& P, const Floats& uniforms) {
    require_size(pi, space.n_pairs, "pi");
    require_size(P, space.n_tuples, "P");
    require_size(uniforms, 2 * space.n_layers, "uniforms");
}

auto sample_path_(const Csr& csr, Floats pi, Floats P, Floats uniforms) {
    const Space& space = csr;
    require_played(space, pi, P, uniforms);
    Path path(space);
    sample_path(space, pi.data(), P.data(), uniforms.data(), path.states.data, path.actions.data, path.steps.data);
    return std::tuple(path.states.array, path.actions.array, path.steps.array);
}

auto find_path_(const Csr& csr, Ints states, Ints actions) {
    const Space& space = csr;
    require_size(states, space.n_layers + 1, "states");
    require_size(actions, space.n_layers, "actions");
    New<std::int64_t> steps(space.n_layers);
    find_path(space, states.data(), actions.data(), steps.data);
    return steps.array;
}

auto play_(const Csr& csr, Floats pi, Floats P, Floats uniforms, Floats f, Table g, Table mean, Floats budgets,
                FloatsOut total_f, FloatsOut over) {
    const Space& space = csr;
    const Index n = static_cast<Index>(budgets.shape(0));
    require_played(space, pi, P, uniforms);
    require_size(f, space.n_tuples, "f");
    require_size(total_f, space.n_tuples, "total_f");
    require_size(over, n, "over");
    for (const auto& [table, name] : {std::pair{&g, "g"}, std::pair{&mean, "mean"}}) {
        require_size(*table, n, name, 0);
        require_size(*table, space.n_tuples, name, 1);
    }
    Path path(space);
    double violation = 0.0;
    const double loss = unlocked([&] {
        sample_path(space, pi.data(), P.data(), uniforms.data(), path.states.data, path.actions.data, path.steps.data);
        const Expectations e =
            account(space, pi.data(), P.data(), {f.data(), g.data(), mean.data(), n}, total_f.data());
        for (Index i = 0; i < n; ++i) over.data()[i] += e.g[i] - budgets.data()[i];
        violation = excess(e.mean.data(), budgets.data(), n);
        return e.f;
    });
    return std::tuple(path.states.array, path.actions.array, path.steps.array, loss, violation);
}

/// A copy of n numbers as a new array.
template <class T>
New<T> copy(const T* from, Index n) {
    New<T> to(n);
    in_blocks(n, [&](Index first, Index last) { std::copy(from + first, from + last, to.data + first); });
    return to;
}

auto count_(const Csr& csr, Ints path, Ints N, double growth, Ints32 n, Ints32 m) {
    const Space& space = csr;
    require_size(path, space.n_layers, "path");
    require_indices(path, space.n_tuples, "path");
    require_size(N, space.n_pairs, "N");
    require_size(n, space.n_pairs, "n");
    require_size(m, space.n_tuples, "m");
    New<std::int32_t> visits = copy(n.data(), space.n_pairs), moves = copy(m.data(), space.n_tuples);
    const bool over = count(space, path.data(), N.data(), growth, visits.data, moves.data);
    return std::tuple(visits.array, moves.array, over);
}

auto count_laws_(const Csr& csr, Ints path, Ints law, Ints N, double growth, Ints n) {
    const Space& space = csr;
    const Index n_laws = static_cast<Index>(N.shape(0));
    require_size(path, space.n_layers, "path");
    require_indices(path, space.n_tuples, "path");
    require_size(law, space.n_pairs, "law");
    require_size(n, n_laws, "n");
    for (Index k = 0; k < space.n_layers; ++k) {
        const std::int64_t at = law.data()[space.pair_of(path.data()[k])];
        if (at < 0 || at >= n_laws) throw nb::value_error(("law is " + std::to_string(at) + " on the path").c_str());
    }
    New<std::int64_t> visits = copy(n.data(), n_laws);
    const bool over = count_laws(space, path.data(), law.data(), N.data(), growth, visits.data);
    return std::tuple(visits.array, over);
}

auto frequencies_(const Csr& csr, Ints N, Ints M) {
    const Space& space = csr;
    require_size(N, space.n_pairs, "N");
    require_size(M, space.n_tuples, "M");
    New<double> P_hat(space.n_tuples);
    unlocked([&] { frequencies(space, N.data(), M.data(), P_hat.data); });
    return P_hat.array;
}

bool within_(Floats f, Table g, double bound) {
    const Index n = static_cast<Index>(f.shape(0));
    require_size(g, n, "g", 1);
    return unlocked([&] { return within(f.data(), g.data(), static_cast<Index>(g.shape(0)), n, bound); });
}

}  // namespace

void bind_model(nb::module_& m) {
    m.attr("NONE") = NONE;
    m.def("occupancy", occupancy_, "csr"_a, "pi"_a.noconvert(), "P"_a.noconvert(),
          "The occupancy measure (n_tuples,) of the policy pi under the model P.");
    m.def("policy_of", policy_of_, "csr"_a, "theta"_a.noconvert(), "The policy (n_pairs,) of an occupancy measure.");
    m.def("model_of", model_of_, "csr"_a, "theta"_a.noconvert(), "The conditionals (n_tuples,) of an occupancy measure.");
    m.def("draw", draw_, "p"_a.noconvert(), "lo"_a, "hi"_a, "u"_a,
          "The index in lo:hi at which the running sum of p exceeds u.");
    m.def("sample_path", sample_path_, "csr"_a, "pi"_a.noconvert(), "P"_a.noconvert(), "uniforms"_a.noconvert(),
          "One episode: its states (L + 1,), its actions (L,) and the tuple of each step (L,).");
    m.def("find_path", find_path_, "csr"_a, "states"_a.noconvert(), "actions"_a.noconvert(),
          "The tuple (L,) of each step of a trajectory, -1 from the first step on that is no tuple of its layer.");
    m.def("play", play_, "csr"_a, "pi"_a.noconvert(), "P"_a.noconvert(), "uniforms"_a.noconvert(), "f"_a.noconvert(),
          "g"_a.noconvert(), "mean"_a.noconvert(), "budgets"_a.noconvert(), "total_f"_a.noconvert(), "over"_a.noconvert(),
          "One episode and its account: states, actions, steps, the expected loss and the norm of what the policy uses "
          "beyond its budgets under `mean`. Adds f to total_f, and the use of g beyond the budgets to over.");
    m.def("count", count_, "csr"_a, "path"_a.noconvert(), "N"_a.noconvert(), "growth"_a, "n"_a.noconvert(),
          "m"_a.noconvert(), "The counts n and m of an epoch with one more path, and whether it ends the epoch.");
    m.def("count_laws", count_laws_, "csr"_a, "path"_a.noconvert(), "law"_a.noconvert(), "N"_a.noconvert(), "growth"_a,
          "n"_a.noconvert(), "The counts n of laws with one more path, and whether it ends the epoch.");
    m.def("frequencies", frequencies_, "csr"_a, "N"_a.noconvert(), "M"_a.noconvert(), "M / max(1, N) (n_tuples,).");
    m.def("within", within_, "f"_a.noconvert(), "g"_a.noconvert(), "bound"_a,
          "Whether |f| <= bound and the sum over i of max |g_i| <= bound.");
}

}  // namespace tightrope
