"""Validation of arguments: values of users are converted, or refused with the name of the argument.

Every public function calls these functions first. A valid array is returned without a copy. A value of a wrong kind
(None, text, an array of another shape, a number of 400 digits, an object that raises) causes an InvalidInputError
before large arrays are allocated.
"""

import difflib
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from itertools import islice
from numbers import Integral, Real
from os import PathLike, fsencode, fspath
from pathlib import Path
from typing import Any, TypeVar

from tightrope.errors import InvalidInputError

#: The most characters of a value that an error shows.
LONGEST = 200

#: The most names that an error lists.
LISTED = 30

#: How similar a name must be, from 0 to 1, for an error to suggest it; n_steps and noises have 0.62.
SIMILAR = 0.65

#: The largest whole number: larger ones are not exact as floats.
LARGEST = 2**53

#: Parameters are at most this, positive ones at least its inverse: a product of six does not overflow.
EXTREME = 1e50

#: The most moves of a model: more would not fit into memory.
MOST = 100_000_000

#: The most states of a problem whose states are listed one by one.
MOST_STATES = 1_000_000

#: The most entries that are read from an iterable that is not an array, which may be endless.
MANY = 10_000_000

#: The most runs of a study.
MOST_RUNS = 100_000

Kind = TypeVar("Kind")


def shown(value: object) -> str:
    """Return the text for a value in an error: its repr, cut if long; its type if the repr raises an error."""
    try:
        text = repr(value)
    except Exception:  # an int with too many digits, or an object of another library
        return f"a {type(value).__name__}"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def printable(path: object) -> str:
    """Return the name of a file as one line of printable text; other characters are escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(path))


def unknown(complaint: str, name: object, known: Iterable[str]) -> InvalidInputError:
    """Return the error for a `name` that is not in `known`, with the nearest name and a list of the known ones."""
    names = sorted(known)
    near: list[str] = []
    if isinstance(name, str) and len(name) <= LONGEST:  # a long name would take seconds
        near = difflib.get_close_matches(name, names, n=1, cutoff=SIMILAR)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return InvalidInputError(f"{complaint} {shown(name)}{hint} (known: {', '.join(names[:LISTED]) or 'none'}{more})")


def options_of(function: Callable[..., object]) -> dict[str, Any]:
    """Return the keyword-only options of `function` and their defaults, in order."""
    parameters = inspect.signature(function).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}


def check_options(owner: str, function: Callable[..., object], options: Mapping[str, Any]) -> None:
    """Refuse an option that `function` does not have, and a missing option without a default."""
    known = options_of(function)
    for name in options:
        if name not in known:
            raise unknown(f"{owner} has no option", name, known)
    for name, default in known.items():
        if default is inspect.Parameter.empty and name not in options:
            raise InvalidInputError(f"{owner} needs the option {name!r}")


def named(
    value: object, name: str, makers: Mapping[str, Callable[..., Kind]], what: str, otherwise: str
) -> tuple[Callable[..., Kind], dict[str, Any]]:
    """Return the function in `makers` that `value` names, and its options.

    Parameters
    ----------
    value : a name, or a mapping with "name" and options.
    name : the name of the argument, for errors.
    makers : the functions by name.
    what : what these are, such as "noise", for errors.
    otherwise : what the caller accepts besides names, for errors.
    """
    table = {"name": value} if isinstance(value, str) else value
    if not isinstance(table, Mapping):
        names = ", ".join(sorted(makers))
        expected = f"expected a name ({names}), a table with a name and options, or {otherwise}"
        raise InvalidInputError(f"{name} is {shown(value)}; {expected}")
    options = {text(key, f"an option of {name}"): option for key, option in table.items()}
    which = options.pop("name", None)
    if not isinstance(which, str) or which not in makers:
        raise unknown(f"there is no {what}", which, makers)
    check_options(f"the {what} {which!r}", makers[which], options)
    return makers[which], options


def whole(value: object, name: str, at_least: int, at_most: int = LARGEST) -> int:
    """Return `value` as an int from `at_least` to `at_most`, or raise InvalidInputError."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not at_least <= int(value) <= at_most:
        limited = at_most < LARGEST or (isinstance(value, int) and value > at_most)
        limit = f" and at most {at_most}" if limited else ""
        raise InvalidInputError(f"{name} is {shown(value)}; it must be a whole number of at least {at_least}{limit}")
    return int(value)


def number(value: object, name: str, low: float, high: float) -> float:
    """Return `value` as a float in [low, high], or raise InvalidInputError."""
    found = real(value)
    if found is None or not low <= found <= high:
        raise InvalidInputError(f"{name} is {shown(value)}; it must be a number from {low:g} to {high:g}")
    return found


def real(value: object) -> float | None:
    """Return `value` as a float; None if it is not a real number, or overflows."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        return float(value)
    except (ArithmeticError, ValueError, TypeError):
        return None


def instance(value: object, name: str, kind: type[Kind]) -> Kind:
    """Return `value` if it is an instance of `kind`, or raise InvalidInputError."""
    if not isinstance(value, kind):
        raise InvalidInputError(f"{name} is {shown(value)}; expected a {kind.__name__}")
    return value


def implements(value: Any, name: str, protocol: Any) -> Any:
    """Return `value` if it has all attributes and methods of a protocol, or raise InvalidInputError."""
    return having(value, name, *(member for member in dir(protocol) if not member.startswith("_")))


def having(value: Any, name: str, *members: str) -> Any:
    """Return `value` if it is an object with these attributes and methods, or raise InvalidInputError."""
    if isinstance(value, type) or not all(hasattr(value, member) for member in members):
        what = f"the class {value.__name__}" if isinstance(value, type) else shown(value)
        raise InvalidInputError(f"{name} is {what}; expected an object with {', '.join(members)}")
    return value


def text(value: object, name: str) -> str:
    """Return `value` if it is text, or raise InvalidInputError."""
    return instance(value, name, str)


def texts(values: object, name: str) -> tuple[str, ...]:
    """Return an iterable of texts as a tuple, or raise InvalidInputError."""
    return tuple(text(value, f"{name}[{k}]") for k, value in enumerate(listed(values, name)))


def listed(values: object, name: str) -> list[Any]:
    """Return the entries of an iterable that is not text, or raise InvalidInputError if there are too many."""
    if isinstance(values, Iterable) and not isinstance(values, str | bytes | bytearray | Mapping):
        try:
            if not isinstance(values, Sized) or len(values) <= MANY:
                entries = list(islice(values, MANY + 1))
                if len(entries) <= MANY:
                    return entries
        except Exception as error:
            raise InvalidInputError(f"{name} cannot be listed: {shown(error)}") from error
        raise InvalidInputError(f"{name} has more than {MANY} entries")
    raise InvalidInputError(f"{name} is {shown(values)}; expected a sequence of values")


def file_path(value: object, name: str) -> Path:
    """Return `value` as the path of a file, or raise InvalidInputError."""
    try:
        path = fspath(value) if isinstance(value, str | PathLike) else b""
        if isinstance(path, str) and "\0" not in path:
            fsencode(path)
            return Path(path)
    except Exception as error:  # of an object of another library
        raise InvalidInputError(f"{name} is {shown(value)}, which is not a path: {shown(error)}") from error
    raise InvalidInputError(f"{name} is {shown(value)}; expected the path of a file")


def choice(value: object, name: str, known: Sequence[str]) -> str:
    """Return `value` if it is one of the `known` names, or raise InvalidInputError."""
    if not (isinstance(value, str) and value in known):
        raise unknown(f"{name} cannot be", value, known)
    return value


def function(value: object, name: str) -> Callable[..., Any]:
    """Return `value` if it is a function, or raise InvalidInputError."""
    if not callable(value) or isinstance(value, type):
        raise InvalidInputError(f"{name} is {shown(value)}; expected a function")
    return value


def room(moves: int, what: str) -> None:
    """Raise InvalidInputError if so many moves would not fit into memory."""
    if moves > MOST:
        raise InvalidInputError(f"{what} would have {min(moves, 10**99):.3g} moves; at most {MOST} fit")
