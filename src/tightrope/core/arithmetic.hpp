// Elementary functions and sums with the same bits on every machine.
//
// Nothing here depends on the C library, on the vector width or on the compiler: a fused multiply-add stands where it
// is written and nowhere else (-ffp-contract=off), and a sum has a fixed number of partial sums that are combined in a
// fixed order. Functions are branch-free and inlined, so that loops over them vectorise.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

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

/// a − b of bit patterns, which wraps around where a number is out of the range that is asked for.
TIGHTROPE_INLINE std::int64_t minus(std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
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
    const std::int64_t n = minus(bits, std::bit_cast<std::int64_t>(SQRT_HALF)) >> 52;
    const double m = std::bit_cast<double>(minus(bits, n << 52));
    const double s = (m - 1.0) / (m + 1.0);  // at most 0.172
    const double k = std::bit_cast<double>(n + std::bit_cast<std::int64_t>(TO_INTEGER)) - TO_INTEGER;
    return fma(k, LN_2_HIGH, fma(2.0 * s, log_series(s), k * LN_2_LOW));
}

/// log(x / y) to a few units in the last place for normal x, y > 0, with one division.
TIGHTROPE_INLINE double log_ratio(double x, double y) {
    using namespace constants;
    const std::int64_t bits = std::bit_cast<std::int64_t>(x), apart = minus(bits, std::bit_cast<std::int64_t>(y));
    const std::int64_t n = minus(apart, -(std::int64_t{1} << 51)) >> 52;  // x / y is 2^n times 0.66 to 1.5
    const double m = std::bit_cast<double>(minus(bits, n << 52));
    const double s = (m - y) / (m + y);  // at most 0.2
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

/// log Γ(x) for x > 0, NaN elsewhere: Stirling's series from 16 on, and the recurrence below.
inline double lgamma(double x) {
    if (!(x > 0.0)) return NaN;
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

TIGHTROPE_INLINE void store_eight(double* x, Eight values) { *reinterpret_cast<EightUnaligned*>(x) = values; }

TIGHTROPE_INLINE Eight eight_of(double x) { return Eight{x, x, x, x, x, x, x, x}; }

/// a · b + c of each of the eight, rounded once.
TIGHTROPE_INLINE Eight fma(Eight a, Eight b, Eight c) {
#if defined(__AVX512F__)
    return _mm512_fmadd_pd(a, b, c);
#else
    Eight y;
    for (int v = 0; v < 8; ++v) y[v] = __builtin_fma(a[v], b[v], c[v]);
    return y;
#endif
}

TIGHTROPE_INLINE Eight min(Eight a, Eight b) { return a < b ? a : b; }

TIGHTROPE_INLINE Eight max(Eight a, Eight b) { return a > b ? a : b; }

TIGHTROPE_INLINE Eight abs(Eight x) { return max(x, -x); }

/// x[index[v]] for eight indices below 2^31.
TIGHTROPE_INLINE Eight gather_eight(const double* x, const std::uint32_t* index) {
#if defined(__AVX512F__)
    return _mm512_i32gather_pd(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(index)), x, 8);
#else
    return Eight{x[index[0]], x[index[1]], x[index[2]], x[index[3]], x[index[4]], x[index[5]], x[index[6]], x[index[7]]};
#endif
}

/// function(x) of each of the eight.
template <double function(double)>
TIGHTROPE_INLINE Eight each(Eight x) {
    double values[8];
    store_eight(values, x);
    for (int v = 0; v < 8; ++v) values[v] = function(values[v]);
    return load_eight(values);
}

/// function(x, y) of each of the eight.
template <double function(double, double)>
TIGHTROPE_INLINE Eight each(Eight x, Eight y) {
    double left[8], right[8];
    store_eight(left, x);
    store_eight(right, y);
    for (int v = 0; v < 8; ++v) left[v] = function(left[v], right[v]);
    return load_eight(left);
}

/// What a comparison of Eights gives: −1 where it holds, 0 elsewhere.
typedef std::int64_t EightFlags __attribute__((vector_size(64)));

TIGHTROPE_INLINE bool any(EightFlags flags) {
#if defined(__AVX512F__)
    return _mm512_test_epi64_mask(reinterpret_cast<__m512i>(flags), reinterpret_cast<__m512i>(flags)) != 0;
#else
    std::int64_t found = 0;
    for (int v = 0; v < 8; ++v) found |= flags[v];
    return found != 0;
#endif
}

/// Eight bytes as they are loaded, for comparisons.
TIGHTROPE_INLINE EightFlags load_eight(const std::int8_t* x) {
    typedef std::int8_t EightBytes __attribute__((vector_size(8)));
    EightBytes bytes;
    __builtin_memcpy(&bytes, x, sizeof bytes);
    return __builtin_convertvector(bytes, EightFlags);
}

/// Entry v of row r becomes entry r of row v.
TIGHTROPE_INLINE void transpose(Eight (&a)[8]) {
    for (int r = 0; r < 8; r += 2) {
        const Eight x = a[r], y = a[r + 1];
        a[r] = __builtin_shufflevector(x, y, 0, 8, 2, 10, 4, 12, 6, 14);
        a[r + 1] = __builtin_shufflevector(x, y, 1, 9, 3, 11, 5, 13, 7, 15);
    }
    for (const int r : {0, 1, 4, 5}) {
        const Eight x = a[r], y = a[r + 2];
        a[r] = __builtin_shufflevector(x, y, 0, 1, 8, 9, 4, 5, 12, 13);
        a[r + 2] = __builtin_shufflevector(x, y, 2, 3, 10, 11, 6, 7, 14, 15);
    }
    for (int r = 0; r < 4; ++r) {
        const Eight x = a[r], y = a[r + 4];
        a[r] = __builtin_shufflevector(x, y, 0, 1, 2, 3, 8, 9, 10, 11);
        a[r + 4] = __builtin_shufflevector(x, y, 4, 5, 6, 7, 12, 13, 14, 15);
    }
}

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
