"""python -m benchmarks.learners: the time of an episode with every learner, in episodes of `ucpd`, on media-streaming.

Learners take turns, a block of episodes each, so that other processes affect all of them alike; an entry is the median
over blocks of the ratio to the block of `ucpd` of the same turn. Times are of the processor and of the whole loop,
simulator included. Writes the table of docs/explanation/benchmarks.md.
"""

import argparse

import numpy as np

import tightrope as tr
from benchmarks import page
from benchmarks.measure import clock
from tightrope.learners import LEARNERS

#: The learners that solve a linear program in every episode, or at the end of every phase.
WITH_PROGRAMS = {"always-safe", "c-ucrl", "dope", "follow-the-leader", "opt-cmdp", "optpess-lp"}


def ratios(problem: str, turns: int, block: int, warm: int) -> dict[str, float]:
    """Return by learner the median over turns of its time divided by that of `ucpd`."""
    runs = {}
    for name in LEARNERS:
        made = tr.make(problem)
        episodes = warm + turns * block
        runs[name] = tr.Run(made, tr.make_learner(name, made, episodes=episodes), episodes=episodes, regret="never")
        runs[name].play(until=warm)
    taken: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(turns):
        for name, run in runs.items():
            began = clock()
            run.play(until=warm + (turn + 1) * block)
            taken[name].append(clock() - began)
    plain = np.array(taken["ucpd"])
    return {name: float(np.median(np.array(times) / plain)) for name, times in taken.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problem", default="media-streaming")
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--block", type=int, default=100)
    parser.add_argument("--warm", type=int, default=500)
    given = parser.parse_args()
    found = ratios(given.problem, given.turns, given.block, given.warm)
    lines = [
        (name, f"{ratio:.1f}", "a linear program" if name in WITH_PROGRAMS else "")
        for name, ratio in sorted(found.items(), key=lambda one: one[1])
    ]
    page.write("learners", page.table(("learner", "episodes of ucpd", "solves"), lines))


if __name__ == "__main__":
    main()
