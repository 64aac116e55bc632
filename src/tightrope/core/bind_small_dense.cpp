// Small dense problems.
#include "bindings.hpp"
#include "small_dense.hpp"

namespace tightrope {

namespace {

void require_finite(const double* x, Index n, const char* name) {
    for (Index i = 0; i < n; ++i)
        if (!(abs(x[i]) < INF)) throw nb::value_error((std::string(name) + " has an entry that is not finite").c_str());
}

auto least_prices(Table S, Floats r) {
    const Index n = static_cast<Index>(r.shape(0));
    require_size(S, n, "S", 0);
    require_size(S, n, "S", 1);
    require_finite(S.data(), n * n, "S");
    require_finite(r.data(), n, "r");
    New<double> y(n);
    unlocked([&] { NonNegativeQP(n).solve(S.data(), r.data(), y.data); });
    return y.array;
}

}  // namespace

void bind_small_dense(nb::module_& m) {
    m.def("least_prices", least_prices, "S"_a.noconvert(), "r"_a.noconvert(),
          "argmin over y >= 0 of <y, S y> / 2 - <r, y>, S (n, n) symmetric and positive semidefinite but for rounding.");
}

}  // namespace tightrope
