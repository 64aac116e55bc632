"""ucpd-practical: nothing depends on units or plans, and budgets hold; its equations are in test_budgeted."""

from dataclasses import replace

import numpy as np
import pytest

from tests.twins import sample_path
from tightrope import Episode, InvalidInputError, LayeredMDP, LayeredSpace, UCPDPractical, make, run
from tightrope.checks.worlds import World, drive, ordinary_world
from tightrope.learners.shared.budgeted import Prudence


def policies(
    at: World, learner: UCPDPractical, loss_unit: float = 1.0, uses: tuple[float, ...] = (1.0, 1.0)
) -> list[bytes]:
    """What it plays in forty episodes whose losses and constraints are given in other units."""
    played = []
    for t in range(1, 41):
        played.append(learner.policy.probabilities.tobytes())
        episode = at.play(learner.policy, "full", t, np.random.default_rng([9, t]))
        loss, constraints = (
            loss_unit * np.asarray(episode.loss),
            np.array(uses)[:, None] * np.asarray(episode.constraints),
        )
        learner.observe(replace(episode, loss=loss, constraints=constraints))
    return played


def test_units_do_not_matter() -> None:
    """Powers of two, so that not a bit is different."""
    at = ordinary_world()
    usual = policies(at, UCPDPractical(at.space, at.budgets))
    assert policies(at, UCPDPractical(at.space, at.budgets), loss_unit=0.125) == usual
    assert policies(at, UCPDPractical(at.space, at.budgets * [0.25, 1.0]), uses=(0.25, 1.0)) == usual
    assert policies(at, UCPDPractical(at.space, at.budgets * [0.5, 0.25]), 0.5, (0.5, 0.25)) == usual
    assert policies(at, UCPDPractical(at.space, at.budgets), loss_unit=-0.125) != usual


def test_nothing_is_planned() -> None:
    at = ordinary_world()
    usual = policies(at, UCPDPractical(at.space, at.budgets))
    for episodes in (1, 40, 10**9):
        assert policies(at, UCPDPractical(at.space, at.budgets, episodes=episodes)) == usual
    assert "episodes" not in UCPDPractical(at.space, at.budgets, episodes=7).settings


def test_a_constant_in_a_layer_changes_nothing() -> None:
    """It is lost, or used, whatever is played: losses and constraints shifted, and budgets with them."""
    at = ordinary_world()
    usual = UCPDPractical(at.space, at.budgets)
    shifted = UCPDPractical(at.space, at.budgets - 0.1)
    first = at.space.tuples[:, 0] == 0  # every episode passes one of these
    for t in range(1, 31):
        episode = at.play(usual.policy, "full", t, np.random.default_rng([9, t]))
        usual.observe(episode)
        f, g = np.array(episode.loss) * 0.5, np.array(episode.constraints)
        shifted.observe(Episode(episode.states, episode.actions, np.array(f) * 2, g - 0.1 * first))
    np.testing.assert_allclose(shifted.policy.probabilities, usual.policy.probabilities, atol=1e-7)


def test_targets_are_below_the_budget_by_standard_errors_and_what_is_owed() -> None:
    """σ = 0.4 after 4 episodes: half a standard error is 0.1. 3 overspent, paid back over 10·√4 episodes: 0.15."""
    prudence = Prudence(errors=0.5, repayment=10.0, least_share=0.5)
    budgets, overspent, sigma = np.array([0.5, 0.5, 0.5]), np.array([-3.0, 3.0, 30.0]), np.array([0.4, 0.4, 0.0])
    np.testing.assert_allclose(prudence.targets(budgets, overspent, sigma, 4), [0.4, 0.25, 0.25])
    np.testing.assert_allclose(prudence.targets(budgets, overspent, sigma, 4)[0], 0.5 - 0.5 * 0.4 / np.sqrt(4))


def test_the_mean_of_noisy_constraints_is_what_counts() -> None:
    at = ordinary_world()
    learner = UCPDPractical(at.space, at.budgets)
    drawn = []
    drive(at, learner, last=12, after=lambda episode: drawn.append(np.array(episode.constraints)))
    np.testing.assert_allclose(learner.state.mean_constraints, np.mean(drawn, axis=0), atol=1e-12)


@pytest.mark.parametrize("losses", ["fixed", "switching", "chaser"])
def test_budgets_hold_where_the_published_constants_overspend(losses: str) -> None:
    problem = make("media-streaming", losses=losses)
    practical = run(problem, "ucpd-practical", episodes=1500, seed=3, regret="last", records=1)
    published = run(problem, "ucpd", episodes=1500, seed=3, regret="last", records=1)
    assert practical["violation"][-1] < 0.1 * published["violation"][-1]
    assert practical["strong_violation"][-1] < 0.15 * published["strong_violation"][-1]
    assert practical["regret"][-1] < 0.5 * max(published["regret"][-1], 0) + 50


def test_a_budget_of_rare_events_holds() -> None:
    """One arm costs 1, the other meets what is budgeted in 5 of 100 episodes, of which 2 may: a unit is worth 20.

    To play the cheap arm always, as if nothing were budgeted, ends 90 over budget; to be prudent is to end below.
    """
    space = LayeredSpace.dense([1, 2, 1], 2)
    s, a, successor = space.tuples.T
    P = np.where(s > 0, 1.0, np.where(successor == 2, 0.05 * (a == 0), 1 - 0.05 * (a == 0)))
    loss, met = np.where((s == 0) & (a == 1), 1.0, 0.0), np.where(s == 2, 1.0, 0.0)[None, :]
    mdp, learner, rng, over = LayeredMDP(space, P), UCPDPractical(space, [0.02]), np.random.default_rng(3), 0.0
    for _ in range(3000):
        over += float(met[0] @ mdp.occupancy(learner.policy)) - 0.02
        states, actions, _ = sample_path(space, learner.policy.probabilities, P, rng.random(4))
        learner.observe(Episode(states, actions, loss, met))
    assert over < 30
    assert 15 < learner.multipliers[0] < 40


def test_extreme_numbers_do_not_end_a_run() -> None:
    """Losses and constraints whose spans are almost nothing, or nothing at all."""
    at = ordinary_world()
    for loss, use in ((0.0, 0.3), (0.5, 0.0), (1e-12, 1e-12), (1e-310, 1e-310)):
        learner = UCPDPractical(at.space, at.budgets * 0.5)
        rng = np.random.default_rng(1)
        for t in range(1, 60):
            episode = at.play(learner.policy, "full", t, np.random.default_rng([9, t]))
            noisy = loss + min(loss, 1e-9) * rng.random(at.space.n_tuples)
            constraints = use * (1 + 1e-16 * rng.integers(0, 3, (len(at.budgets), at.space.n_tuples)))
            learner.observe(replace(episode, loss=noisy, constraints=constraints))
        assert learner.multipliers.tolist() == [0.0, 0.0]  # what no policy can change has no price


def test_a_rule_with_a_horizon_needs_one() -> None:
    at = ordinary_world()
    with pytest.raises(InvalidInputError, match="'paper' has to be told the number of episodes"):
        UCPDPractical(at.space, at.budgets, confidence="paper")
    assert UCPDPractical(at.space, at.budgets, confidence="paper", episodes=9).settings["episodes"] == 9


def test_knowing_the_dynamics_helps() -> None:
    """Nothing is believed wrongly, so nothing is spent beyond the budget but on the way to it."""
    problem = make("media-streaming", losses="chaser")
    known = run(problem, "ucpd-practical-known", episodes=1500, seed=3, regret="last", records=1)
    unknown = run(problem, "ucpd-practical", episodes=1500, seed=3, regret="last", records=1)
    assert known["violation"][-1] == 0.0
    assert known["strong_violation"][-1] < 10
    assert known["regret"][-1] < 0.5 * unknown["regret"][-1]
