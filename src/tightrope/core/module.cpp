// The extension module: one for each level of instructions, all with the same names.
#include "bindings.hpp"

namespace tightrope {

void bind_arithmetic(nb::module_& m);
void bind_confidence(nb::module_& m);
void bind_planning(nb::module_& m);
void bind_small_dense(nb::module_& m);

namespace {

/// The level of x86-64 that this CPU and its operating system support, 2 to 4; 0 on other machines.
int cpu_level() {
#if defined(__x86_64__)
    __builtin_cpu_init();
    const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
    const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512vl");
    return v4 ? 4 : v3 ? 3 : 2;
#else
    return 0;
#endif
}

}  // namespace

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
