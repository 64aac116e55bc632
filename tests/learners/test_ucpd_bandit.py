"""ucpd-bandit: its docstring in plain NumPy, estimates in exact expectation, what it learns; it never fails."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import FloatArray, pair_of_tuple, random_mdp
from tests.learners.test_budgeted import Twin
from tests.learners.test_pricing import BUDGETS, PAIR, SPACE, L, plays, values
from tests.trajectories import trajectories
from tests.twins import model_of, occupancy, policy_of
from tightrope import BanditEpisode, InvalidInputError, LayeredSpace, load, make, make_learner, run
from tightrope.checks.worlds import ordinary_world
from tightrope.learners import parts
from tightrope.learners.base import Seen
from tightrope.learners.parts import estimated, upper_bounds
from tightrope.learners.shared.budgeted import BudgetedStep
from tightrope.learners.ucpd_bandit import UCPDBandit
from tightrope.model import Policy
from tightrope.storage.checkpoints import fingerprint

TWO_ARMS = LayeredSpace.dense([1, 1], 2)
LAYER = np.searchsorted(SPACE.tuples_before[1:], np.arange(SPACE.n_tuples), side="right")


def pulled(arm: int, loss: float, *uses: float) -> BanditEpisode:
    return BanditEpisode([0, 1], [arm], [loss], [[use] for use in uses])


def means(met: list[list[Any]], at_pair: list[list[Any]]) -> FloatArray:
    """ḡ (I, n_tuples) of line d, from the constraints met at each tuple and at each pair."""
    found = np.zeros((2, SPACE.n_tuples))
    for k in range(L):
        seen = [np.mean(met[j], axis=0) for j in np.flatnonzero(k == LAYER) if met[j]]
        for j in np.flatnonzero(k == LAYER):
            at = met[j] or at_pair[PAIR[j]]
            found[:, j] = np.mean(at, axis=0) if at else np.min(seen, axis=0) if seen else 0.0
    return found


def test_ucpd_bandit_is_its_docstring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "BLOCK_GROWTH", 20)  # blocks of 1, 2 and 3 episodes in this run
    learner = UCPDBandit(SPACE, BUDGETS, block=3)
    twin = Twin(learner.rule, learner.budgets, learner.optimism, learner.prudence, None)
    twin.before = np.full(SPACE.n_tuples, -1.0)
    losses: list[list[float]] = [[] for _ in range(SPACE.n_pairs)]
    met: list[list[FloatArray]] = [[] for _ in range(SPACE.n_tuples)]
    at_pair: list[list[FloatArray]] = [[] for _ in range(SPACE.n_pairs)]
    estimates, paths, observed = list[FloatArray](), list[list[int]](), list[FloatArray]()
    mean, compared = means(met, at_pair), 0
    for states, actions, steps, f, g in plays(learner, 60):
        theta, laws = learner.state.theta, (twin.N, twin.M)
        pi = policy_of(SPACE, theta)
        u = upper_bounds(Policy(SPACE, pi), twin.confidence_set(), np.array(steps))
        off = np.array([f[j] - twin.before[j] if losses[PAIR[j]] else 0.0 for j in steps])
        off[twin.before[steps] == -1] = 0.0  # not visited before the block
        delta, eta = np.zeros(SPACE.n_pairs), twin.rate() if twin.F > 0 else 1.0
        delta[PAIR[steps]] = off / (u + 0.1 * eta * np.abs(off))
        learner.observe(BanditEpisode(states, actions, f[steps], g[:, steps]))
        twin.count(steps, g[:, steps])
        estimates.append(twin.before + delta[PAIR])
        paths.append(steps)
        observed.append(g[:, steps])
        for j in steps:
            losses[PAIR[j]].append(f[j])
        if len(paths) < min(3, 1 + twin.t // 20):
            assert learner.state.theta is theta
            continue
        P = (laws[1] + model_of(SPACE, theta)) / (laws[0] + 1)[PAIR]
        excess = np.zeros(2)
        for i in range(2):
            V, Q = values(pi, P, mean[i])
            chance = sum(Q[PAIR[j]] - V[SPACE.tuples[j, 0]] for path in paths for j in path)
            excess[i] = sum(one[i].sum() for one in observed) - chance - len(paths) * BUDGETS[i]
        for path, one in zip(paths, observed, strict=True):
            for k, j in enumerate(path):
                met[j].append(one[:, k])
                at_pair[PAIR[j]].append(one[:, k])
        mean = means(met, at_pair)
        predicted = np.array([np.mean(at) if at else -1.0 for at in losses])[PAIR]
        loss = np.mean(estimates, axis=0)
        expected, prices = twin.step(theta, loss, mean, paths, learner.state.theta, predicted, excess)
        if expected is not None:  # else the targets exclude each other
            np.testing.assert_allclose(learner.state.theta, expected, atol=3e-5)
            np.testing.assert_allclose(learner.multipliers, prices, rtol=1e-3, atol=1e-4)
            compared += 1
        assert learner.state.caution == pytest.approx(twin.kappa)
        np.testing.assert_allclose(learner.state.overspent, twin.V, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(learner.state.gap, twin.G, rtol=1e-6, atol=1e-12)
        estimates, paths, observed = [], [], []
    assert compared > 20 and twin.priced > 5


def test_predictions_are_means_and_first_losses_are_no_surprise() -> None:
    learner = UCPDBandit(TWO_ARMS, [])
    assert learner.state.last_loss.tolist() == [-1, -1]
    learner.observe(pulled(0, 0.5))
    assert learner.state.last_loss.tolist() == [0.5, -1]
    assert learner.state.gap == 0
    assert learner.policy.probabilities[1] > 0.5
    learner.observe(pulled(0, 0.0))
    assert learner.state.last_loss.tolist() == [0.25, -1]
    assert learner.state.gap > 0


def test_a_loss_that_falls_is_found_out() -> None:
    """The arm that was bad for 100 episodes, and is the better one from then on."""
    learner, rng = UCPDBandit(TWO_ARMS, []), np.random.default_rng(1)
    for t in range(1, 1501):
        arm = int(rng.random() < learner.policy.probabilities[1])
        learner.observe(pulled(arm, 0.0 if arm == 0 else 1.0 if t <= 100 else -1.0))
        if t == 100:
            assert learner.policy.probabilities[0] > 0.9
    assert learner.policy.probabilities[1] > 0.9


def test_the_mean_of_an_estimate_is_between_prediction_and_loss() -> None:
    """E f̂ = f'' + (f − f'') q / (u + γ), exactly, over all paths."""
    rng = np.random.default_rng(3)
    mdp = random_mdp(rng, LayeredSpace.dense([1, 3, 2, 1], 2))
    space, pair = mdp.space, pair_of_tuple(mdp.space)
    learner, f = UCPDBandit(space, []), space.expand_to_tuples(rng.uniform(-1, 1, space.n_pairs))
    for _ in range(30):
        paths = [path for path, chance in trajectories(mdp, learner.policy) for _ in range(round(100 * chance))]
        path = paths[rng.integers(len(paths))]
        states = [*space.tuples[path, 0], space.n_states - 1]
        learner.observe(BanditEpisode(states, space.tuples[path, 1], f[path], np.zeros((0, 3))))
    predicted = rng.uniform(-1, 1, space.n_pairs)[pair]
    gamma = 0.3 * np.abs(f - predicted)
    mean, u = predicted.copy(), np.zeros(space.n_tuples)
    for path, chance in trajectories(mdp, learner.policy):
        off = (f - predicted)[path]
        mean += chance * estimated(learner.policy, learner.confidence_set, path, off, gamma[path])
        ones = estimated(learner.policy, learner.confidence_set, path, np.ones(3), 0.0)
        u = np.where(ones > 0, 1 / np.where(ones > 0, ones, 1), u)
    q = np.bincount(pair, occupancy(space, learner.policy.probabilities, mdp.transitions)[1])[pair]
    np.testing.assert_allclose(mean, predicted + (f - predicted) * q / (u + gamma), atol=1e-9)
    assert (u >= q - 1e-9).all()


def test_the_mean_of_the_excess_is_the_true_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """E excess = <g, θ̄> − c, exactly, over all paths, while most pairs are untried and counts are wrong."""
    rng = np.random.default_rng(4)
    mdp = random_mdp(rng, LayeredSpace.dense([1, 3, 2, 1], 2))
    space, budgets = mdp.space, np.array([0.1, -0.2])
    learner, g = UCPDBandit(space, budgets), rng.uniform(-0.5, 0.5, (2, space.n_tuples))
    excesses = list[FloatArray]()
    take = BudgetedStep.__call__

    def watched(step: BudgetedStep, *args: Any, excess: FloatArray, **named: Any) -> Any:
        excesses.append(excess)
        return take(step, *args, excess=excess, **named)

    monkeypatch.setattr(BudgetedStep, "__call__", watched)
    for t in range(8):
        every = [*trajectories(mdp, learner.policy)]
        mean = np.zeros(2)
        for path, chance in every:
            learner.step(learner.state, Seen(np.array(path), np.zeros(3), g[:, path], learner.policy))
            mean += chance * excesses[-1]
        _, theta = occupancy(space, learner.policy.probabilities, mdp.transitions)
        np.testing.assert_allclose(mean, g @ theta - budgets, atol=1e-12)
        path = every[(5 * t) % len(every)][0]
        states = [*space.tuples[path, 0], space.n_states - 1]
        learner.observe(BanditEpisode(states, space.tuples[path, 1], np.zeros(3), g[:, path]))


def test_nothing_is_planned_and_intervals_are_needed() -> None:
    learner = UCPDBandit(TWO_ARMS, [0.3], episodes=7)
    assert "episodes" not in learner.settings
    with pytest.raises(InvalidInputError, match=r"confidence is 'kl', which makes a KLBall.*'kl-box'"):
        UCPDBandit(TWO_ARMS, [0.3], confidence="kl")
    UCPDBandit(TWO_ARMS, [0.3], confidence="kl-l1-box")


def test_ties_pool_moves_but_not_costs() -> None:
    problem = make("media-streaming")
    learner: Any = make_learner("ucpd-bandit", problem)
    run(problem, learner, episodes=20, seed=1, records=1, regret="never")
    own, pooled = learner.state.counts.totals()[0], learner.state.counts.laws_so_far[0]
    assert (pooled >= own).all() and (pooled[own == 0] > 0).any()
    predicted = learner.state.last_loss[problem.space.csr.pair_ptr[:-1]]
    assert ((predicted > -1) <= (own > 0)).all()


def test_it_learns_within_its_budget() -> None:
    """media-streaming under `chaser`: less regret than the uniform policy, and hardly over budget."""
    problem = make("media-streaming", losses="chaser")
    ours = run(problem, "ucpd-bandit", episodes=1500, seed=3, regret="last", records=1)
    uniform = run(problem, "uniform", episodes=1500, seed=3, regret="last", records=1)
    assert ours["regret"][-1] < 0.6 * uniform["regret"][-1]
    assert ours["violation"][-1] < 0.05 * 1500


@pytest.mark.parametrize(("one_in", "losses"), [(20, "chaser"), (100, "fixed"), (500, "chaser")])
def test_budgets_on_rare_events_hold(one_in: int, losses: str) -> None:
    """100 crashes are allowed, and bold steps would cause 200; their share is known to one in √100, at best."""
    problem = make("rare-crash", probability=1 / one_in, losses=losses)
    episodes = round(100 / float(problem.budgets[0]))
    history = run(problem, "ucpd-bandit", episodes=episodes, seed=2, regret="last", records=1)
    assert history["violation"][-1] <= 2 * np.sqrt(100)


@settings(max_examples=20, deadline=None)
@given(
    st.integers(0, 10**6),
    st.lists(st.sampled_from([1e-12, 1e-6, 1e-3, 0.3]), min_size=1, max_size=3),
    st.sampled_from([-1.0, 0.0, 1e-9, 0.5, 2.0]),
)
def test_no_budget_ends_a_run(seed: int, costs: list[float], share: float) -> None:
    """Costs of any size, met rarely; budgets that nothing meets, that all policies just meet, or that are loose."""
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, LayeredSpace.dense([1, 3, 2, 1], 2))
    space, size = mdp.space, np.array(costs)[:, None]
    g = size * np.where(rng.random((len(costs), space.n_tuples)) < 0.2, rng.random(space.n_tuples), 0.0)
    least = g.mean() if share < 0 else g.max(axis=1)
    learner = UCPDBandit(space, share * least * np.ones(len(costs)))
    for _ in range(40):
        state, path, states = 0, [], [0]
        for _ in range(space.n_layers):
            a = learner.act(state, rng)
            options = np.flatnonzero((space.tuples[:, 0] == state) & (space.tuples[:, 1] == a))
            path.append(int(rng.choice(options, p=mdp.transitions[options])))
            state = int(space.tuples[path[-1], 2])
            states.append(state)
        f = rng.uniform(-1, 1, space.n_layers)
        learner.observe(BanditEpisode(states, space.tuples[path, 1], f, g[:, path]))
    assert np.isfinite(learner.policy.probabilities).all() and np.isfinite(learner.multipliers).all()


def test_loaded_inside_a_block_it_continues_the_same() -> None:
    """After 250 episodes blocks are longer than one, and epochs begin inside them."""
    at = ordinary_world()
    learner, again = (make_learner("ucpd-bandit", at) for _ in range(2))
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
