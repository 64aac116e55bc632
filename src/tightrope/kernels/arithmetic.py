"""Elementary functions and sums in forms that compilers vectorise, with the same bits wherever they are compiled.

No branches, no calls, no tables; sums as several side by side, in an order that is written down.
"""

import math

import numpy as np
from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic

from tightrope.kernels.compile import jit

LARGEST = 700.0
ABREAST = 64
LOG2_E = 1.0 / math.log(2.0)
LN_2_HIGH = 0.693147180369123816490  # its last bits are zero: n · LN_2_HIGH is exact
LN_2_LOW = 1.90821492927058770002e-10
INTEGER = 1.5 * 2.0**52  # added to a number, leaves its nearest integer in the last bits
C = tuple(1.0 / math.factorial(k) for k in range(13))
BITS_OF_SQRT_HALF = int(np.sqrt(0.5).view(np.int64))
BITS_OF_INTEGER = int(np.float64(INTEGER).view(np.int64))


@intrinsic
def fma(_context, a, b, c):
    """a · b + c, rounded once: half the operations of a polynomial, and the same bits on every machine."""

    def generate(_context, builder, _signature, arguments):
        return builder.fma(*arguments)

    return types.float64(types.float64, types.float64, types.float64), generate


@jit
def exp(x):
    """e^x to a few units in the last place: 2^n times Taylor's series on |r| <= log(2)/2. 0 or inf beyond ±LARGEST."""
    z = x if x > -LARGEST else -LARGEST  # NaN too
    z = z if z < LARGEST else LARGEST
    shifted = fma(z, LOG2_E, INTEGER)
    n = shifted - INTEGER
    r = fma(n, -LN_2_LOW, fma(n, -LN_2_HIGH, z))
    y = C[12]
    y = fma(y, r, C[11])
    y = fma(y, r, C[10])
    y = fma(y, r, C[9])
    y = fma(y, r, C[8])
    y = fma(y, r, C[7])
    y = fma(y, r, C[6])
    y = fma(y, r, C[5])
    y = fma(y, r, C[4])
    y = fma(y, r, C[3])
    y = fma(y, r, C[2])
    y = fma(y, r, C[1])
    y = fma(y, r, C[0])
    within = y * np.int64((np.float64(shifted).view(np.int64) + 1023) << 52).view(np.float64)
    return within if abs(x) <= LARGEST else (np.inf if x > 0.0 else 0.0)


@jit
def log(x):
    """log x to a few units in the last place for normal x > 0: x = 2^n m, and the series of artanh for m."""
    bits = np.float64(x).view(np.int64)
    n = (bits - BITS_OF_SQRT_HALF) >> 52
    m = np.int64(bits - (n << 52)).view(np.float64)
    s = (m - 1.0) / (m + 1.0)  # at most 0.172
    q = s * s
    y = 1.0 / 21.0
    y = fma(y, q, 1.0 / 19.0)
    y = fma(y, q, 1.0 / 17.0)
    y = fma(y, q, 1.0 / 15.0)
    y = fma(y, q, 1.0 / 13.0)
    y = fma(y, q, 1.0 / 11.0)
    y = fma(y, q, 1.0 / 9.0)
    y = fma(y, q, 1.0 / 7.0)
    y = fma(y, q, 1.0 / 5.0)
    y = fma(y, q, 1.0 / 3.0)
    y = fma(y, q, 1.0)
    k = np.int64(n + BITS_OF_INTEGER).view(np.float64) - INTEGER
    return fma(k, LN_2_HIGH, fma(2.0 * s, y, k * LN_2_LOW))


@intrinsic
def dot(_context, a, i, b, j, n):
    """Σ a[i:i+n] b[j:j+n], eight sums side by side and one of the rest: of one sum a compiler may not make vectors.

    Written in LLVM's language, since LLVM does not make vectors of eight sums written out in Python either: 7 ns for 64
    products, against 27 ns for those and 40 ns for one sum. Of a projection on balls that bind in a dense model (10 x 4
    over 10, late) that is a fifth of the time.
    """
    if any((x.dtype, x.ndim, x.layout) != (types.float64, 1, "C") for x in (a, b)):
        raise TypingError("dot takes contiguous vectors of float64")

    def generate(context, builder, signature, arguments):
        index, number = ir.IntType(64), ir.DoubleType()
        abreast = ir.VectorType(number, 8)

        def start(k):
            data = context.make_array(signature.args[k])(context, builder, arguments[k]).data
            return builder.gep(data, [context.cast(builder, arguments[k + 1], signature.args[k + 1], types.uint64)])

        left, right = start(0), start(2)
        count = context.cast(builder, arguments[4], signature.args[4], types.uint64)
        blocks = builder.lshr(count, index(3))
        sums = cgutils.alloca_once_value(builder, abreast([0.0] * 8))
        with cgutils.for_range(builder, blocks) as loop:
            at = builder.shl(loop.index, index(3))
            x, y = (
                builder.load(builder.bitcast(builder.gep(side, [at]), abreast.as_pointer()), align=8)
                for side in (left, right)
            )
            builder.store(builder.fadd(builder.load(sums), builder.fmul(x, y)), sums)
        rest = cgutils.alloca_once_value(builder, number(0.0))
        with cgutils.for_range_slice(builder, builder.shl(blocks, index(3)), count, index(1)) as (at, _):
            x, y = (builder.load(builder.gep(side, [at])) for side in (left, right))
            builder.store(builder.fadd(builder.load(rest), builder.fmul(x, y)), rest)
        parts = [builder.extract_element(builder.load(sums), ir.IntType(32)(k)) for k in range(8)]
        while len(parts) > 1:
            half = len(parts) // 2
            parts = [builder.fadd(x, y) for x, y in zip(parts[:half], parts[half:], strict=True)]
        return builder.fadd(parts[0], builder.load(rest))

    return types.float64(a, i, b, j, n), generate


@jit
def extremes(x, z):
    """The smallest and the largest entry, by ABREAST running ones side by side, kept in z."""
    one, lanes = np.uint32(1), np.uint32(ABREAST)
    for v in range(lanes):
        z[v], z[lanes + v] = np.inf, -np.inf
    whole = np.uint32(x.size) // lanes * lanes
    for row in range(np.uint32(0), whole, lanes):
        for v in range(lanes):
            a = x[row + v]
            z[v] = a if a < z[v] else z[v]
            z[lanes + v] = a if a > z[lanes + v] else z[lanes + v]
    for j in range(whole, np.uint32(x.size), one):
        z[0], z[lanes] = min(z[0], x[j]), max(z[lanes], x[j])
    smallest, largest = np.inf, -np.inf
    for v in range(lanes):
        smallest, largest = min(smallest, z[v]), max(largest, z[lanes + v])
    return smallest, largest


def plain_fma(a, b, c):
    """The same in plain Python, but for the last bits."""
    return a * b + c


def plain_dot(a, i, b, j, n):
    """The same in plain Python, but for the last bits."""
    return np.dot(a[i : i + n], b[j : j + n])


if config.DISABLE_JIT:  # type: ignore[attr-defined]  # somebody looks at the kernels with a debugger
    fma, dot = plain_fma, plain_dot  # type: ignore[assignment]
