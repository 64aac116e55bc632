"""python -m benchmarks.instructions: instructions of one warm projection, counted by valgrind, without noise.

A process that replays many episodes is compared with one that replays few; the difference is the cost of the episodes.
It runs the build of the core with AVX2, which valgrind supports; unlike times, the counts hardly depend on the machine.
Takes a minute.
"""

import argparse
import os
import re
import subprocess
import sys

import numpy as np

import tightrope as tr
from benchmarks import page
from benchmarks.episodes import record
from benchmarks.subproblem import PHASES
from tightrope.problems.base import Problem

FEW, MANY = 2, 22
MODEL = "10 x 4 over 10"


def model() -> Problem:
    """Return the model that is solved."""
    return tr.make("random", layer_sizes=[1, *[10] * 9, 1], n_actions=4, seed=5)


def replay(phase: str, episodes: int) -> None:
    """Solve some episodes again, warm; all other work does not depend on their number."""
    recording = record(model(), phase, run_there=False, count=MANY)
    projector, theta = recording.projector(), np.empty(recording.space.n_tuples)
    for subproblem in recording.episodes[:episodes]:
        projector.solve(*subproblem, theta)


def counted(arguments: list[str]) -> int:
    """Return the number of instructions of such a process."""
    known = {"TIGHTROPE_CPU": "v3", "TIGHTROPE_THREADS": "1", "OMP_NUM_THREADS": "1"}
    known |= {"OPENBLAS_CORETYPE": "Haswell", "PYTHONHASHSEED": "0"}
    child = [sys.executable, "-m", "benchmarks.instructions", *arguments]
    tool = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
    said = subprocess.run([*tool, *child], env=os.environ | known, check=True, capture_output=True, text=True).stderr
    found = re.search(r"I\s+refs:\s+([\d,]+)", said)
    if found is None:
        raise SystemExit(f"valgrind did not say how many instructions:\n{said}")
    return int(found[1].replace(",", ""))


def main() -> None:
    """Count, print, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.instructions")
    parser.add_argument("--child", nargs=2, metavar=("PHASE", "EPISODES"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        phase, episodes = options.child
        replay(phase, int(episodes))
        return
    lines, n_tuples = [], model().space.n_tuples
    for phase in PHASES:
        few, many = (counted(["--child", phase, str(n)]) for n in (FEW, MANY))
        each = (many - few) / (MANY - FEW)
        lines.append((MODEL, f"{n_tuples:,}", phase, f"{each:,.0f}", f"{each / n_tuples:.0f}"))
        print(" | ".join(lines[-1]), flush=True)
    page.write("instructions", page.table(("model", "tuples", "episodes", "instructions", "per tuple"), lines))


if __name__ == "__main__":
    main()
