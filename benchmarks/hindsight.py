"""python -m benchmarks.hindsight: the hindsight LP by mixtures of policies and by HiGHS, and the cost of accounting.

On every problem of the suite and Gymnasium's Taxi-v4: the LP for the sums of the first losses, by each method in turn.
The time of HiGHS is for its LP over pairs, set up and solved, without a certificate. Then a run of
ucpd-practical with 60 records: the time of the records beside that of the episodes, and what it would be with HiGHS.
Times are of the processor: for mixtures the shortest of five, then medians over losses.
"""

import argparse
from collections.abc import Iterator
from typing import NamedTuple

import gymnasium
import numpy as np

import tightrope as tr
from benchmarks import page
from benchmarks.measure import clock, duration, shown
from tightrope.lab.run import Run
from tightrope.planning.dynamic_programming import largest
from tightrope.planning.hindsight import HindsightLP, visits_by_highs
from tightrope.problems import PROBLEMS
from tightrope.problems.base import Problem
from tightrope.problems.gym import problem_from_gym
from tightrope.space import FloatArray

#: The numbers of losses in the sums.
SUMS = (1, 5, 25)

#: Problems that are played with 60 records, and the number of episodes.
PLAYED, EPISODES = ("taxi-fuel", "grid", "Taxi-v4"), 2000


def problem_called(name: str) -> Problem:
    """Return a problem of the suite, or Taxi-v4 for twenty steps."""
    if name != "Taxi-v4":
        return tr.make(name)
    moves = {"moves": lambda state, action, next_state: float(action < 4)}
    return problem_from_gym(gymnasium.make(name), n_steps=20, cost=moves, budgets={"moves": 12.0}, name=name)


class Solved(NamedTuple):
    """The times of one LP, by both methods."""

    mixture: float
    highs: float
    difference: float  # between the two values, in units of the largest loss, per step


def solved(problem: Problem) -> Iterator[Solved]:
    """Solve the LPs of a problem by both methods."""
    mdp, constraints = problem.mdp, problem.constraints.mean
    lp, adversary = HindsightLP(mdp, constraints, problem.budgets), problem.losses.begin(np.random.default_rng(0))
    rows, total = _pair_costs(problem, constraints), np.zeros(mdp.space.n_tuples)
    lp.solve(total)  # warm up
    for t in range(1, SUMS[-1] + 1):
        total = total + adversary.loss(t)
        if t not in SUMS:
            continue
        times = []
        for _ in range(5):
            begin = clock()
            answer = lp.solve(total)
            times.append(clock() - begin)
        unit, begin = largest(total), clock()
        cost = _pair_costs(problem, total / unit)
        x, _ = visits_by_highs(mdp, cost, rows, problem.budgets)
        spent = clock() - begin
        yield Solved(min(times), spent, abs(answer.value / unit - float(cost @ x)) / mdp.space.n_layers)


def _pair_costs(problem: Problem, values: FloatArray) -> FloatArray:
    return problem.space.sum_over_successors(values * problem.mdp.transitions)


class Played(NamedTuple):
    """The seconds of a run, by part."""

    play: float
    records: float
    by_highs: float  # an estimate of the records with HiGHS


def played(problem: Problem) -> Played:
    """Time a run of ucpd-practical and its records; some of them also by HiGHS, as a sample."""
    Run(problem, "ucpd-practical", episodes=EPISODES).step()  # warm up
    begin = clock()
    lp = HindsightLP(problem.mdp, problem.constraints.mean, problem.budgets)
    records, play, totals = clock() - begin, 0.0, []
    run = Run(problem, "ucpd-practical", episodes=EPISODES, regret="never")
    while not run.done:
        begin = clock()
        run.step()
        play += clock() - begin
        if run.episode in run.records:
            begin = clock()
            lp.solve(run.account.total_loss)
            records += clock() - begin
            totals.append(run.account.total_loss.copy())
    few, rows, begin = totals[:: len(totals) // 5], _pair_costs(problem, lp.constraints), clock()
    for total in few:
        visits_by_highs(problem.mdp, _pair_costs(problem, total / largest(total)), rows, lp.budgets)
    return Played(play, records, (clock() - begin) / len(few) * len(totals))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write into docs/explanation/benchmarks.md")
    given = parser.parse_args()
    lines, runs = [], []
    for name in (*PROBLEMS, "Taxi-v4"):
        problem = problem_called(name)
        mixture, by_highs, difference = map(np.array, zip(*solved(problem), strict=True))
        cells = duration(np.median(mixture)), duration(np.median(by_highs)), shown(np.median(by_highs / mixture))
        size = f"{problem.space.n_tuples:,}", str(len(problem.budgets))
        lines.append((name, *size, *cells, f"{difference.max():.0e}"))
        print(" | ".join(lines[-1]), flush=True)
    for name in PLAYED:
        problem = problem_called(name)
        run = played(problem)
        share = f"{run.records / run.play:.2f}", f"{run.by_highs / run.play:.2f}"
        runs.append((name, *map(duration, run), *share))
        print(" | ".join(runs[-1]), flush=True)
    if given.write:
        columns = ("", "tuples", "budgets", "mixtures", "HiGHS", "ratio", "values differ by")
        page.write("hindsight", page.table(columns, lines))
        shares = ("", "play", "records", "records by HiGHS", "records / play", "by HiGHS / play")
        page.write("records", page.table(shares, runs))


if __name__ == "__main__":
    main()
