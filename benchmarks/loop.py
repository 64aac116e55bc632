"""python -m benchmarks.loop: the time of an episode of a run with UCPD, by part.

    solve    the projection
    learner  the rest of the learner: cost, mixing, counts, confidence sets, policy, multipliers
    rest     the simulator: losses, constraints, sampling, true occupancy, accounting, records

Times are of the processor, per episode, the median over blocks of episodes; an exp-pass is one `numpy.exp` over as many
numbers as there are tuples. With --million, plays a million episodes of media-streaming and prints their memory.
"""

import argparse
from typing import NamedTuple

import numpy as np

import tightrope as tr
from benchmarks import page
from benchmarks.measure import ExpPass, clock, resident_bytes
from tightrope.confidence import ConfidenceSet
from tightrope.learners.base import Episode
from tightrope.learners.parts import Warmed
from tightrope.problems.base import Problem
from tightrope.projection.projector import Projector
from tightrope.space import FloatArray

PROBLEMS = ("media-streaming", "edge-cloud")


class TimedProjector(Projector):
    """A projector that adds up the time of its solves."""

    spent = 0.0

    def solve(self, reference: FloatArray, cost: FloatArray, confidence: ConfidenceSet, theta: FloatArray) -> None:
        begin = clock()
        super().solve(reference, cost, confidence, theta)
        self.spent += clock() - begin


class TimedUCPD(tr.UCPD):
    """UCPD that adds up the time of its steps, and of the projection in them."""

    spent = 0.0

    def timed(self) -> "TimedUCPD":
        """Return the learner with a projector that is timed."""
        self.projector = TimedProjector(self.space)
        self._mirror_step.solver = Warmed(self.projector)
        return self

    @property
    def solving(self) -> float:
        """Return the seconds spent in the projection so far."""
        return self.projector.spent

    def observe(self, episode: Episode) -> None:
        begin = clock()
        super().observe(episode)
        self.spent += clock() - begin


class PerEpisode(NamedTuple):
    """Seconds per episode, by part."""

    exp_pass: float
    whole: float
    solve: float
    learner: float
    rest: float

    def line(self, name: str, n_tuples: int) -> tuple[str, ...]:
        """Return a row of the table."""
        parts = (f"{1e6 * part:.1f} µs ({part / self.whole:.0%})" for part in (self.solve, self.learner, self.rest))
        beyond = max(0.0, self.whole - 30e-6) / self.exp_pass
        return (
            name, f"{n_tuples:,}", f"{1e6 * self.exp_pass:.2f} µs", f"{1e6 * self.whole:.1f} µs",
            f"{self.whole / self.exp_pass:.0f}", f"{beyond:.0f}", *parts, f"{self.rest / self.solve:.2f}",
        )  # fmt: skip


TABLE = (
    "problem", "tuples", "exp-pass", "an episode", "in exp-passes", "exp-passes beyond 30 µs", "solve", "learner",
    "rest", "rest / solve",
)  # fmt: skip


def per_episode(problem: Problem, episodes: int, planned: int | None = None) -> PerEpisode:
    """Play a run without records of regret, in up to 500 blocks, with the exp-pass measured after each.

    `planned` is the number of episodes that the learner is made for, if it is not the number played.
    """
    learner = TimedUCPD(problem.space, problem.budgets, episodes=planned or episodes).timed()
    unit = ExpPass(problem.space.n_tuples)
    times: list[tuple[int, float, float, float]] = []
    last = [0, clock(), 0.0, 0.0]

    def block(done: int) -> None:
        now = clock()
        times.append((done - int(last[0]), now - last[1], learner.spent - last[2], learner.solving - last[3]))
        unit.measure(1)
        last[:] = [done, clock(), learner.spent, learner.solving]

    tr.run(problem, learner, episodes=episodes, regret="never", progress=block)
    count, whole, observe, solve = np.array(times[2:]).T  # the first blocks include warm-up
    each = [float(np.median(part / count)) for part in (whole, solve, observe - solve, whole - observe)]
    return PerEpisode(unit.median, *each)


def million(episodes: int = 1_000_000) -> str:
    """Play one long run; return the memory that the process held meanwhile, in a sentence."""
    problem = tr.make("media-streaming")
    learner = tr.UCPD(problem.space, problem.budgets, episodes=episodes)
    begin, marks, held = clock(), (episodes // 100, episodes // 10, episodes), dict[int, float]()

    def look(done: int) -> None:
        if done in marks:
            held[done] = resident_bytes() / 2**20

    tr.run(problem, learner, episodes=episodes, regret="last", progress=look)
    words = ", ".join(f"{mebibytes:.1f} MiB after {done:,}" for done, mebibytes in held.items())
    return (
        f"Held by the process in a run of {episodes:,} episodes of media-streaming, {clock() - begin:.0f} s: {words}."
    )


def main() -> None:
    """Measure both problems; then the long run, if asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.loop", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--episodes", type=int, default=20_000)
    parser.add_argument("--million", action="store_true", help="also play a million episodes, and write the page")
    options = parser.parse_args()
    lines = []
    for name in PROBLEMS:
        problem = tr.make(name)
        lines.append(per_episode(problem, options.episodes).line(name, problem.space.n_tuples))
        print(" | ".join(f"{word} {cell}" for word, cell in zip(TABLE, lines[-1], strict=True)), flush=True)
    if options.million:
        memory = million()
        print(memory)
        page.write("loop", f"{page.table(TABLE, lines)}\n\n{memory}")


if __name__ == "__main__":
    main()
