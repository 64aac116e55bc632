"""The parameters of a learner are fields of its class.

    class Mine(LearnerBase[MyState]):
        rate: float = parameter(POSITIVE, default=PUBLISHED)
        growth: float = parameter(NOT_NEGATIVE, default=0.01)

They define its signature, its `settings`, the options of `make_learner`, and the parameters in a checkpoint.
"""

import dataclasses
import math
from typing import Any, NamedTuple

from tightrope.arguments import EXTREME, real, shown
from tightrope.errors import InvalidInputError


class Range(NamedTuple):
    """The range of a parameter, and its description in errors."""

    low: float
    high: float
    includes_low: bool
    includes_high: bool
    words: str

    def checked(self, name: str, value: object) -> float:
        """Return `value` as a float in this range, or raise InvalidInputError."""
        number = real(value)
        if number is None:
            raise InvalidInputError(f"{name} is {shown(value)}; it must be a number")
        above = self.low < number or (self.includes_low and number == self.low)
        below = number < self.high or (self.includes_high and number == self.high)
        if above and below:
            return number
        raise InvalidInputError(f"{name} is {shown(value)}; {self.words}")


POSITIVE = Range(1 / EXTREME, EXTREME, True, True, f"it must be positive, from {1 / EXTREME:g} to {EXTREME:g}")
NOT_NEGATIVE = Range(0, EXTREME, True, True, f"it must not be negative, and at most {EXTREME:g}")
PROBABILITY = Range(1 / EXTREME, 1, True, False, f"it is a probability of at least {1 / EXTREME:g} and below 1")
SHARE = Range(0, 1, True, True, "it lies in [0, 1]")
POSITIVE_SHARE = Range(0, 1, False, True, "it lies in (0, 1]")
ANY = Range(-math.inf, math.inf, False, True, "it must be a number")


#: The default of a parameter whose published value depends on the problem; `configure` sets it by `default_to`.
PUBLISHED: Any = None


def parameter(values: Range, *, default: Any = dataclasses.MISSING) -> Any:
    """Declare a parameter of a learner, a number in this range; without a default it is required."""
    return dataclasses.field(default=default, metadata={"range": values})
