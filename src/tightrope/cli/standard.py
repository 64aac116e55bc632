"""Standard input, output and error, as whoever started us left them: perhaps closed, full, or short of characters."""

import io
import os
import sys
from contextlib import suppress


def open_all() -> None:
    """A closed one leads nowhere, so that no file of ours takes its number; what cannot be encoded is replaced."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the smallest number that is free: this one
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "w" if number else "r", closefd=False))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def let_go() -> None:
    """Forget what could not be written: Python would try again as it ends, and show how that failed."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def show(text: str) -> None:
    """Results, on stdout."""
    try:
        print(text, flush=True)
    except OSError as error:  # typer is silent about one who has read enough
        raise OSError(error.errno, error.strerror, "stdout") from error


def note(message: str) -> None:
    """All else, on stderr; there is no one to tell if that cannot be written."""
    with suppress(OSError):
        print(message, file=sys.stderr, flush=True)
