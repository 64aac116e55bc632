"""Triple-Q: against a plain twin over several frames, its constants by hand, and that it keeps within its budget."""

import math
from typing import Any

import numpy as np
import pytest

from tests.learners.test_optimistic import two_choices
from tightrope import BanditEpisode, InvalidInputError, LayeredSpace, make_learner, run
from tightrope.checks.worlds import world
from tightrope.learners.triple_q import TripleQ


@pytest.mark.parametrize("tuning", ["published", "code"])
def test_a_run_is_that_of_its_twin(tuning: Any) -> None:
    at, K = world(LayeredSpace.dense([1, 2, 3, 1], 2), 2), 150
    space, H, frame = at.space, 3, 20  # 150^0.6 = 20.2
    learner = TripleQ(space, at.budgets, episodes=K, tuning=tuning, eta=2.5, tightness=0.2)
    pairs = [(int(s), int(a)) for s, a in space.pairs]
    iota, chi = 128 * math.log(math.sqrt(2 * len(pairs)) * K), K**0.2
    tables = [dict.fromkeys(pairs, 3.0) for _ in range(3)]  # Q, C_1, C_2
    N, Z, C_bar, busy = dict.fromkeys(pairs, 0), [0.0, 0.0], [0.0, 0.0], 0
    for k in range(1, K + 1):
        np.testing.assert_allclose(
            learner.state.values, [[table[pair] for pair in pairs] for table in tables], rtol=1e-12
        )
        np.testing.assert_allclose(learner.multipliers, np.array(Z) / 2.5, atol=1e-12)
        assert learner.epoch == 1 + (k - 1) // frame
        chosen = {}
        for s in range(space.n_states - 1):
            total = [sum(w * table[s, a] for w, table in zip((1, Z[0] / 2.5, Z[1] / 2.5), tables, strict=True))
                     for a in (0, 1)]  # fmt: skip
            chosen[s] = int(np.argmax(learner.policy.probabilities[2 * s : 2 * s + 2]))
            assert total[chosen[s]] == pytest.approx(max(total), rel=1e-12)
        episode = at.play(learner.policy, "bandit", k, np.random.default_rng([7, k]))
        before = [dict(table) for table in tables]
        for i in range(2):
            C_bar[i] += before[1 + i][0, chosen[0]]
        for h in range(H):
            s, a, s_next = int(episode.states[h]), int(episode.actions[h]), int(episode.states[h + 1])
            N[s, a] += 1
            t = N[s, a]
            alpha = (chi + 1) / (chi + t)
            for i, met in enumerate((episode.losses[h], *episode.constraints[:, h])):
                bonus = 0.25 * math.sqrt(H**2 * iota * (chi + 1) / (chi + t))
                if tuning == "code":
                    bonus = (0.2 / 32 if i == 0 else 0.01 * 0.2) * math.sqrt(math.log(K) / t)
                after = before[i][s_next, chosen[s_next]] if h < H - 1 else 0.0
                tables[i][s, a] = (1 - alpha) * before[i][s, a] + alpha * ((1 - met) / 2 + after + bonus)
        if k % frame == 0:
            for i in range(2):
                Z[i] = max(0.0, Z[i] + (H - at.budgets[i]) / 2 + 0.2 - C_bar[i] / frame)
            C_bar, N = [0.0, 0.0], dict.fromkeys(pairs, 0)
            for pair in pairs:
                tables[0][pair] += 2 * H**3 * math.sqrt(iota) / 2.5 if tuning == "published" else 3 / 32
                if any(table[pair] >= H for table in tables):
                    for table in tables:
                        table[pair] = 3.0
            busy += max(Z) > 0
        learner.observe(episode)
    assert tuning == "published" or busy >= 4


def test_the_published_constants_by_hand() -> None:
    """K = 1024, 6 pairs, H = 2: χ = η = 4, ι = 128 log(√12 · 1024) = 1046.262, frames of 64.

    ε = 8 √(6 · 2⁵ · ι³) / 4 = 937,868; b_1 = ½ √ι = 16.1730; Q rises by 2 · 8 · √ι / 4 = 129.384.
    The code: η = 0.0032 · 4 · √48 = 0.0886810.
    """
    space = LayeredSpace.dense([1, 2, 1], 2)
    learner = TripleQ(space, [0.5], episodes=1024)
    assert learner.eta == pytest.approx(4.0)
    assert learner.frame == 64
    assert learner.tightness == pytest.approx(937868, rel=1e-5)
    assert learner._lift == pytest.approx(129.384, rel=1e-5)
    assert learner._bonus.ravel().tolist() == pytest.approx([16.1730] * 2, rel=1e-5)
    code = TripleQ(space, [0.5], episodes=1024, tuning="code")
    assert code.eta == pytest.approx(0.0886810, rel=1e-5)
    assert code.tightness == 0.5
    with pytest.raises(InvalidInputError, match="tuning cannot be 'mine'"):
        TripleQ(space, [0.5], episodes=9, tuning="mine")  # type: ignore[arg-type]


def test_the_end_of_a_frame_by_hand() -> None:
    """H = 2: Q rises by 3/32; where Q or C is 2 or more, both are 2. Z = 1 + 0.75 + 0.5 − 3/4."""
    learner = TripleQ(LayeredSpace.dense([1, 2, 1], 2), [0.5], episodes=16, tuning="code")  # frames of 5
    learner.frame = 4
    values = np.array([[1.95, 0.5, 0.1, 1.0, 0.0, 2.0], [0.5, 0.5, 2.5, 1.9, 0.0, 2.0]])
    queues, after = learner._next_frame(np.array([1.0]), values, np.array([3.0]))
    np.testing.assert_allclose(after, [[2, 0.59375, 2, 1.09375, 0.09375, 2], [2, 0.5, 2, 1.9, 0, 2]])
    assert queues.tolist() == [1.5]
    for t in range(1, 5):
        learner.observe(BanditEpisode([0, 1, 3], [0, 0], [0.0, 0.0], [[0.5, 0.5]]))
        state = learner.state
        assert bool(state.earned.any()) == bool(state.visits.any()) == (t < 4)  # both begin at 0 in a new frame


def test_with_the_tuning_of_the_code_it_learns_within_its_budget() -> None:
    problem, K = two_choices(), 2000
    learner = make_learner("triple-q", problem, episodes=K, tuning="code", tightness=0.05)
    history = run(problem, learner, episodes=K, seed=1, regret="last")
    safe = run(problem, "safe-baseline", episodes=K, seed=1, regret="last")
    assert history["regret"][-1] < 0.5 * safe["regret"][-1]
    assert history["violation"][-1] < 0.1 * K
