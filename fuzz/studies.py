"""A study, killed again and again until it is finished: its table is that of a study without interruptions.

python -m fuzz.studies --seed 0 --runs 200

SIGKILL comes at random moments, to the command or to one of its workers; after the command it is started again. In the
end the tables are compared byte for byte, and so are the checkpoints, which hold learners and streams at their end.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory

#: Seconds at the most from a sign of life to the next kill; how often it is the command that is killed, and how often
#: nobody waits for a sign of life, so that whoever is still importing is met as well.
MOST, COMMAND, BLINDLY = 2.0, 0.3, 0.1

STUDY = """\
problems = [{{name = "random", layer_sizes = [1, 2, 2, 1], n_actions = 2}}]
learners = ["ucpd", "o-reps"]
losses = ["random-walk", "lower-bound"]
noises = ["scaled"]
episodes = {episodes}
seeds = {seeds}

[records]
count = 20
"""


def write_study(folder: Path, runs: int, episodes: int) -> Path:
    """A study of at least so many runs."""
    file = folder / "study.toml"
    file.write_text(STUDY.format(episodes=episodes, seeds=-(-runs // 4)))
    return file


def start(file: Path, out: Path) -> subprocess.Popen[bytes]:
    """The command, in a session of its own."""
    arguments = ["sweep", str(file), "--out", str(out), "--jobs", "2", "--checkpoint-every", "0.05"]
    with (out.parent / "log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "tightrope.cli", *arguments], stdout=log, stderr=log, start_new_session=True
        )


def undisturbed(file: Path, out: Path) -> None:
    """Play a study without interruptions."""
    code = start(file, out).wait()
    assert code == 0, f"exit code {code}: {(out.parent / 'log').read_text()}"


def disturbed(
    file: Path, out: Path, rng: random.Random, tell: Callable[[str], None] = lambda words: None, most: float = inf
) -> Counter[str]:
    """Play it to its end, killing whom we meet, up to `most` of them; returns how often who was killed."""
    killed: Counter[str] = Counter()
    while True:
        command = start(file, out)
        while command.poll() is None and killed.total() < most:
            before = signs(out)
            if rng.random() >= BLINDLY:
                while command.poll() is None and signs(out) == before:
                    time.sleep(0.01)
            if killed:  # the first kill does not wait: a short study would end before it
                time.sleep(rng.uniform(0, MOST))
            workers = [("a worker", pid) for pid in children(command.pid)]
            who, pid = ("the command", command.pid) if rng.random() < COMMAND or not workers else rng.choice(workers)
            if command.poll() is None and kill(pid):
                killed[who] += 1
                tell(f"{who} was killed, {finished(out)} runs are finished")
        if command.wait() == 0:
            return killed
        assert command.returncode in (1, -signal.SIGKILL), (out.parent / "log").read_text()


def signs(out: Path) -> set[tuple[str, int]]:
    """Checkpoints, and when they were written."""
    found = set()
    for path in out.glob("runs/*/checkpoint"):
        with suppress(OSError):  # it has just been replaced
            found.add((str(path), path.stat().st_mtime_ns))
    return found


def finished(out: Path) -> int:
    """How many runs are there, whole."""
    return sum(b'"status": "finished"' in report.read_bytes() for report in out.glob("runs/*/run.json"))


def children(parent: int) -> list[int]:
    """Processes that this one started."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(stat.read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(int(stat.parent.name))
        except OSError:  # it has just ended
            continue
    return found


def kill(pid: int) -> bool:
    """Kill a process; return whether it existed."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def compare(one: Path, other: Path) -> None:
    """Tables and checkpoints are the same."""
    names = [sorted(str(path.relative_to(out)) for path in out.glob("runs/*/checkpoint")) for out in (one, other)]
    assert names[0] == names[1], "other runs"
    for name in ("table.csv", *names[0]):
        assert (one / name).read_bytes() == (other / name).read_bytes(), f"{name} differs"


def main() -> None:
    """Parse the command line and run the fuzzer."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.studies", description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="other moments (default 0)")
    parser.add_argument("--runs", type=int, default=200, help="at least so many (default 200)")
    parser.add_argument("--episodes", type=int, default=2000, help="of each (default 2000)")
    given = parser.parse_args()
    with TemporaryDirectory(prefix="fuzz-") as name:
        folder, began = Path(name), time.monotonic()
        file = write_study(folder, given.runs, given.episodes)
        undisturbed(file, folder / "whole")
        killed = disturbed(file, folder / "cut", random.Random(given.seed), print)
        compare(folder / "whole", folder / "cut")
        n_runs, seconds = finished(folder / "cut"), time.monotonic() - began
    counted = ", ".join(f"{who} {n} times" for who, n in sorted(killed.items()))
    print(f"seed {given.seed}: {n_runs} runs, killed: {counted}; the same table and checkpoints ({seconds:.0f} s)")


if __name__ == "__main__":
    main()
