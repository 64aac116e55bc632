"""Loss sequences: what they charge when, and how they are asked for."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import rngs
from tightrope.errors import InvalidInputError
from tightrope.problems.losses import LOSSES, Drifting, Fixed, LossChoice, Losses, Switching, make_losses

SCENARIOS = np.array([[0.0, 1.0, -1.0], [0.5, -0.5, 1.0], [-1.0, 1.0, 0.25]])


def test_fixed_is_the_first_scenario_for_ever(rng: np.random.Generator) -> None:
    adversary = Fixed(SCENARIOS).begin(rng)
    for episode in (1, 2, 1000, 10**9):
        np.testing.assert_array_equal(adversary.loss(episode), SCENARIOS[0])


def test_switching_keeps_each_scenario_for_a_period_and_goes_round(rng: np.random.Generator) -> None:
    adversary = Switching(SCENARIOS, period=2).begin(rng)
    played = [adversary.loss(episode) for episode in range(1, 9)]
    np.testing.assert_array_equal(played, SCENARIOS[[0, 0, 1, 1, 2, 2, 0, 0]])


def test_switching_and_fixed_hand_out_what_they_hold() -> None:
    for losses in (Fixed(SCENARIOS), Switching(SCENARIOS, period=3)):
        assert np.shares_memory(losses.loss(5), losses.scenarios)
        assert losses.loss(5).flags.c_contiguous


@given(rngs(), st.integers(1, 5), st.integers(1, 50), st.integers(1, 10**6))
def test_drifting_stays_in_the_hull(rng: np.random.Generator, n_scenarios: int, period: int, episode: int) -> None:
    losses = Drifting(rng.uniform(-1, 1, size=(n_scenarios, 7)), period=period)
    weights = losses.weights(episode)
    assert (weights >= 0).all()
    assert abs(weights.sum() - 1) < 1e-12
    np.testing.assert_allclose(losses.loss(episode), weights @ losses.scenarios, atol=1e-15)


@given(st.integers(1, 7), st.integers(1, 40), st.integers(1, 10**6))
def test_drifting_never_passes_one_by_rounding(n_scenarios: int, period: int, episode: int) -> None:
    extremes = np.tile([1.0, -1.0], (n_scenarios, 1))
    assert (np.abs(Drifting(extremes, period=period).loss(episode)) <= 1).all()


def test_drifting_comes_round_moves_smoothly_and_treats_scenarios_alike() -> None:
    losses = Drifting(SCENARIOS, period=60)
    played = np.array([losses.loss(episode) for episode in range(1, 122)])
    np.testing.assert_array_equal(played[0], played[60])
    np.testing.assert_array_equal(played[60], played[120])
    assert np.abs(np.diff(played, axis=0)).max() <= 2 * np.pi / 60  # |Δf| <= Σ_k |Δw_k| <= 2π / period
    assert np.abs(np.diff(played, axis=0)).max() > 0.01
    np.testing.assert_allclose(played[:60].mean(axis=0), SCENARIOS.mean(axis=0), atol=1e-12)


def test_drifting_between_two_meets_each_in_full() -> None:
    losses = Drifting(SCENARIOS[:2], period=10)
    np.testing.assert_allclose(losses.loss(1), SCENARIOS[0], atol=1e-15)
    np.testing.assert_allclose(losses.loss(6), SCENARIOS[1], atol=1e-15)


def test_one_scenario_is_that_scenario_for_every_sequence() -> None:
    for name in LOSSES:
        adversary = make_losses(name, SCENARIOS[1:2]).begin(np.random.default_rng(0))
        for episode in (1, 7, 4321):
            np.testing.assert_array_equal(adversary.loss(episode), SCENARIOS[1])


def test_oblivious_sequences_draw_nothing_and_repeat_themselves() -> None:
    for name in LOSSES:
        losses, rng = make_losses(name, SCENARIOS), np.random.default_rng(3)
        first = [losses.begin(rng).loss(episode).tobytes() for episode in range(1, 3000, 7)]
        again = [losses.begin(rng).loss(episode).tobytes() for episode in range(1, 3000, 7)]
        assert first == again
        assert rng.random() == np.random.default_rng(3).random()


def test_scenarios_are_copied() -> None:
    table = SCENARIOS.copy()
    losses = Fixed(table)
    table[:] = 9.0
    np.testing.assert_array_equal(losses.loss(1), SCENARIOS[0])


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_every_sequence_has_the_name_it_is_asked_for_by_and_a_summary(name: str) -> None:
    losses = make_losses(name, SCENARIOS)
    assert isinstance(losses, Losses)
    assert losses.name == name
    assert (LOSSES[name].__doc__ or "").strip().partition("\n")[0].endswith(".")


def test_options_go_with_the_name() -> None:
    losses = make_losses({"name": "switching", "period": 3}, SCENARIOS)
    assert isinstance(losses, Switching)
    assert losses.period == 3
    assert repr(losses) == "Switching(3 scenarios, period=3)"


def test_a_sequence_of_ones_own_is_taken_as_it_is() -> None:
    own = Drifting(SCENARIOS, period=5)
    assert make_losses(own, np.zeros((1, 3))) is own


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ("swiching", "no loss sequence 'swiching'; did you mean 'switching'"),
        ("", "drifting, fixed, switching"),
        ({"period": 3}, "no loss sequence None"),
        ({"name": ["fixed"]}, "no loss sequence"),
        ({"name": "switching", "perod": 3}, "'switching' has no option 'perod'; did you mean 'period'"),
        ({"name": "fixed", "period": 3}, "known: none"),
        ({"name": "switching", "period": 0}, "period is 0; it must be a whole number of at least 1"),
        ({"name": "drifting", "period": 2.5}, "period is 2.5"),
        ({"name": "drifting", "period": True}, "period is True"),
        (17, "losses is 17; expected a name"),
        (Switching, "expected a name"),
    ],
)
def test_wrong_choices_are_refused_in_words(choice: str | Mapping[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        make_losses(choice, SCENARIOS)


@pytest.mark.parametrize(
    ("scenarios", "words"),
    [
        ([0.0, 1.0], r"scenarios has shape \(2,\)"),
        (np.zeros((0, 3)), r"scenarios has shape \(0, 3\)"),
        ([[0.0, 0.0], [0.0, 1.5]], "scenario 1 is 1.5 at tuple 1"),
        ([[-1.0000001]], "scenario 0 is -1.0000001 at tuple 0"),
        ([[np.nan]], "scenario 0 is nan at tuple 0"),
        ([[0.0, np.inf]], "scenario 0 is inf at tuple 1"),
    ],
)
def test_wrong_scenarios_are_refused_with_their_place(scenarios: Any, words: str) -> None:
    choices: list[LossChoice] = ["fixed", "switching", "drifting"]
    for choice in choices:
        with pytest.raises(InvalidInputError, match=words):
            make_losses(choice, scenarios)
