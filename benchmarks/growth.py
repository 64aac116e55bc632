"""How time grows with size: grids of n x n cells over 40 steps, with at most 5 successors for each pair."""

from typing import NamedTuple

import numpy as np

from benchmarks import page
from benchmarks.episodes import EPISODES, record
from benchmarks.loop import per_episode
from benchmarks.measure import ExpPass, clock, duration, exponent, shown
from benchmarks.memory import grid

REPLAYS = 6


class Size(NamedTuple):
    """Seconds per episode on one grid."""

    width: int
    n_tuples: int
    exp_pass: float
    early: float  #: the projection, all pairs free
    late: float  #: the projection, balls binding
    loop: float  #: a whole episode, early

    def line(self) -> tuple[str, ...]:
        """Return a row of the table."""
        times = (f"{duration(t)} ({shown(t / self.exp_pass)})" for t in (self.early, self.late, self.loop))
        return f"{self.width} x {self.width}", f"{self.n_tuples:,}", duration(self.exp_pass), *times


def measure(widths: tuple[int, ...]) -> list[Size]:
    """Measure the family, in order of size."""
    sizes = []
    for width in widths:
        problem = grid(width)
        unit = ExpPass(problem.space.n_tuples)
        times: list[float] = []
        for phase in ("early", "late"):
            recording = record(problem, phase, run_there=False, count=6)
            theta, best = np.empty(problem.space.n_tuples), np.full(len(recording.episodes), np.inf)
            for _ in range(REPLAYS):
                projector = recording.projector()
                for i, subproblem in enumerate(recording.episodes):
                    begin = clock()
                    projector.solve(*subproblem, theta)
                    best[i] = min(best[i], clock() - begin)
                unit.measure()
            times.append(float(best.mean()))
        loop = per_episode(problem, 25, planned=EPISODES).whole
        sizes.append(Size(width, problem.space.n_tuples, unit.shortest, times[0], times[1], loop))
        print(" | ".join(sizes[-1].line()), flush=True)
    return sizes


def table(sizes: list[Size]) -> str:
    """Return the table in Markdown, with exp-passes in brackets."""
    heading = ("grid", "tuples", "exp-pass", "projection, early", "projection, late", "whole loop, early")
    return page.table(heading, (size.line() for size in sizes))


def summary(sizes: list[Size]) -> str:
    """Return the exponents in a sentence."""
    tuples = [size.n_tuples for size in sizes]
    early, late, loop, unit = (
        exponent(tuples, [getattr(size, name) for size in sizes]) for name in ("early", "late", "loop", "exp_pass")
    )
    return (
        f"Time per episode grows like tuples^e: projection e = {early:.2f} early and {late:.2f} late, "
        f"whole loop {loop:.2f}; one exp-pass itself {unit:.2f}."
    )
