// Confidence sets from counts.
#include "anytime.hpp"
#include "bindings.hpp"

namespace tightrope {

namespace {

/// Raise ValueError if a count is negative.
void require_counts(const Ints& counts, const char* name) {
    std::int64_t signs = 0;
    for (Index j = 0; j < static_cast<Index>(counts.shape(0)); ++j) signs |= counts.data()[j];
    if (signs < 0) throw nb::value_error((std::string(name) + " has a negative count").c_str());
}

/// Raise ValueError unless N and M are counts of the space.
void require_counts(const Space& space, const Ints& N, const Ints& M) {
    require_size(N, space.n_pairs, "N");
    require_size(M, space.n_tuples, "M");
    require_counts(N, "N");
    require_counts(M, "M");
}

/// Raise ValueError if a tuple has more visits than its pair.
void require_no_more(const Space& space, const Ints& N, const Ints& M) {
    for (Index i = 0; i < space.n_pairs; ++i)
        for (Index j = space.pair_ptr[i]; j < space.pair_ptr[i + 1]; ++j)
            if (M.data()[j] > N.data()[i])
                throw nb::value_error(("M is " + std::to_string(M.data()[j]) + " at tuple " + std::to_string(j) +
                                       ", more than N of its pair, " + std::to_string(N.data()[i]))
                                          .c_str());
}

auto kl_radii_of(const Csr& csr, Ints N, Ints M, double log_inverse, double scale) {
    const Space& space = csr;
    require_counts(space, N, M);
    New<double> radius(space.n_pairs);
    unlocked([&] { kl_radii(space, N.data(), M.data(), log_inverse, scale, radius.data); });
    return radius.array;
}

auto kl_bounds_of(const Csr& csr, Ints N, Ints M, double log_inverse, double scale) {
    const Space& space = csr;
    require_counts(space, N, M);
    require_no_more(space, N, M);
    New<double> lower(space.n_tuples), upper(space.n_tuples);
    unlocked([&] { kl_bounds(space, N.data(), M.data(), log_inverse, scale, lower.data, upper.data); });
    return results(lower.array, upper.array);
}

bool are_balls_of(const Csr& csr, Floats center, Floats radius, double tolerance) {
    const Space& space = csr;
    require_size(center, space.n_tuples, "center");
    require_size(radius, space.n_pairs, "radius");
    return are_balls(space, center.data(), radius.data(), tolerance);
}

}  // namespace

void bind_confidence(nb::module_& m) {
    m.def("kl_radii", kl_radii_of, "space"_a, "N"_a.noconvert(), "M"_a.noconvert(), "log_inverse"_a, "scale"_a,
          "The anytime KL radius of every pair, times scale, from counts and log(1/delta).\n\n"
          "Infinite without visits, and where there is one successor.");
    m.def("kl_bounds", kl_bounds_of, "space"_a, "N"_a.noconvert(), "M"_a.noconvert(), "log_inverse"_a, "scale"_a,
          "Anytime bounds (lower, upper) on every transition probability by itself, from counts and log(1/delta).");
    m.def("are_balls", are_balls_of, "space"_a, "center"_a.noconvert(), "radius"_a.noconvert(), "tolerance"_a,
          "Whether every radius is 0 or more, and every center a distribution where the radius is below 2.");
}

}  // namespace tightrope
