"""The state of a learner: a frozen dataclass whose fields declare their types and limits.

    @state
    class MyState(State):
        theta: FloatArray = measure()
        multipliers: FloatArray = numbers(least=0)

A state is a value: a step returns a new one and does not write to the arrays of the old one. A checkpoint holds the
fields. When one is read, a number or an array must have the type and shape that it has in a new learner, be finite, and
lie between `least` and `most`; a measure must be an occupancy measure of the space.
"""

import dataclasses
import math
from typing import Any, NamedTuple, TypeVar, dataclass_transform

import numpy as np

from tightrope.errors import InvalidInputError
from tightrope.model import check_measure
from tightrope.space import LayeredSpace


class Limits(NamedTuple):
    """The limits of a field of a state."""

    least: float = -math.inf
    most: float = math.inf
    is_measure: bool = False  #: an occupancy measure of the learner's space
    are_tuples: bool = False  #: numbers of tuples of the learner's space
    since: int = 0  #: the first schema of checkpoints that has the field
    written_as: str = ""  #: its name in a checkpoint, if it differs


def numbers(
    *,
    least: float = -math.inf,
    most: float = math.inf,
    since: int = 0,
    written_as: str = "",
    default: Any = dataclasses.MISSING,
) -> Any:
    """Declare a field for a number, or an array of them, between `least` and `most`.

    Checkpoints with a schema before `since` lack the field; it then has the value of a new learner.
    """
    limits = {"limits": Limits(least, most, since=since, written_as=written_as)}
    return dataclasses.field(default=default, metadata=limits)


def measure() -> Any:
    """Declare a field for an occupancy measure (n_tuples,), or an array of them (k, n_tuples)."""
    return dataclasses.field(metadata={"limits": Limits(0.0, is_measure=True)})


def tuples() -> Any:
    """Declare a field for an array of integers, each the number of a tuple."""
    return dataclasses.field(metadata={"limits": Limits(0.0, are_tuples=True)})


def part(*, written_as: str = "") -> Any:
    """Declare a field for a policy, a generator, or a value with `state` and `restored`, which checks itself."""
    return dataclasses.field(metadata={"limits": Limits(written_as=written_as)})


T = TypeVar("T")


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(numbers, measure, tuples, part))
def state(cls: type[T]) -> type[T]:
    """Make a class a frozen dataclass with keyword-only fields."""
    return dataclasses.dataclass(frozen=True, slots=True, kw_only=True)(cls)


@state
class State:
    """The field that every state has."""

    observed: int = numbers(least=0, default=0)  #: episodes so far


def limits_of(state: State | type[State]) -> dict[str, Limits]:
    """Return the limits of each field, by its name in the class."""
    return {field.name: field.metadata.get("limits", Limits()) for field in dataclasses.fields(state)}


def check_field(space: LayeredSpace, name: str, value: Any, limits: Limits) -> None:
    """Raise `InvalidInputError` unless a number or array is finite and within its limits; other values pass."""
    if not isinstance(value, int | float | np.ndarray):
        return
    values, most = np.asarray(value), space.n_tuples - 1 if limits.are_tuples else limits.most
    outside = ~((limits.least <= values) & (values <= most) & np.isfinite(values))
    if outside.any():
        at = np.unravel_index(int(np.argmax(outside)), outside.shape)
        where = f" at index {', '.join(map(str, at))}" if at else ""
        raise InvalidInputError(
            f"{name} is {values[at]:.6g}{where}; expected a finite number from {limits.least:g} to {most:g}"
        )
    if limits.is_measure and values.ndim == 1:
        check_measure(space, values, name)
    elif limits.is_measure:
        for i, row in enumerate(values):
            check_measure(space, row, f"{name}[{i}]")
