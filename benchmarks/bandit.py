"""python -m benchmarks.bandit: how regret and violation of ucpd-bandit grow with T, beside uob-reps and opt-cmdp.

It needs no horizon, so one run of 100,000 episodes contains all shorter ones; exponents are as in benchmarks.exponents.
Where budgets cannot bind it is compared with uob-reps, elsewhere with opt-cmdp; both are given the number of episodes.
Finished runs are kept in --results and not played again. Writes into docs/explanation/comparison-tables.md.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np

import tightrope as tr
from benchmarks import page
from benchmarks.exponents import FIRST, MEASURES, Curves

PROBLEMS = ("media-streaming", "river-swim", "random")
LOSSES = ("fixed", "switching", "chaser")
#: Budgets that allow the use in every step, and so never bind.
LOOSE: dict[str, dict[str, Any]] = {"media-streaming": {"budget": 10.0}, "river-swim": {"budget": 20.0}}
RECORDS = 25


class Asked(NamedTuple):
    """A run to play: problem, losses, learner and seed."""

    learner: str
    problem: str
    losses: str
    episodes: int
    seed: int = 0
    loose: bool = False

    def play(self, results: Path) -> dict[str, list[float]]:
        """Return the records of a run, from the file if it was played before."""
        file = results / ("-".join(map(str, self)) + ".json")
        if not file.exists():
            problem = tr.make(self.problem, losses=self.losses, **(LOOSE[self.problem] if self.loose else {}))
            history = tr.run(problem, self.learner, episodes=self.episodes, seed=self.seed, records=RECORDS)
            columns = {name: history[name].tolist() for name in ("episode", *MEASURES)}
            file.write_text(json.dumps(columns))
            print(*self, *(f"{columns[measure][-1]:.1f}" for measure in MEASURES), flush=True)
        played: dict[str, list[float]] = json.loads(file.read_text())
        return played


def curves(runs: Sequence[dict[str, list[float]]]) -> Curves:
    """Return the means over seeds, from episode FIRST on."""
    episode = np.array(runs[0]["episode"])
    late = episode >= FIRST
    return Curves(episode[late], {m: np.mean([run[m] for run in runs], axis=0)[late] for m in MEASURES})


def growth(of: Curves, measure: str) -> str:
    """Return values per episode at the first and the last record, and the exponent."""
    first, last = (of.mean[measure][i] / of.episode[i] for i in (0, -1))
    return f"{first:.4f} → {last:.4f} ({of.exponent(measure):.2f})".replace("(nan)", "(–)")


def at_the_end(runs: Sequence[dict[str, list[float]]]) -> str:
    """Return all measures at the last record, means over seeds."""
    return " / ".join(f"{np.mean([run[measure][-1] for run in runs]):,.0f}" for measure in MEASURES)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=100_000)
    parser.add_argument("--beside", type=int, default=10_000, help="episodes of the runs that are compared with others")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--results", type=Path, default=Path("runs/bandit"))
    given = parser.parse_args()
    given.results.mkdir(parents=True, exist_ok=True)
    seeds, parallel = range(given.seeds), joblib.Parallel(n_jobs=given.jobs)

    def play(asked: Sequence[Asked]) -> list[list[dict[str, list[float]]]]:
        """Return the records of a run, from the file if it was played before."""
        tasks = [one._replace(seed=seed) for one in asked for seed in seeds]
        runs = parallel(joblib.delayed(task.play)(given.results) for task in tasks)
        return [runs[i : i + given.seeds] for i in range(0, len(runs), given.seeds)]

    grown = [Asked("ucpd-bandit", name, losses, given.episodes) for name in PROBLEMS for losses in LOSSES]
    lines: list[tuple[str, ...]] = []
    for asked, runs in zip(grown, play(grown), strict=True):
        of = curves(runs)
        lines.append((f"{asked.problem}, {asked.losses}", *(growth(of, measure) for measure in MEASURES)))
    titles = ("per episode (exponent of the sum)", "regret", "violation", "strong violation")
    text = (
        f"From {FIRST:,} to {given.episodes:,} episodes, means of {given.seeds} seeds.\n\n{page.table(titles, lines)}"
    )

    for other, loose, words in (
        ("uob-reps", True, "budgets that cannot bind"),
        ("opt-cmdp", False, "budgets that bind"),
    ):
        names = tuple(LOOSE) if loose else PROBLEMS
        cases = [(name, losses) for name in names for losses in LOSSES]
        ours, theirs = (
            play([Asked(learner, *case, given.beside, loose=loose) for case in cases])
            for learner in ("ucpd-bandit", other)
        )
        lines = [
            (", ".join(case), at_the_end(a), at_the_end(b)) for case, a, b in zip(cases, ours, theirs, strict=True)
        ]
        table = page.table(("regret / violation / strong violation", "ucpd-bandit", other), lines)
        text += f"\n\nBeside `{other}`, {words}, {given.beside:,} episodes, {given.seeds} seeds:\n\n{table}"
    print(text)
    page.write("bandit", text, page.COMPARISON)


if __name__ == "__main__":
    main()
