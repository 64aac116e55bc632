"""Losses by name: how they are asked for, and what is common to all."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from tests.conftest import FloatArray
from tightrope import InvalidInputError, LayeredMDP, LayeredSpace, Policy
from tightrope.problems.losses import LOSSES, Adaptive, Drifting, Losses, Switching, make_losses

SCENARIOS = np.array([[0.0, 1.0, -1.0], [0.5, -0.5, 1.0], [-1.0, 1.0, 0.25]])
MDP = LayeredMDP(LayeredSpace.dense([1, 1], 3), np.ones(3))


def played(losses: Losses, episodes: int, seed: int = 0) -> FloatArray:
    """f^1, f^2, … against a learner that plays each of the three actions in turn."""
    adversary = losses.begin(np.random.default_rng(seed))
    shown = []
    for t in range(1, episodes + 1):
        shown.append(adversary.loss(t).copy())
        adversary.watch(Policy(MDP.space, np.eye(3)[t % 3]))
    return np.array(shown)


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_every_sequence_has_the_name_it_is_asked_for_by_and_a_summary(name: str) -> None:
    losses = make_losses(name, SCENARIOS, MDP)
    assert isinstance(losses, Losses)
    assert losses.name == name
    assert (LOSSES[name].__doc__ or "").strip().partition("\n")[0].endswith(".")
    assert repr(losses).startswith(f"{type(losses).__name__}(3 scenarios")


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_every_sequence_repeats_itself_and_stays_within_one(name: str) -> None:
    losses = make_losses(name, SCENARIOS, MDP)
    shown = played(losses, 300)
    assert (np.abs(shown) <= 1).all()
    assert shown.tobytes() == played(losses, 300).tobytes()


@pytest.mark.parametrize("name", sorted(set(LOSSES) - {"chaser", "lower-bound"}))
def test_one_scenario_is_that_scenario_unless_the_adversary_looks(name: str) -> None:
    shown = played(make_losses(name, SCENARIOS[1:2], MDP), 200)
    np.testing.assert_allclose(shown, np.tile(SCENARIOS[1], (200, 1)), atol=1e-15)


def test_adaptive_losses_need_scenarios_of_the_models_size() -> None:
    adaptive = {name for name, kind in LOSSES.items() if isinstance(kind, type) and issubclass(kind, Adaptive)}
    assert adaptive == {"chaser", "lower-bound"}
    for name in adaptive:
        with pytest.raises(InvalidInputError, match=r"shape \(3, 2\); expected \(n_scenarios, 3\)"):
            make_losses(name, SCENARIOS[:, :2], MDP)


def test_options_go_with_the_name() -> None:
    losses = make_losses({"name": "switching", "period": 3}, SCENARIOS, MDP)
    assert isinstance(losses, Switching)
    assert losses.period == 3
    assert repr(losses) == "Switching(3 scenarios, period=3, phases=3)"


def test_a_sequence_of_ones_own_is_taken_as_it_is() -> None:
    own = Drifting(SCENARIOS, period=5)
    assert make_losses(own, np.zeros((1, 3)), MDP) is own


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ("swiching", "no loss sequence 'swiching'; did you mean 'switching'"),
        ("", "bursts, chaser, drifting, fixed, iid, lower-bound, random-walk, replay, square-waves, switching, waves"),
        ({"period": 3}, "no loss sequence None"),
        ({"name": ["fixed"]}, "no loss sequence"),
        ({"name": "switching", "perod": 3}, "'switching' has no option 'perod'; did you mean 'period'"),
        ({"name": "fixed", "period": 3}, "known: none"),
        ({"name": "switching", "period": 0}, "period is 0; it must be a whole number of at least 1"),
        ({"name": "switching", "phases": 0}, "phases is 0"),
        ({"name": "switching", "phases": 4}, "phases is 4; the problem has 3 scenarios"),
        ({"name": "drifting", "period": 2.5}, "period is 2.5"),
        ({"name": "drifting", "period": True}, "period is True"),
        ({"name": "waves", "period": 0.5}, "period is 0.5; it must be a number from 1 to"),
        ({"name": "waves", "period": [5.0, 5.0]}, r"period has shape \(2,\); expected \(3,\)"),
        ({"name": "square-waves", "period": [5.0, np.inf, 5.0]}, r"period\[1\] is inf"),
        ({"name": "square-waves", "phase": "late"}, "phase is 'late'"),
        ({"name": "random-walk", "step": 2}, "step is 2; it must be a number from 0 to 1"),
        ({"name": "bursts", "rate": -0.1}, "rate is -0.1"),
        ({"name": "bursts", "length": 0}, "length is 0"),
        ({"name": "replay", "after": "stop"}, r"after cannot be 'stop' \(known: cycle, hold\)"),
        ({"name": "replay", "table": [[0.0, 0.0]]}, r"records has shape \(1, 2\); expected \(n_records, 3\)"),
        ({"name": "replay", "table": [[0.0, 2.0, 0.0]]}, "record 0 is 2.0 at tuple 1"),
        ({"name": "chaser", "weight": 1.5}, "weight is 1.5"),
        ({"name": "chaser", "memory": 0}, "memory is 0"),
        ({"name": "lower-bound", "first": 0}, "first is 0"),
        (17, "losses is 17; expected a name"),
        (Switching, "expected a name"),
    ],
)
def test_wrong_choices_are_refused_in_words(choice: str | Mapping[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        make_losses(choice, SCENARIOS, MDP)


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
    for name in LOSSES:
        with pytest.raises(InvalidInputError, match=words):
            make_losses(name, scenarios, MDP)
