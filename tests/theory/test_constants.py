"""The constants that follow from Slater's slack: by hand, against the exact ones, and where they cannot be halved."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tightrope as tr
from tests.conftest import mdps, rngs
from tests.theory.explicit import deterministic_points
from tests.theory.test_frontier import fork, random_pair, small
from tightrope import UCPD, InfeasibleError, InvalidInputError, LayeredMDP, solve_cmdp
from tightrope.planning.hindsight import most_slack
from tightrope.problems.constraints import Deterministic
from tightrope.theory import Constants, frontier


def test_constants_by_hand() -> None:
    """media-streaming: 10 steps, and a policy without fast steps leaves all 5 of the budget."""
    assert tr.theory.constants(tr.make("media-streaming")) == Constants(slack=5.0, B=4.0, sigma=2.5, vartheta=16.0)


def test_the_default_level_is_admissible_from_a_slope_of_a_twelfth_of_the_steps() -> None:
    for L in (1, 10, 21):
        at = Constants(slack=1.0, B=1.0, sigma=L / 12, vartheta=1.0)
        assert at.largest_level(L) == pytest.approx(UCPD.level)
        assert replace(at, sigma=L / 12.01).largest_level(L) < UCPD.level


def test_without_constraints_there_is_nothing_to_bound() -> None:
    bound = tr.make("random")
    none, nothing = Deterministic(np.empty((0, bound.space.n_tuples))), np.empty(0)
    free = replace(bound, constraints=none, budgets=nothing, constraint_names=(), constraint_scales=nothing)
    assert tr.theory.constants(free) == Constants(slack=math.inf, B=0.0, sigma=math.inf, vartheta=0.0)
    assert tr.theory.constants(free).largest_level(3) == 0.25
    found = tr.theory.check(free, episodes=100)
    assert found.holds and "there is none" in repr(found)


def test_without_slack_there_are_no_constants() -> None:
    problem = tr.make("media-streaming")
    for budget in (0.0, -1.0):
        with pytest.raises(InfeasibleError, match="tightrope check"):
            tr.theory.constants(replace(problem, budgets=np.array([budget])))


@settings(max_examples=50)
@given(small, rngs(), st.floats(0.02, 1.2))
def test_constants_hold_for_one_budget_whose_dual_is_known_exactly(
    mdp: LayeredMDP, rng: np.random.Generator, share: float
) -> None:
    f, g = random_pair(mdp, rng)
    L = mdp.space.n_layers
    use = deterministic_points(mdp, g[None])[:, 0]
    assume(use.max() - use.min() > 1e-3)
    c = use.min() + share * (use.max() - use.min())
    found = most_slack(mdp, g[None], [c])
    exact = frontier(mdp, f, g, most=10 * L / found.slack)
    gap = float(f @ mdp.occupancy(found.policy)) - exact.dual(exact.multipliers(c)[0], c)
    for constants in (Constants.from_slack(found.slack, gap), Constants.from_slack(found.slack, 2.0 * L)):
        assert exact.multipliers(c)[1] <= constants.B + 1e-7
        assert exact.vartheta(c, constants.sigma) <= constants.vartheta + 1e-6


@settings(max_examples=50)
@given(mdps(max_steps=3, max_width=2, max_actions=2), rngs())
def test_constants_hold_for_two_budgets(mdp: LayeredMDP, rng: np.random.Generator) -> None:
    """The dual function straight from all deterministic policies, at many η far away and near."""
    n, L = mdp.space.n_tuples, mdp.space.n_layers
    f, g = rng.uniform(-1, 1, n), rng.random((2, n)) / 2
    points = deterministic_points(mdp, np.stack([f, *g]))
    c = points[rng.integers(len(points)), 1:] + 0.1
    slack, policy, _ = most_slack(mdp, g, c)
    solution = solve_cmdp(mdp, f, g, c)
    best = solution.value
    gap = float(f @ mdp.occupancy(policy)) - best
    for constants in (Constants.from_slack(slack, gap), Constants.from_slack(slack, 2.0 * L)):
        assert np.linalg.norm(solution.multipliers) <= constants.B + 1e-7
        for _ in range(50):
            way = np.abs(rng.normal(size=2))
            distance = max(constants.vartheta, 1e-6) * rng.choice([1.0, 1.0001, 2.0])
            # the proof is for every multiplier, not only for the nearest: the distance from this one is enough
            eta = solution.multipliers + distance * way / np.linalg.norm(way)
            q = (points[:, 0] + (points[:, 1:] - c) @ eta).min()
            assert best - q >= constants.sigma * distance - 1e-7


def test_B_cannot_be_smaller_for_any_losses() -> None:
    """One decision, L = 1: all that is gained, 2, is gained by using what the budget just allows."""
    for slack in (0.5, 0.01):
        exact = frontier(fork(2), np.array([-1.0, 1.0]), np.array([slack, 0.0]), most=10 / slack)
        B = Constants.from_slack(slack, gap=2.0).B
        assert exact.multipliers(slack) == pytest.approx((0.0, B))


def test_vartheta_could_be_halved_for_one_budget_and_no_more() -> None:
    """A budget that hardly binds: next to η = 0 the dual function is flat, and stays so for 2 gap/ε = ϑ̄/2."""
    slack, little = 0.5, 1e-7
    constants = Constants.from_slack(slack, gap=2.0)
    exact = frontier(fork(2), np.array([-1.0, 1.0]), np.array([slack - little, 0.0]), most=10 / slack)
    assert exact.vartheta(slack, constants.sigma) == pytest.approx(constants.vartheta / 2, rel=1e-6)


def test_sigma_cannot_reach_the_slack() -> None:
    """However far: above ε the dual function is nowhere as steep, at ε/2 it is."""
    exact = frontier(fork(2), np.array([-1.0, 1.0]), np.array([1.0, 0.0]), most=1e6)
    assert exact.vartheta(0.25, 0.25 * 1.001) == math.inf
    assert exact.vartheta(0.25, 0.25 / 2) < Constants.from_slack(0.25, gap=2.0).vartheta


@pytest.mark.parametrize("wrong", [None, "1", np.nan, np.ones(2), -1e300])
def test_slack_and_gap_are_numbers(wrong: Any) -> None:
    with pytest.raises(InvalidInputError, match="slack is"):
        Constants.from_slack(wrong, 1.0)
    with pytest.raises(InvalidInputError, match="gap is"):
        Constants.from_slack(1.0, wrong)
    with pytest.raises(InvalidInputError, match="slack is 0"):
        Constants.from_slack(0.0, 1.0)
