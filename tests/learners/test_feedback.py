"""Who is shown what: whole functions, or only what was met on the way."""

from typing import Any

import numpy as np
import pytest

from tests.learners.problems import problem_with
from tightrope import BanditEpisode, Episode, InvalidInputError, LayeredSpace, run
from tightrope.learners.base import Feedback
from tightrope.learners.episodes import checked_bandit_episode
from tightrope.learners.fixed import Uniform

SPACE = LayeredSpace.dense([1, 2, 1], 2)


class Recorder(Uniform):
    """Keeps every episode that it is shown."""

    def __init__(self, *args: Any, feedback: Feedback, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.feedback = feedback  # type: ignore[misc]
        self.shown: list[Any] = []

    def observe(self, episode: Any) -> None:
        self.shown.append(episode)


def test_the_simulator_shows_each_learner_the_kind_it_declares() -> None:
    """The same seed gives the same trajectories, so the two kinds can be held against each other."""
    problem = problem_with(2)
    shown: dict[str, list[Any]] = {}
    kinds: tuple[Feedback, ...] = ("full", "bandit")
    for kind in kinds:
        learner = Recorder(problem.space, problem.budgets, episodes=20, feedback=kind)
        run(problem, learner, episodes=20, seed=1)
        shown[kind] = learner.shown
    for whole, met in zip(shown["full"], shown["bandit"], strict=True):
        assert isinstance(whole, Episode)
        assert isinstance(met, BanditEpisode)
        path = problem.space.path(whole.states, whole.actions)
        np.testing.assert_array_equal(met.states, whole.states)
        np.testing.assert_array_equal(met.actions, whole.actions)
        np.testing.assert_array_equal(met.losses, np.asarray(whole.loss)[path])
        np.testing.assert_array_equal(met.constraints, np.asarray(whole.constraints)[:, path])


def test_a_bandit_episode_is_taken_apart() -> None:
    """Tuples are (0,0,1) (0,0,2) (0,1,1) (0,1,2) (1,0,3) (1,1,3) (2,0,3) (2,1,3); lists will do."""
    path, losses, g = checked_bandit_episode(SPACE, 1, 1, BanditEpisode([0, 2, 3], [1, 0], [0.5, -1], [[0.25, 1]]))
    np.testing.assert_array_equal(path, [3, 6])
    np.testing.assert_array_equal(losses, [0.5, -1])
    np.testing.assert_array_equal(g, [[0.25, 1]])


@pytest.mark.parametrize(
    ("losses", "constraints", "words"),
    [
        ([0.5], [[0.0, 0.0]], r"losses has shape \(1,\); expected \(2,\)"),
        ([0.5, 0.5], [0.0, 0.0], r"constraints has shape \(2,\); expected \(1, 2\)"),
        ([0.5, 1.5], [[0.0, 0.0]], r"loss is 1\.5 at tuple \(2, 0, 3\)"),
        ([0.5, np.nan], [[0.0, 0.0]], r"loss is nan at tuple \(2, 0, 3\)"),
        ([0.5, 0.5], [[-1.25, 0.0]], r"constraint 0 is -1\.25 at tuple \(0, 1, 2\)"),
    ],
)
def test_an_error_says_what_is_wrong_with_a_bandit_episode(losses: Any, constraints: Any, words: str) -> None:
    with pytest.raises(InvalidInputError, match=f"^episode 7: {words}"):
        checked_bandit_episode(SPACE, 1, 7, BanditEpisode([0, 2, 3], [1, 0], losses, constraints))


def test_an_episode_of_the_other_kind_of_feedback_is_refused() -> None:
    learner = Uniform(SPACE, [], episodes=3)
    with pytest.raises(InvalidInputError, match=r"takes full feedback \(Episode\); it was given BanditEpisode"):
        learner.observe(BanditEpisode([0, 2, 3], [1, 0], [0, 0], np.zeros((0, 2))))
    with pytest.raises(InvalidInputError, match=r"takes bandit feedback \(BanditEpisode\); it was given Episode"):
        checked_bandit_episode(SPACE, 0, 1, Episode([0, 2, 3], [1, 0], np.zeros(8), np.zeros((0, 8))))  # type: ignore[arg-type]
