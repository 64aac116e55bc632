"""python -m benchmarks.changing: learners under constraints that change, into docs/explanation/changing-budgets.md.

With `--learner ucpd-practical`, only the rows of that learner are played, and the others stay as they are.

The losses switch. All values are per episode, in the learner's units, means over seeds. Learners have their default
options; `ucpd` has a second row with the confidence sets and ties of `omdpd` and `ucpd-practical`.
"""

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np

import tightrope as tr
from benchmarks import page

PAGE = page.DOCS / "explanation" / "changing-budgets.md"
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


def kept(horizons: list[int], seeds: int) -> dict[tuple[str, str], list[str]]:
    """Return the cells that are on the page, by problem and learner; none if it has other horizons or seeds."""
    text = PAGE.read_text("utf-8").partition("<!-- changing -->\n")[2].partition("<!-- end of changing -->")[0]
    found: dict[tuple[str, str], list[str]] = {}
    problem = ""
    if text.startswith(about(horizons, seeds)):
        for line in text.splitlines():
            if line.startswith("|"):
                at, who, *cells = [cell.strip() for cell in line.strip("|").split("|")]
                problem = at or problem
                found[problem, who] = cells
    return found


def rows(horizons: list[int], seeds: int, chosen: list[str]) -> Iterator[list[str]]:
    """Return a row for each problem and learner; a cell has the values of one measure at all horizons."""
    there = kept(horizons, seeds)
    for at, problem in PROBLEMS.items():
        first = at
        for who, learner in LEARNERS.items():
            name = learner["name"]
            shown = f"`{name}`{who.removeprefix(name)}"
            cells = there.get((at, shown))
            if cells is None or name in chosen:
                values = np.array([played(problem, learner, episodes, seeds) for episodes in horizons])
                cells = [" → ".join(f"{value + 0.0:.3f}" for value in column) for column in values.T]
                print(at, shown, *cells, flush=True)
            yield [first, shown, *cells]
            first = ""


def about(horizons: list[int], seeds: int) -> str:
    """Return the line above the table."""
    written = " → ".join(f"{episodes:,}" for episodes in horizons)
    return f"Per episode after T = {written} episodes, {seeds} seed{'s' * (seeds != 1)}."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, nargs="+", default=[5000, 20_000])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--learner", action="append", choices=[learner["name"] for learner in LEARNERS.values()])
    given = parser.parse_args()
    chosen = given.learner or [learner["name"] for learner in LEARNERS.values()]
    headings = ("problem and constraints", "learner", "regret", "regret, always", "violation", "strong violation")
    text = page.table(headings, rows(given.episodes, given.seeds, chosen))
    page.write("changing", f"{about(given.episodes, given.seeds)}\n\n{text}", PAGE)


if __name__ == "__main__":
    main()
