"""What all learners share: the protocol, the check of budgets and episodes, the registry."""

import math
import warnings
from contextlib import suppress
from copy import deepcopy
from dataclasses import FrozenInstanceError, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

from tightrope import UCPD, ConvergenceError, Episode, InvalidInputError, LayeredMDP, LayeredSpace, make, make_learner
from tightrope.checks.worlds import drive, ordinary_world
from tightrope.learners import LEARNERS
from tightrope.learners.base import Learner
from tightrope.learners.episodes import CheckedEpisode, checked_budgets, checked_episode
from tightrope.learners.registry import options_of

SPACE = LayeredSpace.dense([1, 2, 1], 2)


def test_budgets_are_copied_and_checked() -> None:
    given = np.array([1.5, -0.5])
    budgets = checked_budgets(SPACE, given)
    given[:] = 9
    np.testing.assert_array_equal(budgets, [1.5, -0.5])
    np.testing.assert_array_equal(checked_budgets(SPACE, 1), [1.0])
    assert checked_budgets(SPACE, []).shape == (0,)
    np.testing.assert_array_equal(checked_budgets(SPACE, [2 + 1e-12]), [2 + 1e-12])
    with pytest.raises(InvalidInputError, match=r"sum to 2\.01, above the 2 steps"):
        checked_budgets(SPACE, [1.0, -1.01])
    with pytest.raises(InvalidInputError, match="budget 1 is inf"):
        checked_budgets(SPACE, [0.0, np.inf])
    with pytest.raises(InvalidInputError, match=r"budgets has shape \(1, 1\)"):
        checked_budgets(SPACE, [[1.0]])


def test_an_episode_is_read_into_path_losses_and_constraints() -> None:
    """Tuples are (0,0,1) (0,0,2) (0,1,1) (0,1,2) (1,0,3) (1,1,3) (2,0,3) (2,1,3); lists will do."""
    loss, constraints = list(np.linspace(-1, 1, 8)), [list(np.linspace(0, 0.5, 8)), [-0.5] * 8]
    path, f, g = checked_episode(SPACE, 2, 1, Episode([0, 2, 3], [1, 0], loss, constraints))
    np.testing.assert_array_equal(path, [3, 6])
    np.testing.assert_array_equal(f, loss)
    np.testing.assert_array_equal(g, constraints)
    assert checked_episode(SPACE, 0, 1, Episode([0, 2, 3], [1, 0], loss, np.zeros((0, 8))))[2].shape == (0, 8)


def test_what_was_checked_is_checked_again_only_elsewhere() -> None:
    """Numbers that no check lets through show which were looked at."""
    nobody, none = np.full(8, np.nan), np.zeros((1, 8))
    checked = CheckedEpisode.of(SPACE, np.array([3, 6]), nobody, none)
    path, f, g = checked_episode(SPACE, 1, 1, checked)
    assert path is checked.path and f is nobody and g is none
    for space, n_constraints in ((LayeredSpace.dense([1, 2, 1], 2), 1), (SPACE, 0), (SPACE, 2)):
        with pytest.raises(InvalidInputError, match=r"episode 1: (loss is nan|constraints has shape)"):
            checked_episode(space, n_constraints, 1, checked)
    for made in (replace(checked, actions=[1, 0]), type(checked)(checked.states, checked.actions, nobody, none)):
        with pytest.raises(InvalidInputError, match="episode 1: loss is nan"):
            checked_episode(SPACE, 1, 1, made)


def test_what_was_checked_is_an_episode_all_the_same() -> None:
    """Tuples 3 and 6 are (0,1,2) and (2,0,3)."""
    loss, constraints = np.linspace(-1, 1, 8), np.zeros((1, 8))
    for episode in (checked := CheckedEpisode.of(SPACE, np.array([3, 6]), loss, constraints), deepcopy(checked)):
        assert isinstance(episode, Episode) and isinstance(episode, CheckedEpisode)
        assert (episode.states.tolist(), episode.actions.tolist()) == ([0, 2, 3], [1, 0])
        assert np.array_equal(episode.loss, loss) and np.array_equal(episode.constraints, constraints)
        assert repr(episode).startswith("CheckedEpisode(states=array([0, 2, 3])")
        with pytest.raises(FrozenInstanceError):
            episode.loss = -loss
    assert replace(checked, loss=-loss).loss.tolist() == (-loss).tolist()


def test_rounding_at_the_bounds_is_forgiven_and_nothing_more() -> None:
    """Of |f| <= 1, Σ_i max |g_i| <= 1 and Σ|c_i| <= L."""
    rounding, wrong = 1e-10, 1e-7
    none, path = np.zeros(8), ([0, 2, 3], [1, 0])
    for loss, constraint, words in ((1.0, 0.0, "loss is 1 at tuple"), (0.0, 1.0, "constraint 0 is 1 at tuple")):
        f, g = none + loss, [none + constraint]
        checked_episode(SPACE, 1, 1, Episode(*path, f * (1 + rounding), np.multiply(g, 1 + rounding)))
        with pytest.raises(InvalidInputError, match=words):
            checked_episode(SPACE, 1, 1, Episode(*path, f * (1 + wrong), np.multiply(g, 1 + wrong)))
    checked_budgets(SPACE, [2 * (1 + rounding)])
    with pytest.raises(InvalidInputError, match="above the 2 steps"):
        checked_budgets(SPACE, [2 * (1 + wrong)])


@pytest.mark.parametrize("empty", [[], (), np.zeros(0), np.zeros((8, 0))])
def test_constraints_may_be_empty_only_without_budgets(empty: ArrayLike) -> None:
    episode = Episode([0, 2, 3], [1, 0], np.zeros(8), empty)
    assert checked_episode(SPACE, 0, 1, episode)[2].shape == (0, 8)
    with pytest.raises(InvalidInputError, match=r"constraints has shape .*; expected \(1, 8\)"):
        checked_episode(SPACE, 1, 1, episode)


def test_errors_name_the_episode() -> None:
    """What is refused, and how, is in test_ucpd.py."""
    for number in (1, 7):
        with pytest.raises(InvalidInputError, match=f"^episode {number}: loss is nan at tuple"):
            checked_episode(SPACE, 0, number, Episode([0, 2, 3], [1, 0], np.full(8, np.nan), np.zeros((0, 8))))


def test_learners_by_name() -> None:
    problem = make("random", layer_sizes=[1, 2, 1], n_actions=2)
    learner = make_learner("ucpd", problem, episodes=50, radius_scale=0.5)
    assert isinstance(learner, UCPD)
    assert isinstance(learner, Learner)
    assert LEARNERS["ucpd"] is UCPD
    assert learner.settings == UCPD(problem.space, problem.budgets, episodes=50, radius_scale=0.5).settings
    np.testing.assert_array_equal(learner.budgets, problem.budgets)
    for wrong in ("100", 2.5, None, True, 0):
        with pytest.raises(InvalidInputError, match=r"episodes is .*whole number"):
            UCPD(problem.space, problem.budgets, episodes=wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match=r"no confidence rule 'papper'; did you mean 'paper'"):
        UCPD(problem.space, problem.budgets, episodes=5, confidence="papper")
    with pytest.raises(InvalidInputError, match=r"ucpd has no option 'alfa'; did you mean 'alpha'"):
        make_learner("ucpd", problem, episodes=5, alfa=1.0)
    with pytest.raises(InvalidInputError, match=r"no learner 'ucbd'; did you mean 'ucpd'"):
        make_learner("ucbd", problem, episodes=50)
    with pytest.raises(InvalidInputError, match=r"no option 'radius'.*radius_scale"):
        make_learner("ucpd", problem, episodes=50, radius=0.5)


@pytest.mark.parametrize("name", LEARNERS)
def test_the_ends_of_every_range_are_played_or_refused_in_words(name: str) -> None:
    """No warning of overflow, and nothing infinite; beyond the ends there is nothing to play."""
    at, kind = ordinary_world(), LEARNERS[name]
    fields = {key: kind.parameter_fields()[key].metadata for key in options_of(kind)}
    extreme: Any
    for key in (key for key, metadata in fields.items() if "range" in metadata):
        for extreme in (fields[key]["range"].low, fields[key]["range"].high):
            with suppress(ConvergenceError, InvalidInputError), warnings.catch_warnings(action="error"):
                learner = make_learner(name, at, episodes=5, **{key: extreme})
                drive(at, learner, last=3)
                assert np.isfinite(learner.multipliers).all(), (key, extreme)
        for extreme in (-1.0, 1e308, math.inf, math.nan):
            with pytest.raises(InvalidInputError, match=f"{key} is"):
                make_learner(name, at, episodes=5, **{key: extreme})


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("abc", "radius_scale is 'abc'; it must be a number"),
        (True, "radius_scale is True; it must be a number"),
        (-1, "radius_scale is -1; it must not be negative"),
        (float("nan"), "radius_scale is nan; it must not be negative"),
    ],
)
def test_a_parameter_is_refused_for_what_it_is(value: Any, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        UCPD(SPACE, [0.1], episodes=5, radius_scale=value)


@pytest.mark.parametrize("wrong", [LayeredMDP.even(SPACE), None, 3, SimpleNamespace(mdp=1)])
def test_needs_are_computed_from_the_problem(wrong: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"problem is .*; expected an object with budgets, constraints, losses"):
        make_learner("ucpd", wrong, episodes=5)


@pytest.mark.parametrize(("name", "said"), [("ucpd", 1), ("ucpd-practical", 0), ("uniform", 0)])
def test_continuing_beyond_the_plan_is_logged_once(name: str, said: int, caplog: pytest.LogCaptureFixture) -> None:
    at = ordinary_world()
    drive(at, make_learner(name, at, episodes=3), last=8)
    assert [record.message for record in caplog.records] == [
        f"{name} was planned for 3 episodes and continues with its parameters for 3"
    ] * said
