"""The command line: `main` sets up signals and standard streams, then imports the commands."""

import io
import os
import sys


def main() -> None:
    """Run the `tightrope` command."""
    try:
        from tightrope.signals import answer_signals

        answer_signals()
    except KeyboardInterrupt:  # before signals are handled
        print("tightrope: interrupted", file=sys.stderr)
        raise SystemExit(130) from None

    open_streams()
    try:
        from tightrope.cli.commands import app

        app(prog_name="tightrope")
    finally:
        discard_unwritten()


def open_streams() -> None:
    """Open closed streams on the null device, so that no file takes their numbers.

    Replace characters without encoding.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the smallest free number, which is `number`
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "w" if number else "r", closefd=False))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def discard_unwritten() -> None:
    """Discard what could not be written; Python would try again at exit and print the failure."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def show(text: str) -> None:
    """Print results to stdout."""
    try:
        print(text, flush=True)
    except OSError as error:  # typer hides a closed pipe
        raise OSError(error.errno, error.strerror, "stdout") from error


def note(message: str) -> None:
    """Print messages to stderr; a failure to write there is ignored."""
    from contextlib import suppress

    with suppress(OSError):
        print(message, file=sys.stderr, flush=True)
