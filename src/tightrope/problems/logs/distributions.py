"""The tail of chi-squared and the quantiles of Student's t, for whole degrees of freedom, as finite sums.

References
----------
Abramowitz & Stegun, Handbook of Mathematical Functions, 26.4.4, 26.4.5, 26.7.3 and 26.7.4.
"""

import math
from statistics import NormalDist

import numpy as np


def chi_squared_tail(x: float, freedom: int) -> float:
    """P(X >= x) for X chi-squared with `freedom` >= 1 degrees of freedom."""
    if x <= 0:
        return 1.0
    half, odd = x / 2, freedom % 2
    # e^(−h) h^k / Γ(k+1) at k = 0, 1, … or, if odd, at k = 1/2, 3/2, …, by their logarithms
    k = np.arange(freedom // 2) + odd / 2
    first = k[0] * math.log(half) - half - math.lgamma(k[0] + 1) if len(k) else 0.0
    terms = np.exp(first + np.append(0.0, np.cumsum(math.log(half) - np.log(k[1:])))[: len(k)])
    return min(1.0, float(terms.sum()) + (math.erfc(math.sqrt(half)) if odd else 0.0))


def student_quantile(p: float, freedom: int) -> float:
    """The p-quantile, 1/2 <= p <= 1, of Student's t with `freedom` >= 1 degrees of freedom."""
    if p == 1.0:
        return math.inf
    t = NormalDist().inv_cdf(p)  # below the answer: the tails of t are heavier
    while True:  # the distribution is concave here: Newton's steps stay below the answer, and grow towards it
        inside, density = _student(t, freedom)
        step = (2 * p - 1 - inside) / (2 * density)
        if step <= 1e-15 * t:
            return t
        t += step


def _student(t: float, freedom: int) -> tuple[float, float]:
    """P(|T| <= t) and the density at t."""
    angle = math.atan(t / math.sqrt(freedom))
    sine, cosine = math.sin(angle), math.cos(angle)
    if freedom % 2:
        k = np.arange(1, freedom // 2)
        sums = float(np.append(1.0, np.cumprod(cosine**2 * 2 * k / (2 * k + 1))).sum()) if freedom > 1 else 0.0
        inside = (2 / math.pi) * (angle + sine * cosine * sums)
    else:
        k = np.arange(1, freedom // 2)
        inside = sine * float(np.append(1.0, np.cumprod(cosine**2 * (2 * k - 1) / (2 * k))).sum())
    scale = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - math.log(freedom * math.pi) / 2
    return inside, math.exp(scale - (freedom + 1) / 2 * math.log1p(t * t / freedom))
