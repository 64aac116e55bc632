"""Runs, ended by a signal at any moment: in one line, with the right code, whole files and no process left behind.

python -m fuzz.signals --seed 0 --tries 1000

Some tries start Python anew, so that signals come during imports as well; most are forks of a process that has all
imports behind it, which is a hundred times as many moments of a run in the same time. After every signal the same
command is run again, to its end. A few tries are two commands at once that want the same folder.
"""

import os
import random
import re
import signal
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from contextlib import chdir
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NoReturn

from typer.testing import CliRunner

from fuzz import watchdog
from tightrope.cli import main
from tightrope.cli.commands import app
from tightrope.ending import WORDS
from tightrope.storage.replacing import is_temporary

#: Where runs write, and the command that does, with one seed and with two.
PLACE = "here"
COMMAND = ("run", "media-streaming", "--episodes", "5", "--learner", "uniform", "--out", PLACE)
SEEDS = {1: COMMAND, 2: (*COMMAND, "--seeds", "2")}

#: Seconds within which a signal is sent: about as long as a run takes, by the number of seeds, and as imports take.
WARM = {1: 0.6, 2: 5.0}
COLD = {1: 5.0, 2: 9.0}
IMPORTS = 1.5

#: Seconds in which the workers of a process that was killed have to be gone.
PATIENCE = 10.0

#: A run and another one take longer than other tries.
watchdog.WAITING = 120

#: What shows that something of ours went wrong.
WRONG = re.compile(r"Traceback|Exception ignored|Error|Warning")

#: Modules that are run before signals can be answered; the rest of the way is Python's own.
EARLY = ("tightrope/__init__.py", "tightrope/cli/__init__.py")


class Command:
    """The command in a session of its own, warm (a fork of this process) or cold; what it prints goes to files."""

    def __init__(self, arguments: tuple[str, ...], folder: Path, name: str = "first", cold: bool = False) -> None:
        self.out, self.err = folder / f"{name}.out", folder / f"{name}.err"
        self.process: subprocess.Popen[bytes] | None = None
        if cold:
            code = "from tightrope.cli import main; main()"
            with self.out.open("wb") as out, self.err.open("wb") as err:
                self.process = subprocess.Popen(
                    [sys.executable, "-c", code, *arguments],
                    cwd=folder,
                    stdout=out,
                    stderr=err,
                    start_new_session=True,
                    preexec_fn=_as_in_a_terminal,
                )
            self.pid = self.process.pid
        else:
            self.pid = os.fork()
            if self.pid == 0:
                _child(arguments, folder, self.out, self.err)

    def wait(self) -> int:
        """Its exit code, or minus the signal that ended it."""
        if self.process is not None:
            return self.process.wait()
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def left(self) -> list[int]:
        """Processes of its session."""
        return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _session(pid) == self.pid]  # noqa: PTH208


def _as_in_a_terminal() -> None:
    for name in WORDS:
        signal.signal(signal.Signals[name], signal.SIG_DFL)


def _child(arguments: tuple[str, ...], folder: Path, out: Path, err: Path) -> NoReturn:
    code = 1
    try:
        os.setsid()
        os.chdir(folder)
        _as_in_a_terminal()
        for number, path in ((1, out), (2, err)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), number)
        sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
        sys.argv = ["tightrope", *arguments]
        warnings.simplefilter("default")
        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _session(pid: int) -> int | None:
    """None for one that is gone, or only waits for somebody to ask how it ended."""
    try:
        state, _, _, session = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:4]
    except OSError:
        return None
    return None if state == "Z" else int(session)


def contents(folder: Path) -> dict[str, bytes]:
    """By name; temporary files under one name, if there are any."""
    there = list(folder.iterdir()) if folder.exists() else []
    return {("temporary" if is_temporary(path) else path.name): path.read_bytes() for path in there}


@cache
def expected(arguments: tuple[str, ...]) -> tuple[dict[str, bytes], bytes]:
    """What the command writes if nothing is in its way, and what its settings are before it plays."""
    with TemporaryDirectory(prefix="fuzz-") as name:
        command = Command(arguments, Path(name))
        settings = Path(name, PLACE, "settings.json")
        early = b""
        while not early and command.left():
            time.sleep(0.001)
            early = settings.read_bytes() if settings.exists() else b""
        assert command.wait() == 0, command.err.read_text()
        return contents(Path(name, PLACE)), early


def prepare() -> None:
    """Import and compile, which all forks then have behind them, and learn what is right."""
    with TemporaryDirectory(prefix="fuzz-") as name, chdir(name):
        assert CliRunner().invoke(app, COMMAND).exit_code == 0
    for arguments in SEEDS.values():
        expected(arguments)


def attempt(seed: int, number: int, folder: Path) -> str:
    """A signal while a run begins, a signal during a run, or a pair."""
    rng = random.Random(f"{seed} {number}")
    kind: Callable[[random.Random, Path], str] = rng.choices((beginning, one, two), (2, 7, 1))[0]
    return kind(rng, folder)


def beginning(rng: random.Random, folder: Path) -> str:
    """End a command that does little more than import."""
    return ended(rng, Command(("list", "problems"), folder, cold=True), IMPORTS)[0]


def one(rng: random.Random, folder: Path) -> str:
    """End a run, and see what it left; then run it again."""
    seeds, cold = rng.choices((1, 2), (7, 1))[0], rng.random() < 0.05
    outcome, sent = ended(rng, Command(SEEDS[seeds], folder, cold=cold), (COLD if cold else WARM)[seeds])
    right, early = expected(SEEDS[seeds])
    there = contents(folder / PLACE)
    assert there.pop("temporary", None) is None or sent == signal.SIGKILL, f"{sent.name}: a temporary file ({outcome})"
    for name, data in there.items():
        assert data == right[name] or (name, data) == ("settings.json", early), f"{sent.name}: {name} is not whole"
    again = Command(SEEDS[seeds], folder, "again")
    code = again.wait()
    assert code == 0, f"after {sent.name} ({outcome}), again: exit code {code}, {again.err.read_text()!r}"
    assert contents(folder / PLACE) == right, f"after {sent.name} ({outcome}), again: other files"
    return outcome


def ended(rng: random.Random, command: Command, within: float) -> tuple[str, signal.Signals]:
    """Send a signal to a command or to all of its session, wait for the end, and judge it."""
    sent = signal.Signals[rng.choice((*WORDS, "SIGKILL"))]
    whom = rng.choice((os.kill, os.killpg))
    time.sleep(rng.uniform(0, within))
    for _ in range(rng.choice((1, 1, 1, 2))):
        try:
            whom(command.pid, sent)
        except ProcessLookupError:  # a group is there once the process made it
            os.kill(command.pid, sent)
    code, left = command.wait(), command.left()
    until = time.monotonic() + PATIENCE * (sent == signal.SIGKILL)
    while left and time.monotonic() < until:
        time.sleep(0.01)
        left = command.left()
    outcome = judged(code, sent, command.err.read_text() if command.err.exists() else "")
    assert not left, f"{sent.name}: {len(left)} processes are left ({outcome})"
    return outcome, sent


def judged(code: int, sent: signal.Signals, said: str) -> str:
    """Whether exit code and words are right; how far the command had come."""
    notes, _, last = said.removesuffix("\n").rpartition("\n")
    if code == -sent and sent != signal.SIGKILL:  # before it was answered
        files = [name for name in re.findall(r'File "(.*?)"', said) if "tightrope/" in name]
        assert all(name.endswith(EARLY) for name in files), f"{sent.name}: {said!r}"
        return "before the command began"
    assert not WRONG.search(said), f"{sent.name}, exit code {code}: {said!r}"
    if code == 0:
        return "too late"
    if sent == signal.SIGKILL:
        assert code == -sent, f"SIGKILL: exit code {code}"
        return "SIGKILL"
    assert code == 128 + sent, f"{sent.name}: exit code {code}, {said!r}"
    assert last == f"tightrope: {WORDS[sent.name]}", f"{sent.name}: {said!r}"
    assert re.fullmatch(r"(playing \d \w+)?", notes), f"{sent.name}: {said!r}"
    return sent.name


def two(rng: random.Random, folder: Path) -> str:
    """The same run twice at once, or two that differ: one writes, the other is refused or comes after it."""
    same = rng.random() < 0.5
    other = COMMAND if same else SEEDS[2]
    pair = [Command(COMMAND, folder, "first"), Command(other, folder, "second")]
    codes = [command.wait() for command in pair]
    said = [command.err.read_text() for command in pair]
    for code, words in zip(codes, said, strict=True):
        assert not WRONG.search(words), repr(words)
        assert code == 0 or (code == 2 and re.search("somebody else is writing|another run", words)), repr(words)
    assert 0 in codes and (same or 2 in codes), f"exit codes {codes}"
    winner = (COMMAND, other)[codes.index(0)]
    assert contents(folder / PLACE) == expected(winner)[0], f"exit codes {codes}: other files"
    return "one after the other" if codes == [0, 0] else "one of two refused"


if __name__ == "__main__":
    watchdog.main("fuzz.signals", __doc__.splitlines()[0])
