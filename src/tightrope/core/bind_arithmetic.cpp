// Elementary functions over whole arrays, for Python code whose results must not depend on the CPU.
#include "arithmetic.hpp"
#include "bindings.hpp"

namespace tightrope {

namespace {

template <double function(double)>
void map(Floats x, FloatsOut out) {
    require_size(out, static_cast<Index>(x.shape(0)), "out");
    const double* __restrict from = x.data();
    double* __restrict to = out.data();
    for (Index j = 0; j < static_cast<Index>(x.shape(0)); ++j) to[j] = function(from[j]);
}

double dot_of(Floats a, Floats b) {
    require_size(b, static_cast<Index>(a.shape(0)), "b");
    return dot(a.data(), b.data(), static_cast<Index>(a.shape(0)));
}

auto combine(Floats weights, Table rows) {
    const Index m = static_cast<Index>(weights.shape(0)), n = static_cast<Index>(rows.shape(1));
    require_size(rows, m, "rows");
    New<double> total(n);
    unlocked([&] {
        double* __restrict to = total.data;
        for (Index j = 0; j < n; ++j) to[j] = 0.0;
        for (Index i = 0; i < m; ++i) {
            const double w = weights.data()[i];
            const double* __restrict row = rows.data() + i * n;
            for (Index j = 0; j < n; ++j) to[j] += w * row[j];
        }
    });
    return total.array;
}

}  // namespace

void bind_arithmetic(nb::module_& m) {
    const auto unlocked = nb::call_guard<nb::gil_scoped_release>();
    m.def("exp", map<exp>, "x"_a.noconvert(), "out"_a.noconvert(), unlocked, "e^x of every entry of x, into out.");
    m.def("log", map<log>, "x"_a.noconvert(), "out"_a.noconvert(), unlocked, "log x of every entry of x, into out.");
    m.def("expm1", map<expm1>, "x"_a.noconvert(), "out"_a.noconvert(), unlocked, "e^x - 1 of every entry, into out.");
    m.def("log1p", map<log1p>, "x"_a.noconvert(), "out"_a.noconvert(), unlocked, "log(1 + x) of every entry, into out.");
    m.def("lgamma", map<lgamma>, "x"_a.noconvert(), "out"_a.noconvert(), unlocked, "log Gamma(x), x > 0, into out.");
    m.def("dot", dot_of, "a"_a.noconvert(), "b"_a.noconvert(), unlocked, "The sum of a[j] b[j], in a fixed order.");
    m.def("combine", combine, "weights"_a.noconvert(), "rows"_a.noconvert(), "The sum of weights[i] rows[i] over i.");
}

}  // namespace tightrope
