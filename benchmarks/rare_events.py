"""python -m benchmarks.rare_events: budgets on events with probabilities from 1/20 down to 1/10,000.

Plays `rare-crash` under fixed, switching and adaptive losses, for as many episodes T as allow the given numbers of
crashes (--crashes). The budget is half or a quarter of the crashes of a policy that is always bold; with half the
uniform policy is optimal under fixed losses, which flatters learners that hardly move from it. A cell is use / budget
and regret in shares of sqrt(L|S||A|T), means over seeds. Uses are expectations under the true model of the policies
that were played, not crashes that happened. Rows are kept in --results, and a benchmark that was stopped continues
where it was.
"""

import math
from collections.abc import Sequence
from operator import itemgetter

import numpy as np

import tightrope as tr
from benchmarks import runs
from benchmarks.problems import table
from benchmarks.runs import Row

LEARNERS = ("ucpd-practical", "ucpd-practical-known", "ucpd", "follow-the-leader", "opt-cmdp", "opt-primal-dual")

#: A bold step crashes with probability 1/N.
ODDS = (20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000)
LOSSES = ("fixed", "switching", "chaser")


def play(learner: str, allowed: float, one_in: int, losses: str, crashes: int, seed: int) -> Row:
    """Play one run and return its row: as many episodes as allow that number of `crashes`."""
    problem = tr.make("rare-crash", probability=1 / one_in, allowed=allowed, losses=losses)
    [budget] = problem.use_in_units(problem.budgets)
    episodes = math.ceil(crashes / budget - 1e-9)
    task = {
        "learner": learner,
        "allowed": allowed,
        "one_in": one_in,
        "losses": losses,
        "crashes": crashes,
        "seed": seed,
    }
    return task | {"episodes": episodes} | runs.run_or_error(problem, learner, episodes, seed)


def summary(rows: Sequence[Row], title: str) -> str:
    """Return a table of one learner: a line per probability, a column per losses and number of crashes."""
    columns = list(dict.fromkeys((row["losses"], row["crashes"]) for row in rows))
    lines = []
    for one_in in dict.fromkeys(row["one_in"] for row in rows):
        here = [row for row in rows if row["one_in"] == one_in]
        cells = (_cell([row for row in here if (row["losses"], row["crashes"]) == column]) for column in columns)
        lines.append((f"1/{one_in:,}", *cells))
    header = (title, *(f"{losses}, {crashes} crashes" for losses, crashes in columns))
    return f"{table(header, lines)}\n\n{_worst(rows)}"


def _cell(rows: Sequence[Row]) -> str:
    failed = sum("error" in row for row in rows)
    if failed:
        return f"{failed} of {len(rows)} failed"
    return " / ".join(f"{np.mean([row[name] for row in rows]):.3f}" for name in ("use", "regret"))


def _worst(rows: Sequence[Row]) -> str:
    """Return the extremes of a learner in a sentence."""
    done = [row for row in rows if "error" not in row]
    if not done:
        return f"All {len(rows)} runs failed."
    use, regret = (max(done, key=itemgetter(name)) for name in ("use", "regret"))
    return (
        f"Largest use / budget {use['use']:.3f} (1/{use['one_in']:,}, {use['losses']}), largest regret share "
        f"{regret['regret']:.3f} (1/{regret['one_in']:,}, {regret['losses']}); {len(rows) - len(done)} of {len(rows)} "
        "runs failed."
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Play, and print a table for each learner."""
    parser = runs.parser(__doc__, LEARNERS, "runs/rare-events.jsonl")
    parser.add_argument("--one-in", type=int, nargs="+", default=ODDS, metavar="N", help="probabilities 1/N")
    parser.add_argument(
        "--allowed",
        type=float,
        nargs="+",
        default=(0.5, 0.25),
        help="budgets as shares of the crashes of the bold policy",
    )
    parser.add_argument("--crashes", type=int, nargs="+", default=(50, 200), help="allowed in a run")
    parser.add_argument("--seeds", type=int, default=2)
    given = parser.parse_args(arguments)
    if given.quick:
        given.one_in, given.crashes, given.seeds = (20, 200), (50,), 1
    tasks = [
        {"learner": learner, "allowed": allowed, "one_in": one_in, "losses": losses, "crashes": crashes, "seed": seed}
        for allowed in given.allowed
        for one_in in given.one_in
        for losses in LOSSES
        for crashes in given.crashes
        for seed in range(given.seeds)
        for learner in runs.learners(given)
    ]
    rows = runs.played(tasks, play, given.results, given.jobs, again=given.again)
    print(f"\nrare-crash, use / budget and regret share, {given.seeds} seed{'s' * (given.seeds != 1)}\n")
    for allowed in given.allowed:
        for learner in runs.learners(given):
            of = [row for row in rows if (row["allowed"], row["learner"]) == (allowed, learner)]
            print(f"{summary(of, f'{learner}, {allowed:.0%} allowed')}\n")
    print(runs.failures(rows))


if __name__ == "__main__":
    main()
