"""A learning rate that needs neither units nor a horizon.

η = 1/√(F²/h² + S/κ²): F is the largest span of an f so far, S the sum of squares of the spans of f − (f before). Losses
that do not change leave η at h/F; those that change all the time make it fall like 1/√m.
"""

import math

from tightrope import core
from tightrope.space import FloatArray, LayeredSpace


def spans_after(
    space: LayeredSpace, f: FloatArray, last: FloatArray, F: float, S: float, steps: int
) -> tuple[float, float]:
    """F and S with one more f, after so many."""
    span = core.span(space.native, f)
    change = core.span(space.native, f - last) if steps > 0 else 0.0
    return max(F, span if span >= core.SMALLEST else 0.0), S + change * change


def rate(F: float, S: float, first_rate: float, change_rate: float) -> float:
    """η; 1 as long as no loss made a difference."""
    if F <= 0:
        return 1.0
    fixed, grown = F / first_rate, math.sqrt(S) / change_rate
    largest = max(fixed, grown)  # taken out of the root, lest a square underflow
    return 1 / (largest * math.sqrt((fixed / largest) ** 2 + (grown / largest) ** 2))
