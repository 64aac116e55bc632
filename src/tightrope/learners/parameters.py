"""A learner declares itself: its parameters, and what it carries from episode to episode, are fields of its class.

    class Mine(LearnerBase):
        rate: float = parameter(POSITIVE, default=PUBLISHED)
        growth: float = parameter(NOT_NEGATIVE, default=0.01)
        weights: FloatArray = carried()

From the parameters follow its signature, its `settings` and the options of `make_learner`; from parameters and what is
carried, what a checkpoint holds.
"""

import dataclasses
import math
from typing import Any, ClassVar, Literal, NamedTuple, dataclass_transform

from tightrope.arguments import EXTREME, real, shown
from tightrope.errors import InvalidInputError


class Range(NamedTuple):
    """The numbers that a parameter may be, and how that is said."""

    low: float
    high: float
    includes_low: bool
    includes_high: bool
    words: str

    def checked(self, name: str, value: object) -> float:
        """`value` as a float of this range."""
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


#: The default of a parameter whose published value depends on the problem: `default_to` has it.
PUBLISHED: Any = None


def parameter(values: Range, *, default: Any = dataclasses.MISSING) -> Any:
    """A number of this range that a learner is made with; without a default it must be told."""
    return dataclasses.field(default=default, metadata={"range": values})


def carried(*, since: int = 0, init: Literal[False] = False) -> Any:
    """What changes as it learns: an array, a number, a policy, a generator, or an object with `state` and `restore`.

    Between what a number or array lies, the learner says in its `bounds`. A checkpoint of a schema before `since` does
    not have it, and leaves it as a new learner has it.
    """
    return dataclasses.field(init=init, metadata={"carried": since})


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(parameter, carried, dataclasses.field))
class Declared:
    """Every subclass is a dataclass with keyword-only fields, as type checkers know from here."""

    _init_by_hand: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._init_by_hand |= "__init__" in vars(cls)  # then whoever derives from it inherits that one
        dataclasses.dataclass(kw_only=True, eq=False, repr=False, init=not cls._init_by_hand)(cls)

    @classmethod
    def parameter_fields(cls) -> "dict[str, dataclasses.Field[Any]]":
        """What it is made with, in the order of its signature."""
        return {field.name: field for field in dataclasses.fields(cls) if field.init}  # type: ignore[arg-type]

    @classmethod
    def carried_names(cls, schema: float = math.inf) -> list[str]:
        """The attributes that are its state, in that schema; all else follows from them and its parameters."""
        fields = [field for field in dataclasses.fields(cls) if "carried" in field.metadata]  # type: ignore[arg-type]
        return [field.name for field in fields if field.metadata["carried"] <= schema]
