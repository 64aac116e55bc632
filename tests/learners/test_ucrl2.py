"""UCRL2 against its equations, against planning with everything known, and that it learns."""

import math
from typing import Any

import numpy as np
import pytest

from tests.conftest import pair_of_tuple, random_mdp, random_sparse_space
from tests.learners.gap import play_gap, regret_per_episode
from tests.planning.test_extended_values import least_in_ball
from tests.twins import layer_of_state, sample_path
from tightrope import BanditEpisode, InvalidInputError, LayeredMDP, LayeredSpace
from tightrope.learners.ucrl2 import UCRL2
from tightrope.planning.hindsight import best_policy


@pytest.mark.parametrize("scale", [1.0, 0.2])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_whole_run_against_the_equations(sparse: bool, scale: float) -> None:
    rng, delta = np.random.default_rng(6), 0.05
    space = random_sparse_space(rng, [1, 3, 3, 1], 2, 0.5) if sparse else LayeredSpace.dense([1, 2, 3, 1], 2)
    learner = UCRL2(space, [], episodes=30, level=delta, radius_scale=scale)
    mdp, pair, layer = random_mdp(rng, space), pair_of_tuple(space), layer_of_state(space)
    N, M, total = np.zeros(space.n_pairs, int), np.zeros(space.n_tuples, int), np.zeros(space.n_pairs)
    n: dict[int, int] = {}
    plan, epoch, t = None, 1, 1
    for _ in range(30):
        if plan is None:
            V, plan = np.zeros(space.n_states), np.zeros(space.n_pairs)
            log_term = math.log(2 * space.n_states * space.n_actions * t / delta)
            for s in reversed(range(space.n_states - 1)):
                for i in np.flatnonzero(space.pairs[:, 0] == s):
                    v = V[space.tuples[pair == i, 2]]
                    plan[i] = v.min()
                    if N[i] > 0:
                        width = int((layer == layer[s] + 1).sum())
                        eps = scale * math.sqrt(14 * width * log_term / N[i])
                        plan[i] = v.min() if eps >= 2 else least_in_ball(v, M[pair == i] / N[i], eps)
                        plan[i] += max(0.0, total[i] / N[i] - scale * math.sqrt(7 * log_term / (2 * N[i])))
                V[s] = plan[space.pairs[:, 0] == s].min()
        taken = np.flatnonzero(learner.policy.probabilities == 1)
        np.testing.assert_allclose(plan[taken], V[:-1], atol=1e-9)
        assert learner.epoch == epoch

        states, actions, steps = sample_path(space, learner.policy.probabilities, mdp.transitions, rng.random(6))
        losses = rng.uniform(-1, 1, 3)
        learner.observe(BanditEpisode(states, actions, losses, np.zeros((0, 3))))
        for j, loss in zip(steps, losses, strict=True):
            n[pair[j]] = n.get(pair[j], 0) + 1
            M[j] += 1
            total[pair[j]] += (loss + 1) / 2
        t += 3
        if any(count >= max(1, N[i]) for i, count in n.items()):
            N = np.bincount(pair, M, minlength=space.n_pairs).astype(int)
            n, plan, epoch = {}, None, epoch + 1
    assert epoch > 5


def test_what_is_plausible_by_hand() -> None:
    """|S||A| = 8, t = 20 and δ = 320/e⁸ make the logarithm 8: ε = sqrt(112 |S'| / N), ε_ℓ = sqrt(28 / N)."""
    learner = UCRL2(LayeredSpace.dense([1, 2, 1], 2), [], episodes=5, level=320 / math.e**8, radius_scale=0.5)
    N = np.array([224, 1, 0, 28, 112, 700])
    M = np.array([56, 168, 1, 0, 0, 28, 112, 700])
    learner.state.counts.N, learner.state.counts.M = N, M
    ball, least = learner.plausible(learner.state.counts, np.array([112.0, 0.9, 0.0, 14.5, 112.0, 70.0]), 20)
    ball.check(learner.space)
    np.testing.assert_allclose(ball.radius, [0.5, math.sqrt(56), np.inf, 1.0, 0.5, 0.2], rtol=1e-12)
    np.testing.assert_array_equal(ball.center, [0.25, 0.75, 1, 0, 0, 1, 1, 1])
    expected = [0.5 - math.sqrt(1 / 32), 0, 0, 14.5 / 28 - 0.5, 1 - 0.25, 0.1 - 0.1]
    np.testing.assert_allclose(least, expected, rtol=1e-12, atol=1e-15)


def test_the_radii_know_how_many_steps_there_were(monkeypatch: pytest.MonkeyPatch) -> None:
    seen, plausible = [], UCRL2.plausible

    def spy(self: UCRL2, *given: Any) -> Any:
        seen.append(given[-1])
        return plausible(self, *given)

    monkeypatch.setattr(UCRL2, "plausible", spy)
    learner = UCRL2(LayeredSpace.dense([1, 2, 1], 2), [], episodes=9)
    for _ in range(9):
        learner.observe(BanditEpisode([0, 1, 3], [0, 0], [-0.9, -0.9], np.zeros((0, 2))))
    assert seen == [
        1,
        3,
        5,
        9,
        17,
    ]  # before the first step, and when the counts have doubled: after 1, 2, 4, 8 episodes


def test_with_the_true_model_and_no_radius_it_plans_optimally() -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        space = random_sparse_space(rng, [1, 3, 4, 2, 1], 3, 0.6)
        learner = UCRL2(space, [], episodes=10, radius_scale=0.0)
        M = rng.integers(1, 30, space.n_tuples)
        N = np.bincount(pair_of_tuple(space), M).astype(np.int64)
        mdp = LayeredMDP(space, M / space.expand_to_tuples(N))
        losses = rng.random(space.n_tuples)
        learner.state.counts.N, learner.state.counts.M = N, M
        policy = learner._plan(learner.state.counts, N * space.sum_over_successors(losses * mdp.transitions), 1)
        assert mdp.occupancy(policy) @ losses == pytest.approx(best_policy(mdp, losses)[0], abs=1e-12)


def test_a_pair_never_visited_is_tried() -> None:
    """Even without radii: it may lead anywhere at no loss."""
    space = LayeredSpace.dense([1, 2, 1], 2)
    learner = UCRL2(space, [], episodes=10, radius_scale=0.0)
    learner.observe(BanditEpisode([0, 1, 3], [0, 0], [-0.9, -0.9], np.zeros((0, 2))))
    assert learner.policy.probabilities.tolist() == [0, 1, 0, 1, 1, 0]


def test_it_plans_only_when_an_epoch_begins() -> None:
    """One doubling of a pair's count starts one epoch at most: |S||A| log2(8T/|S||A|) of them in all."""
    history = play_gap("ucrl2", "iid", 2000)
    assert 6 <= history["epoch"][-1] <= 6 * math.log2(8 * 2000 / 6)


def test_regret_per_episode_falls() -> None:
    early, late = (regret_per_episode("ucrl2", "iid", T) for T in (500, 8000))
    assert 0 < late < early / 3


@pytest.mark.parametrize(
    ("option", "value"), [("level", 0.0), ("level", 1.0), ("radius_scale", -0.1), ("radius_scale", np.inf)]
)
def test_bad_parameters_are_named(option: str, value: Any) -> None:
    with pytest.raises(InvalidInputError, match=f"{option} is {value}"):
        UCRL2(LayeredSpace.dense([1, 2, 1], 2), [], episodes=7, **{option: value})


def test_a_failing_planner_leaves_the_learner_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = UCRL2(LayeredSpace.dense([1, 2, 1], 2), [], episodes=7)
    before = learner.policy
    with monkeypatch.context() as patch:
        patch.setattr("tightrope.learners.ucrl2.optimistic_policy", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            learner.observe(BanditEpisode([0, 1, 3], [0, 0], [0.5, 0.5], np.zeros((0, 2))))
    assert learner.policy is before
    assert learner.observed == learner.state.counts.n.sum() == learner.state.total_loss.sum() == 0
