// The extension module: one for each level of instructions, all with the same names.
#include "bindings.hpp"
#include "cpu.hpp"

namespace tightrope {

void bind_arithmetic(nb::module_& m);
void bind_confidence(nb::module_& m);
void bind_learners(nb::module_& m);
void bind_model(nb::module_& m);
void bind_planning(nb::module_& m);
void bind_sets(nb::module_& m);
void bind_small_dense(nb::module_& m);
void bind_solver(nb::module_& m);

}  // namespace tightrope

NB_MODULE(TIGHTROPE_MODULE, m) {
    using namespace tightrope;
    nb::set_leak_warnings(false);  // a space in a global variable outlives the module
    m.def("cpu_level", &cpu_level, "The level of x86-64 that this CPU supports, 2 to 4; 0 on other machines.");
    bind_arithmetic(m);
    bind_confidence(m);
    bind_learners(m);
    bind_model(m);
    bind_planning(m);
    bind_sets(m);
    bind_small_dense(m);
    bind_solver(m);
    bind_space(m);
}
