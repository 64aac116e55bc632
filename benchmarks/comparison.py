"""python -m benchmarks.comparison: every learner on three problems, under fixed, switching and adaptive losses.

Learners that count and were published without ties are played with ties as well. Finished runs are kept in --results
and not played again. Writes the tables of docs/explanation/comparison-tables.md and one picture for each problem.
"""

import argparse
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from benchmarks import page
from benchmarks.runs import MEASURES, Row
from benchmarks.suite import LOSSES, played
from tightrope.lab.figures import INK, MUTED, PALETTE
from tightrope.learners import LEARNERS
from tightrope.storage.files import write_bytes

PROBLEMS = ("machine-cycle", "media-streaming", "river-swim")
MARKERS = dict(zip(LOSSES, "os^", strict=True))


def variants(learners: Sequence[str]) -> list[tuple[str, Row]]:
    """Return every learner with its options: as it is, and with ties where they are optional."""
    asked: list[tuple[str, Row]] = []
    for name in learners:
        asked.append((name, {}))
        if "ties" in LEARNERS[name].parameter_fields() and not getattr(LEARNERS[name], "ties_by_default", True):
            asked.append((name, {"ties": True}))
    return asked


TIES = ", with ties"


def label(row: Row) -> str:
    return f"{row['learner']}{TIES if row['options'] else ''}"


def means(rows: Sequence[Row], measure: str) -> dict[tuple[str, str], float]:
    """Return the means over seeds, by learner and losses."""
    cells = dict.fromkeys((label(row), row["losses"]) for row in rows)
    of = {cell: [row[measure] for row in rows if (label(row), row["losses"]) == cell] for cell in cells}
    return {cell: float(np.mean(values)) for cell, values in of.items()}


def ordered(rows: Sequence[Row]) -> list[str]:
    """Return the learners, ordered by the sum of their positive regret and their violation."""
    regret, violation = means(rows, "regret"), means(rows, "violation")

    def worst(learner: str) -> float:
        return sum(max(regret[learner, losses], 0) + violation[learner, losses] for losses in LOSSES)

    return sorted(dict.fromkeys(map(label, rows)), key=worst)


def table(rows: Sequence[Row]) -> str:
    """Return a row for each learner: regret / violation / strong violation under each kind of losses.

    A learner with ties has a row of its own only if its values differ from those without.
    """
    mean = {measure: means(rows, measure) for measure in MEASURES}

    def cells(learner: str) -> list[str]:
        return [" / ".join(f"{mean[measure][learner, losses]:.2f}" for measure in MEASURES) for losses in LOSSES]

    lines = []
    for learner in ordered(rows):
        name = learner.removesuffix(TIES)
        if learner == name or cells(learner) != cells(name):
            lines.append((learner, LEARNERS[name].feedback, LEARNERS[name].constants, *cells(learner)))
    return page.table(("learner", "feedback", "constants", *LOSSES), lines)


def picture(rows: Sequence[Row], title: str) -> bytes:
    """Draw a row for each learner; each kind of losses is a mark, with a line from the least to the largest value."""
    learners = [learner for learner in ordered(rows) if TIES not in learner]
    with mpl.rc_context(page.DRAWN):
        figure = Figure(figsize=(9.5, 0.24 * len(learners) + 1.6), layout="constrained")
        for axes, measure in zip(figure.subplots(1, 2, sharey=True), ("regret", "violation"), strict=True):
            for losses, colour in zip(LOSSES, PALETTE, strict=False):
                for y, learner in enumerate(learners):
                    values = [row[measure] for row in rows if (label(row), row["losses"]) == (learner, losses)]
                    axes.plot([min(values), max(values)], [y, y], color=colour, lw=1.2)
                    axes.plot(np.mean(values), y, MARKERS[losses], ms=4, color=colour)
                axes.plot([], [], MARKERS[losses], ms=4, color=colour, label=losses)
            axes.axvline(0, color=MUTED, lw=0.8)
            axes.set_xscale("symlog", linthresh=1)
            axes.set_title(measure, loc="left", color=INK, fontsize=10)
            axes.set_yticks(range(len(learners)), learners, fontsize=8)
            axes.tick_params(labelsize=8)
        axes.invert_yaxis()
        figure.legend(*axes.get_legend_handles_labels(), frameon=False, fontsize=8, loc="outside lower right", ncols=3)
        figure.suptitle(title, x=0.02, ha="left", fontsize=11, weight="bold")
        data = BytesIO()
        figure.savefig(data, format="png", dpi=130, metadata={"Software": None})
    return data.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--learners", default=",".join(sorted(LEARNERS)), help="a,b,c")
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--results", type=Path, default=Path("runs/suite.jsonl"))
    given = parser.parse_args()
    wanted = [
        (learner, name, losses, given.episodes, seed, options)
        for seed in range(given.seeds)
        for learner, options in variants(given.learners.split(","))
        for name in PROBLEMS
        for losses in LOSSES
    ]
    rows = played(wanted, given.results, given.jobs)
    played_by = f"means of {given.seeds} seeds" if given.seeds > 1 else "seed 0"
    parts = [f"T = {given.episodes:,}, {played_by}."]
    for name in PROBLEMS:
        here = [row for row in rows if row["problem"] == name]
        parts += [f"### {name}", table(here)]
        title = f"{name}: every learner after {given.episodes:,} episodes, {played_by}"
        write_bytes(page.DOCS / "images" / f"comparison-{name}.png", picture(here, title))
    page.write("tables", "\n\n".join(parts), page.COMPARISON)


if __name__ == "__main__":
    main()
