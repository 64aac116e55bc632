"""DO-REPS over a whole run against a conic solver, its rates and weights, and that it follows losses that change."""

import math
from dataclasses import replace

import numpy as np
import pytest

from tests.learners.over_pairs import OverPairs
from tests.learners.problems import problem_with
from tightrope import Episode, InvalidInputError, load, make_learner, run
from tightrope.checks.worlds import WORLDS
from tightrope.learners.dynamic_o_reps import DynamicOREPS
from tightrope.storage.checkpoints import fingerprint


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
def test_a_whole_run_over_pairs() -> None:
    """Two bases with rates 0.3 and 0.6, 0.2 of q_1 mixed in, weighed by their losses in all episodes before."""
    at, eta, epsilon, alpha = WORLDS["a_sparse_space"](), (0.3, 0.6), 20.0, 0.2
    learner = make_learner(
        "dynamic-o-reps", at, episodes=4, learning_rate=0.3, largest_rate=0.6, meta_rate=epsilon, mixing=alpha
    )
    measures, pairs = OverPairs(at.mdp), at.space.pairs.tolist()
    first = measures.largest_entropy()
    q, total = [first, first], [0.0, 0.0]
    for t in range(1, 5):
        weight = [math.exp(-epsilon * loss) for loss in total]
        played = [sum(w * x[i] for w, x in zip(weight, q, strict=True)) / sum(weight) for i in range(len(pairs))]
        for i, (s, a) in enumerate(pairs):
            share = played[i] / sum(played[j] for j in range(len(pairs)) if pairs[j][0] == s)
            assert learner.policy[s][a] == pytest.approx(share, abs=2e-5)
        f = np.random.default_rng([3, t]).uniform(-1, 1, at.space.n_tuples)
        loss = at.space.sum_over_successors((f + 1) / 2 * at.mdp.transitions)
        episode = at.play(learner.policy, "full", t, np.random.default_rng(t))
        learner.observe(Episode(episode.states, episode.actions, f, episode.constraints))
        total = [before + float(loss @ x) for before, x in zip(total, q, strict=True)]
        q = [measures.nearest((1 - alpha) * x + alpha * first, rate * loss) for rate, x in zip(eta, q, strict=True)]
    assert abs(total[0] - total[1]) > 0.01


def test_one_base_is_o_reps() -> None:
    """Losses are half as wide as f: twice the rate."""
    at = WORLDS["a_sparse_space"]()
    one = make_learner("dynamic-o-reps", at, episodes=30, learning_rate=0.4, largest_rate=0.4, mixing=0)
    other = make_learner("o-reps", at, episodes=30, learning_rate=0.2)
    for t in range(1, 31):
        episode = at.play(one.policy, "full", t, np.random.default_rng(t))
        one.observe(episode)
        other.observe(episode)
        np.testing.assert_allclose(one.policy.probabilities, other.policy.probabilities, atol=1e-7)


def test_rates_and_weights_by_hand() -> None:
    """Rates double up to the first that is not below the largest; losses 3, 4 and 3 + log 2 weigh 1, 1/e, ½."""
    at = WORLDS["one_step"]()
    made = (make_learner("dynamic-o-reps", at, episodes=9, learning_rate=0.5, largest_rate=x) for x in (0.1, 2, 2.01))
    assert [learner.rates.tolist() for learner in made] == [[0.5], [0.5, 1, 2], [0.5, 1, 2, 4]]  # type: ignore[attr-defined]
    learner = DynamicOREPS(at.space, at.budgets, episodes=9, model=at.mdp, meta_rate=1.0)
    weights = learner.weights(np.array([3, 4, 3.6931472]))
    assert weights == pytest.approx([0.53536646, 0.19695031, 0.26768323], rel=1e-7)


def test_it_follows_losses_that_change() -> None:
    """Every 50 episodes the other scenario: it loses less than the best fixed policy, which o-reps does not."""
    problem = problem_with(0, period=50)
    regret = {name: run(problem, name, episodes=400)["regret"][-1] for name in ("o-reps", "dynamic-o-reps")}
    assert regret["dynamic-o-reps"] < 0 < regret["o-reps"]


def test_an_invalid_measure_is_refused() -> None:
    at = WORLDS["one_step"]()
    learner = DynamicOREPS(at.space, at.budgets, episodes=9, model=at.mdp)
    factor = np.ones(len(learner.rates))
    factor[1] = 1.1
    learner.state = replace(learner.state, measures=learner.state.measures * factor[:, None])
    with pytest.raises(InvalidInputError, match=r"measures\[1\] is not an occupancy measure"):
        load(fingerprint(learner))
