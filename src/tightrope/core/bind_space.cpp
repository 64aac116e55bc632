// Csr: the compressed rows of a space.
#include "bindings.hpp"

namespace tightrope {

namespace {

/// The data and the length of a contiguous array of this type, or TypeError. It is read-only from now on: an index that
/// changes after it was checked would let kernels write anywhere.
template <class T>
std::pair<const T*, Index> vector_of(const nb::object& object, const char* name) {
    nb::ndarray<nb::numpy, const T, nb::ndim<1>, nb::c_contig, nb::device::cpu> array;
    if (!nb::hasattr(object, "flags") || !nb::try_cast(object, array, false))
        throw nb::type_error((std::string(name) + " is not a contiguous vector of the right type").c_str());
    object.attr("flags").attr("writeable") = false;
    return {array.data(), static_cast<Index>(array.shape(0))};
}

/// Raise ValueError unless the pointers start at 0, rise and end at `last`; the last row may be empty if `open`.
void require_pointers(const std::int64_t* ptr, Index n, Index last, const char* name, bool open = false) {
    bool sound = ptr[0] == 0 && ptr[n - 1] == last;
    for (Index k = 0; k + 1 < n; ++k) sound = sound && (ptr[k] < ptr[k + 1] || (open && k == n - 2));
    if (!sound)
        throw nb::value_error((std::string(name) + " must start at 0, rise, and end at " + std::to_string(last)).c_str());
}

}  // namespace

Csr::Csr(nb::object layer_ptr_, nb::object state_ptr_, nb::object pair_ptr_, nb::object action_, nb::object successor_)
    : layer_ptr(layer_ptr_), state_ptr(state_ptr_), pair_ptr(pair_ptr_), action(action_), successor(successor_) {
    const auto [layers, n_layer_ptr] = vector_of<std::int64_t>(layer_ptr, "layer_ptr");
    const auto [states, n_state_ptr] = vector_of<std::int64_t>(state_ptr, "state_ptr");
    const auto [pairs, n_pair_ptr] = vector_of<std::int64_t>(pair_ptr, "pair_ptr");
    const auto [actions, n_pairs] = vector_of<std::int32_t>(action, "action");
    const auto [successors, n_tuples] = vector_of<std::int32_t>(successor, "successor");
    if (n_layer_ptr < 3 || n_state_ptr < 3 || n_pair_ptr != n_pairs + 1)
        throw nb::value_error("the lengths of layer_ptr, state_ptr, pair_ptr and action do not fit together");
    require_pointers(layers, n_layer_ptr, n_state_ptr - 1, "layer_ptr");
    require_pointers(states, n_state_ptr, n_pairs, "state_ptr", true);
    require_pointers(pairs, n_pair_ptr, n_tuples, "pair_ptr");
    space_ = {n_layer_ptr - 2, n_state_ptr - 1, n_pairs, n_tuples, layers, states, pairs, actions, successors};
    for (Index k = 0; k < space_.n_layers; ++k)
        for (Index j = pairs[states[layers[k]]]; j < pairs[states[layers[k + 1]]]; ++j)
            if (successors[j] < layers[k + 1] || successors[j] >= layers[k + 2])
                throw nb::value_error(("successor[" + std::to_string(j) + "] is not in the next layer").c_str());
    if (states[layers[space_.n_layers]] != n_pairs) throw nb::value_error("the last layer has actions");
}

void bind_space(nb::module_& m) {
    nb::class_<Csr>(m, "Csr", "The compressed rows of a space, checked once; every kernel reads them.")
        .def(nb::init<nb::object, nb::object, nb::object, nb::object, nb::object>(), "layer_ptr"_a, "state_ptr"_a,
             "pair_ptr"_a, "action"_a, "successor"_a)
        .def_ro("layer_ptr", &Csr::layer_ptr)
        .def_ro("state_ptr", &Csr::state_ptr)
        .def_ro("pair_ptr", &Csr::pair_ptr)
        .def_ro("action", &Csr::action)
        .def_ro("successor", &Csr::successor)
        .def("__getstate__",
             [](const Csr& c) { return nb::make_tuple(c.layer_ptr, c.state_ptr, c.pair_ptr, c.action, c.successor); })
        .def("__setstate__", [](Csr& c, nb::tuple t) {
            new (&c) Csr(nb::object(t[0]), nb::object(t[1]), nb::object(t[2]), nb::object(t[3]), nb::object(t[4]));
        });
}

}  // namespace tightrope
