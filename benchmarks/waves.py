"""python -m benchmarks.waves: losses that oscillate, over all periods.

Two actions and one step, nothing to learn about the dynamics, a budget that cannot be exceeded; the losses of the
actions are +w and -w, w a sine or a square wave of period P. Any fixed policy has a loss near 0, and the regret is what
the learner loses by following the wave too late. P runs over a geometric grid from 2 episodes to T. Shows the worst
regret over the periods in shares of sqrt(L|S||A|T), and how it grows with T. With --problem, plays a problem of the
suite with `waves` and `square-waves` as its losses. Rows are kept in --results, and a benchmark that was stopped
continues where it was.
"""

from collections.abc import Sequence

import numpy as np

import tightrope as tr
from benchmarks import runs
from benchmarks.measure import exponent
from benchmarks.problems import table
from benchmarks.runs import Row
from tightrope.problems.base import Problem
from tightrope.problems.constraints import make_constraints
from tightrope.problems.losses import make_losses

LEARNERS = ("ucpd-practical", "ucpd", "uc-o-reps", "follow-the-leader")
SHAPES = ("waves", "square-waves")
TWO_ACTIONS = "two-actions"


def make(problem: str, shape: str, period: float) -> Problem:
    """Return the problem with losses of that shape and period, in episodes."""
    losses = {"name": shape, "period": period}
    if problem != TWO_ACTIONS:
        return tr.make(problem, losses=losses)
    mdp = tr.LayeredMDP(tr.LayeredSpace.dense([1, 1], 2), np.ones(2))
    return Problem(
        name=TWO_ACTIONS,
        mdp=mdp,
        losses=make_losses(losses, [[1.0, -1.0], [-1.0, 1.0]], mdp),
        constraints=make_constraints("none", np.array([[0.5, 0.5]]), mdp),
        budgets=np.ones(1),
        constraint_names=("steps",),
    )


def periods(episodes: int, per_octave: int) -> list[float]:
    """Return periods from 2 to at most T `episodes`, with that many from one period to its double."""
    steps = int(per_octave * np.log2(episodes / 2) + 1e-9)
    return [round(float(2 * 2 ** (k / per_octave)), 3) for k in range(steps + 1)]


def play(learner: str, problem: str, losses: str, period: float, episodes: int, seed: int) -> Row:
    """Play one run and return its row."""
    task = {"learner": learner, "problem": problem, "losses": losses, "period": period}
    result = runs.run_or_error(make(problem, losses, period), learner, episodes, seed)
    return task | {"episodes": episodes, "seed": seed} | result


def summary(rows: Sequence[Row]) -> str:
    """Return a table: a line per learner and shape, the worst share and its period for every T, and the exponent.

    The exponent is that of the worst regret, not of its share: 0.5 where the share does not grow.
    """
    horizons, lines = sorted({row["episodes"] for row in rows}), []
    for learner, losses in dict.fromkeys((row["learner"], row["losses"]) for row in rows):
        of = [row for row in rows if (row["learner"], row["losses"]) == (learner, losses)]
        failed, cells, worst = sum("error" in row for row in of), [], []
        for episodes in horizons:
            done = [row for row in of if row["episodes"] == episodes and "error" not in row]
            if done:
                row = max(done, key=lambda row: float(row["regret"]))
                cells.append(f"{row['regret']:.3f} (P = {row['period']:g})")
                worst.append(row["regret"])
            else:
                cells.append("–")
        grows = "–"
        if len(worst) == len(horizons) > 1 and min(worst) > 0:
            grows = f"{exponent(horizons, list(worst)) + 0.5:.2f}"
        lines.append((learner, losses, *cells, grows, f"{failed} of {len(of)}"))
    header = ("learner", "losses", *(f"T = {episodes:,}" for episodes in horizons), "exponent", "failures")
    return table(header, lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Play, and print the table."""
    parser = runs.parser(__doc__, LEARNERS, "runs/waves.jsonl")
    parser.add_argument("--problem", default=TWO_ACTIONS, help=f"default {TWO_ACTIONS}")
    parser.add_argument("--episodes", type=int, nargs="+", default=(2_000, 20_000, 200_000))
    parser.add_argument("--per-octave", type=int, default=2, help="number of periods from one to its double")
    given = parser.parse_args(arguments)
    if given.quick:
        given.episodes, given.per_octave = (500, 2_000), 1
    tasks = [
        {
            "learner": learner,
            "problem": given.problem,
            "losses": losses,
            "period": period,
            "episodes": episodes,
            "seed": 0,
        }
        for episodes in given.episodes
        for period in periods(episodes, given.per_octave)
        for losses in SHAPES
        for learner in runs.learners(given)
    ]
    rows = runs.played(tasks, play, given.results, given.jobs, again=given.again)
    print(f"\n{given.problem}, worst regret share over all periods P\n")
    print(summary(rows) + "\n")
    print(runs.failures(rows))


if __name__ == "__main__":
    main()
