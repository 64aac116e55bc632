"""Signal handling: clean up before a signal other than SIGKILL ends the process.

Only the command handles signals (`answer_signals`); a program that imports tightrope keeps its own handlers.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from types import FrameType
from typing import NoReturn

#: The signals that end the process, and the messages for them. Some systems have no SIGHUP.
WORDS = {
    "SIGINT": "interrupted",
    "SIGTERM": "ended on request (SIGTERM)",
    "SIGHUP": "ended because its terminal was closed (SIGHUP)",
}
SIGNALS = {signal.Signals[name]: words for name, words in WORDS.items() if hasattr(signal, name)}

#: Seconds between two checks whether the parent process is alive.
LOOK_EVERY = 0.5

Duty = Callable[[], object]

_duties: list[Duty] = []
_advice: list[str] = []
_held = 0
_waiting: list[int] = []


@contextmanager
def finally_(duty: Duty) -> Iterator[None]:
    """Call `duty` once when the block ends, or when a signal ends the process inside it, without interruption."""
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
    """Delay signals that arrive inside the block until it ends."""
    global _held
    _held += 1
    try:
        yield
    finally:
        _held -= 1
        if _waiting and not _held:
            _answer(_waiting[0], None)


def answer_signals(*ignored: signal.Signals) -> None:
    """Handle signals: print one line to stderr and exit with code 128 + the number of the signal.

    Python would raise an exception instead, which gets lost or prints a traceback in finalisers, callbacks and imports.
    Signals that the parent process ignores (nohup, a background job) stay ignored, except for those in `ignored`.
    """
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN or number in ignored:
            signal.signal(number, _answer)


def end(code: int, words: str = "") -> NoReturn:
    """Call all duties, in reverse order, and exit immediately."""
    for duty in reversed(_duties):
        with suppress(Exception):
            duty()
    with suppress(OSError):
        os.write(2, words.encode())
    os._exit(code)


@cache
def end_with_parent() -> None:
    """End a process that multiprocessing or joblib started as soon as its parent ends, even by SIGKILL.

    Without this, it would finish its task. In other processes this does nothing.
    """
    from multiprocessing import parent_process  # late, so that the command handles signals as early as possible
    from threading import Thread

    if (parent := parent_process()) is not None:
        Thread(target=_watch, args=(parent.pid,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:  # an orphan gets another parent
        time.sleep(LOOK_EVERY)
    end(1)


def _answer(number: int, frame: FrameType | None) -> None:
    if _held:
        _waiting.append(number)
        return
    for other in SIGNALS:
        signal.signal(other, signal.SIG_IGN)
    end(128 + number, f"tightrope: {'; '.join([SIGNALS[signal.Signals(number)], *_advice])}\n")
