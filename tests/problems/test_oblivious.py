"""Loss sequences that are fixed in advance: what they charge when."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import FloatArray, rngs
from tightrope.problems.losses import (
    IID,
    Bursts,
    Drifting,
    Fixed,
    Losses,
    RandomWalk,
    Replay,
    SquareWaves,
    Switching,
    Waves,
)

SCENARIOS = np.array([[0.0, 1.0, -1.0], [0.5, -0.5, 1.0], [-1.0, 1.0, 0.25]])


def played(losses: Losses, episodes: int, seed: int = 0) -> FloatArray:
    adversary = losses.begin(np.random.default_rng(seed))
    return np.array([adversary.loss(t) for t in range(1, episodes + 1)])


def which(shown: FloatArray) -> list[int]:
    """The scenario of every episode."""
    found = (shown[:, None, :] == SCENARIOS).all(axis=2)
    assert (found.sum(axis=1) == 1).all()
    return [int(k) for k in found.argmax(axis=1)]


def test_fixed_is_the_first_scenario_in_every_episode(rng: np.random.Generator) -> None:
    adversary = Fixed(SCENARIOS).begin(rng)
    for episode in (1, 2, 1000, 10**9):
        np.testing.assert_array_equal(adversary.loss(episode), SCENARIOS[0])


def test_switching_keeps_each_scenario_for_a_period_and_goes_round() -> None:
    assert which(played(Switching(SCENARIOS, period=2), 8)) == [0, 0, 1, 1, 2, 2, 0, 0]


def test_switching_between_the_first_phases_only() -> None:
    assert which(played(Switching(SCENARIOS, period=2, phases=2), 8)) == [0, 0, 1, 1, 0, 0, 1, 1]
    assert set(which(played(Switching(SCENARIOS, period=2, phases=1), 8))) == {0}


def test_scenarios_are_returned_without_a_copy(rng: np.random.Generator) -> None:
    for losses in (Fixed(SCENARIOS), Switching(SCENARIOS, period=3), Replay(SCENARIOS), IID(SCENARIOS)):
        f = losses.begin(rng).loss(5)
        assert np.shares_memory(f, losses.scenarios)
        assert f.flags.c_contiguous


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
    shown = played(Drifting(SCENARIOS, period=60), 121)
    np.testing.assert_array_equal(shown[0], shown[60])
    np.testing.assert_array_equal(shown[60], shown[120])
    assert np.abs(np.diff(shown, axis=0)).max() <= 2 * np.pi / 60  # |Δf| <= Σ_k |Δw_k| <= 2π / period
    assert np.abs(np.diff(shown, axis=0)).max() > 0.01
    np.testing.assert_allclose(shown[:60].mean(axis=0), SCENARIOS.mean(axis=0), atol=1e-12)


def test_drifting_between_two_meets_each_in_full() -> None:
    losses = Drifting(SCENARIOS[:2], period=10)
    np.testing.assert_allclose(losses.loss(1), SCENARIOS[0], atol=1e-15)
    np.testing.assert_allclose(losses.loss(6), SCENARIOS[1], atol=1e-15)


OPPOSITE = np.array([[1.0, -1.0], [-1.0, 1.0]])


@pytest.mark.parametrize("period", [2.5, 24.0, 96.0])
def test_waves_between_opposite_scenarios_are_plus_and_minus_the_sine(period: float) -> None:
    sine = np.sin(2 * np.pi * np.arange(500) / period)
    np.testing.assert_allclose(played(Waves(OPPOSITE, period=period), 500), np.stack([sine, -sine], axis=1), atol=1e-12)


@given(rngs(), st.integers(2, 5))
def test_waves_follow_the_law_of_every_tuple(rng: np.random.Generator, n_scenarios: int) -> None:
    f, period, phase = rng.uniform(-1, 1, (n_scenarios, 6)), rng.uniform(1, 300, 6), rng.uniform(-1, 1, 6)
    x = np.arange(80)[:, None] / period + phase
    k = np.arange(n_scenarios)[:, None, None]
    weights = (1 + np.sin(2 * np.pi * (x - k / n_scenarios))) / n_scenarios
    shown = played(Waves(f, period=period, phase=phase), 80)
    np.testing.assert_allclose(shown, (weights * f[:, None]).sum(axis=0), atol=1e-12)
    assert (shown <= f.max(axis=0) + 1e-12).all()
    assert (shown >= f.min(axis=0) - 1e-12).all()


@given(rngs(), st.integers(1, 5))
def test_square_waves_give_every_scenario_its_part_of_the_period(rng: np.random.Generator, n_scenarios: int) -> None:
    f, period, phase = rng.uniform(-1, 1, (n_scenarios, 6)), rng.uniform(1, 300, 6), rng.uniform(-1, 1, 6)
    shown = played(SquareWaves(f, period=period, phase=phase), 80)
    for j in range(6):
        for t in range(80):
            turned = (t / period[j] + phase[j]) % 1 * n_scenarios
            near = {int(turned + slip) % n_scenarios for slip in (-1e-9, 0.0, 1e-9)}  # at a jump either will do
            assert shown[t, j] in f[sorted(near), j]


def test_square_waves_of_whole_periods_jump_on_time() -> None:
    assert which(played(SquareWaves(SCENARIOS, period=6), 8)) == [0, 0, 1, 1, 2, 2, 0, 0]
    assert which(played(SquareWaves(SCENARIOS, period=6, phase=0.5), 6)) == [1, 2, 2, 0, 0, 1]
    assert which(played(SquareWaves(SCENARIOS, period=6, phase=-1e-18), 2)) == [2, 0]


def test_waves_of_one_tuple_are_later_than_those_of_another() -> None:
    shown = played(Waves(OPPOSITE, period=[8.0, 8.0], phase=[0.0, 0.25]), 20)
    np.testing.assert_allclose(shown[2:, 0], -shown[:-2, 1], atol=1e-12)


def test_replay_goes_through_its_table_and_starts_again_or_holds() -> None:
    table = SCENARIOS[[2, 0, 1]]
    assert which(played(Replay(SCENARIOS, table=table), 7)) == [2, 0, 1, 2, 0, 1, 2]
    assert which(played(Replay(SCENARIOS, table=table, after="hold"), 7)) == [2, 0, 1, 1, 1, 1, 1]
    assert which(played(Replay(SCENARIOS), 4)) == [0, 1, 2, 0]


def test_sequences_by_rule_draw_nothing_and_answer_for_any_episode() -> None:
    by_rule = (Fixed, Switching, Drifting, Replay, Waves, SquareWaves)
    for losses in (kind(SCENARIOS) for kind in by_rule):
        rng = np.random.default_rng(3)
        adversary = losses.begin(rng)
        forward = [adversary.loss(t).tobytes() for t in range(1, 3000, 7)]
        backward = [adversary.loss(t).tobytes() for t in reversed(range(1, 3000, 7))]
        assert forward == backward[::-1]
        assert rng.random() == np.random.default_rng(3).random()


def test_scenarios_are_copied() -> None:
    table = SCENARIOS.copy()
    losses = Fixed(table)
    table[:] = 9.0
    np.testing.assert_array_equal(losses.loss(1), SCENARIOS[0])


def test_iid_draws_all_scenarios_alike_and_independently() -> None:
    drawn = np.array(which(played(IID(SCENARIOS), 6000)))
    np.testing.assert_allclose(np.bincount(drawn, minlength=3) / 6000, 1 / 3, atol=0.03)
    pairs = np.bincount(3 * drawn[:-1] + drawn[1:], minlength=9) / 5999
    np.testing.assert_allclose(pairs, 1 / 9, atol=0.02)


@given(rngs(), st.integers(1, 5), st.floats(0, 1))
def test_a_random_walk_stays_in_the_hull_and_takes_small_steps(
    rng: np.random.Generator, n_scenarios: int, step: float
) -> None:
    adversary = RandomWalk(np.eye(n_scenarios), step=step).begin(rng)  # the loss is the weights
    weights = np.array([adversary.loss(t) for t in range(1, 40)])
    np.testing.assert_array_equal(weights[0], np.eye(n_scenarios)[0])
    assert (weights >= 0).all()
    np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-12)
    if step == 0:
        assert not np.diff(weights, axis=0).any()


def test_a_random_walk_gets_everywhere_in_time() -> None:
    """Uniform on the sphere: E x_k² = 1/K and Var x_k² = 2 (K−1) / (K² (K+2)), here 1/3 and 4/45."""
    weights = played(RandomWalk(np.eye(3), step=0.3), 40_000)
    np.testing.assert_allclose(weights.mean(axis=0), 1 / 3, atol=0.02)
    np.testing.assert_allclose(weights.var(axis=0), 4 / 45, rtol=0.1)
    slow = played(RandomWalk(np.eye(3), step=0.01), 400)
    assert np.abs(np.diff(slow, axis=0)).max() < 0.1


def test_bursts_last_their_length_and_come_at_their_rate() -> None:
    drawn = np.array(which(played(Bursts(SCENARIOS, rate=0.02, length=10), 30_000)))
    ends = np.flatnonzero(np.diff(drawn, prepend=0, append=0))
    runs = np.diff(ends)[drawn[ends[:-1]] > 0]
    assert set(drawn.tolist()) == {0, 1, 2}
    assert runs.min() == 10  # two bursts may follow each other at once
    assert not (runs % 10).any()
    share = 10 / (10 + 1 / 0.02 - 1)  # a burst of 10, then on average 1/rate − 1 quiet episodes
    assert (drawn > 0).mean() == pytest.approx(share, rel=0.1)
    assert (drawn == 1).sum() == pytest.approx((drawn == 2).sum(), rel=0.2)


def test_bursts_of_rate_zero_and_one() -> None:
    assert set(which(played(Bursts(SCENARIOS, rate=0), 500))) == {0}
    assert set(which(played(Bursts(SCENARIOS, rate=1, length=1), 500))) == {1, 2}


def test_plays_of_one_sequence_do_not_disturb_each_other() -> None:
    for losses in (IID(SCENARIOS), RandomWalk(SCENARIOS, step=0.2), Bursts(SCENARIOS, rate=0.2, length=3)):
        alone = played(losses, 60, seed=1)
        one, other = losses.begin(np.random.default_rng(1)), losses.begin(np.random.default_rng(2))
        beside = []
        for t in range(1, 61):
            beside.append(one.loss(t))
            other.loss(t)
        np.testing.assert_array_equal(beside, alone)
        assert (played(losses, 60, seed=2) != alone).any()
