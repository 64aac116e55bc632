"""Budgets on rare events: no learner of the practical family may end a run because its solver gives up."""

from collections.abc import Callable

import numpy as np
import pytest

import tightrope as tr
from tightrope.learners.base import LearnerBase
from tightrope.learners.ucpd_bandit import UCPDBandit

N_STEPS = 4


def rare_crash(p: float) -> tuple[tr.LayeredMDP, np.ndarray, np.ndarray, list[float]]:
    """Return the model, the loss (n_tuples,), the cost (1, n_tuples) and the budget of a problem with rare crashes.

    At every step the learner is careful (action 0, loss ½) or bold (action 1, loss 0); a bold step crashes with
    probability p, at cost 1. The budget allows half of the crashes of a policy that is always bold.
    """
    sizes = [1] + [2] * N_STEPS + [1]  # the second state of a layer: the last step was a crash
    first = np.concatenate([[0], np.cumsum(sizes)])
    tuples: list[tuple[int, int, int]] = []
    transitions: list[float] = []
    for k in range(N_STEPS):
        for state in range(first[k], first[k + 1]):
            tuples += [(state, 0, first[k + 1]), (state, 1, first[k + 1]), (state, 1, first[k + 1] + 1)]
            transitions += [1.0, 1 - p, p]
    for state in range(first[N_STEPS], first[N_STEPS + 1]):
        tuples.append((state, 0, first[N_STEPS + 1]))
        transitions.append(1.0)
    space = tr.LayeredSpace.from_tuples(sizes, 2, tuples)
    action, is_step = space.tuples[:, 1], space.tuples[:, 0] < first[N_STEPS]
    crashes = is_step & (space.tuples[:, 2] - first[np.searchsorted(first, space.tuples[:, 2], side="right") - 1] == 1)
    loss = np.where(is_step & (action == 0), 0.5, 0.0)
    order = {tuple(row): x for row, x in zip(tuples, transitions, strict=True)}
    model = tr.LayeredMDP(space, np.array([order[tuple(row)] for row in space.tuples.tolist()]))
    return model, loss, crashes[None].astype(float), [N_STEPS * p / 2]


def play(learner: LearnerBase, model: tr.LayeredMDP, loss: np.ndarray, cost: np.ndarray, episodes: int) -> None:
    """Play episodes of the model with the learner."""
    space, rng = model.space, np.random.default_rng(0)
    for _ in range(episodes):
        state, states, actions, path = 0, [0], [], []
        for _ in range(space.n_layers):
            action = learner.act(state, rng)
            options = np.flatnonzero((space.tuples[:, 0] == state) & (space.tuples[:, 1] == action))
            chosen = int(rng.choice(options, p=model.transitions[options]))
            state = int(space.tuples[chosen, 2])
            states.append(state)
            actions.append(action)
            path.append(chosen)
        if learner.feedback == "full":
            learner.observe(tr.Episode(states, actions, loss, cost))
        else:
            learner.observe(tr.BanditEpisode(states, actions, loss[path], cost[:, path]))


@pytest.mark.parametrize("p", [1 / 300, 1 / 500, 1 / 1000, 1e-6])
@pytest.mark.parametrize("name", ["ucpd-practical", "ucpd-bandit"])
def test_rare_costs_do_not_end_a_run(name: str, p: float) -> None:
    model, loss, cost, budgets = rare_crash(p)
    kinds: dict[str, Callable[..., LearnerBase]] = {"ucpd-practical": tr.UCPDPractical, "ucpd-bandit": UCPDBandit}
    learner = kinds[name](model.space, budgets)
    play(learner, model, loss, cost, 400)
    assert learner.observed == 400
    assert np.isfinite(learner.policy.probabilities).all()
