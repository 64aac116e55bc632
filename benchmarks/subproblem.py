"""python -m benchmarks.subproblem: the time of a projection, beside other methods, on consecutive episodes of runs.

All times are of the processor and from one run, methods in turn; ours are, for each episode, the shortest of several
replays, then the mean over the episodes. The unit is one `numpy.exp` over as many numbers as there are tuples.
Tables and picture go into docs/explanation/benchmarks.md; --quick prints only, without the largest models, and with
rivals on the smallest ones only.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

import tightrope as tr
from benchmarks import growth, memory, page, rivals
from benchmarks.episodes import Recording, Subproblem, record
from benchmarks.measure import ExpPass, clock, duration, machine, shown
from tests.instances import Instance, flow_residual, objective
from tightrope.confidence import L1Ball
from tightrope.problems.base import Problem
from tightrope.projection.projector import Projector

PHASES = ("early", "late")
SHORT_ENOUGH = 60.0  # seconds; a rival that would need more is not started
REPLAYS = 4  # of a large model; of a small one as many as SECONDS allow, up to MOST_REPLAYS
MOST_REPLAYS = 25
SECONDS = 0.5
QUICK = 4_000  # the most tuples for which --quick times the rivals and the late episodes
RUN_THERE = 20_000  # the most tuples of a model that is played until the late episodes


def models(quick: bool) -> Iterator[tuple[str, Problem]]:
    """Return the models of the benchmark, by size."""
    for width, n_actions, n_steps in ((5, 3, 4), (10, 4, 10), (20, 4, 10), (50, 5, 10)):
        sizes = [1, *[width] * (n_steps - 1), 1]
        yield f"{width} x {n_actions} over {n_steps}", tr.make("random", layer_sizes=sizes, n_actions=n_actions, seed=5)
    for width in (20,) if quick else (20, 50):
        yield f"{width} x {width} grid over 40", tr.make("grid", n_rows=width, n_columns=width, n_steps=40)


@dataclass
class Row:
    """The measurements of one model in one phase."""

    name: str
    n_tuples: int
    phase: str
    binding: float
    exp_pass: float = np.inf
    warm: float = np.inf  #: seconds per episode
    cold: float = np.inf
    steps: float = 0.0  #: Newton's, per episode, warm
    cold_steps: int = 0
    residual: float = 0.0  #: the largest
    violation: float = 0.0
    gap: float = 0.0
    others: dict[str, rivals.Result | str] = field(default_factory=dict)

    def ours(self) -> tuple[str, ...]:
        """Return a row of the table of our times."""
        return (
            self.name, f"{self.n_tuples:,}", self.phase, f"{self.binding:.0%}",
            duration(self.exp_pass), duration(self.warm), shown(self.warm / self.exp_pass), f"{self.steps:.1f}",
            duration(self.cold), shown(self.cold / self.exp_pass), f"{self.cold_steps}",
            f"{self.residual:.1e}", f"{self.violation:.0e}", f"{self.gap:.0e}",
        )  # fmt: skip

    def theirs(self) -> Iterator[tuple[str, ...]]:
        """Return the rows of the table of the rivals."""
        for name, result in self.others.items():
            if isinstance(result, str):
                yield self.name, self.phase, name, result, *[""] * 6
            else:
                yield (
                    self.name, self.phase, name, duration(result.seconds), duration(result.own_seconds),
                    f"{shown(result.seconds / self.warm)} ({shown(result.own_seconds / self.warm)})",
                    f"{result.iterations}", f"{result.residual:.0e}", f"{result.violation:.0e}", result.status,
                )  # fmt: skip


OURS = (
    "model", "tuples", "episodes", "balls binding", "exp-pass", "warm", "in exp-passes", "steps", "cold",
    "in exp-passes", "steps", "flow residual", "set violation", "duality gap",
)  # fmt: skip
THEIRS = (
    "model", "episodes", "method", "time", "the solver's own", "times ours, warm (its own)", "iterations",
    "flow residual", "set violation", "status",
)  # fmt: skip


def replay(recording: Recording, row: Row, unit: ExpPass) -> None:
    """Solve all episodes in order, warm, several times; then a few cold; then check the answers."""
    space, theta = recording.space, np.empty(recording.space.n_tuples)
    best, replays, began = np.full(len(recording.episodes), np.inf), 0, clock()
    while replays < REPLAYS or (replays < MOST_REPLAYS and clock() - began < SECONDS):
        projector, steps = recording.projector(), 0
        for i, subproblem in enumerate(recording.episodes):
            begin = clock()
            projector.solve(*subproblem, theta)
            best[i] = min(best[i], clock() - begin)
            steps += projector.iterations
        unit.measure()
        replays += 1
    row.warm, row.steps = float(best.mean()), steps / len(best)
    some = recording.episodes[:: max(1, len(best) // 5)]
    cold = np.full(len(some), np.inf)
    for _ in range(3):
        for i, subproblem in enumerate(some):
            projector = Projector(space)
            projector.prepare(subproblem.confidence)
            begin = clock()
            projector.solve(*subproblem, theta)
            cold[i] = min(cold[i], clock() - begin)
            row.cold_steps = max(row.cold_steps, projector.iterations)
        unit.measure()
    row.cold = float(cold.mean())
    projector = recording.projector()
    for subproblem in recording.episodes:
        projector.solve(*subproblem, theta)
        instance = as_instance(recording, subproblem)
        dual = float(np.sum(subproblem.reference)) - space.n_layers - projector.dual_value
        row.residual = max(row.residual, flow_residual(space, theta))
        row.violation = max(row.violation, subproblem.confidence.violation(space, theta))
        row.gap = max(row.gap, abs(objective(instance, theta) - dual))


def as_instance(recording: Recording, subproblem: Subproblem) -> Instance:
    """Return the instance that the objective is computed on."""
    assert isinstance(subproblem.confidence, L1Ball)
    return Instance(recording.space, subproblem.reference, subproblem.cost, subproblem.confidence)


def against(recording: Recording, row: Row, before: list[Row], quick: bool) -> None:
    """Time the rivals on two consecutive episodes: the first prepares them, the second counts."""
    same = [(a, b) for a, b in pairwise(recording.episodes) if a.confidence is b.confidence]
    first, second = same[len(same) // 2] if same else (recording.episodes[-1],) * 2
    theta, values, limit = np.empty(row.n_tuples), [], SHORT_ENOUGH / 6 if quick else SHORT_ENOUGH
    for subproblem in (first, second):
        recording.projector().solve(*subproblem, theta)
        values.append(objective(as_instance(recording, subproblem), theta))
    for solver in ("CLARABEL", "SCS"):
        fresh = "CVXPY + Clarabel" if solver == "CLARABEL" else "CVXPY + SCS"
        needs = expected(fresh, row, before)
        if needs > limit:
            row.others[fresh] = f"not tried: {needs:,.0f} s or more expected"
            continue
        begin = clock()
        conic = rivals.Conic(recording.space, as_instance(recording, first).confidence)
        building = clock() - begin
        result = conic.solve(first, solver, values[0], limit)
        row.others[fresh] = result._replace(seconds=result.seconds + building)
        if result.seconds < limit / 3:
            row.others[f"{fresh}, prepared"] = conic.solve(second, solver, values[1], limit)
    if row.n_tuples <= 400_000:
        row.others["full dual, L-BFGS-B"] = rivals.full_dual(recording.space, second, values[1], limit / 6)


def expected(rival: str, row: Row, before: list[Row]) -> float:
    """Return a lower estimate of the seconds: those of the largest model so far, in proportion to the tuples."""
    times = [
        result.seconds * row.n_tuples / old.n_tuples
        for old in before
        if old.n_tuples < row.n_tuples and isinstance(result := old.others.get(rival), rivals.Result)
    ]
    return times[-1] if times else 0.0


def main() -> None:
    """Measure, print, and write the page."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.subproblem", description=(__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument("--quick", action="store_true", help="print a small edition only (a minute or two)")
    parser.add_argument("--alone", action="store_true", help="leave the rivals out")
    options = parser.parse_args()
    rows: list[Row] = []
    for name, problem in models(options.quick):
        unit = ExpPass(problem.space.n_tuples)
        for phase in PHASES:
            run_there = problem.space.n_tuples <= (QUICK if options.quick else RUN_THERE)
            recording = record(problem, phase, run_there=run_there)
            row = Row(name, problem.space.n_tuples, phase, recording.binding)
            replay(recording, row, unit)
            if not options.alone and row.n_tuples <= (QUICK if options.quick else np.inf):
                against(recording, row, [old for old in rows if old.phase == phase], options.quick)
            rows.append(row)
        for row in rows[-len(PHASES) :]:
            row.exp_pass = unit.shortest
            print(" | ".join(row.ours()))
            for line in row.theirs():
                print("    ", " | ".join(line), flush=True)
    held = memory.sentence(20 if options.quick else 50)
    print(held, flush=True)
    family = growth.measure((10, 14, 20) if options.quick else (10, 14, 20, 28, 40, 50))
    print(growth.summary(family))
    if not (options.quick or options.alone):
        page.write("machine", machine())
        page.write("ours", page.table(OURS, (row.ours() for row in rows)))
        page.write("rivals", page.table(THEIRS, (line for row in rows for line in row.theirs())))
        page.write("growth", f"{growth.table(family)}\n\n{growth.summary(family)}\n\n{held}")
        page.draw(rows, family)


if __name__ == "__main__":
    main()
