"""The points of reference, and drift plus penalty."""

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest

from tests.conftest import FloatArray
from tests.learners.problems import Chaser, Coins, Turns, problem_with
from tests.learners.test_euclidean import flow
from tightrope import (
    UCPD,
    ConvergenceError,
    InvalidInputError,
    KnownModel,
    LayeredMDP,
    LayeredSpace,
    Policy,
    Problem,
    make_learner,
    run,
    solve_cmdp,
)
from tightrope.checks.worlds import WORLDS, drive
from tightrope.learners import LEARNERS
from tightrope.learners.drift_plus_penalty import DriftPlusPenalty, EuclideanProjector
from tightrope.learners.follow_the_leader import FollowTheLeader
from tightrope.learners.needs import NEEDS, hindsight_policy, most_slack_policy
from tightrope.planning.hindsight import slater_slack
from tightrope.problems.constraints import Deterministic
from tightrope.streams import streams


def test_uniform_plays_uniformly() -> None:
    problem = problem_with(1)
    learner = make_learner("uniform", problem, episodes=5)
    np.testing.assert_array_equal(learner.policy.probabilities, Policy.uniform(problem.space).probabilities)


@pytest.mark.parametrize("n_constraints", [1, 3])
def test_the_safe_baseline_has_all_the_slack_there_is(n_constraints: int) -> None:
    problem = problem_with(n_constraints)
    g, c = problem.constraints.mean, problem.budgets
    policy = make_learner("safe-baseline", problem, episodes=5).policy
    slack = (c - g @ problem.mdp.occupancy(policy)).min()
    assert slack == pytest.approx(slater_slack(problem.mdp, g, c), abs=1e-8)
    assert slack > 0
    assert run(problem, "safe-baseline", episodes=20)["strong_violation"][-1] == 0
    np.testing.assert_allclose(NEEDS["safe_usage"].answer(problem, 5, 0), g @ problem.mdp.occupancy(policy), atol=1e-8)


def test_the_most_slack_policy_of_budgets_that_cannot_be_met() -> None:
    problem = problem_with(2)
    g, c = problem.constraints.mean, problem.budgets - 1.0
    policy = most_slack_policy(problem.mdp, g, c)
    slack = slater_slack(problem.mdp, g, c)
    assert slack < 0
    assert (c - g @ problem.mdp.occupancy(policy)).min() == pytest.approx(slack, abs=1e-8)


@pytest.mark.parametrize("losses", ["turns", "coins"])
def test_hindsight_has_no_regret_at_the_end(losses: str) -> None:
    rng = np.random.default_rng(2)
    scenarios = rng.uniform(-1, 1, (2, 30))
    problem = problem_with(2, losses=Turns(scenarios, 7) if losses == "turns" else Coins(scenarios))
    for seed in (0, 1):
        history = run(problem, "hindsight", episodes=50, seed=seed)
        assert history["regret"][-1] == pytest.approx(0, abs=1e-6)
        assert history["violation"][-1] <= 1e-6


def test_hindsight_rehearses_with_the_adversary_s_own_stream() -> None:
    problem = problem_with(1, losses=Coins(np.random.default_rng(2).uniform(-1, 1, (2, 30))))
    adversary = problem.losses.begin(streams(3).adversary)
    total = sum((adversary.loss(t) for t in range(1, 8)), np.zeros(30))
    best = solve_cmdp(problem.mdp, total, problem.constraints.mean, problem.budgets)
    played = hindsight_policy(problem, 7, 3)
    assert total @ problem.mdp.occupancy(played) == pytest.approx(best.value, abs=1e-6)


def test_hindsight_is_for_every_episode_the_last_one_too() -> None:
    """The first action loses 0.1 less in episodes 1 and 3, the second 0.5 less in episodes 2 and 4."""
    space = LayeredSpace.dense([1, 1], 2)
    problem = Problem(
        name="turns",
        mdp=LayeredMDP.even(space),
        losses=Turns([[0.0, 0.1], [0.5, 0.0]]),
        constraints=Deterministic(np.zeros((0, 2))),
        budgets=np.zeros(0),
        constraint_names=(),
    )
    assert [hindsight_policy(problem, T, 0).probabilities.tolist() for T in (1, 2)] == [[1, 0], [0, 1]]


def test_hindsight_against_an_adversary_that_answers() -> None:
    """Whatever policy it prefers costs more: no fixed policy may be the best against itself, but none is infeasible."""
    space = LayeredSpace.dense([1, 3, 3, 1], 2)
    problem = problem_with(1, losses=Chaser(space))
    history = run(problem, "hindsight", episodes=30)
    others = [run(problem, name, episodes=30)["regret"][-1] for name in ("safe-baseline", "uniform")]
    assert history["strong_violation"][-1] <= 1e-6
    assert 0 <= history["regret"][-1] <= max(others)


def test_ucpd_known_is_ucpd_with_a_point_for_a_set() -> None:
    at = WORLDS["a_sparse_space"]()
    known = make_learner("ucpd-known", at, episodes=20)
    point = UCPD(at.space, at.budgets, episodes=20, confidence=KnownModel(transitions=at.mdp.transitions))
    assert isinstance(known, UCPD)
    point.state = replace(point.state, theta=known.state.theta)  # a set does not tell where to start
    for (p, Q, epoch), (p_, Q_, _) in zip(drive(at, known), drive(at, point), strict=True):
        np.testing.assert_array_equal(p, p_)
        np.testing.assert_array_equal(Q, Q_)
        assert epoch == 1
    assert set(known.settings) == {"learner", "episodes", "alpha", "V", "mixing", "charge", "proportional", "draws"}


def test_known_dynamics_are_charged_for_what_is_used() -> None:
    """Counts say nothing that the model does not: Q ← max{Q + <g, θ̄> − c, 0}, θ̄ the measure that was played."""
    at = WORLDS["a_sparse_space"]()
    budgets = at.budgets - 0.3
    learner = LEARNERS["ucpd-known"](at.space, budgets, episodes=20, model=at.mdp, charge="played")  # type: ignore[call-arg]
    Q = np.zeros(len(budgets))
    for t in range(1, 21):
        played = at.mdp.occupancy(learner.policy)
        episode = at.play(learner.policy, "full", t, np.random.default_rng([3, t]))
        learner.observe(episode)
        Q = np.maximum(Q + np.asarray(episode.constraints) @ played - budgets, 0)
        np.testing.assert_allclose(learner.multipliers, Q, atol=1e-9)
    assert Q.max() > 0


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
def test_drift_plus_penalty_against_a_conic_solver() -> None:
    """The three published lines for ten episodes, both budgets with a price."""
    at = WORLDS["a_dense_space_with_two_constraints"]()
    learner = DriftPlusPenalty(at.space, at.budgets - 0.3, episodes=10, model=at.mdp, alpha=3.0, V=2.0)
    A, b = flow(at.mdp)
    x, Q = learner.state.x.copy(), np.zeros(2)
    np.testing.assert_allclose(x, at.space.sum_over_successors(at.mdp.occupancy(Policy.uniform(at.space))))
    for t in range(1, 11):
        episode = at.play(learner.policy, "full", t, np.random.default_rng([1, t]))
        learner.observe(episode)
        f = at.space.sum_over_successors(episode.loss * at.mdp.transitions)
        g = at.space.sum_over_successors(episode.constraints * at.mdp.transitions)
        v = cp.Variable(at.space.n_pairs, nonneg=True)
        objective = (2.0 * f + Q @ g) @ v + 3.0 * cp.sum_squares(v - x)
        problem = cp.Problem(cp.Minimize(objective), [A @ v == b])
        problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
        x = np.array(v.value)
        Q = np.maximum(Q + g @ x - learner.budgets, 0)
        np.testing.assert_allclose(learner.state.x, x, atol=1e-6)
        np.testing.assert_allclose(learner.multipliers, Q, atol=1e-5)
        np.testing.assert_allclose(at.mdp.occupancy(learner.policy), at.mdp.transitions * np.repeat(
            learner.state.x, at.space.successors_per_pair), atol=1e-8)  # fmt: skip
    assert Q.min() > 0.1
    assert (x < 1e-9).any()


def test_drift_plus_penalty_refuses_weights_that_are_not_positive() -> None:
    with pytest.raises(InvalidInputError, match="alpha is 0"):
        make_learner("drift-plus-penalty", problem_with(1), episodes=400, alpha=0.0)
    with pytest.raises(InvalidInputError, match="V is -1"):
        make_learner("drift-plus-penalty", problem_with(1), episodes=400, V=-1.0)


def test_drift_plus_penalty_is_unchanged_when_the_projection_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    at = WORLDS["a_sparse_space"]()
    learner, twin = (make_learner("drift-plus-penalty", at, episodes=10) for _ in range(2))
    drive(at, learner, last=3)
    drive(at, twin, last=3)

    def fail(*args: object) -> None:
        raise ConvergenceError("not this time")

    with monkeypatch.context() as patch:
        patch.setattr(EuclideanProjector, "solve", fail)
        with pytest.raises(ConvergenceError):
            drive(at, learner, first=4)
    for (p, Q, _), (p_, Q_, _) in zip(drive(at, learner, first=4), drive(at, twin, first=4), strict=True):
        np.testing.assert_array_equal(p, p_)
        np.testing.assert_array_equal(Q, Q_)


@pytest.mark.parametrize("name", ["ucpd", "ucpd-known", "drift-plus-penalty"])
def test_regret_and_violation_per_episode_fall(name: str) -> None:
    """On a problem where the budget is in the way of the loss: action 0 is cheap, and uses the budget."""
    space = LayeredSpace.dense([1, 2, 2, 1], 2)
    cheap = space.expand_to_tuples(np.where(space.pairs[:, 1] == 0, -0.6, 0.6))
    problem = problem_with(1, space=space, losses=Turns([cheap, 0.5 * cheap, -0.2 * cheap], period=3))
    use = space.expand_to_tuples((space.pairs[:, 1] == 0).astype(float))[None]
    problem = replace(problem, constraints=Deterministic(use), budgets=np.array([1.2]))
    histories = [run(problem, name, episodes=T) for T in (150, 6000)]
    regret, violation = (
        [max(history[column][-1], 0.0) / history["episode"][-1] for history in histories]
        for column in ("regret", "violation")
    )
    assert sum(regret) + sum(violation) > 0.01
    assert regret[1] + violation[1] < 0.6 * (regret[0] + violation[0])


def test_the_leader_plans_on_averages() -> None:
    at = WORLDS["a_dense_space_with_two_constraints"]()
    learner = FollowTheLeader(at.space, at.budgets, episodes=9, growth=0.0)
    f, g, visits = np.zeros(at.space.n_tuples), np.zeros_like(at.mean), np.zeros(at.space.n_tuples)
    for t in range(1, 10):
        episode = at.play(learner.policy, "full", t, np.random.default_rng([1, t]))
        learner.observe(episode)
        f, g = f + episode.loss, g + episode.constraints
        visits[at.space.path(episode.states, episode.actions)] += 1
        best = solve_cmdp(LayeredMDP.from_occupancy(at.space, visits), f / t, g / t, at.budgets)
        np.testing.assert_array_equal(learner.policy.probabilities, best.policy.probabilities)
        np.testing.assert_array_equal(learner.multipliers, best.multipliers)
    assert learner.epoch > 1


def test_the_leader_comes_nearest_to_budgets_that_look_out_of_reach() -> None:
    at = WORLDS["a_dense_space_with_two_constraints"]()
    learner = FollowTheLeader(at.space, np.zeros(2), episodes=9)
    drive(at, learner, last=1)
    visits = learner.state.counts.totals()[1]
    model = LayeredMDP.from_occupancy(at.space, visits)
    g = learner.state.total_constraints
    used = (g @ model.occupancy(learner.policy)).max()
    assert used == pytest.approx(-slater_slack(model, g, np.zeros(2)), abs=1e-8)
    assert not learner.multipliers.any()


def test_the_leader_plans_more_rarely_as_time_goes_by() -> None:
    at = WORLDS["a_sparse_space"]()
    learner = FollowTheLeader(at.space, at.budgets, episodes=9, growth=0.5)
    planned = set()

    def look(t: int) -> None:
        planned.add(learner.state.planned_at)

    drive(at, learner, last=20, between=look)
    assert sorted(planned) == [0, 1, 2, 3, 5, 8, 12, 18]
    with pytest.raises(InvalidInputError, match="growth is -1"):
        FollowTheLeader(at.space, at.budgets, episodes=9, growth=-1.0)


def test_the_leader_is_fine_with_fixed_losses_and_fooled_by_alternating_ones() -> None:
    """Alternating losses with a small lead for each in turn: the leader is always the one about to lose."""
    space = LayeredSpace.dense([1, 1], 2)
    first, left, right = [0.5, 0.0], [0.0, 1.0], [1.0, 0.0]

    class Fooling(Turns):
        def loss(self, episode: int) -> FloatArray:
            f: FloatArray = self.scenarios[0 if episode == 1 else 1 + episode % 2]
            return f

    fixed = problem_with(0, space=space, losses=Turns([left]))
    fooling = problem_with(0, space=space, losses=Fooling([first, left, right]))
    history = run(fixed, make_learner("follow-the-leader", fixed, episodes=300, growth=0.0), episodes=300)
    assert history["regret"][-1] <= 1
    leader = run(fooling, make_learner("follow-the-leader", fooling, episodes=300, growth=0.0), episodes=300)
    careful = run(fooling, "o-reps", episodes=300)
    assert leader["regret"][-1] > 0.45 * 300
    assert careful["regret"][-1] < 0.1 * 300


def test_learners_are_told_what_they_need_and_nothing_more() -> None:
    problem = problem_with(2)
    for name, learner in LEARNERS.items():
        made = make_learner(name, problem, episodes=6, seed=2)
        assert set(made.parameters) == {"space", "budgets", "episodes", *learner.needs}
    assert NEEDS["model"].answer(problem, 6, 2) is problem.mdp
    assert NEEDS["constraint_means"].answer(problem, 6, 2) is problem.constraints.mean
    assert NEEDS["rng"].answer(problem, 6, 2).random() == streams(2).learner.random()
    assert NEEDS["rng"].answer(problem, 6, 2).random() != streams(3).learner.random()
    with pytest.raises(InvalidInputError, match="no option 'model'"):
        make_learner("o-reps", problem, episodes=6, model=problem.mdp)
