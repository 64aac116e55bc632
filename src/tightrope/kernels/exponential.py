"""e^x in a form that compilers vectorise: no branches, no calls."""

import math

import numpy as np

from tightrope.kernels.compile import jit

LARGEST = 700.0
LOG2_E = 1.0 / math.log(2.0)
LN_2_HIGH = 0.693147180369123816490  # its last bits are zero: n · LN_2_HIGH is exact
LN_2_LOW = 1.90821492927058770002e-10
POWERS_OF_2 = np.ldexp(1.0, np.arange(-1022, 1024))
C = tuple(1.0 / math.factorial(k) for k in range(13))


@jit
def exp(x):
    """e^x to a few units in the last place: 2^n times Taylor's series on |r| <= log(2)/2. 0 or inf beyond ±LARGEST."""
    z = x if x > -LARGEST else -LARGEST  # NaN too: whatever comes in, the look-up below stays in its table
    z = z if z < LARGEST else LARGEST
    n = np.floor(z * LOG2_E + 0.5)
    r = (z - n * LN_2_HIGH) - n * LN_2_LOW
    y = C[12]
    y = y * r + C[11]
    y = y * r + C[10]
    y = y * r + C[9]
    y = y * r + C[8]
    y = y * r + C[7]
    y = y * r + C[6]
    y = y * r + C[5]
    y = y * r + C[4]
    y = y * r + C[3]
    y = y * r + C[2]
    y = y * r + C[1]
    y = y * r + C[0]
    within = y * POWERS_OF_2[np.uint32(n + 1022.0)]
    return within if abs(x) <= LARGEST else (np.inf if x > 0.0 else 0.0)
