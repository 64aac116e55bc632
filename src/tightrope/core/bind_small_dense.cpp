// Small dense problems.
#include <nanobind/stl/optional.h>

#include "bindings.hpp"
#include "small_dense.hpp"

namespace tightrope {

namespace {

void require_finite(const double* x, Index n, const char* name) {
    for (Index i = 0; i < n; ++i)
        if (!(abs(x[i]) < INF)) throw nb::value_error((std::string(name) + " has an entry that is not finite").c_str());
}

auto least_prices(Table S, Floats r, std::optional<Floats> most) {
    const Index n = static_cast<Index>(r.shape(0));
    require_size(S, n, "S", 0);
    require_size(S, n, "S", 1);
    require_finite(S.data(), n * n, "S");
    require_finite(r.data(), n, "r");
    std::vector<double> bounds(n, INF);
    if (most) {
        require_size(*most, n, "most");
        for (Index i = 0; i < n; ++i)
            if (!(most->data()[i] >= 0.0)) throw nb::value_error("most has an entry below 0");
        std::copy_n(most->data(), n, bounds.begin());
    }
    New<double> y(n);
    unlocked([&] { BoxQP(n).solve(S.data(), r.data(), bounds.data(), y.data); });
    return y.array;
}

}  // namespace

void bind_small_dense(nb::module_& m) {
    m.def("least_prices", least_prices, "S"_a.noconvert(), "r"_a.noconvert(), "most"_a.noconvert() = nb::none(),
          "argmin over 0 <= y <= most of <y, S y> / 2 - <r, y>, S (n, n) symmetric and positive semidefinite but for\n"
          "rounding; without `most` there is no upper bound.");
}

}  // namespace tightrope
