"""Units of one's own: there and back, refusals in their words, and a learner that is told and asked in them."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tightrope as tr
from tests.test_space import diamond
from tightrope.checks.worlds import World, now, ordinary_world, same
from tightrope.learners import LEARNERS

#: Powers of two, so that scaling there and back loses no bit.
UNITS = tr.Units.of_bounds(loss_bounds=(0.0, 64.0), use_bounds=[2.0, 128.0])


def test_bounds_become_those_of_assumption_2() -> None:
    assert (UNITS.loss_scale, UNITS.loss_offset, UNITS.constraint_scales.tolist()) == (32.0, 32.0, [4.0, 256.0])
    np.testing.assert_array_equal(UNITS.scaled_loss(np.array([0.0, 16.0, 64.0])), [-1.0, -0.5, 1.0])
    np.testing.assert_array_equal(UNITS.scaled_uses(np.array([[2.0, -1.0], [128.0, 0.0]])), [[0.5, -0.25], [0.5, 0.0]])
    np.testing.assert_array_equal(UNITS.scaled_budgets([8, 512]), [2.0, 2.0])
    small = tr.Units.of_bounds(loss_bounds=0.5, use_bounds=[0.4, 0.6])
    assert (small.loss_scale, small.loss_offset, small.constraint_scales.tolist()) == (1.0, 0.0, [1.0, 1.0])


def test_a_problem_has_the_units_that_it_was_made_of() -> None:
    problem = tr.make("edge-cloud")
    assert problem.units.loss_scale == problem.loss_scale
    np.testing.assert_array_equal(problem.units.scaled_budgets(problem.use_in_units(problem.budgets)), problem.budgets)


@pytest.mark.parametrize(
    ("units", "words"),
    [
        ({"loss_bounds": (3, 3), "use_bounds": []}, r"loss_bounds is \(3, 3\); expected the least loss and a larger"),
        ({"loss_bounds": np.inf, "use_bounds": []}, "scales must be positive"),
        ({"loss_bounds": 1, "use_bounds": [np.nan]}, "use_bounds is nan at index 0"),
        ({"loss_bounds": 1, "use_bounds": [-1.0]}, "use_bounds is -1 at index 0; it cannot be negative"),
    ],
)
def test_bounds_that_are_none(units: Any, words: str) -> None:
    with pytest.raises(tr.InvalidInputError, match=words):
        tr.Units.of_bounds(**units)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_invalid_numbers_are_not_scaled(bad: float) -> None:
    with pytest.raises(tr.InvalidInputError, match=f"budgets is {bad} at index 1; every entry must be finite"):
        UNITS.scaled_budgets([4, bad])
    with pytest.raises(tr.InvalidInputError, match=f"loss is {bad} at index 2; every entry must be finite"):
        UNITS.scaled_loss(np.array([0.0, 1.0, bad]))
    with pytest.raises(tr.InvalidInputError, match=f"uses is {bad} at index 1, 0; every entry must be finite"):
        UNITS.scaled_uses(np.array([[0.0], [bad]]))


def priced(name: str, at: World) -> tuple[tr.InUnits, Any]:
    """A learner in `UNITS`, and the same without."""
    plain, learner = (tr.make_learner(name, at, episodes=12, seed=1) for _ in range(2))
    return tr.InUnits(learner, UNITS), plain


@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_learns_the_same_in_other_units(name: str) -> None:
    at = ordinary_world()
    learner, plain = priced(name, at)
    for t in range(1, 13):
        episode = at.play(plain.policy, plain.feedback, t, np.random.default_rng([9, t]))
        loss = episode.losses if plain.feedback == "bandit" else episode.loss
        loss[...], episode.constraints[...] = loss.round(3), episode.constraints.round(3)
        uses = UNITS.constraint_scales[:, None] * episode.constraints
        own = type(episode)(episode.states, episode.actions, 32.0 * loss + 32.0, uses)
        back = type(episode)(episode.states, episode.actions, (32.0 * loss + 32.0 - 32.0) / 32.0, episode.constraints)
        learner.observe(own)
        plain.observe(back)
        same([now(learner.learner)], [now(plain)], "told in other units, it learns the same")
    np.testing.assert_array_equal(learner.budgets, UNITS.constraint_scales * at.budgets)
    assert learner.act(0, np.random.default_rng(0)) == plain.act(0, np.random.default_rng(0))
    assert learner.settings["constraint_scales"] == "4, 256"


def test_a_price_is_not_divided_twice() -> None:
    """OMDPD has a V, and multipliers that are prices already: 1/2 at the beginning."""
    learner, _ = priced("omdpd", ordinary_world())
    np.testing.assert_allclose(learner.multipliers, [0.5 * 32 / 4, 0.5 * 32 / 256])


def test_prices_are_what_losses_are_traded_for() -> None:
    """The cost of a step of UCPD, (V f + Σ Q_i g_i) / α, is in own units that of the loss and of the uses at prices."""
    at = ordinary_world()
    learner, plain = priced("ucpd", at)
    assert isinstance(learner.learner, tr.UCPD)
    plain.state = learner.learner.state = replace(plain.state, multipliers=np.array([3.0, 0.5]))
    f, g = at.loss(1), at.mean
    cost = plain.V * f + plain.multipliers @ g
    own_loss, own_uses = 32.0 * f + 32.0, UNITS.constraint_scales[:, None] * g
    np.testing.assert_allclose(own_loss + learner.multipliers @ own_uses - 32.0, 32.0 / plain.V * cost, atol=1e-12)


def test_the_contract_holds_in_units() -> None:
    def make(problem: Any, *, episodes: int, seed: int) -> Any:
        units = tr.Units(constraint_scales=np.ones(len(problem.budgets)))
        return tr.InUnits(tr.make_learner("ucpd", problem, episodes=episodes, seed=seed), units)

    assert len(tr.checks.check_learner(make)) >= 35


def test_what_is_beyond_the_units_is_refused_in_them() -> None:
    learner = tr.InUnits(tr.UCPDPractical(diamond(), budgets=UNITS.scaled_budgets([3.0, 100.0])), UNITS)
    walk: Any = {"states": [0, 1, 3], "actions": [0, 2]}
    before = learner.policy.probabilities.copy()
    loss, uses = np.full(6, 32.0), np.zeros((2, 6))
    for changes, words in (
        ({"loss": np.full(6, 65.0)}, "a loss is 65; these units are for 0 to 64"),
        (
            {"constraints": np.full((2, 6), 4.0)},
            "4, 4, which is 1.01562 times the bounds of these units; make them with",
        ),
        ({"loss": np.full(6, np.nan)}, "loss is nan"),
        ({"loss": np.zeros(5)}, r"loss has shape \(5,\)"),
    ):
        with pytest.raises(tr.InvalidInputError, match=words):
            learner.observe(tr.Episode(**walk | {"loss": loss, "constraints": uses} | changes))
    np.testing.assert_array_equal(learner.policy.probabilities, before)
    with pytest.raises(tr.InvalidInputError, match="it was given str"):
        learner.observe("an episode")


def test_only_a_learner_in_learner_units_is_accepted() -> None:
    problem = tr.make("edge-cloud")
    learner = tr.InUnits(tr.make_learner("ucpd", problem, episodes=5), problem.units)
    with pytest.raises(tr.InvalidInputError, match=r"a run is in the units of its learner.*learner\.learner"):
        tr.run(problem, learner, episodes=5)
    with pytest.raises(tr.InvalidInputError, match="is an InUnits already"):
        tr.InUnits(learner, problem.units)
    with pytest.raises(tr.InvalidInputError, match="the units are for 2 constraints; the learner has 1"):
        tr.InUnits(tr.UCPDPractical(diamond(), budgets=[1.0]), UNITS)


def test_bounds_without_room_in_floats_are_refused() -> None:
    with pytest.raises(tr.InvalidInputError, match=r"use_bounds is 1e\+308 at index 1; choose a larger unit"):
        tr.Units.of_bounds(loss_bounds=1.0, use_bounds=[1.0, 1e308])
    with pytest.raises(tr.InvalidInputError, match="loss_bounds is"):
        tr.Units.of_bounds(loss_bounds=(-1e308, 1e308), use_bounds=[1.0])
