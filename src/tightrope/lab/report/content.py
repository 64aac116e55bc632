"""The content of the page as plain data: for every figure the mean and band of each curve, and the fitted powers."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tightrope import __version__
from tightrope.lab.bootstrap import SPREAD, Power, band, power
from tightrope.lab.folder import progress
from tightrope.lab.history import Budget
from tightrope.lab.report.policies import policies
from tightrope.lab.results import Curve, Results, Section
from tightrope.space import FloatArray

#: Logarithmic axes, on which a power of T is a straight line; or linear ones.
POWERS, PLAIN = "powers", "plain"


@dataclass(frozen=True)
class Figure:
    """One figure of a section: a column of the table, or the use of a budget per episode."""

    column: str
    title: str
    meaning: str
    axes: str
    budget: Budget | None = None

    def values(self, curve: Curve, episodes: FloatArray) -> FloatArray:
        """(n_seeds, n) the values of a curve at these episodes."""
        values = curve.values(self.column, episodes)
        return values if self.budget is None else values / episodes


FIGURES = (
    Figure("regret", "Regret", "loss so far beyond the best fixed policy within the budgets", POWERS),
    Figure("violation", "Violation", "how far the sums are over budget: good episodes pay for bad ones", POWERS),
    Figure("strong_violation", "Strong violation", "total over budget, nothing is ever paid back", POWERS),
)
OF_THE_LEARNER = (
    Figure("multiplier_norm", "Multipliers", "norm of the prices that the learner puts on the budgets", PLAIN),
    Figure("epoch", "Epochs", "how often the learner's picture of the dynamics was renewed", PLAIN),
)


def figures_of(section: Section) -> list[Figure]:
    """The figures of a section for which there are records."""
    uses = [
        Figure(one.column, f"Use of {one.name}", "in an episode, on average so far", PLAIN, one)
        for one in section.budgets
    ]
    columns = [run.columns for curve in section.curves for run in curve.runs]
    recorded = {name for run in columns for name, column in run.items() if np.isfinite(column).any()}
    return [figure for figure in (*FIGURES, *uses, *OF_THE_LEARNER) if figure.column in recorded]


def content(folder: Path, *, live: bool = False) -> dict[str, Any]:
    """The content of the page of a study."""
    sections = Results.read(folder, live=live).sections
    return {
        "title": folder.resolve().name,
        "version": __version__,
        "spread": SPREAD,
        "live": live,
        "progress": asdict(progress(folder)),
        "sections": [_section(section) | {"policies": policies(folder, section)} for section in sections],
    }


def _section(section: Section) -> dict[str, Any]:
    return {
        "title": section.title,
        "horizon": section.horizon,
        "units": section.facts.units,
        "warnings": section.facts.warnings,
        "episodes": section.episodes.astype(int).tolist(),
        "curves": [
            {"label": curve.label, "seeds": curve.seeds, "settings": curve.settings} for curve in section.curves
        ],
        "figures": [_figure(figure, section) for figure in figures_of(section)],
    }


def _figure(figure: Figure, section: Section) -> dict[str, Any]:
    budget = figure.budget
    unit = budget.unit if budget else section.facts.loss_unit if figure.column == "regret" else ""
    return {
        "title": figure.title,
        "meaning": figure.meaning,
        "axes": figure.axes,
        "unit": unit,
        "limit": None if budget is None else number(budget.limit),
        "curves": [_curve(figure, curve, section.episodes) for curve in section.curves],
    }


def _curve(figure: Figure, curve: Curve, episodes: FloatArray) -> dict[str, Any]:
    values = figure.values(curve, episodes)
    drawn = band(values)
    fitted = power(episodes, values) if figure.axes == POWERS else None
    return {
        "mean": numbers(drawn.mean),
        "low": numbers(drawn.low),
        "high": numbers(drawn.high),
        "last": [_last(of_seed) for of_seed in values],
        "power": None if fitted is None else _power(fitted),
    }


def _power(fitted: Power) -> dict[str, float | None]:
    return {name: number(value) for name, value in fitted._asdict().items()}


def _last(values: FloatArray) -> float | None:
    known = values[np.isfinite(values)]
    return number(known[-1]) if known.size else None


def numbers(values: FloatArray) -> list[float | None]:
    """Six digits of each, more than a figure shows, to keep the page small."""
    return [number(value) for value in values.tolist()]


def number(value: float) -> float | None:
    """Six digits; None for NaN and infinity, which JSON does not have."""
    if not np.isfinite(value):
        return None
    short = float(f"{value:.6g}")
    return int(short) if short.is_integer() else short
