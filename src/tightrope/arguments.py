"""What a user asked for by name: refuse what does not exist, and say what does."""

import difflib
import inspect
from collections.abc import Callable, Iterable, Mapping
from numbers import Integral, Real
from typing import Any

from tightrope.errors import InvalidInputError

#: The most characters of a value that an error shows.
LONGEST = 200


def shown(value: object) -> str:
    """What to call a value in an error: its repr, unless that is long, or cannot be had."""
    try:
        text = repr(value)
    except Exception:  # a number of too many digits, an object of somebody else's
        return f"a {type(value).__name__}"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def unknown(complaint: str, name: object, known: Iterable[str]) -> InvalidInputError:
    """The error for a `name` that is none of `known`: the complaint, the nearest one, and all of them."""
    names = sorted(known)
    near = difflib.get_close_matches(str(name), names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return InvalidInputError(f"{complaint} {name!r}{hint} (known: {', '.join(names) or 'none'})")


def options_of(function: Callable[..., object]) -> dict[str, Any]:
    """The keyword-only options of `function` and their defaults, in order."""
    parameters = inspect.signature(function).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}


def check_options(owner: str, function: Callable[..., object], options: Mapping[str, Any]) -> None:
    """Refuse an option that `function` does not know, and the lack of one that it cannot do without."""
    known = options_of(function)
    for name in options:
        if name not in known:
            raise unknown(f"{owner} has no option", name, known)
    for name, default in known.items():
        if default is inspect.Parameter.empty and name not in options:
            raise InvalidInputError(f"{owner} needs the option {name!r}")


def whole(value: object, name: str, at_least: int) -> int:
    """`value` as an int of at least `at_least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < at_least:
        raise InvalidInputError(f"{name} is {value!r}; it must be a whole number of at least {at_least}")
    return int(value)


def number(value: object, name: str, low: float, high: float) -> float:
    """`value` as a float in [low, high]."""
    if isinstance(value, bool) or not isinstance(value, Real) or not low <= float(value) <= high:
        raise InvalidInputError(f"{name} is {value!r}; it must be a number from {low:g} to {high:g}")
    return float(value)
