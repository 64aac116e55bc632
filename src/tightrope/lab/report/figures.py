"""Figures for a paper: each alone, one column wide; those of a section together, two columns wide."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Sheet

from tightrope.lab.figures import DASHES, INK, PALETTE, STYLE, against_episodes, drawable, logarithmic, write
from tightrope.lab.report import POWERS, Figure, figures_of
from tightrope.lab.results import Results, Section
from tightrope.lab.tables import band

FOLDER = "figures"

#: Characters that are replaced in the name of a file.
UNSAFE = re.compile(r"\W+")

#: Inches: the width of a column and of two, and the height of a panel.
ONE_COLUMN, TWO_COLUMNS, HEIGHT = 3.4, 7.0, 1.9
PANELS = 3  # in a row that is two columns wide

SMALL: Any = STYLE | {"font.size": 7.5, "axes.titlesize": 8, "legend.fontsize": 7, "pdf.fonttype": 42}


def write_figures(folder: Path, form: str) -> list[Path]:
    """Write all figures of the study in `folder`; return where they are."""
    (folder / FOLDER).mkdir(exist_ok=True)
    paths = []
    for k, section in enumerate(Results.read(folder).sections, 1):
        figures = figures_of(section)
        sheets = {figure.column: draw(section, [figure], ONE_COLUMN) for figure in figures}
        for name, sheet in (sheets | {"all": draw(section, figures, TWO_COLUMNS)}).items():
            paths.append(folder / FOLDER / f"{k}_{UNSAFE.sub('_', name)}.{form}")
            write(sheet, paths[-1])
    return paths


def draw(section: Section, figures: Sequence[Figure], width: float) -> Sheet:
    """Draw figures of a section on one sheet, with one legend."""
    columns = min(PANELS, len(figures))
    rows = -(-len(figures) // columns)
    with mpl.rc_context(SMALL):
        height = rows * HEIGHT + 0.14 * len(section.curves) + 0.1
        sheet = Sheet(figsize=(width, height), dpi=300, layout="constrained")
        for i, figure in enumerate(figures):
            _panel(sheet.add_subplot(rows, columns, i + 1), figure, section)
        handles, labels = sheet.axes[0].get_legend_handles_labels()
        sheet.legend(handles, labels, loc="outside lower center", ncols=1 if width == ONE_COLUMN else 3, frameon=False)
    return sheet


def _panel(axes: Axes, figure: Figure, section: Section) -> None:
    drawn = []
    for k, curve in enumerate(section.curves):
        mean, low, high = band(figure.values(curve, section.episodes))
        colour, (dash, _) = PALETTE[k % len(PALETTE)], DASHES[k // len(PALETTE) % len(DASHES)]
        axes.plot(section.episodes, mean, color=colour, linestyle=dash, linewidth=1.1, label=drawable(curve.label))
        axes.fill_between(section.episodes, low, high, color=colour, alpha=0.17, linewidth=0)
        drawn.append(np.concatenate([mean, low, high]))
    axes.set_title(drawable(figure.title), loc="left", weight="bold")
    against_episodes(axes)
    if figure.axes == POWERS:
        values = np.concatenate(drawn)
        logarithmic(axes, values[np.isfinite(values)])
    if figure.budget is not None:
        axes.set_ylabel(drawable(figure.budget.unit))
        if np.isfinite(figure.budget.limit):
            axes.axhline(figure.budget.limit, color=INK, linewidth=0.8)
            place: Any = (0, figure.budget.limit), (3, 2), ("axes fraction", "data"), "offset points"
            axes.annotate(f"limit {figure.budget.limit:.4g}", *place)
