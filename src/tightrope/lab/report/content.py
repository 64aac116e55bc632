"""What the page shows, as plain data: for every figure the mean and band of each curve, and the fitted powers."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tightrope import __version__
from tightrope.lab.bootstrap import SPREAD, Power, band, power
from tightrope.lab.history import Budget
from tightrope.lab.report.policies import policies
from tightrope.lab.report.reading import Curve, Section, progress, sections
from tightrope.space import FloatArray

#: How the horizontal and the vertical axis may be drawn: a power of T is a straight line only in the first.
POWERS, PLAIN = "powers", "plain"


@dataclass(frozen=True)
class Figure:
    """One figure of a section: a column of the table, or what an episode used of a budget."""

    column: str
    title: str
    meaning: str
    axes: str
    budget: Budget | None = None

    def values(self, curve: Curve, episodes: FloatArray) -> FloatArray:
        """(n_seeds, n) what is drawn."""
        values = curve.columns.get(self.column, np.full((len(curve.runs), len(episodes)), np.nan))
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
    """What is drawn of a section, where anything was recorded of it."""
    uses = [
        Figure(one.column, f"Use of {one.name}", "in an episode, on average so far", PLAIN, one)
        for one in section.budgets
    ]
    recorded = {name for curve in section.curves for name, column in curve.columns.items() if np.isfinite(column).any()}
    return [figure for figure in (*FIGURES, *uses, *OF_THE_LEARNER) if figure.column in recorded]


def content(folder: Path, *, live: bool = False) -> dict[str, Any]:
    """Everything that the page needs to know of a study."""
    return {
        "title": folder.resolve().name,
        "version": __version__,
        "spread": SPREAD,
        "live": live,
        "progress": asdict(progress(folder)),
        "sections": [
            _section(section) | {"policies": policies(folder, section)} for section in sections(folder, live=live)
        ],
    }


def _section(section: Section) -> dict[str, Any]:
    return {
        "title": section.title,
        "horizon": section.horizon,
        "units": section.units,
        "episodes": section.episodes.astype(int).tolist(),
        "curves": [
            {"label": curve.label, "seeds": curve.seeds, "settings": curve.settings} for curve in section.curves
        ],
        "figures": [_figure(figure, section) for figure in figures_of(section)],
    }


def _figure(figure: Figure, section: Section) -> dict[str, Any]:
    budget = figure.budget
    unit = budget.unit if budget else section.loss_unit if figure.column == "regret" else ""
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
    """Each to six digits, which is more than anybody sees and keeps the page small."""
    return [number(value) for value in values.tolist()]


def number(value: float) -> float | None:
    """Six digits; None where there is no number, as JSON knows none."""
    if not np.isfinite(value):
        return None
    short = float(f"{value:.6g}")
    return int(short) if short.is_integer() else short
