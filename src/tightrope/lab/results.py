"""The results of a study as text, files and pictures: a section for all runs under the same conditions.

The files `summary.csv`, `.md` and `.tex` hold the last record of every learner: mean over seeds and interval.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np

from tightrope.lab import drawing, figures, tables
from tightrope.lab.bootstrap import SPREAD, band
from tightrope.lab.folder import Facts, Report, RunFolder
from tightrope.lab.history import Budget
from tightrope.lab.studies.configuration import Conditions, digest
from tightrope.lab.studies.table import typed
from tightrope.lab.study import Named
from tightrope.problems.constraints import Deterministic
from tightrope.space import FloatArray
from tightrope.storage.files import write_bytes, write_csv

SUMMARY = "summary"

#: What was recorded of a run.
Columns = dict[str, FloatArray]


@dataclass(frozen=True)
class Section:
    """Runs on one problem, under the same losses and noise, for equally many episodes."""

    conditions: Conditions
    facts: Facts
    episodes: int
    seeds: list[int]
    histories: dict[str, list[Columns]]  # of each learner one for each seed, in the problem's own units
    settings: dict[str, dict[str, float | str]]

    @property
    def budgets(self) -> list[Budget]:
        """What can be spent in an episode."""
        return [Budget(one.column, one.name, one.unit, one.limit) for one in self.facts.budgets]

    @property
    def title(self) -> str:
        """Problem, losses, constraints and limits of budgets that were chosen."""
        limits = [f"budget of {name} {limit:g}" for name, limit in self.conditions.limits.items()]
        return ", ".join([str(self.conditions.problem), self.sequences, *limits])

    @property
    def sequences(self) -> str:
        """Losses and, where they were asked for, constraints, with their options."""
        losses, noise = self.conditions.losses or self.facts.losses, self.conditions.noise
        if noise is None:
            return f"{losses} losses"
        return f"{losses} losses, {'constant' if noise.name == Deterministic.name else noise} constraints"

    def lines(self) -> list[str]:
        """What was spent, what was lost, and what it means."""
        learners, budgets = list(self.histories), self.budgets
        who = f"learner{'s' * (len(learners) > 1)} {', '.join(learners)}"
        return [
            f"{self.title}, {who}",
            "",
            *tables.spending(budgets, self.histories),
            *[""] * bool(budgets),
            *tables.results(self.episodes, self.seeds, self.histories, self.settings),
            *filter(None, [self.facts.units]),
            *tables.describe_settings(self.settings),
        ]

    def rows(self) -> Iterator[dict[str, object]]:
        """A row for each learner: which it is, then mean, low and high of the last record, as numbers."""
        names = tables.shown_columns(self.histories)
        for label, runs in self.histories.items():
            last = {name: np.array([run[name][-1] for run in runs]) for name in names}
            for budget in self.budgets:
                last[budget.column] = np.array([run[budget.column][-1] / run["episode"][-1] for run in runs])
            mean, low, high = band(np.array(list(last.values())).T)
            row: dict[str, object] = {
                "problem": str(self.conditions.problem),
                "losses": str(self.conditions.losses or self.facts.losses),
                "noise": str(self.conditions.noise or self.facts.noise),
                "budgets": ", ".join(f"{budget.name} {budget.limit:g}" for budget in self.budgets),
                "episodes": self.episodes,
                "learner": label,
                "seeds": len(runs),
            }
            for k, name in enumerate(last):
                row |= {name: mean[k], f"{name}_low": low[k], f"{name}_high": high[k]}
            yield row

    def summary(self) -> tuple[list[str], list[list[str]]]:
        """Headings and a row of text for each learner, as in the printed tables."""
        headings, rows = tables.compared(self.histories, self.settings)
        used = [tables.used(self.budgets, runs) for runs in self.histories.values()]
        return [*headings, *map(str, self.budgets)], [[*row, *more] for row, more in zip(rows, used, strict=True)]

    def draw(self, folder: Path, name: str) -> Path:
        """The picture; returns where it is."""
        problem = str(Named(self.facts.title, self.conditions.problem.options))
        title = figures.title(problem, self.sequences, list(self.histories), self.episodes, self.seeds)
        return drawing.save(figures.draw(self.histories, title=title, budgets=self.budgets), folder, name)[0]


def sections(folders: Iterable[RunFolder]) -> Iterator[Section]:
    """The runs of these folders that have a report, in order."""
    runs = [(report, run) for run in folders if (report := run.report()) is not None]
    for _, alike in groupby(runs, key=lambda run: _conditions(run[0])):
        yield _section(list(alike))


def write_summary(folder: Path, found: Sequence[Section]) -> list[Path]:
    """Write the last record of every learner as CSV, Markdown and LaTeX; return where they are."""
    rows = [row for section in found for row in section.rows()]
    names = list(dict.fromkeys(name for row in rows for name in row))
    paths = [folder / f"{SUMMARY}.{form}" for form in ("csv", "md", "tex")]
    write_csv(paths[0], {name: [row.get(name, "") for row in rows] for name in names})
    write_bytes(paths[1], "\n".join(line for section in found for line in _markdown(section)).encode(errors="replace"))
    write_bytes(paths[2], "\n".join(line for section in found for line in _latex(section)).encode(errors="replace"))
    return paths


def _caption(section: Section) -> str:
    n = len(section.seeds)
    spread = f"; mean over {n} seeds [{SPREAD}]" if n > 1 else f"; seed {section.seeds[0]}"
    return f"{section.title}; after {section.episodes} episodes{spread}"


def _markdown(section: Section) -> list[str]:
    headings, rows = section.summary()
    lines = [headings, ["---", *["---:"] * (len(headings) - 1)], *rows]
    cells = [[cell.replace("|", "\\|") for cell in line] for line in lines]
    return [_caption(section), "", *(f"| {' | '.join(line)} |" for line in cells), ""]


#: What means something else in LaTeX.
LATEX = {c: f"\\{c}" for c in "&%$#_{}"} | {
    "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "–": "--", "−": "$-$"
}  # fmt: skip


def _latex(section: Section) -> list[str]:
    headings, rows = section.summary()
    lines = [" & ".join("".join(LATEX.get(c, c) for c in cell) for cell in line) + r" \\" for line in [headings, *rows]]
    return [
        f"% {_caption(section)}",
        rf"\begin{{tabular}}{{l{'r' * (len(headings) - 1)}}}",
        r"\hline",
        lines[0],
        r"\hline",
        *lines[1:],
        r"\hline",
        r"\end{tabular}",
        "",
    ]


def _conditions(report: Report) -> tuple[str, int]:
    return digest(report.configuration.conditions), report.configuration.episodes


def _section(runs: Sequence[tuple[Report, RunFolder]]) -> Section:
    first, labels = runs[0][0], _labels([report.configuration.learner for report, _ in runs])
    histories: dict[str, list[Columns]] = {}
    settings: dict[str, dict[str, float | str]] = {}
    for label, (report, run) in zip(labels, runs, strict=True):
        histories.setdefault(label, []).append(numbers(run))
        settings.setdefault(label, report.settings)
    return Section(
        conditions=first.configuration.conditions,
        facts=first.problem,
        episodes=first.configuration.episodes,
        seeds=list(dict.fromkeys(report.configuration.seed for report, _ in runs)),
        histories=histories,
        settings=settings,
    )


def _labels(learners: Sequence[Named]) -> list[str]:
    """A name, with the options that tell it from others of that name."""
    labels = []
    for learner in learners:
        others = [other.options for other in learners if other.name == learner.name]
        told = [f"{key}={value}" for key, value in learner.options.items() if any(o.get(key) != value for o in others)]
        labels.append(" ".join([learner.name, *told]))
    return labels


def numbers(run: RunFolder) -> Columns:
    """The columns of a run that hold numbers."""
    columns = {name: typed(column) for name, column in run.columns().items()}
    return {
        name: np.array(column, dtype=np.float64)
        for name, column in columns.items()
        if not any(isinstance(cell, str) for cell in column)
    }
