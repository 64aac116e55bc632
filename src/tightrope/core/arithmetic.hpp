// Elementary functions and sums with the same bits on every machine.
//
// Nothing here depends on the C library, on the vector width or on the compiler: a fused multiply-add stands where it
// is written and nowhere else (-ffp-contract=off), and a sum has a fixed number of partial sums that are combined in a
// fixed order. Functions are branch-free and inlined, so that loops over them vectorise.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#define TIGHTROPE_INLINE inline __attribute__((always_inline))

namespace tightrope {

inline constexpr double INF = std::numeric_limits<double>::infinity();
inline constexpr double NaN = std::numeric_limits<double>::quiet_NaN();

/// a · b + c, rounded once.
TIGHTROPE_INLINE double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }

/// The smaller of the two; b if one of them is NaN. One instruction, unlike std::fmin.
TIGHTROPE_INLINE double min(double a, double b) { return a < b ? a : b; }

/// The larger of the two; b if one of them is NaN.
TIGHTROPE_INLINE double max(double a, double b) { return a > b ? a : b; }

TIGHTROPE_INLINE double abs(double x) { return __builtin_fabs(x); }

TIGHTROPE_INLINE double sqrt(double x) { return __builtin_sqrt(x); }

inline constexpr double EXP_RANGE = 700.0;  ///< exp is 0 or infinite beyond ± this.

namespace constants {
inline constexpr double LOG2_E = 1.4426950408889634074;
inline constexpr double LN_2_HIGH = 0.693147180369123816490;  // its last bits are zero: n · LN_2_HIGH is exact
inline constexpr double LN_2_LOW = 1.90821492927058770002e-10;
inline constexpr double TO_INTEGER = 0x1.8p52;  // added to a number, leaves its nearest integer in the last bits
inline constexpr double SQRT_HALF = 0.70710678118654752440;
}  // namespace constants

/// The nearest integer n to x / log 2 and the rest r = x − n log 2, for |x| up to EXP_RANGE: x = n log 2 + r.
struct Reduced {
    std::int64_t n;
    double r;
};

TIGHTROPE_INLINE Reduced reduce(double x) {
    using namespace constants;
    const double shifted = fma(x, LOG2_E, TO_INTEGER);
    const double n = shifted - TO_INTEGER;
    return {std::bit_cast<std::int64_t>(shifted), fma(n, -LN_2_LOW, fma(n, -LN_2_HIGH, x))};
}

/// (e^r − 1) / r by Taylor's series, |r| <= log(2) / 2.
TIGHTROPE_INLINE double exp_series(double r) {
    double y = 1.0 / 479001600.0;
    y = fma(y, r, 1.0 / 39916800.0);
    y = fma(y, r, 1.0 / 3628800.0);
    y = fma(y, r, 1.0 / 362880.0);
    y = fma(y, r, 1.0 / 40320.0);
    y = fma(y, r, 1.0 / 5040.0);
    y = fma(y, r, 1.0 / 720.0);
    y = fma(y, r, 1.0 / 120.0);
    y = fma(y, r, 1.0 / 24.0);
    y = fma(y, r, 1.0 / 6.0);
    y = fma(y, r, 0.5);
    return fma(y, r, 1.0);
}

/// 2^n, given n in the last bits.
TIGHTROPE_INLINE double power_of_two(std::int64_t n) { return std::bit_cast<double>((n + 1023) << 52); }

/// e^x to a few units in the last place; 0 or infinity beyond ± EXP_RANGE; NaN becomes 0.
TIGHTROPE_INLINE double exp(double x) {
    double z = x > -EXP_RANGE ? x : -EXP_RANGE;  // NaN too
    z = z < EXP_RANGE ? z : EXP_RANGE;
    const auto [n, r] = reduce(z);
    const double within = fma(exp_series(r), r, 1.0) * power_of_two(n);
    const double beyond = x > 0.0 ? INF : 0.0;
    return abs(x) <= EXP_RANGE ? within : beyond;
}

/// e^x − 1 to a few units in the last place, for x up to EXP_RANGE; −1 below −EXP_RANGE.
TIGHTROPE_INLINE double expm1(double x) {
    double z = x > -EXP_RANGE ? x : -EXP_RANGE;
    z = z < EXP_RANGE ? z : EXP_RANGE;
    const auto [n, r] = reduce(z);
    const double scale = power_of_two(n);
    const double within = fma(exp_series(r) * r, scale, scale - 1.0);
    const double beyond = x > 0.0 ? INF : -1.0;
    return abs(x) <= EXP_RANGE ? within : beyond;
}

/// log m for m in [√½, √2] as 2 artanh(s), s = (m − 1) / (m + 1), given s.
TIGHTROPE_INLINE double log_series(double s) {
    const double q = s * s;
    double y = 1.0 / 21.0;
    y = fma(y, q, 1.0 / 19.0);
    y = fma(y, q, 1.0 / 17.0);
    y = fma(y, q, 1.0 / 15.0);
    y = fma(y, q, 1.0 / 13.0);
    y = fma(y, q, 1.0 / 11.0);
    y = fma(y, q, 1.0 / 9.0);
    y = fma(y, q, 1.0 / 7.0);
    y = fma(y, q, 1.0 / 5.0);
    y = fma(y, q, 1.0 / 3.0);
    return fma(y, q, 1.0);
}

/// log x to a few units in the last place for normal x > 0. `log` handles all x.
TIGHTROPE_INLINE double log_normal(double x) {
    using namespace constants;
    const std::int64_t bits = std::bit_cast<std::int64_t>(x);
    const std::int64_t n = (bits - std::bit_cast<std::int64_t>(SQRT_HALF)) >> 52;
    const double m = std::bit_cast<double>(bits - (n << 52));
    const double s = (m - 1.0) / (m + 1.0);  // at most 0.172
    const double k = std::bit_cast<double>(n + std::bit_cast<std::int64_t>(TO_INTEGER)) - TO_INTEGER;
    return fma(k, LN_2_HIGH, fma(2.0 * s, log_series(s), k * LN_2_LOW));
}

/// log x: −infinity at 0, NaN below, infinity at infinity; subnormal numbers are scaled first.
TIGHTROPE_INLINE double log(double x) {
    const bool subnormal = x < 0x1p-1022;
    double y = log_normal(subnormal ? x * 0x1p54 : x);
    y = subnormal ? y - 54.0 * 0.69314718055994530942 : y;
    y = x < INF ? y : x;  // infinity and NaN
    return x > 0.0 ? y : (x == 0.0 ? -INF : NaN);
}

/// log(1 + x) for x > −1, accurate near 0: the rounding error of 1 + x is put back.
TIGHTROPE_INLINE double log1p(double x) {
    const double u = 1.0 + x;
    const double lost = x - (u - 1.0);
    const double y = log(u) + (u < INF && u > 0.0 ? lost / u : 0.0);
    return y;
}

/// log Γ(x) for x > 0: Stirling's series from 16 on, and the recurrence below.
inline double lgamma(double x) {
    double product = 1.0;
    while (x < 16.0) {
        product *= x;
        x += 1.0;
    }
    const double v = 1.0 / x, q = v * v;
    const double series = v * (1.0 / 12.0 - q * (1.0 / 360.0 - q * (1.0 / 1260.0 - q * (1.0 / 1680.0 - q / 1188.0))));
    return (x - 0.5) * log(x) - x + 0.91893853320467274178 + series - log(product);
}

/// Eight numbers side by side: one AVX-512 register, two of AVX, four of SSE2; the same bits in each case.
typedef double Eight __attribute__((vector_size(64)));
typedef double EightUnaligned __attribute__((vector_size(64), aligned(8), may_alias));

TIGHTROPE_INLINE Eight load_eight(const double* x) { return *reinterpret_cast<const EightUnaligned*>(x); }

TIGHTROPE_INLINE double sum_eight(Eight x) {
    const double a = x[0] + x[4], b = x[1] + x[5], c = x[2] + x[6], d = x[3] + x[7];
    return (a + c) + (b + d);
}

/// Σ a[j] b[j] over n entries: eight sums side by side, and one of the rest.
TIGHTROPE_INLINE double dot(const double* __restrict a, const double* __restrict b, std::int64_t n) {
    Eight sums = {};
    std::int64_t j = 0;
    for (; j + 8 <= n; j += 8) sums += load_eight(a + j) * load_eight(b + j);
    double rest = 0.0;
    for (; j < n; ++j) rest += a[j] * b[j];
    return sum_eight(sums) + rest;
}

/// Σ a[j] over n entries, in the order of `dot`.
TIGHTROPE_INLINE double sum(const double* __restrict a, std::int64_t n) {
    Eight sums = {};
    std::int64_t j = 0;
    for (; j + 8 <= n; j += 8) sums += load_eight(a + j);
    double rest = 0.0;
    for (; j < n; ++j) rest += a[j];
    return sum_eight(sums) + rest;
}

}  // namespace tightrope
