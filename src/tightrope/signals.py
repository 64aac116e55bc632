"""Ends before their time: whatever ends a process, short of SIGKILL, nothing half done is left behind.

Only the command answers signals (`answer_signals`); a program that imports tightrope keeps its own ways.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from types import FrameType
from typing import NoReturn

#: What asks a process to end, and how we say that it did. SIGHUP is not known everywhere.
WORDS = {
    "SIGINT": "interrupted",
    "SIGTERM": "ended on request (SIGTERM)",
    "SIGHUP": "ended, for its terminal is gone (SIGHUP)",
}
SIGNALS = {signal.Signals[name]: words for name, words in WORDS.items() if hasattr(signal, name)}

#: Seconds between two looks at whether a parent is still there.
LOOK_EVERY = 0.5

Duty = Callable[[], object]

_duties: list[Duty] = []
_advice: list[str] = []
_held = 0
_waiting: list[int] = []


@contextmanager
def finally_(duty: Duty) -> Iterator[None]:
    """Do `duty` once the block is left, or when a signal ends the process inside it: once, and not interrupted."""
    _duties.append(duty)
    try:
        yield
    finally:
        with held():
            _duties.remove(duty)
            duty()


@contextmanager
def advising(words: str) -> Iterator[None]:
    """Add `words` to the line that is printed when a signal ends the process inside the block."""
    _advice.append(words)
    try:
        yield
    finally:
        _advice.pop()


@contextmanager
def held() -> Iterator[None]:
    """A signal that comes inside the block is answered after it."""
    global _held
    _held += 1
    try:
        yield
    finally:
        _held -= 1
        if _waiting and not _held:
            _answer(_waiting[0], None)


def answer_signals(*ignored: signal.Signals) -> None:
    """From now on a signal is one line on stderr and the exit code 128 + its number, at whatever moment it comes.

    Raised as an exception, as Python would, it may come where exceptions are lost or shown: in a finaliser, a callback,
    an import. What whoever started us chose to ignore (nohup, a job in the background) stays so, but for `ignored`.
    """
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN or number in ignored:
            signal.signal(number, _answer)


def end(code: int, words: str = "") -> NoReturn:
    """Do all duties, the last one first, and end here and now."""
    for duty in reversed(_duties):
        with suppress(Exception):
            duty()
    with suppress(OSError):
        os.write(2, words.encode())
    os._exit(code)


@cache
def end_with_parent() -> None:
    """A process that multiprocessing or joblib started ends when who started it does, whatever ends that.

    Without it, such a process finishes what it was asked to do. In others, this does nothing.
    """
    from multiprocessing import parent_process  # the command answers no signal before this module is imported
    from threading import Thread

    if (parent := parent_process()) is not None:
        Thread(target=_watch, args=(parent.pid,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:  # who is orphaned gets another one
        time.sleep(LOOK_EVERY)
    end(1)


def _answer(number: int, frame: FrameType | None) -> None:
    if _held:
        _waiting.append(number)
        return
    for other in SIGNALS:
        signal.signal(other, signal.SIG_IGN)
    end(128 + number, f"tightrope: {'; '.join([SIGNALS[signal.Signals(number)], *_advice])}\n")
