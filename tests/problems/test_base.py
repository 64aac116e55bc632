"""A problem checks itself when it is made."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.conftest import FloatArray
from tightrope import InvalidInputError, LayeredMDP, LayeredSpace, Policy, Problem
from tightrope.problems.constraints import Deterministic
from tightrope.problems.losses import Fixed


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
        ({"name": ""}, "name is empty"),
        ({"constraint_names": ("delay", "delay")}, "no two may be equal"),
        ({"constraint_names": ("delay",)}, r"has shape \(2, 8\); expected \(1, 8\)"),
        ({"constraints": Deterministic(np.zeros((2, 7)))}, r"has shape \(2, 7\); expected \(2, 8\)"),
        ({"constraints": Unbounded(np.zeros(8))}, r"noise included, sum to 1\.02"),
        ({"budgets": [1.0]}, r"budgets has shape \(1,\); expected \(2,\)"),
        ({"budgets": [1.0, np.nan]}, "budgets is nan at index 1"),
        ({"budgets": [1.5, -0.6]}, r"budgets sum to 2\.1 in absolute value; at most 2"),
        ({"losses": Fixed(np.zeros((1, 7)))}, r"loss of episode 1 has shape \(7,\); expected \(8,\)"),
        ({"losses": Unbounded(np.full(8, -1.5))}, r"loss of episode 1 is -1\.5 at tuple 0 \(0 → 0 → 1\)"),
        ({"losses": Unbounded(np.full(8, np.nan))}, "loss of episode 1 is nan at index 0"),
        ({"state_names": ("a", "b")}, "state_names has 2 names; expected 4"),
        ({"action_names": ("a", "b", "c")}, "action_names has 3 names; expected 2"),
        ({"constraint_units": ("s",)}, "constraint_units has 1 names; expected 2"),
        ({"constraint_scales": [1.0]}, r"constraint_scales has shape \(1,\); expected \(2,\)"),
        ({"constraint_scales": [1.0, -1.0]}, "scales must be positive"),
        ({"loss_scale": 0.0}, "loss_scale is 0.0 .* scales must be positive"),
        ({"loss_scale": np.inf}, "scales must be positive"),
        ({"loss_offset": np.nan}, "loss_offset is nan"),
    ],
)
def test_what_does_not_fit_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        small_problem(**changes)


def test_tuples_and_policies_are_shown_by_name() -> None:
    problem = small_problem(state_names=("start", "left", "right", "end"), action_names=("go", "wait"))
    assert problem.tuple_name(1) == "start → go → right"
    assert Policy(problem.space, [0.25, 0.75, 1, 0, 0, 1])["start"] == {"go": 0.25, "wait": 0.75}


# ------------------------------------------------------------------------------------ units of one's own


def in_units(**changes: Any) -> Problem:
    """Losses from -30 to 10 euros, minutes and litres."""
    space = LayeredSpace.dense([1, 2, 1], 2)
    parts: dict[str, Any] = {
        "name": "in units",
        "mdp": LayeredMDP(space, [0.5, 0.5, 0.25, 0.75, 1, 1, 1, 1]),
        "scenarios": [[-30.0, 0, 5, 10, 0, 0, 0, 0], [1.0] * 8],
        "losses": "fixed",
        "uses": [[60.0, 0, 30, 30, 15, 0, 0, 0], [0.0, 0.25, 0, 0, 0, -0.5, 0, 0]],
        "budgets": [45.0, 0.25],
        "constraint_names": ("time", "fuel"),
    }
    return Problem.from_units(**(parts | changes))


def test_what_is_small_enough_is_left_as_it_is() -> None:
    problem = in_units(scenarios=np.full((1, 8), 0.5), uses=np.full((2, 8), 0.25), budgets=[0.5, 0.4])
    assert (problem.loss_scale, problem.loss_offset) == (1.0, 0.0)
    assert problem.constraint_scales.tolist() == [1.0, 1.0]
    assert problem.budgets.tolist() == [0.5, 0.4]


def test_losses_are_divided_by_the_largest_or_fitted_to_their_bounds() -> None:
    rng = np.random.default_rng(0)
    divided = in_units()
    assert (divided.loss_scale, divided.loss_offset) == (30.0, 0.0)
    np.testing.assert_allclose(divided.losses.begin(rng).loss(1)[:4], [-1, 0, 1 / 6, 1 / 3])
    fitted = in_units(loss_bounds=(-30, 10))
    assert (fitted.loss_scale, fitted.loss_offset) == (20.0, -10.0)
    np.testing.assert_allclose(fitted.losses.begin(rng).loss(1)[:4], [-1, 0.5, 0.75, 1])


def test_constraints_share_what_is_allowed() -> None:
    problem = in_units()
    np.testing.assert_allclose(problem.constraint_scales, [120.0, 1.0])
    np.testing.assert_allclose(np.abs(problem.constraints.mean).max(axis=1), [0.5, 0.5])
    np.testing.assert_allclose(problem.budgets, [45 / 120, 0.25])
    wider = in_units(use_bounds=[100.0, 2.0], noise={"name": "scaled", "spread": 0.5})
    np.testing.assert_allclose(wider.constraint_scales, [300.0, 6.0])


def test_the_way_back_from_units_is_exact_for_any_policy(rng: np.random.Generator) -> None:
    for problem in (in_units(), in_units(loss_bounds=(-40, 20), noise="bernoulli")):
        policy = Policy.from_occupancy(problem.space, rng.exponential(size=8))
        theta = problem.mdp.occupancy(policy)
        f = problem.losses.begin(rng).loss(1)
        euros = theta @ [-30.0, 0, 5, 10, 0, 0, 0, 0]
        assert problem.loss_in_units(float(7 * f @ theta), 7) == pytest.approx(7 * euros)
        gap = float(f @ theta - f @ problem.mdp.occupancy(Policy.uniform(problem.space)))
        uniform = problem.mdp.occupancy(Policy.uniform(problem.space)) @ [-30.0, 0, 5, 10, 0, 0, 0, 0]
        assert problem.regret_in_units(gap) == pytest.approx(euros - uniform)
        used = problem.use_in_units(problem.constraints.mean @ theta)
        np.testing.assert_allclose(
            used, [theta @ row for row in ([60.0, 0, 30, 30, 15, 0, 0, 0], [0, 0.25, 0, 0, 0, -0.5, 0, 0])]
        )
        np.testing.assert_allclose(problem.use_in_units(problem.budgets), [45.0, 0.25])


def test_columns_over_episodes_are_turned_into_units_at_once() -> None:
    problem = in_units(loss_bounds=(-30, 10))
    episodes = np.array([1.0, 10.0])
    np.testing.assert_allclose(problem.loss_in_units(np.array([0.5, 2.0]), episodes), [10 - 20, 40 - 200])
    np.testing.assert_allclose(problem.use_in_units(np.ones((3, 2))), np.tile([120.0, 1.0], (3, 1)))


def test_there_may_be_no_constraint_in_units_either() -> None:
    problem = in_units(uses=np.empty((0, 8)), budgets=[], constraint_names=())
    assert problem.constraint_scales.shape == (0,)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"loss_bounds": (0, 10)}, "a loss is -30; these units are for 0 to 10"),
        ({"loss_bounds": (10, 10)}, "expected the least loss and a larger one"),
        ({"loss_bounds": (np.nan, 10)}, "loss_bounds is"),
        ({"use_bounds": [50.0, 1.0]}, "constraint 0 uses up to 60; use_bounds allows 50"),
        ({"use_bounds": [0.0, 1.0]}, "constraint 0 uses up to 60; use_bounds allows 0"),
        ({"use_bounds": [60.0]}, r"use_bounds has shape \(1,\)"),
        ({"uses": [1.0] * 8}, r"uses has shape \(8,\)"),
        ({"uses": [[np.nan] * 8] * 2}, "uses is nan at index 0, 0; every entry must be finite"),
        ({"budgets": [45.0]}, r"budgets has shape \(1,\)"),
        ({"budgets": [450.0, 0.0]}, "the budgets sum to 3.75 in absolute value; at most 2"),
        ({"scenarios": [[np.nan] * 8]}, "scenarios is nan at index 0, 0"),
    ],
)
def test_units_that_do_not_fit_are_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        in_units(**changes)
