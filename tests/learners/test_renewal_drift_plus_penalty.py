"""Renewal optimisation: every frame's policy against all policies there are, queues by hand, and that it learns."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from tests import twins
from tests.learners.test_optimistic import two_choices
from tightrope import Episode, LayeredMDP, LayeredSpace, make_learner, run
from tightrope.checks.worlds import world
from tightrope.learners.renewal_drift_plus_penalty import RenewalDriftPlusPenalty


def test_a_run_is_that_of_its_twin() -> None:
    """Means and queues by sums over all that was seen, the policy by trying all 32."""
    at, T, V = world(LayeredSpace.dense([1, 2, 2, 1], 2), 2), 40, 1.5
    space, c = at.space, at.budgets - [0.3, 0.0]
    learner = RenewalDriftPlusPenalty(space, c, episodes=T, model=at.mdp, V=V)
    policies = [np.array([p for first in choice for p in (first, 1 - first)]) for choice in product((0, 1), repeat=5)]
    measures = np.array([twins.occupancy(space, pi, at.mdp.transitions)[1] for pi in policies])
    seen: list[Any] = []
    Q, answers, emptied = np.zeros(2), set(), 0
    for t in range(1, T + 1):
        if seen:
            f, g = (np.mean([getattr(one, name) for one in seen], axis=0) for name in ("loss", "constraints"))
            costs = measures @ (V * f + Q[0] * g[0] + Q[1] * g[1])
            ours = [pi.tolist() for pi in policies].index(learner.policy.probabilities.tolist())
            assert costs[ours] == pytest.approx(costs.min(), abs=1e-9)
            answers.add(ours)
        np.testing.assert_allclose(learner.multipliers, Q, atol=1e-9)
        episode = at.play(learner.policy, "full", t, np.random.default_rng([3, t]))
        learner.observe(episode)
        seen.append(episode)
        for i in range(2):
            for s, a, s_next in zip(episode.states, episode.actions, episode.states[1:], strict=False):
                [j] = np.flatnonzero((space.tuples == (s, a, s_next)).all(axis=1))
                Q[i] += episode.constraints[i, j]
            emptied += 0 < Q[i] < c[i]
            Q[i] = max(0, Q[i] - c[i])
    assert len(answers) > 1 and Q[0] > 0 and emptied > 2


def test_four_frames_by_hand() -> None:
    """One step, two actions, V = √4 = 2: losses 0 and 1, uses 1 and 0 of a budget of 0.25.

    Q = 0.75: 2·0 + 0.75·1 < 2·1. Q = 1.5 after the second, 2.25 after the third: 2.25 > 2, the other action.
    """
    space = LayeredSpace.dense([1, 1], 2)
    learner = RenewalDriftPlusPenalty(space, [0.25], episodes=4, model=LayeredMDP(space, [1.0, 1.0]))
    assert learner.V == 2
    played, Q = [], []
    for _ in range(4):
        action = int(learner.policy.probabilities[1])
        played.append(action)
        learner.observe(Episode([0, 1], [action], [0.0, 1.0], [[1.0, 0.0]]))
        Q.append(float(learner.multipliers[0]))
    assert played == [0, 0, 0, 1]
    assert Q == [0.75, 1.5, 2.25, 2.0]


def test_regret_and_violation_per_episode_fall() -> None:
    problem = two_choices()

    def per_episode(T: int) -> float:
        learner = make_learner("renewal-drift-plus-penalty", problem, episodes=T)
        history = run(problem, learner, episodes=T, records=1)
        return float(abs(history["regret"][-1]) + history["violation"][-1]) / T

    assert per_episode(4000) < 0.4 * per_episode(250)
