"""python -m benchmarks.changing: learners under constraints that change, into docs/explanation/changing-budgets.md.

The losses switch. All values are per episode, in the learner's units, means over seeds. Learners have their default
options; `ucpd` has a second row with the confidence sets and ties of `omdpd` and `ucpd-practical`.
"""

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np

import tightrope as tr
from benchmarks import page

#: The learners and their options, by their names in the table.
PROBLEMS: dict[str, dict[str, Any]] = {
    "media-streaming, switching": {"name": "media-streaming", "losses": "switching", "noise": "switching"},
    "media-streaming, drifting": {"name": "media-streaming", "losses": "switching", "noise": "drifting"},
    "media-streaming, chaser": {"name": "media-streaming", "losses": "switching", "noise": "chaser"},
    "machine-cycle, switching": {"name": "machine-cycle", "losses": "switching", "noise": "switching"},
    "mannor-game": {"name": "mannor-game"},
    "river-swim, switching": {"name": "river-swim", "losses": "switching", "noise": "switching"},
    "random, drifting": {"name": "random", "losses": "switching", "noise": "drifting"},
}
LEARNERS: dict[str, dict[str, Any]] = {
    "ucpd": {"name": "ucpd"},
    "ucpd, KL sets": {"name": "ucpd", "confidence": "kl", "renewal": 0.1, "ties": True},
    "ucpd-practical": {"name": "ucpd-practical"},
    "omdpd": {"name": "omdpd"},
}
MEASURES = ("regret", "regret_always", "violation", "strong_violation")


def played(problem: dict[str, Any], learner: dict[str, Any], episodes: int, seeds: int) -> list[float]:
    """Return the measures per episode, means over seeds."""
    made, rows = tr.make(**problem), []
    for seed in range(seeds):
        options = {key: value for key, value in learner.items() if key != "name"}
        player = tr.make_learner(learner["name"], made, episodes=episodes, seed=seed, **options)
        history = tr.run(made, player, episodes=episodes, seed=seed, records=1)
        rows.append([history[measure][-1] / episodes for measure in MEASURES])
    means: list[float] = np.mean(rows, axis=0).tolist()
    return means


def rows(horizons: list[int], seeds: int) -> Iterator[list[str]]:
    """Return a row for each problem and learner; a cell has the values of one measure at all horizons."""
    for at, problem in PROBLEMS.items():
        for who, learner in LEARNERS.items():
            cells = np.array([played(problem, learner, episodes, seeds) for episodes in horizons])
            name = learner["name"]
            row = [at, f"`{name}`{who.removeprefix(name)}"]
            row += [" → ".join(f"{value + 0.0:.3f}" for value in column) for column in cells.T]
            print(*row, flush=True)
            yield row
            at = ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, nargs="+", default=[5000, 20_000])
    parser.add_argument("--seeds", type=int, default=1)
    given = parser.parse_args()
    headings = ("problem and constraints", "learner", "regret", "regret, always", "violation", "strong violation")
    text = page.table(headings, rows(given.episodes, given.seeds))
    horizons = " → ".join(f"{episodes:,}" for episodes in given.episodes)
    about = f"Per episode after T = {horizons} episodes, {given.seeds} seed{'s' * (given.seeds != 1)}."
    page.write("changing", f"{about}\n\n{text}", page.DOCS / "explanation" / "changing-budgets.md")


if __name__ == "__main__":
    main()
