// What the bindings share: array types that never convert or copy, and checks at the border.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>

#include <stdexcept>
#include <string>
#include <type_traits>

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
using Ints32 = Array<const std::int32_t, 1>;

/// Raise ValueError unless the array has as many entries along this axis.
template <class A>
void require_size(const A& array, Index size, const char* name, int axis = 0) {
    if (static_cast<Index>(array.shape(axis)) != size)
        throw nb::value_error((std::string(name) + " has " + std::to_string(array.shape(axis)) + " entries along axis " +
                               std::to_string(axis) + "; expected " + std::to_string(size))
                                  .c_str());
}

/// Raise ValueError unless every entry is an index below `size`.
inline void require_indices(const Ints& array, Index size, const char* name) {
    for (Index k = 0; k < static_cast<Index>(array.shape(0)); ++k)
        if (array.data()[k] < 0 || array.data()[k] >= size)
            throw nb::value_error((std::string(name) + " is " + std::to_string(array.data()[k]) + " at index " +
                                   std::to_string(k) + "; expected 0 to " + std::to_string(size - 1))
                                      .c_str());
}

/// A NumPy array of doubles or integers, as the signature of a function names it.
template <class T>
class NumpyArray : public nb::object {
public:
    static constexpr auto Name = nb::detail::const_name("numpy.typing.NDArray[numpy.") +
                                 nb::detail::const_name<std::is_same_v<T, double>>("float", "int") +
                                 nb::detail::const_name<sizeof(T) == 8>("64", "32") +
                                 nb::detail::const_name("]");
    NumpyArray(nb::object array) : nb::object(std::move(array)) {}
};

/// A new NumPy array that is not filled yet: Python gets `array`, kernels write to `data`.
template <class T>
struct New {
    explicit New(Index n) : New(nb::cast(n)) {}
    New(Index rows, Index columns) : New(nb::make_tuple(rows, columns)) {}

    NumpyArray<T> array;
    T* data;

private:
    explicit New(const nb::object& shape) : array(nb::object(nb::handle(empty())(shape, nb::handle(type())))) {
        data = nb::cast<nb::ndarray<T, nb::c_contig, nb::device::cpu>>(array).data();
    }

    // Looked up once; never released, since they may be needed until the interpreter ends.
    static PyObject* empty() {
        static PyObject* const function = nb::object(nb::module_::import_("numpy").attr("empty")).release().ptr();
        return function;
    }

    static PyObject* type() {
        static PyObject* const dtype = nb::object(nb::module_::import_("numpy").attr("dtype")(name())).release().ptr();
        return dtype;
    }

    static constexpr const char* name() {
        return std::is_same_v<T, double> ? "float64" : std::is_same_v<T, std::int64_t> ? "int64" : "int32";
    }
};

/// Several results, as a tuple whose signature names the type of each.
template <class... T>
nb::typed<nb::tuple, T...> results(T... values) {
    return nb::typed<nb::tuple, T...>(nb::make_tuple(std::move(values)...));
}

/// Run a kernel while other threads of Python run.
template <class Kernel>
auto unlocked(Kernel&& kernel) {
    nb::gil_scoped_release release;
    return kernel();
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
