"""ucpd-bandit-0.2: steps by hand, estimates in exact expectation, bounds that hold where it looks; it learns."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from tests.conftest import pair_of_tuple, random_mdp
from tests.trajectories import trajectories
from tests.twins import occupancy
from tightrope import BanditEpisode, InvalidInputError, LayeredSpace, load, make, make_learner, run
from tightrope.checks.worlds import ordinary_world
from tightrope.learners.parts import estimated, published_exploration
from tightrope.learners.ucpd_bandit_0_2 import UCPDBandit02
from tightrope.storage.checkpoints import fingerprint

TWO_ARMS = LayeredSpace.dense([1, 1], 2)


def pulled(arm: int, loss: float, *uses: float) -> BanditEpisode:
    return BanditEpisode([0, 1], [arm], [loss], [[use] for use in uses])


def test_two_episodes_by_hand() -> None:
    """Two arms, one budget of 0.3: every line of the docstring in plain numbers."""
    learner = UCPDBandit02(TWO_ARMS, [0.3])
    learner.observe(pulled(0, 0.2, 0.5))
    gamma = np.sqrt(np.log(4 / 0.01) / 4)  # L = 1, |S| = |A| = 2
    delta = 1.2 / (0.5 + gamma)  # nothing was believed but −1
    S = 0.5 * delta**2
    eta = 1 / np.sqrt(4 + S / 25)
    p = 1 / (1 + np.exp(eta * delta))  # one use is known, so that no price tells the arms apart
    np.testing.assert_allclose(learner.policy.probabilities, [p, 1 - p], atol=1e-6)
    np.testing.assert_allclose(learner.state.integrals, 6 * 0.2)  # 3 F / L of what is over budget

    theta = learner.state.theta.copy()
    learner.observe(pulled(1, -0.4, 0.1))
    delta = 0.6 / (1 - p + gamma / np.sqrt(2))
    S += theta[1] * delta**2
    eta = 1 / np.sqrt(4 + S / 25)
    aim = 0.3 - 0.5 * np.sqrt(0.4**2 / 2 / 1 / 2)  # half a standard error below
    over = p - (aim - 0.1) / 0.4  # uses 0.5 and 0.1: 1 and 0 in spans
    A, b = p * (1 - p) + 1e-5, p * (1 - p) * 1.2  # 0.2 is believed of arm 0, −1 of arm 1
    Q = max(1.2 + 6 / np.sqrt(2) * over, 0.0)
    w = max(Q + (0.3 * over / eta - b) / A, 0.0)
    # no lower bound is above −1 after one visit: a tenth of the way down from 0.5 is 0.15, from 0.1 it is 0.11
    cost = np.array([0.2, delta - 1]) + w * np.array([1 - 0.15 / 0.4, -0.11 / 0.4])
    mixed = (1 - 1 / 12) * theta + 1 / 12 * 0.5
    expected = mixed * np.exp(-eta * cost)
    np.testing.assert_allclose(learner.policy.probabilities, expected / expected.sum(), atol=1e-6)
    np.testing.assert_allclose(
        [*learner.state.integrals, *learner.multipliers, learner.state.changes], [Q, w / 0.4, S], rtol=1e-6
    )


def test_what_is_believed_of_losses() -> None:
    """Nothing at first, then the mean; nothing again when all visits are of the earlier half."""
    learner = UCPDBandit02(TWO_ARMS, [])
    assert learner.believed_losses().tolist() == [-1, -1]
    for loss in (0.5, 0.0):
        learner.observe(pulled(0, loss))
    assert learner.believed_losses().tolist() == [0.25, -1]
    learner.observe(pulled(1, 0.75))
    assert learner.believed_losses().tolist() == [0.25, 0.75]
    learner.observe(pulled(1, 0.25))
    assert learner.believed_losses().tolist() == [-1, 0.5]


def test_a_loss_that_falls_is_found_out() -> None:
    """The arm that was bad for 100 episodes, and is the better one from then on."""
    learner, rng = UCPDBandit02(TWO_ARMS, []), np.random.default_rng(1)
    for t in range(1, 1001):
        arm = int(rng.random() < learner.policy.probabilities[1])
        learner.observe(pulled(arm, 0.0 if arm == 0 else 1.0 if t <= 100 else -1.0))
        if t == 100:
            assert learner.policy.probabilities[0] > 0.9
    assert learner.policy.probabilities[1] > 0.9


def test_the_mean_of_an_estimate_is_between_belief_and_loss() -> None:
    """E f̂ = m + (f − m) q / (u + γ), exactly, over all paths: below f where f is above what is believed."""
    rng = np.random.default_rng(3)
    mdp = random_mdp(rng, LayeredSpace.dense([1, 3, 2, 1], 2))
    space, pair = mdp.space, pair_of_tuple(mdp.space)
    learner, f = UCPDBandit02(space, []), space.expand_to_tuples(rng.uniform(-1, 1, space.n_pairs))
    for _ in range(30):
        paths = [path for path, chance in trajectories(mdp, learner.policy) for _ in range(round(100 * chance))]
        path = paths[rng.integers(len(paths))]
        states = [*space.tuples[path, 0], space.n_states - 1]
        learner.observe(BanditEpisode(states, space.tuples[path, 1], f[path], np.zeros((0, 3))))
    m, gamma = learner.believed_losses(), published_exploration(space, 0.01, 31)
    mean, u = m.copy(), np.zeros(space.n_tuples)
    for path, chance in trajectories(mdp, learner.policy):
        delta = estimated(learner.policy, learner.confidence_set, path, f[path] - m[path], gamma)
        ones = estimated(learner.policy, learner.confidence_set, path, np.ones(3), 0.0)
        mean, u = mean + chance * delta, np.where(ones > 0, 1 / np.where(ones > 0, ones, 1), u)
    q = np.bincount(pair, occupancy(space, learner.policy.probabilities, mdp.transitions)[1])[pair]
    np.testing.assert_allclose(mean, m + (f - m) * q / (u + gamma), atol=1e-9)
    assert (u >= q - 1e-9).all()
    assert (mean <= np.maximum(m, f) + 1e-9).all()


@pytest.mark.parametrize(("scale", "holds"), [(1.0, True), (0.02, False)])
def test_bounds_on_constraints_hold_while_it_chooses_where_to_look(scale: float, holds: bool) -> None:
    """The share of plays in which a bound is ever above the mean, at a level of 0.3; with smaller radii it is above."""
    plays, level = 15, 0.3
    problem = make("random", layer_sizes=[1, 2, 1], n_actions=2, noise="bernoulli", losses="fixed")
    space, mean, wrong = problem.space, problem.constraints.mean, 0
    true = np.bincount(space.pair_of_tuple, mean[0] * problem.mdp.transitions)
    for seed in range(plays):
        learner = UCPDBandit02(space, problem.budgets, level=level, radius_scale=scale, optimism=1.0, block=1)
        ever = False

        def watched(counts: Any, cost_sum: Any, spread: Any, learner: UCPDBandit02 = learner) -> Any:
            nonlocal ever
            of = UCPDBandit02._constraints(learner, counts, cost_sum, spread)
            lower = (of[0] - of[1])[0, space.csr.pair_ptr[:-1]]
            ever |= bool((lower > true + 1e-9).any())
            return of

        learner._constraints = watched  # type: ignore[method-assign]
        run(problem, learner, episodes=80, seed=seed, records=1, regret="never")
        wrong += ever
    assert (wrong <= binom.ppf(1 - 1e-6, plays, level)) == holds


def test_nothing_is_planned_and_intervals_are_needed() -> None:
    learner = UCPDBandit02(TWO_ARMS, [0.3], episodes=7)
    assert "episodes" not in learner.settings
    assert learner.settings["optimism"] == 0.1
    with pytest.raises(InvalidInputError, match=r"confidence is 'kl', which makes a KLBall.*'kl-box'"):
        UCPDBandit02(TWO_ARMS, [0.3], confidence="kl")
    UCPDBandit02(TWO_ARMS, [0.3], confidence="kl-l1-box")


def test_ties_pool_moves_but_not_costs() -> None:
    problem = make("media-streaming")
    learner = make_learner("ucpd-bandit-0.2", problem)
    run(problem, learner, episodes=20, seed=1, records=1, regret="never")
    assert isinstance(learner, UCPDBandit02)
    own, pooled = learner.state.counts.totals()[0], learner.state.counts.laws_so_far[0]
    assert (pooled >= own).all()
    assert (learner.state.cost_sum[0] <= own).all()
    assert ((learner.state.cost_sum[0] > 0) <= (own > 0)).all()
    assert (pooled[own == 0] > 0).any()


def test_it_learns_within_its_budget() -> None:
    """media-streaming under `chaser`: less regret than the uniform policy, and hardly over budget."""
    problem = make("media-streaming", losses="chaser")
    ours = run(problem, "ucpd-bandit-0.2", episodes=1500, seed=3, regret="last", records=1)
    uniform = run(problem, "uniform", episodes=1500, seed=3, regret="last", records=1)
    assert ours["regret"][-1] < 0.75 * uniform["regret"][-1]
    assert ours["violation"][-1] < 0.05 * 1500


def test_loaded_inside_a_block_it_continues_the_same() -> None:
    """After 250 episodes blocks are longer than one, and epochs begin inside them."""
    at = ordinary_world()
    learner, again = (make_learner("ucpd-bandit-0.2", at) for _ in range(2))
    inside = 0
    for t in range(1, 321):
        episode = at.play(learner.policy, "bandit", t, np.random.default_rng([9, t]))
        before = again.epoch
        learner.observe(episode)
        again.observe(episode)
        inside += again.waiting > 0 and again.epoch > before  # type: ignore[attr-defined]
        if t > 250:
            again = load(fingerprint(again))
    assert inside > 0, "no epoch began inside a block"
    assert fingerprint(learner) == fingerprint(again)
