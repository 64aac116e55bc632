"""python -m benchmarks.hard: in how many runs no budget is exceeded in any episode, and how regret falls.

A run is within its budgets if its strong violation, by exact accounting of every policy that was played, is 0. Budgets
bind on all problems: `ucpd-practical`, which holds budgets only on average, exceeds them in some episodes. Longer runs,
one of each, show regret per episode. Finished runs are kept in --results and not played again. Writes into
docs/explanation/comparison-tables.md.
"""

import argparse
import json
from pathlib import Path
from typing import NamedTuple

import joblib
import numpy as np

import tightrope as tr
from benchmarks import page

#: Problems and their options.
PROBLEMS = ("river-swim", "media-streaming", "two-budgets")
LEARNERS = ("s-ops", "safe-baseline", "ucpd-practical")
#: A larger excess, summed over a run, is no rounding error.
EXCEEDED = 1e-9


def problem_of(name: str, losses: str) -> tr.Problem:
    """Return a problem of the suite, or a small random one with two budgets that bind."""
    if name != "two-budgets":
        return tr.make(name, losses=losses)
    return tr.make("random", layer_sizes=[1, 3, 3, 1], n_actions=3, n_constraints=2, seed=1, losses=losses)


class Asked(NamedTuple):
    """A run to play: problem, learner, episodes and seed."""

    learner: str
    problem: str
    losses: str
    episodes: int
    seed: int

    def play(self, results: Path) -> dict[str, float]:
        """Return the last record of a run, from the file if it was played before."""
        file = results / ("-".join(map(str, self)) + ".json")
        if not file.exists():
            problem = problem_of(self.problem, self.losses)
            history = tr.run(problem, self.learner, episodes=self.episodes, seed=self.seed, records=1)
            kept = {name: float(history[name][-1]) for name in ("regret", "strong_violation")}
            file.write_text(json.dumps(kept), "utf-8")
        played: dict[str, float] = json.loads(file.read_text("utf-8"))
        return played


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--episodes", type=int, default=1000, help="number of episodes of the short runs")
    parser.add_argument(
        "--lengths", type=int, nargs="*", default=[1000, 10_000, 20_000], help="numbers of episodes of the long runs"
    )
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--results", type=Path, default=Path("results/hard"))
    parser.add_argument(
        "--print", action="store_true", help="print only; do not write docs/explanation/comparison-tables.md"
    )
    options = parser.parse_args()
    options.results.mkdir(parents=True, exist_ok=True)
    many = [
        Asked("s-ops", name, "switching", options.episodes, seed) for name in PROBLEMS for seed in range(options.runs)
    ]
    few = [
        Asked(learner, name, "switching", length, 0)
        for name in PROBLEMS
        for learner in LEARNERS
        for length in options.lengths
    ]
    played = joblib.Parallel(n_jobs=options.jobs)(joblib.delayed(asked.play)(options.results) for asked in many + few)
    answers = dict(zip(many + few, played, strict=True))
    rows = []
    for name in PROBLEMS:
        exceeded = np.array([answers[asked]["strong_violation"] for asked in many if asked.problem == name])
        within = int(np.sum(exceeded <= EXCEEDED))
        rows.append([name, f"{within:,} of {options.runs:,}", f"{exceeded.max():.2g}"])
    text = page.table(["problem", f"runs of {options.episodes:,} episodes within all budgets", "largest excess"], rows)
    rows = [
        [asked.problem, asked.learner, *(_shown(answers[asked._replace(episodes=n)], n) for n in options.lengths)]
        for asked in few
        if asked.episodes == options.lengths[0]
    ]
    heads = [f"{length:,} episodes" for length in options.lengths]
    text += "\n\n" + page.table(["problem", "learner", *heads], rows)
    print(text)
    if not options.print:
        page.write("hard", text, page.COMPARISON)


def _shown(played: dict[str, float], episodes: int) -> str:
    """Return regret and strong violation, per episode, as text."""
    return f"{played['regret'] / episodes:.3f} / {played['strong_violation'] / episodes:.3f}"


if __name__ == "__main__":
    main()
