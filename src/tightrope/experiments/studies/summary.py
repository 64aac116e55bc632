"""What came of a study, as text and as pictures: a section for all runs under the same conditions."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np

from tightrope.experiments import drawing, figures, tables
from tightrope.experiments.history import Budget
from tightrope.experiments.studies.conduct import Conducted
from tightrope.experiments.studies.configuration import Conditions, digest
from tightrope.experiments.studies.folder import Facts, Report, RunFolder
from tightrope.experiments.studies.study import Named
from tightrope.experiments.studies.table import typed
from tightrope.problems.constraints import Deterministic
from tightrope.space import FloatArray

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
            f"{self.conditions.problem}, {self.sequences}, {who}",
            "",
            *tables.spending(budgets, self.histories),
            *[""] * bool(budgets),
            *tables.results(self.episodes, self.seeds, self.histories, self.settings),
            *filter(None, [self.facts.units]),
            *tables.describe_settings(self.settings),
        ]

    def draw(self, folder: Path, name: str) -> Path:
        """The picture; returns where it is."""
        problem = str(Named(self.facts.title, self.conditions.problem.options))
        title = figures.title(problem, self.sequences, list(self.histories), self.episodes, self.seeds)
        return drawing.save(figures.draw(self.histories, title=title, budgets=self.budgets), folder, name)[0]


def sections(conducted: Conducted) -> Iterator[Section]:
    """All that is finished, in the order of the table."""
    runs = [(report, run) for run in conducted.runs.values() if (report := run.report()) is not None]
    for _, alike in groupby(runs, key=lambda run: _conditions(run[0])):
        yield _section(list(alike))


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
