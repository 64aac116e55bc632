// Which level of x86-64 this machine supports.
//
// Read from the CPU itself: the compilers' __builtin_cpu_supports needs a runtime library that not all of them link.
#pragma once

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace tightrope {

#if defined(__x86_64__)

/// Which registers the operating system saves, as the bits of XCR0; call only if the CPU has OSXSAVE.
inline unsigned saved_registers() {
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

/// 2, 3 (AVX2) or 4 (AVX-512).
inline int cpu_level() {
    const auto has_all = [](unsigned bits, unsigned wanted) { return (bits & wanted) == wanted; };
    constexpr unsigned FMA = 1u << 12, MOVBE = 1u << 22, OSXSAVE = 1u << 27, AVX = 1u << 28, F16C = 1u << 29;
    constexpr unsigned BMI1 = 1u << 3, AVX2 = 1u << 5, BMI2 = 1u << 8, LZCNT = 1u << 5;
    constexpr unsigned AVX512_F = 1u << 16, AVX512_DQ = 1u << 17, AVX512_CD = 1u << 28;
    constexpr unsigned AVX512_BW = 1u << 30, AVX512_VL = 1u << 31;
    constexpr unsigned YMM = 0x6, ZMM = 0xe6;
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !has_all(c, FMA | MOVBE | OSXSAVE | AVX | F16C)) return 2;
    if (!__get_cpuid(0x80000001, &a, &b, &c, &d) || !has_all(c, LZCNT)) return 2;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !has_all(b, BMI1 | AVX2 | BMI2)) return 2;
    if (!has_all(saved_registers(), YMM)) return 2;
    const bool v4 = has_all(b, AVX512_F | AVX512_DQ | AVX512_CD | AVX512_BW | AVX512_VL);
    return v4 && has_all(saved_registers(), ZMM) ? 4 : 3;
}

#else

/// 0: not x86-64.
inline int cpu_level() { return 0; }

#endif

}  // namespace tightrope
