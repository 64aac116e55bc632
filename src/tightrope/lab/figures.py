"""The figure of one or several learners, against the episode: use of each budget, regret, violation, strong violation.

With several learners there is a panel for each of these and a line for each learner; with one learner, both violations
share a panel.

In the panels of regret and violation both axes are logarithmic, so a power of T is a straight line with the exponent as
its slope, and a quantity of order √T is parallel to the dashed line. A panel with zero or negative values is linear
around zero, logarithmic outside, and says so.
"""

import math
import unicodedata
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextToPath
from matplotlib.ticker import FuncFormatter, NullLocator

from tightrope.arguments import LARGEST, instance, listed, printable, text
from tightrope.errors import InvalidInputError
from tightrope.lab.history import USE, Budget, History, budgets_of, in_units, use_columns
from tightrope.lab.tables import SPREAD, band
from tightrope.problems.base import Problem
from tightrope.space import FloatArray
from tightrope.storage.files import write_bytes

#: The columns of one run, as a `History` holds them.
Columns = Mapping[str, FloatArray]

#: For the figure of one learner; strong violation is darker, so that it is distinct in grey.
COLOURS = {"regret": "#0072B2", "violation": "#D55E00", "strong_violation": "#882255"}


@dataclass(frozen=True)
class Curve:
    """One line of a panel: its label and style, and its values where every seed has one."""

    label: str
    colour: str
    dash: Any
    episodes: FloatArray  # (n,)
    values: FloatArray  # (n_seeds, n)


@dataclass(frozen=True)
class Panel:
    """A panel: the columns that it shows, its heading and its explanation."""

    columns: tuple[str, ...]
    name: str
    meaning: str


REGRET = Panel(("regret",), "Regret", "loss beyond the best fixed policy within budget")
#: For one learner, and for several.
TWO_PANELS = (
    REGRET,
    Panel(("violation", "strong_violation"), "Violation", "total over budget (strong: without offsets)"),
)
THREE_PANELS = (
    REGRET,
    Panel(("violation",), "Violation", "total over budget: episodes below budget offset others"),
    Panel(("strong_violation",), "Strong violation", "excess of each episode, without offsets"),
)
#: Inches: the least margins (left, right, below, above) and the least gap between panels, the height of a label of one
#: line, and the width of the numbers at the left of a panel.
LEFT, RIGHT, BELOW, ABOVE, BETWEEN, LABEL, NUMBERS = 0.62, 2.2, 0.53, 1.14, 2.6, 0.19, 0.6
#: Inches between one row of panels and the next.
APART = 1.15


def title(conditions: str, learners: Sequence[str], episodes: int, seeds: Sequence[int]) -> str:
    """Conditions, learners, episodes and seeds in one line."""
    names = ", ".join(learners) if len(learners) <= 4 else f"{len(learners)} learners"
    which = f"seed {seeds[0]}" if len(seeds) == 1 else f"{len(seeds)} seeds"
    return f"{conditions} · {names} · T = {grouped(episodes)} episodes · {which}"


def draw(histories: Mapping[str, Sequence[Columns]], *, title: str, budgets: Sequence[Budget] = ()) -> Figure:
    """Draw the runs of one or several learners. Lines are means over seeds, bands bootstrap intervals of the mean.

    Parameters
    ----------
    histories : for each learner one history for each seed, all recorded at the same episodes.
    budgets : each has a panel: its mean use per episode up to each record.
    """
    runs = [run for of_learner in histories.values() for run in of_learner]
    if not runs:
        raise InvalidInputError("histories is empty; there is no run to draw")
    episodes = np.asarray(runs[0]["episode"], dtype=np.float64)
    if any(not np.array_equal(run["episode"], episodes) for run in runs):
        raise InvalidInputError("the runs were recorded at different episodes; draw them one by one")
    n_seeds = sorted({len(of_learner) for of_learner in histories.values()})

    panels = TWO_PANELS if len(histories) == 1 else THREE_PANELS
    with mpl.rc_context(STYLE):
        names = list(histories) if len(histories) > 1 else [_plainly(budget.column) for budget in budgets]
        labels = width_of(f"{name}  −000 000" for name in names)
        figure = _empty_figure(len(budgets) + len(panels), len(histories), labels)
        how_many = " to ".join(map(str, n_seeds[:: len(n_seeds) - 1 or 1]))
        seeds = f"; line: mean of {how_many} seeds, band: {SPREAD}" if n_seeds[-1] > 1 else ""
        entitle(figure, title, f"totals up to each episode, expectations under the true model{seeds}")
        for axes, panel in zip(figure.axes[len(budgets) :], panels, strict=True):
            _panel(axes, _curves(histories, panel.columns), last=episodes[-1], one_line=len(histories) > 1)
            head(axes, panel.name, panel.meaning)
        for axes, budget in zip(figure.axes, budgets, strict=False):
            _spending(axes, _per_episode(histories, budget), budget, last=episodes[-1])
            meaning = ", ".join(filter(None, ["an episode, on average so far", budget.unit]))
            head(axes, drawable(f"Use of {budget.name}"), drawable(meaning))
    return figure


def plot_comparison(
    histories: Mapping[str, Sequence[History]], problem: Problem | None = None, *, title: str = ""
) -> Figure:
    """Draw what `compare` returns: for each learner the mean over seeds, with its bootstrap interval.

    Parameters
    ----------
    histories : for each learner one history for each seed.
    problem : if given, everything is in its own units, and the use of each budget is drawn with its limit.
    title : the title of the figure; by default the name of the problem.

    Returns
    -------
    Figure : a matplotlib figure; `figure.savefig(path)` writes it.

    Examples
    --------
    >>> import tightrope as tr
    >>> histories = tr.compare("media-streaming", ["uniform", "safe-baseline"], episodes=20, seeds=2)
    >>> len(plot_comparison(histories, tr.make("media-streaming")).axes) > 1
    True
    """
    named = dict(instance(histories, "histories", Mapping))  # type: ignore[type-abstract]
    runs = {text(name, "a learner"): listed(of_seeds, f"histories[{name!r}]") for name, of_seeds in named.items()}
    for name, of_seeds in runs.items():
        for history in of_seeds:
            episodes = instance(history, f"histories[{name!r}]", History)["episode"]
            if not len(episodes):
                raise InvalidInputError(f"histories[{name!r}] has a history without records")
            if not ((episodes >= 1) & (episodes <= LARGEST)).all():
                raise InvalidInputError(f"histories[{name!r}] has a record before episode 1, or without an episode")
    if problem is None:
        return draw(runs, title=text(title, "title"))
    for column in use_columns(instance(problem, "problem", Problem)):
        for name, of_seeds in runs.items():
            if any(column not in history for history in of_seeds):
                raise InvalidInputError(f"histories[{name!r}] is not of {problem.name!r}: it has no column {column!r}")
    own = {name: [in_units(problem, history) for history in of_seeds] for name, of_seeds in runs.items()}
    return draw(own, title=text(title, "title") or problem.name, budgets=budgets_of(problem))


def _empty_figure(n_panels: int, n_learners: int, label_width: float) -> Figure:
    """Panels in rows of two or three, with room for labels of this width."""
    columns = 3 if n_learners > 1 and n_panels != 4 else 2
    rows = math.ceil(n_panels / columns)
    panel_width = 3.5 if n_learners == 1 else 3.2
    panel_height = max(2.73, 1.05 * LABEL * n_learners)
    right, between = (1.46, 1.68) if n_learners == 1 else (RIGHT, BETWEEN)
    right, between = max(right, label_width), max(between, label_width + NUMBERS)
    width = LEFT + columns * panel_width + (columns - 1) * between + right
    height = BELOW + rows * panel_height + (rows - 1) * APART + ABOVE
    figure = Figure(figsize=(width, height), dpi=150)
    grid = figure.add_gridspec(
        rows,
        columns,
        left=LEFT / width,
        right=1 - right / width,
        bottom=BELOW / height,
        top=1 - ABOVE / height,
        wspace=between / panel_width,
        hspace=APART / panel_height,
    )
    for i in range(n_panels):
        figure.add_subplot(grid[i // columns, i % columns])
    return figure


def _per_episode(histories: Mapping[str, Sequence[Columns]], budget: Budget) -> list[Curve]:
    """Return the mean use of a budget per episode, up to each record."""
    averages = {
        name: [{"episode": run["episode"], budget.column: run[budget.column] / run["episode"]} for run in runs]
        for name, runs in histories.items()
    }
    return _curves(averages, [budget.column])


def _spending(axes: Axes, curves: Sequence[Curve], budget: Budget, *, last: float) -> None:
    """Draw the use of a budget; the area above the limit is coloured."""
    values = np.concatenate([curve.values.ravel() for curve in curves])
    low, high = min(values.min(), budget.limit), max(values.max(), budget.limit)
    room = 0.12 * (high - low or abs(high) or 1.0)
    against_episodes(axes)
    axes.set_xlim(1, max(last, 2))
    axes.set_ylim(low - room, high + room)
    axes.axhspan(budget.limit, high + room, color=COLOURS["violation"], alpha=0.07, linewidth=0)
    axes.axhline(budget.limit, color=INK, linewidth=1.0)
    axes.annotate(
        f"limit {budget.limit:.4g}", (0, budget.limit), (4, 3), ("axes fraction", "data"), "offset points", size=8.5
    )
    _lines(axes, curves)
    _label_ends(axes, curves, one_line=True)


def _curves(histories: Mapping[str, Sequence[Columns]], columns: Sequence[str]) -> list[Curve]:
    """A curve for each learner and column; colours distinguish the columns of one learner, or several learners."""
    curves = []
    for i, (learner, runs) in enumerate(histories.items()):
        for column in columns:
            values = np.stack([np.asarray(run[column], dtype=np.float64) for run in runs])
            known = np.isfinite(values).all(axis=0)
            if not known.any():
                continue
            episodes = np.asarray(runs[0]["episode"], dtype=np.float64)[known]
            if len(histories) == 1:
                curve = Curve(
                    _plainly(column), COLOURS.get(column, COLOURS["regret"]), "solid", episodes, values[:, known]
                )
            else:
                dash, mark = DASHES[i // len(PALETTE) % len(DASHES)]
                curve = Curve(mark + learner, PALETTE[i % len(PALETTE)], dash, episodes, values[:, known])
            curves.append(curve)
    return curves


def _plainly(column: str) -> str:
    return column.removeprefix(USE).replace("_", " ")


def _panel(axes: Axes, curves: Sequence[Curve], *, last: float, one_line: bool) -> None:
    against_episodes(axes)
    axes.set_xlim(1, max(last, 2))
    if not curves:
        axes.text(0.5, 0.5, "not computed", transform=axes.transAxes, ha="center", color=MUTED)
        axes.set_yticks([])
        return
    _lines(axes, curves)
    note = logarithmic(axes, np.concatenate([curve.values.ravel() for curve in curves]))
    below: Any = {"ha": "right", "va": "top", "size": 8, "color": MUTED}
    axes.annotate(note, (1, 0), (0, -23), "axes fraction", "offset points", **below)
    _square_root(axes, curves)
    _label_ends(axes, curves, one_line)


def _lines(axes: Axes, curves: Sequence[Curve]) -> None:
    for curve in curves:
        axes.plot(
            curve.episodes,
            curve.values.mean(axis=0),
            color=curve.colour,
            linestyle=curve.dash,
            linewidth=1.9,
            zorder=3,
        )
        _, low, high = band(curve.values)
        axes.fill_between(curve.episodes, low, high, color=curve.colour, alpha=0.17, linewidth=0)


def _square_root(axes: Axes, curves: Sequence[Curve]) -> None:
    """Draw a dashed c·√T above every curve: the slope that the theorem promises."""
    c = 1.35 * max(float((curve.values / np.sqrt(curve.episodes)).max()) for curve in curves)
    if c > 0:
        low, high = axes.get_ylim()
        t = np.geomspace(*axes.get_xlim(), 200)
        axes.plot(t, c * np.sqrt(t), color=MUTED, linewidth=0.9, dashes=(5, 4), zorder=1)
        axes.set_ylim(low, max(high, 1.5 * c * np.sqrt(t[-1])))
        axes.annotate("√T", (t[6], c * np.sqrt(t[6])), (0, 9), textcoords="offset points", color=MUTED)


def _label_ends(axes: Axes, curves: Sequence[Curve], one_line: bool) -> None:
    """Write name and last mean at the right end of every line, moved apart where they would overlap."""
    ends = [(float(curve.episodes[-1]), float(curve.values[:, -1].mean())) for curve in curves]
    heights = axes.transAxes.inverted().transform(axes.transData.transform(ends))[:, 1]
    order = np.argsort(heights, kind="stable")
    inches = axes.figure.get_figheight() * axes.get_position().height  # type: ignore[union-attr]
    gap, separator = (LABEL / inches, "  ") if one_line else (0.125, "\n")
    for i, height in zip(order, spread(heights[order], gap=gap), strict=True):
        axes.plot(*ends[i], "o", color=curves[i].colour, markersize=4.5, clip_on=False, zorder=4)
        axes.annotate(
            f"{drawable(curves[i].label)}{separator}{grouped(ends[i][1])}",
            (1, height),
            (9, 0),
            "axes fraction",
            "offset points",
            va="center",
            color=curves[i].colour,
            weight="bold",
        )


# --------------------------------------------------------------------------------------------- style
#
# The same for every figure: colours, fonts, logarithmic axes, and writing to files.

#: File formats and their metadata; no dates, so that equal figures are equal files.
FORMS: dict[str, dict[str, Any]] = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}

#: Inches of the widest label that a figure makes room for.
WIDEST = 8.0

#: Font sizes of a title, and of a long title; a title that is still too long is cut.
TITLE, SMALLEST = 13.0, 7.0

INK, MUTED, GRID = "#222222", "#6f6f6f", "#e6e6e6"
#: The colours of Okabe and Ito, which colour-blind readers can tell apart; without yellow, too faint for a line.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
#: Line styles for more learners than colours, and marks for their labels.
DASHES: Any = (("solid", ""), ((0, (5, 1.5)), "╌ "), ((0, (1, 1.3)), "┈ "))
STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "text.color": INK,
    "figure.facecolor": "white",
    "axes.facecolor": "white",
    "axes.edgecolor": MUTED,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.which": "major",
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "lines.solid_capstyle": "round",
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "text.parse_math": False,  # $ in a name is not mathematics
    "svg.hashsalt": "tightrope",  # the same run gives the same file
}


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write `name`.png and `name`.svg into `folder`, atomically; return where they are."""
    paths = [folder / f"{name}.{form}" for form in ("png", "svg")]
    for path in paths:
        write(figure, path)
    return paths


def write(figure: Figure, path: Path) -> None:
    """Write a figure atomically, in the format of its suffix."""
    buffer, form = BytesIO(), form_of(path)
    with mpl.rc_context(STYLE), _unknown_letters():
        figure.savefig(buffer, format=form, metadata=FORMS[form])
    write_bytes(path, buffer.getvalue())


@contextmanager
def _unknown_letters() -> Iterator[None]:
    """Ignore warnings about missing glyphs, which are drawn as boxes."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")
        yield


def form_of(path: Path) -> str:
    """Return the format of a figure from the suffix of its path."""
    form = path.suffix.lower().removeprefix(".")
    if form not in FORMS:
        raise InvalidInputError(f"{printable(path)}: the name of a picture must end in .{' or .'.join(FORMS)}")
    return form


def entitle(figure: Figure, title: str, meaning: str) -> None:
    """Write the title, as large as there is room for, and an explanation below it."""
    height, room = figure.get_figheight(), 0.96 * figure.get_figwidth()
    size = max(SMALLEST, TITLE * min(1.0, room / max(_inches(title, TITLE), 1.0)))
    figure.text(0.02, 1 - 0.26 / height, drawable(title), size=size, weight="bold", va="center")
    figure.text(0.02, 1 - 0.53 / height, meaning, color=MUTED, va="center")


def head(axes: Axes, name: str, meaning: str) -> None:
    for words, points, style in ((name, 23, {"size": 11, "weight": "bold"}), (meaning, 9, {"color": MUTED})):
        axes.annotate(words, (0, 1), (0, points), "axes fraction", "offset points", **style)


def against_episodes(axes: Axes) -> None:
    """Label the axis of episodes and make it logarithmic."""
    axes.set_xscale("log")
    axes.set_xlabel("episode", loc="left", color=MUTED)
    axes.tick_params(length=3, width=0.8)
    plain_ticks(axes.xaxis)


def plain_ticks(axis: Axis) -> None:
    """Ticks at 10, 1k, 1M, and no minor ones."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    axis.set_minor_locator(NullLocator())


def logarithmic(axes: Axes, values: FloatArray) -> str:
    """Make the vertical axis logarithmic, linear around zero if a value is at or below it; return a note about that."""
    note = ""
    if values.min() > 0:
        axes.set_yscale("log")
    else:
        largest = np.abs(values).max()
        threshold = 1.0 if largest >= 10 or largest == 0 else 10.0 ** np.floor(np.log10(largest / 10))
        low, high = min(values.min(), 0.0), max(values.max(), threshold)
        axes.set_yscale("symlog", linthresh=threshold, linscale=0.6)
        axes.set_ylim(1.6 * low, 1.6 * high)
        if low < 0:
            axes.axhline(0, color=MUTED, linewidth=0.8)
        note = f"vertical axis linear between {short(-threshold) if low < 0 else 0} and {short(threshold)}"
    plain_ticks(axes.yaxis)
    return note


def spread(heights: Sequence[float] | FloatArray, *, gap: float) -> FloatArray:
    """Return the nearest heights (least squares) that are at least `gap` apart, within 0..1 if possible."""
    steps = gap * np.arange(len(heights))
    pooled = nearest_ascending(
        np.asarray(heights, dtype=np.float64) - steps
    )  # without the gaps this is isotonic regression
    return np.asarray(np.clip(pooled, 0.0, max(0.0, 1.0 - steps[-1])) + steps)


def nearest_ascending(values: FloatArray) -> FloatArray:
    """Return the ascending sequence nearest to `values` (n,) in least squares: neighbours out of order are averaged."""
    pools: list[tuple[float, int]] = []  # mean and length
    for value in values.tolist():
        mean, n = value, 1
        while pools and pools[-1][0] >= mean:
            before, m = pools.pop()
            mean, n = (before * m + mean * n) / (m + n), m + n
        pools.append((mean, n))
    means, lengths = zip(*pools, strict=True)
    return np.repeat(means, lengths)


def width_of(labels: Iterable[str]) -> float:
    """The width of the widest of these labels in inches, at most WIDEST."""
    widest = max((_inches(label, STYLE["font.size"]) for label in labels), default=0.0)
    return min(WIDEST, 9 / 72 + widest + 0.1)


def _inches(text: str, size: float) -> float:
    """The width of a text in inches, in bold letters of this size in points."""
    bold = FontProperties(family=STYLE["font.family"], size=size, weight="bold")
    with _unknown_letters():
        return float(TextToPath().get_text_width_height_descent(drawable(text), bold, ismath=False)[0]) / 72


def drawable(text: str) -> str:
    """Replace characters that have no glyph and are not allowed in SVG."""
    return "".join("\ufffd" if unicodedata.category(c).startswith("C") else c for c in text)


def grouped(value: float) -> str:
    """A number with thin spaces between thousands, 20 000, and three digits if it is small."""
    return (f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}").replace(",", "\u2009").replace("-", "−")


def short(value: float) -> str:
    """The label of a tick: 1, 10, 100, 1k, 10k, 1M."""
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= unit:
            return f"{value / unit:g}{name}".replace("-", "−")
    return f"{value:g}".replace("-", "−")
