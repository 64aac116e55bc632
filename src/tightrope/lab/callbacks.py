"""Whoever wants to know what a run records while it is played: trackers of experiments, boards, rules for stopping."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from tightrope.errors import CallbackError


class Record(NamedTuple):
    """What a callback is told at each record of a run."""

    run: str  #: which run it is: problem, learner and seed; in a study the name of its folder
    episode: int  #: how many were played
    episodes: int  #: how many there will be
    metrics: dict[str, float]  #: the columns of the history at this record, in the problem's own units


class Stop(NamedTuple):
    """What a callback answers to end the run there and then."""

    reason: str = "no reason was given"


#: Called at each record. A `Stop` ends the run; any other answer is no matter.
Callback = Callable[[Record], object]


def ask(callback: Callback, record: Record) -> Stop | None:
    """What the callback says to the record; an error of its own is named."""
    try:
        answer = callback(record)
    except CallbackError:  # named already, by who passed the record on
        raise
    except Exception as error:
        raise CallbackError(
            f"the callback {name_of(callback)} raised {type(error).__name__} after episode {record.episode} of "
            f"{record.run}: {error}"
        ) from error
    if answer is Stop:
        return Stop()
    return Stop(str(answer.reason)) if isinstance(answer, Stop) else None


def name_of(callback: Callback) -> str:
    """What to call it in an error."""
    if isinstance(callback, partial):
        return name_of(callback.func)
    return str(getattr(callback, "__qualname__", type(callback).__name__))
