"""The errors of tightrope. Each message says what is wrong, where, and what to do about it."""

from collections.abc import Sequence
from typing import Any


class TightropeError(Exception):
    """Base of every error that tightrope raises on purpose.

    >>> import tightrope as tr
    >>> try:
    ...     tr.make("edge-clouds")
    ... except tr.TightropeError as error:
    ...     print(type(error).__name__)
    InvalidInputError
    """


class InvalidInputError(TightropeError, ValueError):
    """An argument, a file or a configuration is invalid; the message names the place. It is also a ValueError.

    >>> import tightrope as tr
    >>> try:
    ...     tr.run("media-streaming", "uniform", episodes=0)
    ... except tr.InvalidInputError as error:
    ...     print("refused")
    refused
    """


class UnknownColumnError(InvalidInputError, KeyError):
    """A table has no column of that name; the message names the nearest one. Also a KeyError, as mappings promise."""

    __str__ = Exception.__str__  # KeyError would print the repr of the message


class InfeasibleError(InvalidInputError):
    """No policy can meet the budgets; the message names the budget and by how much it falls short.

    >>> import tightrope as tr
    >>> one_step = tr.LayeredMDP(tr.LayeredSpace.dense([1, 1], n_actions=1), [1.0])
    >>> try:
    ...     tr.solve_cmdp(one_step, loss=[0.0], constraints=[[1.0]], budgets=[0.5])
    ... except tr.InfeasibleError:
    ...     print("every policy uses 1")
    every policy uses 1
    """


class ConvergenceError(TightropeError, RuntimeError):
    """A solver did not reach its tolerance; no inexact result is returned. It is also a RuntimeError.

    >>> import tightrope as tr
    >>> issubclass(tr.ConvergenceError, RuntimeError)
    True
    """


class StorageError(TightropeError, RuntimeError):
    """Files of a durable learner are damaged or cannot be written; the operation was not acknowledged."""


class UnknownEpisodeError(InvalidInputError):
    """An episode that was never opened here, or was settled too long ago to be remembered."""


class ConflictError(InvalidInputError):
    """An episode was settled before with another outcome, or its policy is one that the learner cannot learn from."""


class TooManyOpenError(TightropeError, RuntimeError):
    """The largest number of open episodes is reached; tell or give up some first."""


class CallbackError(TightropeError, RuntimeError):
    """A callback raised an error, which is `__cause__`. `run` is the run, which can continue.

    In a comparison, `histories` are those of the runs that finished before, in order.

    >>> import tightrope as tr
    >>> try:
    ...     tr.run("media-streaming", "uniform", episodes=10, callback=lambda record: 1 / 0)
    ... except tr.CallbackError as error:
    ...     history = error.run.play()  # plays the rest, without the callback
    >>> float(history["episode"][-1])
    10.0
    """

    run: Any = None
    histories: Sequence[Any] = ()


class MissingPackageError(InvalidInputError, ImportError):
    """An optional package is not installed; the message says how to install it."""


def missing(package: str, extra: str) -> MissingPackageError:
    """Return the error for an optional `package` that is not installed, which the extra `extra` includes."""
    return MissingPackageError(f"this needs {package}, which is not installed: pip install 'tightrope[{extra}]'")


def in_words(error: OSError) -> str:
    """Return the message of an error of the operating system, with its file."""
    words = error.strerror or str(error)
    return words if error.filename is None else f"{error.filename}: {words}"
