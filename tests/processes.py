"""Processes that do not outlive a test."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def _as_in_a_terminal() -> None:
    """Whoever runs the tests may ignore signals (nohup, &), and who is started then does, too."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


@contextmanager
def python(code: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A process in a group of its own, which does not outlive the block."""
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=_as_in_a_terminal,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
