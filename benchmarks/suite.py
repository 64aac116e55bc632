"""python -m benchmarks.suite: every bundled problem under fixed, switching and adaptive losses, in one table.

Regret, violation and strong violation after T episodes, in shares of sqrt(L|S||A|T), the order of the lower bound.
Constants of `ucpd-practical` were chosen on one half of the suite (--half chosen) and are confirmed on the other
(--half confirmed). Each run is kept in --results as soon as it is done, and not played again. --write puts the tables
into docs/comparison.md.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import joblib
import numpy as np

import tightrope as tr
from benchmarks import page

#: The problems that constants were chosen on, and those that had no say.
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
MEASURES = ("regret", "violation", "strong_violation")

Row = dict[str, Any]


def play(learner: str, name: str, losses: str, episodes: int, seed: int, options: Row) -> Row:
    """One run, in shares of sqrt(L|S||A|T)."""
    problem = tr.make(name, losses=losses)
    space = problem.space
    made = tr.make_learner(learner, problem, episodes=episodes, seed=seed, **options)
    history = tr.run(problem, made, episodes=episodes, seed=seed, records=1, regret="last")
    unit = np.sqrt(space.n_layers * space.n_states * space.n_actions * episodes)
    shares = {measure: float(history[measure][-1] / unit) for measure in MEASURES}
    return key_of(learner, name, losses, episodes, seed, options) | shares


def key_of(learner: str, name: str, losses: str, episodes: int, seed: int, options: Row) -> Row:
    """What a run is."""
    asked = {"learner": learner, "options": options, "problem": name, "losses": losses}
    return asked | {"episodes": episodes, "seed": seed}


def played(wanted: Sequence[tuple[Any, ...]], results: Path, jobs: int) -> list[Row]:
    """All that is wanted, in order; what is in the file already is taken from there."""
    lines = results.read_text().splitlines() if results.exists() else []
    there = {json.dumps(_without_shares(row)): row for row in map(json.loads, lines)}
    missing = [task for task in wanted if json.dumps(key_of(*task)) not in there]
    print(f"{len(wanted) - len(missing)} runs are there, {len(missing)} are played", flush=True)
    arriving = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered")(
        joblib.delayed(play)(*task) for task in missing
    )
    with results.open("a") as file:
        for number, row in enumerate(arriving, 1):
            file.write(json.dumps(row) + "\n")
            file.flush()
            there[json.dumps(_without_shares(row))] = row
            shares = " ".join(f"{row[measure]:.3f}" for measure in MEASURES)
            print(f"{number}/{len(missing)} {row['learner']} {row['problem']} {row['losses']} {shares}", flush=True)
    return [there[json.dumps(key_of(*task))] for task in wanted]


def _without_shares(row: Row) -> Row:
    return {name: value for name, value in row.items() if name not in MEASURES}


def table(rows: Sequence[Row], learner: str) -> list[str]:
    """Markdown: a line for each problem, and the means below."""
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
    parser.add_argument("--learners", default="ucpd-practical", help="one or several, a,b,c")
    parser.add_argument("--half", choices=("chosen", "confirmed", "both"), default="both")
    parser.add_argument("--problems", default="", help="these only, a,b,c")
    parser.add_argument("--episodes", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument(
        "--options", type=json.loads, default={}, help='of the learner, as JSON: {"confidence": "kl-l1"}'
    )
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--write", action="store_true", help="into docs/comparison.md")
    parser.add_argument("--results", type=Path, default=Path("runs/suite.jsonl"))
    given = parser.parse_args()
    halves = {"chosen": CHOSEN, "confirmed": CONFIRMED, "both": (*CHOSEN, *CONFIRMED)}
    problems = given.problems.split(",") if given.problems else halves[given.half]
    given.results.parent.mkdir(parents=True, exist_ok=True)
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
