"""A problem checks itself when it is made."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tightrope.errors import InvalidInputError
from tightrope.model import LayeredMDP, Policy
from tightrope.problems.base import Problem
from tightrope.problems.constraints import Deterministic
from tightrope.problems.losses import Fixed
from tightrope.space import FloatArray, LayeredSpace


def small_problem(**changes: Any) -> Problem:
    """Two steps, two states in the middle, two actions: eight tuples."""
    space = LayeredSpace.dense([1, 2, 1], 2)
    parts: dict[str, Any] = {
        "name": "small",
        "mdp": LayeredMDP(space, [0.5, 0.5, 0.25, 0.75, 1, 1, 1, 1]),
        "losses": Fixed(np.zeros((1, 8))),
        "constraints": Deterministic(np.full((2, 8), 0.5)),
        "budgets": [1.0, 0.5],
        "constraint_names": ("delay", "energy"),
    }
    return Problem(**(parts | changes))


def test_a_problem_knows_its_space_and_takes_budgets_as_any_numbers() -> None:
    problem = small_problem()
    assert problem.space is problem.mdp.space
    assert problem.budgets.dtype == np.float64
    assert "'small'" in repr(problem)
    assert "losses='fixed'" in repr(problem)


def test_names_are_numbers_unless_given() -> None:
    problem = small_problem()
    assert (problem.state_name(3), problem.action_name(1)) == ("3", "1")
    named = small_problem(state_names=("start", "left", "right", "end"), action_names=("go", "wait"))
    assert (named.state_name(2), named.action_name(1)) == ("right", "wait")


def test_budgets_are_copied() -> None:
    budgets = np.array([1.0, 0.5])
    problem = small_problem(budgets=budgets)
    budgets[0] = 2.0
    assert problem.budgets[0] == 1.0


def test_a_problem_may_have_no_constraint() -> None:
    problem = small_problem(constraints=Deterministic(np.empty((0, 8))), budgets=np.empty(0), constraint_names=())
    assert problem.budgets.shape == (0,)


class Follower:
    """An adaptive adversary: charges the action it saw most, and starts every play with a clean memory."""

    name = "follower"

    def __init__(self) -> None:
        self.plays: list[FollowerPlay] = []

    def begin(self, rng: np.random.Generator) -> "FollowerPlay":
        self.plays.append(FollowerPlay(np.zeros(8)))
        return self.plays[-1]


class FollowerPlay:
    def __init__(self, charged: FloatArray) -> None:
        self.charged = charged

    def loss(self, episode: int) -> FloatArray:
        return self.charged

    def watch(self, policy: Policy) -> None:
        likely = policy.probabilities >= 0.5
        self.charged = np.repeat(likely, policy.space.successors_per_pair).astype(np.float64)


def test_adaptive_adversaries_fit_and_the_check_leaves_no_trace(rng: np.random.Generator) -> None:
    losses = Follower()
    problem = replace(small_problem(), losses=losses)
    adversary = problem.losses.begin(rng)
    assert adversary is not losses.plays[0]
    assert not adversary.loss(1).any()
    adversary.watch(Policy(problem.space, [1, 0, 1, 0, 0, 1]))
    np.testing.assert_array_equal(adversary.loss(2), [1, 1, 0, 0, 1, 0, 0, 1])
    assert not losses.plays[0].charged.any()


class Unbounded:
    """What a user might hand in without our classes' checks."""

    name = "unbounded"
    mean = np.full((2, 8), 0.51)

    def __init__(self, charged: FloatArray) -> None:
        self.charged = charged

    def begin(self, rng: np.random.Generator) -> "Unbounded":
        return self

    def loss(self, episode: int) -> FloatArray:
        return self.charged

    def watch(self, policy: Policy) -> None: ...

    def sample(self, rng: np.random.Generator) -> FloatArray:
        return self.mean


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": ""}, "needs a name"),
        ({"constraint_names": ("delay", "delay")}, "no two may be equal"),
        ({"constraint_names": ("delay",)}, r"has shape \(2, 8\); expected \(1, 8\)"),
        ({"constraints": Deterministic(np.zeros((2, 7)))}, r"has shape \(2, 7\); expected \(2, 8\)"),
        ({"constraints": Unbounded(np.zeros(8))}, r"can reach 1\.02 in sum"),
        ({"budgets": [1.0]}, r"budgets has shape \(1,\); expected \(2,\)"),
        ({"budgets": [1.0, np.nan]}, "budgets is nan at index 1"),
        ({"budgets": [1.5, -0.6]}, r"budgets sum to 2\.1 in absolute value; at most 2"),
        ({"losses": Fixed(np.zeros((1, 7)))}, r"loss of episode 1 has shape \(7,\); expected \(8,\)"),
        ({"losses": Unbounded(np.full(8, -1.5))}, r"loss of episode 1 is -1\.5 at tuple 0"),
        ({"losses": Unbounded(np.full(8, np.nan))}, "loss of episode 1 is nan at index 0"),
        ({"state_names": ("a", "b")}, "state_names has 2 names; expected 4"),
        ({"action_names": ("a", "b", "c")}, "action_names has 3 names; expected 2"),
    ],
)
def test_what_does_not_fit_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        small_problem(**changes)
