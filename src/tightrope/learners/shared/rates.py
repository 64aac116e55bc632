"""A learning rate that needs neither units nor a horizon.

η = 1/√(F²/h² + S/κ²): F is the largest span of an f so far, S the sum of squares of the spans of f − (f before). Losses
that do not change leave η at h/F; those that change all the time make it fall like 1/√m.
"""

import numpy as np

from tightrope.learners.kernels.played import SMALLEST, from_least
from tightrope.space import FloatArray, LayeredSpace


def spans_after(
    space: LayeredSpace, f: FloatArray, last: FloatArray, F: float, S: float, steps: int
) -> tuple[float, float]:
    """F and S with one more f, after so many."""
    shifted = np.empty_like(f)
    change, _ = from_least(space.tuples_before, f - last, shifted)
    span, _ = from_least(space.tuples_before, f, shifted)
    return max(F, span if span >= SMALLEST else 0.0), S + (change**2 if steps > 0 else 0.0)


def rate(F: float, S: float, first_rate: float, change_rate: float) -> float:
    """η; 1 as long as no loss made a difference."""
    return float(1 / np.hypot(F / first_rate, np.sqrt(S) / change_rate)) if F > 0 else 1.0
