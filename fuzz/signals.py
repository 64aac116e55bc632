"""Runs, ended by a signal at any moment: in one line, with the right code, whole files and no process left behind.

python -m fuzz.signals --seed 0 --tries 1000

Most tries are forks of a process that has all imports behind it, with a picture that is blank, for that is where a run
spends its time: so there are tries by the thousand. A share of them start a new Python (signals come during imports as
well), draw what is to be drawn, or have two seeds, in workers. After a signal the command is run again in a tenth of
the tries. Some are two commands at once that want the same folder.
"""

import json
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
from typing import NamedTuple, NoReturn

from matplotlib.figure import Figure
from typer.testing import CliRunner

from fuzz import watchdog
from tightrope.cli import main
from tightrope.cli.commands import app
from tightrope.lab import figures
from tightrope.lab.folder import LOG, PROGRESS
from tightrope.lab.folder import RUN as RUN_FILE
from tightrope.lab.runner import RESUME
from tightrope.signals import SIGNALS, WORDS
from tightrope.storage.files import is_temporary

#: Where runs write, and the commands: one run, another one, one with workers, and one that does little but import.
PLACE = "here"
RUN = ("run", "media-streaming", "--episodes", "2", "--learner", "uniform", "--out", PLACE)
OTHER = (*RUN, "--seed", "1")
SEEDS = (*RUN, "--seeds", "2")
LIST = ("list", "problems")

#: Of all tries, those that begin anew, that have workers, that are pairs; of the others, those that draw a picture.
#: Of all that were ended, those that are run again.
BEGINNINGS, WORKERS, PAIRS, DRAWN, AGAIN = 0.04, 0.02, 0.08, 0.05, 0.1

#: Seconds in which the workers of a process that was killed have to be gone.
PATIENCE = 10.0

#: A run and another one take longer than other tries.
watchdog.WAITING = 120

#: What shows that something of ours went wrong.
WRONG = re.compile(r"Traceback|Exception ignored|Error|Warning")

#: Modules that are run before signals can be answered; the rest of the way is Python's own.
EARLY = ("tightrope/__init__.py", "tightrope/cli/__init__.py")


class What(NamedTuple):
    """A command line; whether Python is started for it; whether its picture is drawn or blank."""

    arguments: tuple[str, ...]
    cold: bool = False
    drawn: bool = False


#: Seconds that each took when it last came to its end: a signal is sent within them.
lengths: dict[What, float] = {}


class Command:
    """The command in a session of its own, a fork of this process or a new one; what it prints goes to files."""

    def __init__(self, what: What, folder: Path, name: str = "first") -> None:
        self.what, self.began = what, time.monotonic()
        self.out, self.err = folder / f"{name}.out", folder / f"{name}.err"
        self.process: subprocess.Popen[bytes] | None = None
        if what.cold:
            code = "from tightrope.cli import main; main()"
            with self.out.open("wb") as out, self.err.open("wb") as err:
                self.process = subprocess.Popen(
                    [sys.executable, "-c", code, *what.arguments],
                    cwd=folder,
                    stdout=out,
                    stderr=err,
                    start_new_session=True,
                    preexec_fn=_as_in_a_terminal,
                )
            self.pid = self.process.pid
        else:
            signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # what answers them in this process is not the command
            self.pid = os.fork()
            if self.pid == 0:
                _child(what, folder, self.out, self.err)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)

    def wait(self) -> int:
        """Its exit code, or minus the signal that ended it."""
        if self.process is not None:
            code = self.process.wait()
        else:
            code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        if code == 0:
            lengths[self.what] = time.monotonic() - self.began
        return code

    def left(self) -> list[int]:
        """Processes of its session."""
        return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _session(pid) == self.pid]  # noqa: PTH208


def _as_in_a_terminal() -> None:
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)


def _child(what: What, folder: Path, out: Path, err: Path) -> NoReturn:
    code = 1
    try:
        os.setsid()
        os.chdir(folder)
        _as_in_a_terminal()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        for number, path in ((1, out), (2, err)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), number)
        sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
        sys.argv = ["tightrope", *what.arguments]
        warnings.simplefilter("default")
        if not what.drawn:
            figures.draw = lambda *_, **__: Figure((1, 1))
        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _session(pid: int) -> int | None:
    """None for one that is gone, or has ended and was not waited for yet."""
    try:
        state, _, _, session = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:4]
    except OSError:
        return None
    return None if state == "Z" else int(session)


def contents(folder: Path) -> dict[str, bytes]:
    """By place; temporary files under one name, if there are any; without what tells times."""
    there = [path for path in folder.rglob("*") if path.is_file() and path.name not in (LOG, PROGRESS)]
    names = ("temporary" if is_temporary(path) else str(path.relative_to(folder)) for path in there)
    return {name: path.read_bytes() for name, path in zip(names, there, strict=True)}


@cache
def expected(what: What) -> dict[str, bytes]:
    """What the command writes if nothing is in its way."""
    with TemporaryDirectory(prefix="fuzz-") as name:
        command = Command(what, Path(name))
        assert command.wait() == 0, command.err.read_text()
        return contents(Path(name, PLACE))


def is_whole(name: str, data: bytes, right: dict[str, bytes]) -> bool:
    """As it is at the end, or, of a run, while it plays."""
    if data == right[name] or not name.endswith(RUN_FILE):
        return data == right[name]
    return bool(json.loads(data) == json.loads(right[name]) | {"status": "running"})


def prepare() -> None:
    """Import and compile, which all forks then have behind them, and learn what is right, and how long it takes."""
    with TemporaryDirectory(prefix="fuzz-") as name, chdir(name):
        assert CliRunner().invoke(app, RUN).exit_code == 0
    for arguments in (RUN, OTHER, SEEDS):
        expected(What(arguments))
    expected(What(RUN, drawn=True))


def attempt(seed: int, number: int, folder: Path) -> str:
    """A signal while a command begins, a signal during a run, or a pair."""
    rng = random.Random(f"{seed} {number}")
    others = 1 - BEGINNINGS - WORKERS - PAIRS
    kind: Callable[[random.Random, Path], str] = rng.choices(
        (beginning, workers, two, one), (BEGINNINGS, WORKERS, PAIRS, others)
    )[0]
    return kind(rng, folder)


def beginning(rng: random.Random, folder: Path) -> str:
    """End a command in a new process: a run, or one that does little more than import."""
    if rng.random() < 0.25:
        return interrupted(rng, What(RUN, cold=True, drawn=True), folder)
    return ended(rng, Command(What(LIST, cold=True), folder))[0]


def workers(rng: random.Random, folder: Path) -> str:
    """End a run with two seeds, each in a process of its own."""
    return interrupted(rng, What(SEEDS), folder)


def one(rng: random.Random, folder: Path) -> str:
    """Start a run, end it by a signal, and check what it left."""
    return interrupted(rng, What(RUN, drawn=rng.random() < DRAWN), folder)


def interrupted(rng: random.Random, what: What, folder: Path) -> str:
    """End a command, and see what it left; perhaps run it again."""
    outcome, sent = ended(rng, Command(what, folder))
    warm = what._replace(cold=False)
    right, there = expected(warm), contents(folder / PLACE)
    assert there.pop("temporary", None) is None or sent == signal.SIGKILL, f"{sent.name}: a temporary file ({outcome})"
    for name, data in there.items():
        assert is_whole(name, data, right), f"{sent.name}: {name} is not whole"
    if rng.random() < AGAIN:
        again = Command(warm, folder, "again")
        code = again.wait()
        assert code == 0, f"after {sent.name} ({outcome}), again: exit code {code}, {again.err.read_text()!r}"
        assert contents(folder / PLACE) == right, f"after {sent.name} ({outcome}), again: other files"
    return outcome


def ended(rng: random.Random, command: Command) -> tuple[str, signal.Signals]:
    """Send a signal to a command or to all of its session, wait for the end, and judge it."""
    sent = signal.Signals[rng.choice((*WORDS, "SIGKILL"))]
    whom = rng.choice((os.kill, os.killpg))
    time.sleep(rng.random() * lengths.get(command.what, 1.0))
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
    unanswered = code == -sent and sent != signal.SIGKILL
    if unanswered or said.startswith("Fatal Python error: init"):
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
    words = f"tightrope: {WORDS[sent.name]}"
    assert last in (words, f"{words}; {RESUME}"), f"{sent.name}: {said!r}"
    assert re.fullmatch(r"(playing [\w, ]+(\n\d+ of [\w, ]+)*)?", notes), f"{sent.name}: {said!r}"
    return sent.name


def two(rng: random.Random, folder: Path) -> str:
    """The same run twice at once, or two that differ: one writes, the other is refused or comes after it."""
    same = rng.random() < 0.5
    first, second = What(RUN), What(RUN if same else OTHER)
    pair = [Command(first, folder, "first"), Command(second, folder, "second")]
    codes = [command.wait() for command in pair]
    said = [command.err.read_text() for command in pair]
    for code, words in zip(codes, said, strict=True):
        assert not WRONG.search(words), repr(words)
        assert code == 0 or (code == 2 and "somebody else is writing" in words), repr(words)
    assert 0 in codes, f"exit codes {codes}"
    there = contents(folder / PLACE)
    right = [expected(what) for what, code in zip((first, second), codes, strict=True) if code == 0]
    assert there.keys() == {name for files in right for name in files}, f"exit codes {codes}: other files"
    for name, data in there.items():
        assert data in [files.get(name) for files in right], f"exit codes {codes}: {name} is not whole"
    return "one after the other" if codes == [0, 0] else "one of two refused"


if __name__ == "__main__":
    watchdog.main("fuzz.signals", __doc__.splitlines()[0])
