"""Every learner on three problems, under fixed, switching and adaptive losses: `python -m benchmarks.comparison`.

Writes the tables of docs/comparison.md (between its markers) and one picture a problem.
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from scipy import stats

import tightrope as tr
from tightrope.experiments.compare import compare
from tightrope.experiments.history import History
from tightrope.learners import LEARNERS
from tightrope.storage.files import write_bytes

PROBLEMS = ("machine-cycle", "media-streaming", "river-swim")
LOSSES = ("fixed", "switching", "chaser")
DOCS = Path(__file__).parent.parent / "docs"
BEGIN, END = "<!-- tables: begin -->", "<!-- tables: end -->"
COLUMNS = ("regret", "violation", "strong_violation")

Results = Mapping[str, Mapping[str, Mapping[str, Sequence[History]]]]


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Mean, and half the width of its 95 % interval (Student's t)."""
    mean, n = float(np.mean(values)), len(values)
    return mean, float(stats.t.ppf(0.975, n - 1) * np.std(values, ddof=1) / np.sqrt(n)) if n > 1 else 0.0


def at_the_end(histories: Sequence[History], column: str) -> tuple[float, float]:
    return interval([history[column][-1] for history in histories])


def play(episodes: int, seeds: int, learners: Sequence[str]) -> Results:
    results: dict[str, dict[str, dict[str, list[History]]]] = {}
    for name in PROBLEMS:
        for losses in LOSSES:
            problem = tr.make(name, losses=losses)
            print(f"{name}, {losses} losses: {problem.space}", flush=True)
            played = compare(problem, learners, episodes=episodes, seeds=seeds, n_jobs=-1, records=2, regret="last")
            results.setdefault(name, {})[losses] = played
    return results


def tables(results: Results, episodes: int, seeds: int) -> str:
    lines = [f"T = {episodes} episodes, {seeds} seeds, mean ± half a 95 % interval; learners' own units.", ""]
    for name, by_losses in results.items():
        for losses, played in by_losses.items():
            lines += [f"### {name}, {losses} losses", ""]
            lines += ["| learner | scale | feedback | regret | violation | strong violation |", "|---" * 6 + "|"]
            for learner, histories in sorted(played.items(), key=lambda item: at_the_end(item[1], "regret")[0]):
                cells = [f"{mean:.1f} ± {half:.1f}" for mean, half in (at_the_end(histories, c) for c in COLUMNS)]
                scale = histories[0].settings.get("radius_scale", "–")
                lines.append(f"| {learner} | {scale} | {LEARNERS[learner].feedback} | {' | '.join(cells)} |")
            lines.append("")
    return "\n".join(lines)


def picture(name: str, by_losses: Mapping[str, Mapping[str, Sequence[History]]], title: str, path: Path) -> None:
    """Dots with intervals: learners down, regret and violation across, one row of panels for each kind of losses."""
    learners = list(next(iter(by_losses.values())))
    height = 0.24 * len(learners) * len(by_losses) + 1.8
    figure, axes = plt.subplots(len(by_losses), 2, figsize=(9.5, height), sharey=True, squeeze=False)
    for row, (losses, played) in zip(axes, by_losses.items(), strict=True):
        order = sorted(learners, key=lambda learner: -at_the_end(played[learner], "regret")[0])
        for axis, column, words in zip(row, ("regret", "violation"), ("regret", "violation"), strict=True):
            for y, learner in enumerate(order):
                mean, half = at_the_end(played[learner], column)
                colour = "#0072b2" if learner.startswith("ucpd") else "#555555"
                axis.errorbar(mean, y, xerr=half, fmt="o", ms=4, color=colour, lw=1.2)
                place = axis.get_yaxis_transform()
                if axis is row[0]:
                    axis.text(-0.02, y, learner, ha="right", va="center", fontsize=8, color=colour, transform=place)
                else:
                    axis.text(1.02, y, learner, ha="left", va="center", fontsize=8, color=colour, transform=place)
            axis.axvline(0, color="#999999", lw=0.8)
            axis.set_yticks([])
            axis.grid(axis="x", color="#e5e5e5", lw=0.8)
            axis.set_axisbelow(True)
            axis.spines[["top", "right", "left"]].set_visible(False)
            axis.tick_params(labelsize=8)
            axis.set_title(f"{losses} losses: {words}", loc="left", fontsize=9)
    figure.suptitle(title, x=0.02, ha="left", fontsize=11, weight="bold")
    figure.tight_layout(rect=(0.06, 0, 0.94, 0.99))
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--learners", default=",".join(sorted(LEARNERS)))
    parser.add_argument("--out", type=Path, default=DOCS)
    given = parser.parse_args()
    results = play(given.episodes, given.seeds, given.learners.split(","))
    for name, by_losses in results.items():
        title = f"{name}: every learner after {given.episodes} episodes, {given.seeds} seeds (95 % intervals)"
        (given.out / "images").mkdir(parents=True, exist_ok=True)
        picture(name, by_losses, title, given.out / "images" / f"comparison-{name}.png")
    page = given.out / "comparison.md"
    text = page.read_text() if page.exists() else f"# Comparison\n\n{BEGIN}\n{END}\n"
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    write_bytes(page, f"{before}{BEGIN}\n{tables(results, given.episodes, given.seeds)}\n{END}{after}".encode())


if __name__ == "__main__":
    main()
