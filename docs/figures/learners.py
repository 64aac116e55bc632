"""What learners lose and use in their first episodes; for the gallery on a problem that is the same for all."""

from functools import cache

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import tightrope as tr
from figures.concepts import GREY, TINTS

EPISODES = 500


@cache
def episodes(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Return the recorded episodes, the regret and the moves per episode so far, and the budget of moves."""
    problem = tr.make("machine-cycle", losses="switching")
    learner = tr.make_learner(name, problem, episodes=EPISODES, seed=0)
    history = tr.run(problem, learner=learner, episodes=EPISODES, seed=0)
    played = history["episode"]
    moves = problem.use_in_units(history["use_moves"][:, None])[:, 0] / played
    return played, problem.regret_in_units(history["regret"]), moves, float(problem.use_in_units(problem.budgets)[0])


def _moves(axes: Axes, name: str, theme: str) -> None:
    """Draw the moves per episode so far, and shade what is above the budget."""
    played, _, moves, budget = episodes(name)
    blue, orange = TINTS[theme]
    axes.fill_between(played, moves, budget, where=moves > budget, interpolate=True, color=orange, alpha=0.35, lw=0)
    axes.axhline(budget, color=orange, linestyle="--", label="budget")
    axes.plot(played, moves, color=blue, linewidth=2, label=name)
    axes.set(xlim=(0, EPISODES), ylim=(0, 6.2))


def _regret(axes: Axes, name: str, theme: str) -> None:
    """Draw the regret so far on a scale that is the same for all learners."""
    played, regret, _, _ = episodes(name)
    axes.axhline(0, color=GREY, linewidth=0.8)
    axes.plot(played, regret, color=TINTS[theme][0], linewidth=2)
    axes.set(xlim=(0, EPISODES))
    axes.set_yscale("symlog", linthresh=10)
    axes.minorticks_off()
    axes.set_ylim(-1500, 1500)


def first_episodes(name: str, figure: Figure, theme: str) -> None:
    left, right = figure.subplots(1, 2)
    _regret(left, name, theme)
    left.set_yticks([-1000, -100, -10, 0, 10, 100, 1000], ["−1,000", "−100", "−10", "0", "10", "100", "1,000"])
    left.set(xlabel="episode", title="regret so far")
    _moves(right, name, theme)
    right.set(xlabel="episode", title="moves per episode, so far")
    for axes in (left, right):
        axes.patch.set_alpha(0)
        axes.spines[["top", "right"]].set_visible(False)
    played, _, moves, _ = episodes(name)
    low = moves[played > EPISODES / 2].min() < 1.5
    right.legend(frameon=False, loc="upper right" if low else "lower right")


def thumbnail(name: str, figure: Figure, theme: str) -> None:
    for axes, drawer, label in zip(figure.subplots(2, 1), (_regret, _moves), ("regret", "moves"), strict=True):
        drawer(axes, name, theme)
        axes.patch.set_alpha(0)
        axes.set(xticks=[], yticks=[])
        axes.set_ylabel(label, fontsize=8)
        axes.spines[["top", "right", "bottom", "left"]].set_visible(False)


@cache
def used(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the recorded episodes, the uses per episode so far of edge-cloud in its units, and the budgets."""
    problem = tr.make("edge-cloud")
    history = tr.run(problem, name, episodes=3000, seed=0)
    uses = np.column_stack([history["use_delay"], history["use_energy"]]) / history["episode"][:, None]
    return history["episode"], problem.use_in_units(uses), problem.use_in_units(problem.budgets)


def budget_kept(i: int, figure: Figure, theme: str) -> None:
    """One of the two pictures of the front page: what ucpd-practical and ucpd use of a budget of edge-cloud."""
    axes = figure.subplots()
    blue, orange = TINTS[theme]
    played, uses, budgets = used("ucpd")
    axes.fill_between(played, uses[:, i], budgets[i], where=uses[:, i] > budgets[i], color=orange, alpha=0.12, lw=0)
    axes.axhline(budgets[i], color=orange, linestyle="--", linewidth=1.5, label="budget")
    for name, colour in (("ucpd", GREY), ("ucpd-practical", blue)):
        played, uses, budgets = used(name)
        axes.semilogx(played, uses[:, i], color=colour, linewidth=2.5, label=name)
    axes.set(xlabel="episode", title=("delay per episode, in hops", "energy per episode")[i], xlim=(1, 3000))
    axes.set_ylim(0, None)
    axes.set_xticks([1, 10, 100, 1000], ["1", "10", "100", "1,000"])
    axes.patch.set_alpha(0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="lower left")
