"""What a learner loses and uses in its first episodes, on a problem that is the same for all: machine-cycle."""

from functools import cache

import numpy as np
from matplotlib.figure import Figure

import tightrope as tr
from figures.concepts import BLUE, GREY, ORANGE

EPISODES = 500


@cache
def episodes(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Return the recorded episodes, the regret and the moves an episode so far, and the budget of moves."""
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
    right.set(xlabel="episode", title="moves an episode, so far", ylim=(0, 6.2))
    for axes in (left, right):
        axes.patch.set_alpha(0)
        axes.spines[["top", "right"]].set_visible(False)
    right.legend(frameon=False)
