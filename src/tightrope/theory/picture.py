"""The figure of a check: the least loss against each budget, with the multiplier as its slope."""

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tightrope.errors import InfeasibleError
from tightrope.lab.figures import INK, MUTED, PALETTE, STYLE, drawable, entitle, grouped, head
from tightrope.problems.base import Problem
from tightrope.theory.budgets import Curve
from tightrope.theory.check import Check

CURVE, SLOPE = PALETTE[0], PALETTE[1]

#: Inches: a panel, what is around it (left, right, below, above), and between two.
WIDTH, HEIGHT, LEFT, RIGHT, BELOW, ABOVE, BETWEEN = 3.9, 2.9, 0.75, 0.3, 0.6, 1.25, 0.85


def draw(check: Check) -> Figure:
    """Draw a panel for each budget that has a curve."""
    if not check.curves:
        raise InfeasibleError("there is no curve to draw: no budget, or budgets that exclude each other")
    n = len(check.curves)
    width, height = LEFT + n * WIDTH + (n - 1) * BETWEEN + RIGHT, BELOW + HEIGHT + ABOVE
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(max(width, 6.4), height), dpi=150)
        width = figure.get_figwidth()
        grid = figure.add_gridspec(
            1, n, left=LEFT / width, right=1 - RIGHT / width, bottom=BELOW / height, top=1 - ABOVE / height,
            wspace=BETWEEN / WIDTH,
        )  # fmt: skip
        told = f"least loss of a policy, an episode, on average over T = {grouped(check.episodes)}"
        entitle(figure, f"{check.problem.name}, {check.sequences}", told)
        for k, curve in enumerate(check.curves):
            _panel(figure.add_subplot(grid[0, k]), check.problem, curve)
    return figure


def _panel(axes: Axes, problem: Problem, curve: Curve) -> None:
    """Draw the curve, and at the problem's own budget a point and the slope."""
    i = curve.constraint
    unit = problem.constraint_units[i] if problem.constraint_units else ""
    name = drawable(problem.constraint_names[i])
    b, v = curve.budgets, curve.losses
    axes.plot(b, v, color=CURVE, linewidth=2.0, marker="o", markersize=3)
    limit = problem.use_in_units(problem.budgets)[i]
    low, high = min(b[0], limit), max(b[-1], limit)
    room = 0.06 * (high - low or 1.0)
    axes.set_xlim(low - room, high + room)
    axes.axvspan(low - room, b[0], color=MUTED, alpha=0.12, linewidth=0)
    axes.axvline(limit, color=INK, linewidth=0.8, dashes=(2, 2), zorder=1)
    side = "left" if limit < (low + high) / 2 else "right"
    axes.annotate(
        f"yours: {limit:.4g}",
        (limit, 1),
        (4 if side == "left" else -4, -2),
        ("data", "axes fraction"),
        "offset points",
        ha=side,
        va="top",
        size=8.5,
    )
    if curve.yours is not None and np.isfinite(curve.multipliers[curve.yours]):
        _tangent(axes, curve, curve.yours, side)
    axes.set_xlabel(drawable(", ".join(filter(None, [f"budget of {name}", unit]))), loc="left", color=MUTED)
    loss = f"best loss, {problem.loss_unit}" if problem.loss_unit else "best loss"
    head(axes, drawable(f"{name}"), drawable(f"{loss}; grey: cannot be met"))


def _tangent(axes: Axes, curve: Curve, k: int, side: str) -> None:
    """Draw the slope at point k, with a label on the side where the convex curve is not."""
    b, v, price = curve.budgets[k], curve.losses[k], curve.multipliers[k]
    step = np.array([-0.18, 0.18]) * (curve.budgets[-1] - curve.budgets[0])
    low, high = axes.get_ylim()
    axes.plot(b + step, v - price * step, color=SLOPE, linewidth=1.4, zorder=3)
    axes.plot(b, v, "o", color=SLOPE, markersize=5, zorder=4)
    axes.set_ylim(low - (0.12 * (high - low) if side == "right" else 0.0), high)
    axes.annotate(
        f"one more gains {price:.3g}",
        (b, v),
        (8, 8) if side == "left" else (-8, -8),
        textcoords="offset points",
        ha=side,
        va="bottom" if side == "left" else "top",
        color=SLOPE,
        size=8.5,
        weight="bold",
    )
