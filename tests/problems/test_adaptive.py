"""Adversaries that look at what was played: against twins, and against learners that can be reasoned about."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import twins
from tests.conftest import mdps, random_policy, rngs
from tightrope import LayeredMDP, LayeredSpace, Policy
from tightrope.problems.losses import Chaser, LowerBound

FORK = LayeredMDP(LayeredSpace.dense([1, 1], 3), np.ones(3))
FIRST, SECOND, THIRD = (Policy(FORK.space, row) for row in np.eye(3))


@given(mdps(), rngs(), st.floats(0, 1), st.integers(1, 20))
def test_chaser_raises_the_loss_by_the_average_of_what_was_visited(
    mdp: LayeredMDP, rng: np.random.Generator, weight: float, memory: int
) -> None:
    space = mdp.space
    base = rng.uniform(-1, 1, (2, space.n_tuples))
    adversary = Chaser(base, mdp, weight=weight, memory=memory).begin(rng)
    layer = twins.layer_of_state(space)[space.tuples[:, 0]]
    visits = np.zeros(space.n_tuples)  # u, at every tuple of its pair
    for t in range(1, 5):
        raised = np.zeros(space.n_tuples)
        for k in range(space.n_layers):
            here = layer == k
            if visits[here].max() > 0:
                raised[here] = visits[here] / visits[here].max()
        f = adversary.loss(t)
        np.testing.assert_allclose(f, (1 - weight) * base[0] + weight * raised, atol=1e-12)
        assert (np.abs(f) <= 1).all()
        policy = random_policy(rng, space, zeros=0.3)
        adversary.watch(policy)
        theta = mdp.occupancy(policy)
        of_pair = np.array([theta[(space.tuples[:, :2] == row[:2]).all(axis=1)].sum() for row in space.tuples])
        visits = visits + (of_pair - visits) / memory


def test_chaser_raises_losses_of_a_fixed_policy_and_forgets(rng: np.random.Generator) -> None:
    adversary = Chaser(np.zeros((1, 3)), FORK, weight=1.0, memory=10).begin(rng)
    np.testing.assert_array_equal(adversary.loss(1), [0, 0, 0])
    for t in range(1, 30):
        adversary.watch(FIRST)
        np.testing.assert_array_equal(adversary.loss(t + 1), [1, 0, 0])
    for t in range(30, 90):
        adversary.watch(SECOND)
        f = adversary.loss(t + 1)
    assert f[1] == 1.0
    assert f[0] < 0.01


def test_a_play_of_the_chaser_begins_with_a_clean_memory(rng: np.random.Generator) -> None:
    losses = Chaser(np.zeros((1, 3)), FORK)
    losses.begin(rng).watch(FIRST)
    assert not losses.begin(rng).loss(1).any()


def lower_bound_play(policy: Policy, episodes: int, seed: int = 0, first: int = 64) -> tuple[np.ndarray, np.ndarray]:
    """Chances of a loss of 1, and the losses, of every episode against a learner that never moves."""
    adversary = LowerBound(np.zeros((1, 3)), FORK, first=first).begin(np.random.default_rng(seed))
    chances, losses = [], []
    for t in range(1, episodes + 1):
        losses.append(adversary.loss(t))
        chances.append(adversary.chance.copy())
        adversary.watch(policy)
    return np.array(chances), np.array(losses)


def test_lower_bound_has_phases_that_double_and_gaps_that_shrink() -> None:
    chances, _ = lower_bound_play(FIRST, 64 + 128 + 256 + 1)
    changes = np.flatnonzero((np.diff(chances, axis=0) != 0).any(axis=1)) + 1
    assert changes.tolist() == [64, 64 + 128, 64 + 128 + 256]
    for start, n in ((0, 64), (64, 128), (192, 256), (448, 512)):
        gap = 0.5 - chances[start].min()
        assert gap == pytest.approx(np.sqrt(3 / n) / 4)
        assert sorted(chances[start])[1:] == [0.5, 0.5]


def test_lower_bound_never_favours_a_fixed_policy() -> None:
    chances, _ = lower_bound_play(SECOND, 1000)
    assert (chances[64:, 1] == 0.5).all()
    first_choice = {int(lower_bound_play(SECOND, 1, seed)[0][0].argmin()) for seed in range(30)}
    assert first_choice == {0, 1, 2}  # nothing was played yet: a lot decides


def test_lower_bound_tosses_fair_coins_but_for_the_gap() -> None:
    chances, losses = lower_bound_play(FIRST, 3000, first=3000)
    assert set(losses.ravel().tolist()) == {-1.0, 1.0}
    np.testing.assert_allclose((losses == 1).mean(axis=0), chances[0], atol=0.03)
    assert abs(np.corrcoef(losses[:, 0], losses[:, 1])[0, 1]) < 0.06


def test_lower_bound_costs_the_order_of_the_root_of_the_episodes() -> None:
    """Against a fixed policy, the good action of the last phase gains 2 ε n = sqrt(A n) / 2 on average."""
    n = 2048
    gains = []
    for seed in range(40):
        _, losses = lower_bound_play(FIRST, 2 * n - 1, seed, first=1)
        last = losses[n - 1 :]
        gains.append(last[:, 0].sum() - last.sum(axis=0).min())
    assert np.mean(gains) > np.sqrt(3 * n) / 2


@given(mdps(), rngs())
def test_lower_bound_gives_every_state_with_a_choice_one_good_action(mdp: LayeredMDP, rng: np.random.Generator) -> None:
    space = mdp.space
    adversary = LowerBound(np.zeros((1, space.n_tuples)), mdp, first=1).begin(rng)
    played = np.zeros(space.n_pairs)
    for t in range(1, 9):
        f = adversary.loss(t)
        per_pair = space.sum_over_successors(f) / space.successors_per_pair
        np.testing.assert_array_equal(np.abs(per_pair), 1)  # one coin a pair
        if t in (1, 2, 4, 8):
            for s in range(space.n_states - 1):
                pairs = np.flatnonzero(space.pairs[:, 0] == s)
                good = pairs[adversary.chance[pairs] < 0.5]
                assert len(good) == (1 if len(pairs) > 1 else 0)
                assert (played[good] <= played[pairs].min()).all()
        policy = random_policy(rng, space)
        adversary.watch(policy)
        played += policy.probabilities
