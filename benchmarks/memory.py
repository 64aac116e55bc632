"""python -m benchmarks.memory: the peak memory of a projection and of a run, in bytes per tuple.

Each is the peak of a process of its own, which counts the arrays of NumPy and of the core: tracemalloc does not see the
latter.
"""

import argparse
import ctypes
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

import tightrope as tr
from benchmarks.episodes import EPISODES, let_visit, record
from tightrope.problems.base import Problem
from tightrope.projection.projector import Projector

#: Freed memory is returned at once, so that the peak is what is in use; one thread, so one set of scratch space.
ENVIRONMENT = {"MALLOC_MMAP_THRESHOLD_": "65536", "TIGHTROPE_THREADS": "1"}

#: The parts that are measured: the first episodes renew the confidence set, which is when memory use is highest.
PARTS = ("problem", "projection", "early", "late")


def bytes_per_tuple(part: str, width: int, learner: str = "ucpd") -> float:
    """Return the peak of one part on a grid of width x width cells over 40 steps, in a new process; Linux only."""
    command = [sys.executable, "-m", "benchmarks.memory", "--part", part, "--width", str(width), "--learner", learner]
    root = Path(__file__).parent.parent
    done = subprocess.run(command, env=os.environ | ENVIRONMENT, cwd=root, capture_output=True, text=True, check=True)
    return float(done.stdout)


def sentence(width: int) -> str:
    """Return the peaks of all parts, in a sentence."""
    problem, projection, early, late = (bytes_per_tuple(part, width) for part in PARTS)
    return (
        f"Peak memory of the process on the {width} x {width} grid, in bytes per tuple: {projection:.0f} for a "
        f"projection (all it holds and its answer) besides the 16 of what it is given, {early:.0f} early and "
        f"{late:.0f} late for a run of UCPD (learner, projection, simulator) besides the {problem:.0f} of the problem."
    )


class Memory:
    """The memory of this process beyond what it held at first, in bytes."""

    def __init__(self) -> None:
        self.begin_anew()
        self._first = self._now("VmHWM")

    def begin_anew(self) -> None:
        """Forget the peak so far."""
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")

    def held(self) -> int:
        return self._now("VmRSS") - self._first

    def most(self) -> int:
        return self._now("VmHWM") - self._first

    @staticmethod
    def _now(what: str) -> int:
        status = Path("/proc/self/status").read_text().splitlines()
        return next(1024 * int(line.split()[1]) for line in status if line.startswith(what))


def grid(width: int) -> Problem:
    """Return the problem that is measured."""
    return tr.make("grid", n_rows=width, n_columns=width, n_steps=40)


def measure(part: str, width: int, learner: str) -> float:
    """Measure one part in this process; see `bytes_per_tuple`."""
    tr.run(tr.make("media-streaming"), learner, episodes=2, regret="never")  # imports take memory, too
    if part == "problem":
        memory = Memory()
        problem = grid(width)
        memory.begin_anew()
        return memory.held() / problem.space.n_tuples
    problem = grid(width)
    n = problem.space.n_tuples
    if part == "projection":
        [subproblem] = record(problem, "late", run_there=False, count=1).episodes[-1:]
        memory = Memory()
        theta = np.empty(n)
        projector = Projector(problem.space)
        projector.solve(*subproblem, theta)
    elif part == "early":
        memory = Memory()
        history = tr.run(problem, learner, episodes=4, regret="never", records=1)
        assert history["epoch"][-1] == 4
    else:
        memory = Memory()
        visited = tr.UCPD(problem.space, problem.budgets, episodes=EPISODES)
        let_visit(visited, problem.mdp)
        memory.begin_anew()  # the visits are drawn, not learned
        tr.run(problem, visited, episodes=3, regret="never", records=1)
    return memory.most() / n


def main() -> None:
    """Print the sentence, or the number of one part."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--width", type=int, default=50, help="number of cells on each side of the grid")
    parser.add_argument("--learner", default="ucpd", help="the learner of the part early")
    parser.add_argument("--part", choices=PARTS, help="measure this part only, in this process")
    options = parser.parse_args()
    if options.part:
        print(measure(options.part, options.width, options.learner))
    else:
        print(sentence(options.width))


if __name__ == "__main__":
    main()
