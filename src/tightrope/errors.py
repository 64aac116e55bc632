"""What can go wrong, in words. Every error of ours says what is wrong, where, and what to do about it."""

from collections.abc import Sequence
from typing import Any


class TightropeError(Exception):
    """Base of every error that tightrope raises on purpose."""


class InvalidInputError(TightropeError, ValueError):
    """Something given to tightrope does not make sense; the message names the place."""


class UnknownColumnError(InvalidInputError, KeyError):
    """A table has no column of that name; the message names the nearest one. Also a KeyError, as mappings promise."""

    __str__ = Exception.__str__  # KeyError would print the repr of the message


class InfeasibleError(InvalidInputError):
    """No policy can meet the budgets; the message names the budget and by how much it falls short."""


class ConvergenceError(TightropeError, RuntimeError):
    """A solver did not reach its tolerance. Nothing inexact is ever returned in its place."""


class StorageError(TightropeError, RuntimeError):
    """What is on disk cannot be written, or is damaged. Nothing that could not be kept is ever acknowledged."""


class UnknownEpisodeError(InvalidInputError):
    """An episode that was never handed out here, or so long ago that nothing is remembered of it."""


class ConflictError(InvalidInputError):
    """An episode was settled otherwise before, or was played by a policy that the learner cannot learn from."""


class TooManyOpenError(TightropeError, RuntimeError):
    """As many episodes are open as may be; tell or give up some first."""


class CallbackError(TightropeError, RuntimeError):
    """A callback raised an error of its own, `__cause__`. The run, which can go on, is in `run`.

    Of a comparison, `histories` are those that were finished before, in order.
    """

    run: Any = None
    histories: Sequence[Any] = ()


class MissingPackageError(InvalidInputError, ImportError):
    """An optional package is not installed; the message says how to install it."""


def missing(package: str, extra: str) -> MissingPackageError:
    """The error for an optional `package` that could not be imported; `extra` of ours brings it."""
    return MissingPackageError(f"this needs {package}, which is not installed: pip install 'tightrope[{extra}]'")


def in_words(error: OSError) -> str:
    """What the system says, and about which file."""
    words = error.strerror or str(error)
    return words if error.filename is None else f"{error.filename}: {words}"
