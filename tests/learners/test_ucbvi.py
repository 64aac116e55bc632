"""UCBVI: its values are optimistic, with everything known they are exact, and it learns."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.conftest import FloatArray, pair_of_tuple, random_mdp, random_sparse_space
from tests.learners.gap import gap_problem, regret_per_episode
from tests.twins import pair_values, sample_path
from tightrope import BanditEpisode, InvalidInputError, LayeredMDP, LayeredSpace
from tightrope.confidence import Counts
from tightrope.learners.ucbvi import UCBVI
from tightrope.planning.hindsight import best_policy


def play(learner: UCBVI, mdp: LayeredMDP, f: FloatArray, number: int, rng: np.random.Generator) -> None:
    """Episodes with the losses f of tuples in [-1, 1], plus or minus 0.1."""
    for _ in range(number):
        uniforms = rng.random(2 * mdp.space.n_layers)
        states, actions, steps = sample_path(mdp.space, learner.policy.probabilities, mdp.transitions, uniforms)
        losses = np.clip(f[steps] + rng.choice([-0.1, 0.1], len(steps)), -1, 1)
        learner.observe(BanditEpisode(states, actions, losses, np.zeros((0, len(steps)))))


def test_with_the_true_model_and_no_bonus_it_plans_optimally() -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        space = random_sparse_space(rng, [1, 3, 4, 2, 1], 3, 0.6)
        learner = UCBVI(space, [], episodes=10, radius_scale=0.0)
        learner.state.counts.M = rng.integers(1, 30, space.n_tuples)
        learner.state.counts.N = np.bincount(pair_of_tuple(space), learner.state.counts.M).astype(np.int64)
        mdp = LayeredMDP(space, learner.state.counts.M / space.expand_to_tuples(learner.state.counts.N))
        losses = rng.random(space.n_tuples)
        total = learner.state.counts.N * space.sum_over_successors(losses * mdp.transitions)
        values, policy = learner._plan(learner.state.counts, total, np.zeros(space.n_pairs))
        V, Q = pair_values(space, mdp.transitions, losses)
        np.testing.assert_allclose(values, Q, atol=1e-12)
        np.testing.assert_allclose(values[policy.probabilities == 1], V[:-1], atol=1e-12)
        assert V[0] == pytest.approx(best_policy(mdp, losses)[0])


def test_its_values_stay_below_the_true_ones_and_never_fall() -> None:
    rng = np.random.default_rng(1)
    space = LayeredSpace.dense([1, 2, 2, 1], 2)
    mdp, f = random_mdp(rng, space), rng.uniform(-0.9, 0.9, space.n_tuples)
    _, Q = pair_values(space, mdp.transitions, (f + 1) / 2)
    learner = UCBVI(space, [], episodes=3000)
    before = learner.state.values
    for _ in range(30):
        play(learner, mdp, f, 100, rng)
        assert (before <= learner.state.values).all()
        assert (learner.state.values <= Q + 1e-12).all()
        assert (learner.state.values >= 0).all()
        before = learner.state.values
    assert learner.state.values.max() > 0.1  # by now they say something
    assert learner.epoch == 3001


def test_the_bonus_of_an_episode_by_hand() -> None:
    """|S||A|HT = 4·2·2·10 and δ = 800/e⁹ make ι = 9; the pairs of the path were visited once."""
    space = LayeredSpace.dense([1, 2, 1], 2)
    learner = UCBVI(space, [], episodes=10, level=800 / math.e**9, radius_scale=0.001)
    learner.observe(BanditEpisode([0, 1, 3], [0, 1], [0.0, 1.0], np.zeros((0, 2))))
    last = 1 - 0.001 * math.sqrt(4.5)
    first = 0.5 + 0 - 0.001 * (math.sqrt(4.5) + 14 * 2 * 9 / 3 + math.sqrt(8 * 4))  # V = 0: action 0 was not tried
    np.testing.assert_allclose(learner.state.values, [first, 0, 0, last, 0, 0], rtol=1e-12)
    assert learner.policy.probabilities.tolist() == [0, 1, 1, 0, 1, 0]


def published_values(
    space: LayeredSpace, N: np.ndarray, M: np.ndarray, total: FloatArray, T: int, before: FloatArray
) -> tuple[FloatArray, list[float]]:
    """Q of Algorithm 4 by loops (δ = 0.01), from that of the episode before, and what N(s') is held against H² in."""
    H, S, A = space.n_layers, space.n_states, space.n_actions
    iota = math.log(5 * S * A * H * T / 0.01)
    Q, V, rare = before.copy(), [0.0] * S, []
    for s in reversed(range(S - 1)):
        for i in np.flatnonzero(space.pairs[:, 0] == s):
            if N[i] > 0:
                to = [(M[j] / N[i], int(space.tuples[j, 2])) for j in np.flatnonzero(pair_of_tuple(space) == i)]
                mean = sum(p * V[y] for p, y in to)
                b = math.sqrt(iota / (2 * N[i]))
                if space.layer_of(s) < H - 1:
                    visits = {y: N[space.pairs[:, 0] == y].sum() for _, y in to}
                    unsure = sum(p * min(100**2 * H**3 * S**2 * A * iota**2 / visits[y], H**2) for p, y in to)
                    rare += [100**2 * H**3 * S**2 * A * iota**2 / visits[y] for _, y in to]
                    b += math.sqrt(8 * iota * sum(p * (V[y] - mean) ** 2 for p, y in to) / N[i])
                    b += 14 * H * iota / (3 * N[i]) + math.sqrt(8 * unsure / N[i])
                Q[i] = max(Q[i], total[i] / N[i] + mean - b)
        V[s] = min(Q[space.pairs[:, 0] == s])
    return Q, rare


def test_a_run_after_so_many_visits_that_rare_ones_no_longer_matter_everywhere() -> None:
    """Two thousand million episodes have gone before, nearly all by way of state 1."""
    rng, space, T = np.random.default_rng(5), LayeredSpace.dense([1, 2, 1], 2), 60
    learner = UCBVI(space, [], episodes=T)
    counts = Counts(space)
    counts.M[:] = [4000, 1000, 2 * 10**9, 3000, 10**9, 10**9 + 4000, 1500, 2500]
    counts.N[:] = [5000, 2 * 10**9 + 3000, 10**9, 10**9 + 4000, 1500, 2500]
    total = counts.N * np.array([0.3, 0.9, 0.8, 0.7, 0.9, 0.8])
    learner.state = replace(learner.state, counts=counts, total_loss=total.copy())
    N, M, Q = counts.N.copy(), counts.M.copy(), np.zeros(6)
    for t in range(T):
        a, s, b = t % 2, int(rng.integers(1, 3)), int(rng.integers(2))
        losses = rng.uniform(-1, 1, 2)
        learner.observe(BanditEpisode([0, s, 3], [a, b], losses, np.zeros((0, 2))))
        pairs, tuples = [a, 2 * s + b], [2 * a + s - 1, 2 + 2 * s + b]
        N[pairs], M[tuples], total[pairs] = N[pairs] + 1, M[tuples] + 1, total[pairs] + (losses + 1) / 2
        Q, rare = published_values(space, N, M, total, T, Q)
        np.testing.assert_allclose(learner.state.values, Q, rtol=1e-9)
        assert min(rare) < 0.3 < 4 < max(rare)  # H² = 4
    assert (Q > 0).all()


def test_counts_and_losses_are_those_of_the_path() -> None:
    problem = gap_problem("iid")
    space, pair = problem.space, pair_of_tuple(problem.space)
    rng, learner = np.random.default_rng(3), UCBVI(problem.space, [], episodes=50)
    M, total = np.zeros(space.n_tuples), np.zeros(space.n_pairs)
    for _ in range(50):
        states, actions, steps = sample_path(
            space, learner.policy.probabilities, problem.mdp.transitions, rng.random(4)
        )
        losses = rng.uniform(-1, 1, 2)
        learner.observe(BanditEpisode(states, actions, losses, np.zeros((0, 2))))
        M[steps] += 1
        total[pair[steps]] += (losses + 1) / 2
    np.testing.assert_array_equal(learner.state.counts.M, M)
    np.testing.assert_array_equal(learner.state.counts.N, np.bincount(pair, M))
    np.testing.assert_allclose(learner.state.total_loss, total)


def test_regret_per_episode_falls() -> None:
    early, late = (regret_per_episode("ucbvi", "iid", T) for T in (500, 8000))
    assert 0 < late < early / 3


@pytest.mark.parametrize(
    ("option", "value"), [("level", 0.0), ("level", 1.0), ("radius_scale", -0.1), ("radius_scale", np.inf)]
)
def test_bad_parameters_are_named(option: str, value: Any) -> None:
    with pytest.raises(InvalidInputError, match=f"{option} is {value}"):
        UCBVI(LayeredSpace.dense([1, 2, 1], 2), [], episodes=7, **{option: value})


def test_a_failing_planner_leaves_the_learner_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = UCBVI(LayeredSpace.dense([1, 2, 1], 2), [], episodes=7, radius_scale=0.0)
    before = learner.policy
    with monkeypatch.context() as patch:
        patch.setattr("tightrope.learners.ucbvi.deterministic", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            learner.observe(BanditEpisode([0, 1, 3], [0, 0], [0.5, 0.5], np.zeros((0, 2))))
    assert learner.policy is before
    assert (
        learner.observed
        == learner.state.counts.n.sum()
        == learner.state.total_loss.sum()
        == learner.state.values.sum()
        == 0
    )
