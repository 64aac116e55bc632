"""What learners lose and use in their first episodes; for the gallery on a problem that is the same for all."""

from functools import cache

import numpy as np
from matplotlib.figure import Figure

import tightrope as tr
from figures.concepts import BLUE, GREY, ORANGE

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


def first_episodes(name: str, figure: Figure, theme: str) -> None:
    played, regret, moves, budget = episodes(name)
    left, right = figure.subplots(1, 2)
    left.axhline(0, color=GREY, linewidth=0.8)
    left.plot(played, regret, color=BLUE)
    left.set(xlabel="episode", title="regret so far")
    right.axhline(budget, color=ORANGE, linestyle="--", label="budget")
    right.plot(played, moves, color=BLUE, label=name)
    right.set(xlabel="episode", title="moves per episode, so far", ylim=(0, 6.2))
    for axes in (left, right):
        axes.patch.set_alpha(0)
        axes.spines[["top", "right"]].set_visible(False)
    right.legend(frameon=False)


def thumbnail(name: str, figure: Figure, theme: str) -> None:
    played, regret, moves, budget = episodes(name)
    for axes, values, level in zip(figure.subplots(2, 1), (regret, moves), (0, budget), strict=True):
        axes.axhline(level, color=GREY if level == 0 else ORANGE, linestyle="-" if level == 0 else "--", linewidth=0.9)
        axes.plot(played, values, color=BLUE)
        axes.patch.set_alpha(0)
        axes.set(xticks=[], yticks=[])
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[1].set_ylim(0, 6.2)


@cache
def used(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the recorded episodes, the uses per episode so far of edge-cloud in its units, and the budgets."""
    problem = tr.make("edge-cloud")
    history = tr.run(problem, name, episodes=3000, seed=0)
    uses = np.column_stack([history["use_delay"], history["use_energy"]]) / history["episode"][:, None]
    return history["episode"], problem.use_in_units(uses), problem.use_in_units(problem.budgets)


def budgets_of_two(figure: Figure, theme: str) -> None:
    """The picture of the front page: what ucpd-practical and ucpd use of two budgets."""
    for i, (axes, title) in enumerate(zip(figure.subplots(1, 2), ("delay, in hops", "energy"), strict=True)):
        for name, colour in (("ucpd", GREY), ("ucpd-practical", BLUE)):
            played, uses, budgets = used(name)
            axes.semilogx(played, uses[:, i], color=colour, linewidth=2, label=name)
        axes.axhline(budgets[i], color=ORANGE, linestyle="--", label="budget")
        axes.set(xlabel="episode", title=f"{title} per episode, so far", ylim=(0, None))
        axes.patch.set_alpha(0)
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[1].legend(frameon=False, loc="lower left")
