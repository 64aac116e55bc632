"""The fuzzer of signals sees what is wrong: `python -m fuzz.signals` tries many moments."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fuzz.signals import Command, What, contents, is_whole, judged
from tightrope.lab.runner import RESUME

TRACEBACK = 'Traceback (most recent call last):\n  File "{}", line 1, in <module>\nKeyboardInterrupt\n'
TERMINATED = "tightrope: ended on request (SIGTERM)\n"
FATAL = "Fatal Python error: init_import_site: Failed to import the site module\n"


@pytest.mark.parametrize(
    ("code", "sent", "said", "outcome"),
    [
        (130, signal.SIGINT, "playing 5 episodes\ntightrope: interrupted\n", "SIGINT"),
        (130, signal.SIGINT, f"playing 5 episodes\ntightrope: interrupted; {RESUME}\n", "SIGINT"),
        (143, signal.SIGTERM, "tightrope: ended on request (SIGTERM)\n", "SIGTERM"),
        (143, signal.SIGTERM, "playing 2 runs, 10 episodes\n0 of 2 runs, 0 of 10 episodes\n" + TERMINATED, "SIGTERM"),
        (0, signal.SIGHUP, "playing 5 episodes\n", "too late"),
        (-9, signal.SIGKILL, "", "SIGKILL"),
        (-15, signal.SIGTERM, "", "before the command began"),
        (-2, signal.SIGINT, TRACEBACK.format("/lib/python/site.py"), "before the command began"),
        (1, signal.SIGINT, f"{FATAL}{TRACEBACK.format('/lib/python/site.py')}", "before the command began"),
    ],
)
def test_correct_ends_of_a_command_are_accepted(code: int, sent: signal.Signals, said: str, outcome: str) -> None:
    assert judged(code, sent, said) == outcome


@pytest.mark.parametrize(
    ("code", "sent", "said"),
    [
        (1, signal.SIGINT, TRACEBACK.format("/src/tightrope/model.py")),
        (-2, signal.SIGINT, TRACEBACK.format("/src/tightrope/model.py")),
        (130, signal.SIGINT, ""),
        (130, signal.SIGINT, "tightrope: interrupted; call again\n"),
        (130, signal.SIGTERM, "tightrope: interrupted\n"),
        (130, signal.SIGINT, "Exception ignored in: <function A.__del__>\ntightrope: interrupted\n"),
        (143, signal.SIGTERM, "UserWarning: leaked semaphores\ntightrope: ended on request (SIGTERM)\n"),
        (130, signal.SIGINT, "tightrope: interrupted\ntightrope: interrupted\n"),
        (0, signal.SIGKILL, "Traceback"),
        (1, signal.SIGKILL, ""),
    ],
)
def test_wrong_ends_of_a_command_are_found(code: int, sent: signal.Signals, said: str) -> None:
    with pytest.raises(AssertionError):
        judged(code, sent, said)


def test_a_process_that_is_left_behind_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = Command(What(("--version",), cold=True), tmp_path)
    assert command.wait() == 0
    assert command.out.read_text().startswith("tightrope ")
    assert command.left() == []
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True) as left:
        monkeypatch.setattr(command, "pid", left.pid)
        assert command.left() == [left.pid]


def test_temporary_files_that_are_left_behind_are_found(tmp_path: Path) -> None:
    assert contents(tmp_path / "none") == {}
    (tmp_path / f".tightrope-{'0' * 16}-{'1' * 16}.tmp").write_bytes(b"half")
    (tmp_path / "whole").write_bytes(b"data")
    assert contents(tmp_path) == {"temporary": b"half", "whole": b"data"}


@pytest.mark.parametrize(
    ("data", "whole"),
    [
        (b'{"status": "finished", "seed": 2}', True),
        (b'{"status": "running", "seed": 2}\n', True),
        (b'{"status": "running", "seed": 3}', False),
        (b'{"status": "failed", "seed": 2}', False),
    ],
)
def test_a_run_is_whole_while_it_plays_and_afterwards(data: bytes, whole: bool) -> None:
    right = {"runs/a/run.json": b'{"status": "finished", "seed": 2}', "table.csv": b"episode,loss"}
    assert is_whole("runs/a/run.json", data, right) == whole
    assert not is_whole("table.csv", b"episode", right)
