"""Where the best policies of a problem go, without and within its budgets."""

from functools import cache

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

import tightrope as tr
from benchmarks.problems import long_run_loss
from tightrope.planning.hindsight import best_policy

COLOURS = {"light": ("#ffffff", "#0b5c8a"), "dark": ("#131416", "#8fd0f7")}


@cache
def occupancies(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return two (most states of a layer, n_layers) arrays, without and within budgets; NaN where no state is."""
    problem = tr.make(name)
    loss = long_run_loss(problem)
    _, free = best_policy(problem.mdp, loss)
    within = tr.solve_cmdp(problem.mdp, loss, problem.constraints.mean, problem.budgets).policy
    return grid(problem.mdp, free), grid(problem.mdp, within)


def grid(mdp: tr.LayeredMDP, policy: tr.Policy) -> np.ndarray:
    space = mdp.space
    mass = np.bincount(space.tuples[:, 0], weights=mdp.occupancy(policy), minlength=space.n_states)
    sizes = list(space.layer_sizes)[: space.n_layers]
    shown = np.full((max(sizes), len(sizes)), np.nan)
    start = 0
    for layer, size in enumerate(sizes):
        top = (max(sizes) - size) // 2
        shown[top : top + size, layer] = mass[start : start + size]
        start += size
    return shown


def _show(axes: Axes, shown: np.ndarray, theme: str) -> None:
    colours = LinearSegmentedColormap.from_list(theme, COLOURS[theme])
    axes.imshow(np.sqrt(shown), aspect="auto", cmap=colours, vmin=0, vmax=1, interpolation="nearest")


def best_policies(name: str, figure: Figure, theme: str) -> None:
    left, right = figure.subplots(1, 2, sharey=True)
    for axes, shown, title in zip((left, right), occupancies(name), ("without budgets", "within them"), strict=True):
        _show(axes, shown, theme)
        axes.set_title(title)
        axes.set_xlabel("step")
        axes.set_yticks([])
    left.set_ylabel("states of the step")


def thumbnail(name: str, figure: Figure, theme: str) -> None:
    axes = figure.subplots()
    _show(axes, occupancies(name)[1], theme)
    axes.set_xticks([])
    axes.set_yticks([])
