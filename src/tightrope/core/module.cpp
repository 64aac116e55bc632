// The extension module: one for each level of instructions, all with the same names.
#include "bindings.hpp"
#include "cpu.hpp"

namespace tightrope {

void bind_arithmetic(nb::module_& m);
void bind_confidence(nb::module_& m);
void bind_planning(nb::module_& m);
void bind_small_dense(nb::module_& m);

}  // namespace tightrope

NB_MODULE(TIGHTROPE_MODULE, m) {
    using namespace tightrope;
    m.def("cpu_level", &cpu_level, "The level of x86-64 that this CPU supports, 2 to 4; 0 on other machines.");
    bind_arithmetic(m);
    bind_confidence(m);
    bind_planning(m);
    bind_small_dense(m);
    bind_space(m);
}
