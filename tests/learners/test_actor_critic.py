"""Actor-critic: against a plain twin, by hand, and that it learns."""

import math

import numpy as np
import pytest

from tests.learners.test_optimistic import two_choices
from tightrope import BanditEpisode, InvalidInputError, LayeredSpace, Policy, run
from tightrope.checks.worlds import world
from tightrope.learners.actor_critic import ActorCritic


@pytest.mark.parametrize("trace", [0.0, 0.7, 1.0])
def test_a_run_is_that_of_its_twin(trace: float) -> None:
    """With an eligibility trace that is carried forward along the path, as it is published."""
    at = world(LayeredSpace.dense([1, 2, 3, 1], 3), 2)
    space, H, T = at.space, 3, 60
    learner = ActorCritic(space, at.budgets, episodes=T, trace=trace)
    w = dict.fromkeys(map(tuple, space.pairs.tolist()), 0.0)
    Q = dict(w)
    for t in range(1, T + 1):
        pi = {(s, a): math.exp(w[s, a]) / sum(math.exp(w[s, b]) for b in range(3)) for s, a in w}
        np.testing.assert_allclose(learner.policy.probabilities, [pi[s, a] for s, a in space.pairs.tolist()], rtol=1e-9)
        np.testing.assert_allclose(learner.state.values, list(Q.values()), atol=1e-12)
        episode = at.play(learner.policy, "bandit", t, np.random.default_rng([4, t]))
        learner.observe(episode)
        met = list(zip(episode.states.tolist()[:-1], episode.actions.tolist(), strict=True))
        before, eligible = dict(Q), dict.fromkeys(Q, 0.0)
        for k, pair in enumerate(met):
            eligible = {one: trace * z for one, z in eligible.items()}
            eligible[pair] += 1
            after = before[met[k + 1]] if k + 1 < H else 0.0
            delta = (episode.losses[k] + 1) / 2 + after - before[pair]
            for one, z in eligible.items():
                Q[one] += delta * z / t**0.6
            for b in range(3):
                w[pair[0], b] -= before[pair] / H / t**0.9 * ((b == pair[1]) - pi[pair[0], b])


def test_two_episodes_by_hand() -> None:
    """Losses 0.4 and 0.2 are 0.7 and 0.6 in [0, 1]; γ_1 = β_1 = 1, γ_2 = 0.65975396, β_2 = 0.53588673."""
    space = LayeredSpace.dense([1, 2, 1], 2)
    learner = ActorCritic(space, [], episodes=2)
    learner.observe(BanditEpisode([0, 1, 3], [0, 1], [0.4, 0.2], np.zeros((0, 2))))
    np.testing.assert_allclose(learner.state.values, [1.3, 0, 0, 0.6, 0, 0], atol=1e-15)
    assert not learner.state.preferences.any()  # the critic knew nothing
    learner.observe(BanditEpisode([0, 2, 3], [0, 0], [0.0, -0.6], np.zeros((0, 2))))
    # 0.5 + 0.2 was lost: Q(0,0) = 1.3 + γ_2 (0.7 − 1.3); w(0,·) = ∓ β_2 (1.3/2) / 2
    np.testing.assert_allclose(learner.state.values, [0.90414763, 0, 0, 0.6, 0.13195079, 0])
    np.testing.assert_allclose(learner.state.preferences, [-0.17416319, 0.17416319, 0, 0, 0, 0])
    assert learner.policy.probabilities[0] == pytest.approx(0.41378833)  # 1 / (1 + e^0.34832638)


def test_it_closes_half_of_the_gap_and_refuses_other_policies() -> None:
    problem, T = two_choices(), 4000
    learner = ActorCritic(problem.space, problem.budgets, episodes=T)
    history = run(problem, learner, episodes=T, seed=1, regret="never")
    early = history["loss"][0]  # of the uniform policy
    late = (history["loss"][-1] - history["loss"][-2]) / (history["episode"][-1] - history["episode"][-2])
    assert -1.58 < late < (early - 1.58) / 2  # −1.58 is the best without the budget: more than half way there
    other = Policy(learner.space, [1.0, 0.0, 1.0, 0.0, 1.0, 0.0])
    with pytest.raises(InvalidInputError, match="actor-critic learns only from its own"):
        learner.observe(BanditEpisode([0, 1, 3], [0, 0], [0.4, 0.2], [[0.5, 0.5]], policy=other))
