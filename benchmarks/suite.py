"""python -m benchmarks.suite: every bundled problem under fixed, switching and adaptive losses, in one table.

Regret, violation and strong violation after T episodes, in shares of sqrt(L|S||A|T), the order of the lower bound.
Constants of `ucpd-practical` were chosen on one half of the suite (--half chosen) and are confirmed on the other
(--half confirmed). Each run is kept in --results as soon as it is done, and not played again. --write puts the tables
into docs/explanation/comparison-tables.md.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import tightrope as tr
from benchmarks import page, runs
from benchmarks.runs import MEASURES, Row

#: The problems that constants were chosen on, and those that they are confirmed on.
CHOSEN = (
    "autonomous-driving",
    "cliff-walking",
    "edge-cloud",
    "inventory",
    "machine-cycle",
    "random",
    "river-swim",
)
CONFIRMED = (
    "box-pushing",
    "frozen-lake",
    "grid",
    "mars-rover",
    "media-streaming",
    "single-server-queue",
    "taxi-fuel",
)
LOSSES = ("fixed", "switching", "chaser")


def play(learner: str, options: Row, problem: str, losses: str, episodes: int, seed: int) -> Row:
    """Play one run and return its row, measures in shares of sqrt(L|S||A|T)."""
    task = key_of(learner, problem, losses, episodes, seed, options)
    return task | runs.run(tr.make(problem, losses=losses), learner, episodes, seed, options)


def key_of(learner: str, name: str, losses: str, episodes: int, seed: int, options: Row) -> Row:
    """Return the task of a run."""
    asked = {"learner": learner, "options": options, "problem": name, "losses": losses}
    return asked | {"episodes": episodes, "seed": seed}


def played(wanted: Sequence[tuple[Any, ...]], results: Path, jobs: int) -> list[Row]:
    """Return the rows of all wanted runs, in order; those that are in the file are not played again."""
    return runs.played([key_of(*task) for task in wanted], play, results, jobs)


def table(rows: Sequence[Row], learner: str) -> list[str]:
    """Return a row for each problem, and the means below, in Markdown."""
    cells: dict[tuple[str, str], dict[str, float]] = {}
    for name in dict.fromkeys(row["problem"] for row in rows):
        for losses in LOSSES:
            of = [row for row in rows if (row["problem"], row["losses"], row["learner"]) == (name, losses, learner)]
            if of:
                cells[name, losses] = {measure: float(np.mean([row[measure] for row in of])) for measure in MEASURES}
    lines = [f"| {learner} | {' | '.join(LOSSES)} |", "|---" * (1 + len(LOSSES)) + "|"]
    for name in dict.fromkeys(problem for problem, _ in cells):
        shown = [
            " / ".join(f"{cells[name, losses][measure]:.3f}" for measure in MEASURES) if (name, losses) in cells else ""
            for losses in LOSSES
        ]
        lines.append(f"| {name} | {' | '.join(shown)} |")
    regret, violation, strong = (np.array([cell[measure] for cell in cells.values()]) for measure in MEASURES)
    lines += [
        "",
        f"Mean of positive regrets {np.maximum(regret, 0).mean():.3f} (a negative one counts as 0), largest "
        f"{regret.max():.3f}; violation {violation.mean():.3f}, largest {violation.max():.3f}; strong violation "
        f"{strong.mean():.3f}, largest {strong.max():.3f}.",
    ]
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--learners", default="ucpd-practical", help="learners to play: a,b,c")
    parser.add_argument("--half", choices=("chosen", "confirmed", "both"), default="both")
    parser.add_argument("--problems", default="", help="play these problems only: a,b,c")
    parser.add_argument("--episodes", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument(
        "--options", type=json.loads, default={}, help='options of the learner, as JSON: {"confidence": "kl-l1"}'
    )
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--write", action="store_true", help="write into docs/explanation/comparison-tables.md")
    parser.add_argument("--results", type=Path, default=Path("runs/suite.jsonl"))
    given = parser.parse_args()
    halves = {"chosen": CHOSEN, "confirmed": CONFIRMED, "both": (*CHOSEN, *CONFIRMED)}
    problems = given.problems.split(",") if given.problems else halves[given.half]
    learners = given.learners.split(",")
    wanted = [
        (learner, name, losses, given.episodes, seed, given.options)
        for seed in range(given.seeds)
        for name in problems
        for losses in LOSSES
        for learner in learners
    ]
    rows = played(wanted, given.results, given.jobs)
    text = "\n\n".join("\n".join(table(rows, learner)) for learner in learners)
    print("\n" + text)
    if given.write:
        page.write("suite", f"T = {given.episodes:,}, {given.seeds} seeds.\n\n{text}", page.COMPARISON)


if __name__ == "__main__":
    main()
