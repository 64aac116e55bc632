// What the bindings share: array types that never convert or copy, and checks at the border.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "space.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace tightrope {

template <class T, int n>
using Array = nb::ndarray<T, nb::ndim<n>, nb::c_contig, nb::device::cpu>;

using Floats = Array<const double, 1>;   // read
using FloatsOut = Array<double, 1>;      // written
using Table = Array<const double, 2>;
using TableOut = Array<double, 2>;
using Ints = Array<const std::int64_t, 1>;
using IntsOut = Array<std::int64_t, 1>;

/// A NumPy array that owns these values. Needs the GIL.
template <class T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> to_numpy(std::vector<T>&& values) {
    auto* owned = new std::vector<T>(std::move(values));
    nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return {owned->data(), {owned->size()}, owner};
}

/// Raise ValueError unless the array has as many entries along this axis.
template <class A>
void require_size(const A& array, Index size, const char* name, int axis = 0) {
    if (static_cast<Index>(array.shape(axis)) != size)
        throw nb::value_error((std::string(name) + " has " + std::to_string(array.shape(axis)) + " entries along axis " +
                               std::to_string(axis) + "; expected " + std::to_string(size))
                                  .c_str());
}

/// The compressed rows of a space as Python holds them: arrays that are checked once, and the view that kernels read.
class Csr {
public:
    Csr(nb::object layer_ptr, nb::object state_ptr, nb::object pair_ptr, nb::object action, nb::object successor);
    operator const Space&() const { return space_; }

    const nb::object layer_ptr, state_ptr, pair_ptr, action, successor;

private:
    Space space_;
};

void bind_space(nb::module_& m);

}  // namespace tightrope
