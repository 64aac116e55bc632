"""Where the best policies of a problem go, without and within its budgets."""

from functools import cache

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.path import Path

import tightrope as tr
from benchmarks.problems import long_run_loss
from figures.concepts import TINTS
from tightrope.planning.hindsight import best_policy
from tightrope.space import FloatArray

#: Moves that carry less of an episode than this are not drawn.
LEAST = 2e-3
#: The share of the height that is left free between the states of a step, and the most between two of them.
GAPS, GAP = 0.3, 0.08


@cache
def occupancies(name: str) -> tuple[tr.LayeredSpace, FloatArray, FloatArray, FloatArray]:
    """Return the space, the occupancies of the best policy without and within budgets, and what each tuple uses.

    What it uses is a share of the largest use of the constraint of which it uses most.
    """
    problem = tr.make(name)
    loss, constraints = long_run_loss(problem), problem.constraints.mean
    _, free = best_policy(problem.mdp, loss)
    within = tr.solve_cmdp(problem.mdp, loss, constraints, problem.budgets).policy
    least = constraints.min(axis=1, keepdims=True)
    used = (constraints - least) / (constraints.max(axis=1, keepdims=True) - least)
    return problem.space, problem.mdp.occupancy(free), problem.mdp.occupancy(within), used.max(axis=0)


def flow(axes: Axes, space: tr.LayeredSpace, theta: FloatArray, used: FloatArray, theme: str) -> None:
    """Draw every move as a ribbon from state to state: its width is its probability, its colour what it uses."""
    drawn = np.flatnonzero(theta > LEAST)
    sources, targets = space.tuples[drawn, 0], space.tuples[drawn, 2]
    mass = theta[drawn]
    leaving = np.bincount(sources, mass, space.n_states)
    height = np.maximum(leaving, np.bincount(targets, mass, space.n_states))
    layer = np.repeat(np.arange(len(space.layer_sizes)), space.layer_sizes)
    top = np.full(space.n_states, np.nan)
    for k in range(len(space.layer_sizes)):
        seen = np.flatnonzero((layer == k) & (height > 0))
        gap = min(GAP, GAPS / max(1, len(seen) - 1))
        y = (height[seen].sum() + gap * (len(seen) - 1)) / 2
        for s in seen:
            top[s], y = y, y - height[s] - gap

    def stacked(ends: FloatArray, others: FloatArray) -> FloatArray:
        """Return where each ribbon begins below the top of the state at one of its ends."""
        begins, used_up = np.empty(len(ends)), top.copy()
        for i in np.lexsort((others, ends)):
            begins[i] = used_up[ends[i]]
            used_up[ends[i]] -= mass[i]
        return begins

    paths = []
    codes = [Path.MOVETO, *[Path.CURVE4] * 3, Path.LINETO, *[Path.CURVE4] * 3, Path.CLOSEPOLY]
    for k, y, z, m in zip(layer[sources], stacked(sources, targets), stacked(targets, sources), mass, strict=True):
        corners = [(k, y), (k + 0.5, y), (k + 0.5, z), (k + 1, z)]
        below = [(x, y - m) for x, y in reversed(corners)]
        paths.append(Path([*corners, *below, corners[0]], codes))
    colours = LinearSegmentedColormap.from_list(theme, TINTS[theme])
    axes.add_collection(PathCollection(paths, facecolors=colours(used[drawn]), linewidths=0, alpha=0.85))
    axes.set(xlim=(-0.02, space.n_layers + 0.02), ylim=(-0.5 - GAPS / 2, 0.5 + GAPS / 2))
    axes.patch.set_alpha(0)
    axes.set_yticks([])


def best_policies(name: str, figure: Figure, theme: str) -> None:
    space, free, within, used = occupancies(name)
    for axes, theta, title in zip(
        figure.subplots(1, 2), (free, within), ("without budgets", "within the budgets"), strict=True
    ):
        flow(axes, space, theta, used, theme)
        axes.set_title(title)
        axes.set_xlabel("step")
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.spines[["top", "right", "left"]].set_visible(False)


def thumbnail(name: str, figure: Figure, theme: str) -> None:
    space, _, within, used = occupancies(name)
    axes = figure.subplots()
    flow(axes, space, within, used, theme)
    axes.axis("off")
