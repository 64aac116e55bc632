"""python -m benchmarks.held_out: learners on random instances that no constant was chosen on.

Plays `random-cmdp` for T episodes, one run per seed of the generator; regret and violations are in shares of
sqrt(L|S||A|T), and use / budget is that of the budget that is used most: violations of rare costs are small. Choose
constants on seeds below 1,000 (the default), and report seeds of at least 1,000 (--report), which must not be looked
at before. Rows are kept in --results, and a benchmark that was stopped continues where it was.
"""

from collections.abc import Callable, Sequence
from operator import itemgetter

import numpy as np

import tightrope as tr
from benchmarks import runs
from benchmarks.problems import table
from benchmarks.runs import Row
from tightrope.planning.hindsight import slater_slack
from tightrope.problems.base import Problem

#: The preset that new learners are compared with.
BASELINE = "ucpd-practical"
LEARNERS = (BASELINE, "ucpd-practical-known", "ucpd", "follow-the-leader", "opt-cmdp", "opt-primal-dual")

#: Seeds of at least this are for reporting.
HELD_OUT = 1000

#: Name in the tables, and value of a row.
MEASURES: dict[str, Callable[[Row], float]] = {
    "regret": lambda row: row["regret"],
    "positive regret": lambda row: max(row["regret"], 0.0),
    "violation": lambda row: row["violation"],
    "strong violation": lambda row: row["strong_violation"],
    "use / budget": lambda row: row["use"],
}


def play(learner: str, seed: int, episodes: int) -> Row:
    """Play one instance and return its row; the instance's seed is the run's seed, too."""
    problem = tr.make("random-cmdp", seed=seed)
    result = runs.run_or_error(problem, learner, episodes, seed)
    return {"learner": learner, "seed": seed, "episodes": episodes} | features(problem) | result


def features(problem: Problem) -> Row:
    """Return what explains the difficulty of an instance.

    `rarest` is the least probability of a transition that costs something, `slack` the largest share of all budgets
    that some policy leaves at once.
    """
    space, mean = problem.space, problem.constraints.mean
    cost = (mean > 0).any(axis=0)
    return {
        "losses": problem.losses.name,
        "noise": problem.noise,
        "steps": space.n_layers,
        "states": space.n_states,
        "actions": space.n_actions,
        "budgets": len(problem.budgets),
        "rarest": float(problem.mdp.transitions[cost].min()) if cost.any() else 1.0,
        "slack": slater_slack(problem.mdp, mean / problem.budgets[:, None], np.ones(len(mean))),
    }


def summary(rows: Sequence[Row]) -> str:
    """Return a table for each measure: a line per learner with the statistics, the worst instance and failures."""
    names, parts = list(dict.fromkeys(row["learner"] for row in rows)), []
    header = ("median", "mean (95 % interval)", "95th percentile", "largest", "of seed", "failures")
    for words, value in MEASURES.items():
        lines = []
        for name in names:
            of = [row for row in rows if row["learner"] == name]
            done = [row for row in of if "error" not in row]
            worst = str(max(done, key=value)["seed"]) if done else "–"
            statistics = runs.statistics([value(row) for row in done])
            lines.append((name, *statistics, worst, f"{len(of) - len(done)} of {len(of)}"))
        parts.append(table((words, *header), lines))
    return "\n\n".join(parts)


def compared(rows: Sequence[Row]) -> str:
    """Return a table of differences to the baseline on the instances that both completed; negative is better."""
    done = {(row["learner"], row["seed"]): row for row in rows if "error" not in row}
    lines = []
    for name in dict.fromkeys(row["learner"] for row in rows if row["learner"] != BASELINE):
        seeds = [seed for who, seed in done if who == name and (BASELINE, seed) in done]
        for words, value in MEASURES.items():
            differences = [value(done[name, seed]) - value(done[BASELINE, seed]) for seed in seeds]
            if differences and words != "regret":
                _, mean, _, _ = runs.statistics(differences)
                better, worse = (np.mean([sign * d > 1e-3 for d in differences]) for sign in (-1, 1))
                lines.append((name, words, mean, f"{better:.0%}", f"{worse:.0%}"))
    if not lines:
        return ""
    return table((f"minus {BASELINE}", "", "mean (95 % interval)", "better by 0.001", "worse by 0.001"), lines)


def worst(rows: Sequence[Row], count: int) -> str:
    """Return a table of each learner's instances of the largest violation and of the largest regret."""
    columns = ("losses", "noise", "steps", "states", "actions", "budgets", "rarest", "slack")
    lines = []
    for name in dict.fromkeys(row["learner"] for row in rows):
        done = [row for row in rows if row["learner"] == name and "error" not in row]
        chosen = [
            row
            for measure in ("violation", "regret")
            for row in sorted(done, key=itemgetter(measure), reverse=True)[:count]
        ]
        for row in {row["seed"]: row for row in chosen}.values():
            measured = (f"{row[measure]:.3f}" for measure in runs.MEASURES)
            described = (f"{value:.2g}" if isinstance(value := row[c], float) else str(value) for c in columns)
            lines.append((name, str(row["seed"]), *measured, *described))
    return table(("learner", "seed", "regret", "violation", "strong", *columns), lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Play, and print the tables."""
    parser = runs.parser(__doc__, LEARNERS, "runs/held-out.jsonl")
    parser.add_argument("--episodes", type=int, default=2_000)
    parser.add_argument("--instances", type=int, default=300, help="number of seeds")
    parser.add_argument("--first", type=int, help="first seed; default 0, or 1000 with --report")
    parser.add_argument("--report", action="store_true", help="play held-out seeds, once all constants are chosen")
    parser.add_argument("--worst", type=int, default=3, help="list that many worst instances of each learner")
    given = parser.parse_args(arguments)
    if given.quick:
        given.episodes, given.instances = min(given.episodes, 200), min(given.instances, 10)
    first = given.first if given.first is not None else HELD_OUT if given.report else 0
    seeds = range(first, first + given.instances)
    if first < 0 or given.instances < 1:
        parser.error("--first must be at least 0 and --instances at least 1")
    if not given.report and seeds[-1] >= HELD_OUT:
        parser.error(f"seeds of at least {HELD_OUT} are for reporting; ask for them with --report")
    if given.report and first < HELD_OUT:
        parser.error(f"--report is for seeds of at least {HELD_OUT}; --first is {first}")
    learners = runs.learners(given)
    tasks = [{"learner": name, "seed": seed, "episodes": given.episodes} for seed in seeds for name in learners]
    rows = runs.played(tasks, play, given.results, given.jobs, again=given.again)
    print(f"\nrandom-cmdp, seeds {seeds[0]} to {seeds[-1]}, T = {given.episodes:,}\n")
    for part in (summary(rows), compared(rows), worst(rows, given.worst), runs.failures(rows)):
        if part:
            print(part + "\n")


if __name__ == "__main__":
    main()
