"""The figure of one or several learners, against the episode: use of each budget, regret, violation, strong violation.

With several learners there is a panel for each of these and a line for each learner; with one learner, both violations
share a panel.

In the panels of regret and violation both axes are logarithmic, so a power of T is a straight line with the exponent as
its slope, and what grows like √T is parallel to the dashed line. A panel with zero or negative values is linear around
zero, logarithmic outside, and says so.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tightrope.arguments import LARGEST, instance, listed, text
from tightrope.errors import InvalidInputError
from tightrope.lab.bootstrap import SPREAD, band
from tightrope.lab.drawing import (
    DASHES,
    INK,
    MUTED,
    PALETTE,
    STYLE,
    against_episodes,
    drawable,
    entitle,
    grouped,
    head,
    logarithmic,
    spread,
    width_of,
)
from tightrope.lab.history import USE, Budget, History, budgets_of, in_units, use_columns
from tightrope.problems.base import Problem
from tightrope.space import FloatArray

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
#: Inches around the panels (left, right, below, above) and between them, at least; the height of a label of one line,
#: and what numbers take at the left of the next panel.
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
    problem : draws everything in its own units, and the use of each budget against its limit.
    title : of the figure; by default the name of the problem.
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
