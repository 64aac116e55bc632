"""OptCMDP, OptDual-CMDP, OptPrimalDual-CMDP, OPDOP and DOPE: what each must do exactly, and that each learns."""

from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.conftest import FloatArray
from tests.learners.averages import averages, backwards, radii
from tests.learners.problems import Coins, problem_with
from tightrope import (
    BanditEpisode,
    ConvergenceError,
    InvalidInputError,
    LayeredMDP,
    LayeredSpace,
    Policy,
    Problem,
    core,
    make_learner,
    run,
    solve_cmdp,
)
from tightrope.core import sample_path
from tightrope.learners import LearnerBase
from tightrope.learners.base import Seen
from tightrope.learners.dope import DOPE
from tightrope.learners.opdop import OPDOP
from tightrope.learners.opt_cmdp import OptCMDP
from tightrope.learners.opt_dual_cmdp import OptDualCMDP
from tightrope.learners.opt_primal_dual import OptPrimalDual
from tightrope.learners.shared.counting import AveragesState, Radii, estimates
from tightrope.planning.dynamic_programming import Intervals
from tightrope.planning.hindsight import slater_slack
from tightrope.problems.constraints import Deterministic
from tightrope.storage.checkpoints import fingerprint

NAMES = ["opt-cmdp", "opt-dual-cmdp", "opt-primal-dual", "opdop", "dope", "always-safe"]


def two_choices() -> Problem:
    """Two steps; the cheap action uses up the budget, and half of the episodes are dearer than the others.

    Best within the budget: loss −0.184, multiplier 1.956; without it: −1.58, over by 0.9.
    """
    space = LayeredSpace.dense([1, 2, 1], 2)
    f = np.array([-0.8, -0.8, 0.6, 0.6, -0.9, 0.3, -0.3, 0.9])
    noise = np.array([0.2, -0.2, 0.2, -0.2, 0.1, -0.1, 0.1, -0.1])
    return Problem(
        name="two choices",
        mdp=LayeredMDP(space, [0.8, 0.2, 0.2, 0.8, 1, 1, 1, 1]),
        losses=Coins([f + noise, f - noise]),
        constraints=Deterministic([[0.9, 0.9, 0, 0, 0.9, 0.1, 0.9, 0.1]]),
        budgets=np.array([0.9]),
        constraint_names=("use",),
    )


def episodes_of(problem: Problem, policy: Policy, n: int, seed: int = 0) -> list[BanditEpisode]:
    """Return episodes of one policy, which do not depend on the learner."""
    space, rng = problem.space, np.random.default_rng(seed)
    adversary, plays = problem.losses.begin(rng), []
    for t in range(1, n + 1):
        f, g = adversary.loss(t), problem.constraints.sample(rng)
        uniforms = rng.random(2 * space.n_layers)
        states, actions, steps = sample_path(space.native, policy.probabilities, problem.mdp.transitions, uniforms)
        plays.append(BanditEpisode(states, actions, f[steps], g[:, steps]))
    return plays


def mean_loss(problem: Problem) -> FloatArray:
    """Of the scenarios, which are equally likely."""
    assert isinstance(problem.losses, Coins)
    f: FloatArray = problem.losses.scenarios.mean(axis=0)
    return f


def per_pair(mdp: LayeredMDP, values: FloatArray) -> FloatArray:
    return mdp.space.sum_over_successors(values * mdp.transitions)


def tell_the_truth(learner: LearnerBase[AveragesState], problem: Problem, f: FloatArray, visits: int) -> None:
    """As if every pair had been visited so often, and all had come about exactly as expected."""
    mdp, counts = problem.mdp, deepcopy(learner.state.counts)
    counts.N[:], counts.M[:] = visits, np.round(visits * mdp.transitions)
    np.testing.assert_allclose(counts.M, visits * mdp.transitions, atol=1e-9)
    cost_sum = visits * (per_pair(mdp, np.vstack([f, problem.constraints.mean])) + 1) / 2
    learner.state = replace(learner.state, counts=counts, cost_sum=cost_sum)


def count(learner: LearnerBase, play: BanditEpisode) -> None:
    """Observe a play of the uniform policy without planning for the next episode."""
    seen = Seen(*learner._read(play, learner.observed + 1), Policy.uniform(learner.space))
    learner.state = learner.step(learner.state, seen)


def radii_of(learner: Any) -> Radii:
    """The radii that a learner plans with; OPDOP, which has a bonus of its own, has the parameters of them."""
    made = Radii(learner.space, len(learner.budgets), learner.episodes, learner.level, learner.radius_scale)
    assert getattr(learner, "_radii", made) == made
    assert hasattr(learner, "_radii") or isinstance(learner, OPDOP)
    return made


@pytest.mark.parametrize("name", NAMES)
def test_estimates_are_averages_over_the_visits_of_a_pair(name: str) -> None:
    problem = problem_with(2)
    learner: Any = make_learner(name, problem, episodes=50)
    plays = episodes_of(problem, Policy.uniform(problem.space), 20)
    for play in plays:
        learner.observe(play)
    N, M, sums = averages(problem, plays)
    averages_ = estimates(learner.state.counts, learner.state.cost_sum)
    np.testing.assert_array_equal(averages_.visits, N)
    np.testing.assert_array_equal(averages_.N, N)
    np.testing.assert_array_equal(averages_.M, M)
    np.testing.assert_allclose(averages_.costs, sums / np.maximum(N, 1))
    beta_c, beta_p = radii(problem, N, M, K=50)
    np.testing.assert_allclose(radii_of(learner).of_costs(averages_.N), beta_c)
    np.testing.assert_allclose(radii_of(learner).box(averages_).radius, problem.space.sum_over_successors(beta_p))


@pytest.mark.parametrize("name", NAMES)
def test_the_scale_is_a_setting_and_multiplies_every_radius(name: str) -> None:
    problem = problem_with(2)
    learner: Any = make_learner(name, problem, episodes=50, radius_scale=0.25)
    assert learner.settings["radius_scale"] == 0.25
    assert make_learner(name, problem, episodes=50).settings["radius_scale"] == 1.0
    averages_ = estimates(learner.state.counts, learner.state.cost_sum)._replace(
        N=np.full(problem.space.n_pairs, 10**6), M=np.zeros(problem.space.n_tuples, np.int64)
    )
    whole: Any = make_learner(name, problem, episodes=50)
    ours, wholes = radii_of(learner), radii_of(whole)
    np.testing.assert_allclose(ours.of_costs(averages_.N), wholes.of_costs(averages_.N) / 4)
    np.testing.assert_allclose(ours.box(averages_).radius, wholes.box(averages_).radius / 4)


def test_opt_cmdp_with_the_true_model_and_zero_radii_plays_the_lps_answer_at_once() -> None:
    problem = two_choices()
    f = mean_loss(problem)
    expected = solve_cmdp(problem.mdp, f, problem.constraints.mean, problem.budgets)
    learner = OptCMDP(problem.space, problem.budgets, episodes=100, radius_scale=0.0)
    tell_the_truth(learner, problem, f, visits=10)
    theta = problem.mdp.occupancy(learner.policy)
    assert f @ theta == pytest.approx(expected.value, abs=1e-9)
    assert problem.constraints.mean @ theta == pytest.approx(problem.budgets, abs=1e-9)
    np.testing.assert_allclose(learner.policy.probabilities, expected.policy.probabilities, atol=1e-9)
    np.testing.assert_allclose(learner.multipliers, expected.multipliers, atol=1e-9)


def test_opt_cmdp_is_optimistic_while_the_truth_is_among_what_it_allows() -> None:
    for seed in range(5):
        problem = problem_with(2, seed=seed, losses=Coins(np.random.default_rng(seed).uniform(-1, 1, (2, 30))))
        f = mean_loss(problem)
        mean, L = problem.constraints.mean, problem.space.n_layers
        true = solve_cmdp(problem.mdp, f, mean, problem.budgets).value
        learner = OptCMDP(problem.space, problem.budgets, episodes=400)
        for play in episodes_of(problem, Policy.uniform(problem.space), 400, seed):
            count(learner, play)
        averages_, P = estimates(learner.state.counts, learner.state.cost_sum), problem.mdp.transitions
        box, costs = radii_of(learner).box(averages_), (per_pair(problem.mdp, np.vstack([f, mean])) + 1) / 2
        assert (box.lower <= P).all() and (box.upper >= P).all() and (box.lower > 0).any()
        assert (np.abs(averages_.costs - costs) <= radii_of(learner).of_costs(averages_.N)).all()
        answer = learner._plan(averages_)
        assert answer.excess == 0
        assert answer.value <= (true + L) / 2


def test_opt_cmdp_over_the_budgets_whatever_it_does_exceeds_them_least() -> None:
    problem = two_choices()
    learner = OptCMDP(problem.space, [0.05], episodes=100, radius_scale=0.0)  # at least 0.1 is used
    tell_the_truth(learner, problem, np.full(8, 0.5), visits=10)
    used = problem.constraints.mean @ problem.mdp.occupancy(learner.policy)
    assert used == pytest.approx(0.1)
    np.testing.assert_array_equal(learner.multipliers, [0.0])


def test_opdop_steps_as_published() -> None:
    problem, K = problem_with(2), 60
    space, H, scale = problem.space, problem.space.n_layers, 0.02
    learner: Any = make_learner("opdop", problem, episodes=K, radius_scale=scale)
    assert isinstance(learner, OPDOP)
    chi = 2 * H / (slater_slack(problem.mdp, problem.constraints.mean, problem.budgets) / 2)
    assert learner.largest == pytest.approx(chi)
    alpha, theta, least = np.sqrt(np.log(2)) / (H**2 * np.sqrt(K)), 1 / K, (H - problem.budgets) / 2
    beta = H * np.sqrt(3 * np.log(space.n_pairs * K / 0.01))
    plays = episodes_of(problem, Policy.uniform(space), K)
    np.testing.assert_allclose(learner.policy.probabilities, Policy.uniform(space).probabilities)
    V_before, Y, dear = np.zeros(2), np.zeros(2), False
    for k, play in enumerate(plays):
        pi = learner.policy.probabilities
        learner.observe(play)
        Y = np.clip(Y + (least - V_before) / np.sqrt(K), 0, chi)
        np.testing.assert_allclose(learner.multipliers, Y)
        N, M, sums = averages(problem, plays[: k + 1])
        P, bonus = M / space.expand_to_tuples(N + 1), 2 * scale * beta / np.sqrt(N + 1)
        V, Q = zip(*(backwards(space, pi, P, (N - total) / (N + 1) + bonus, 1.0) for total in sums), strict=True)
        V_before = np.array([V[1][0], V[2][0]])
        weights = ((1 - theta) * pi + theta / 2) * np.exp(alpha * (Q[0] + Y @ np.array(Q[1:])))
        states = space.pairs[:, 0]
        np.testing.assert_allclose(learner.policy.probabilities, weights / np.bincount(states, weights)[states])
        dear |= bool((Y > 0).all())
    assert dear and (Q[0] < 1).any()


@pytest.mark.parametrize(("name", "bound"), [("opt-primal-dual", "rho"), ("opdop", "largest")])
def test_prices_are_bounded(name: str, bound: str) -> None:
    learner = make_learner(name, two_choices(), episodes=20, radius_scale=0.0, dual_step=0.2, **{bound: 0.5})  # type: ignore[arg-type]
    prices = []
    for t in range(40):  # every pair in turn, and the budget of 0.9 far exceeded every time
        states, actions = [0, 1 + t % 2, 3], [t // 2 % 2, t // 4 % 2]
        learner.observe(BanditEpisode(states, actions, losses=[0.0, 0.0], constraints=[[1.0, 1.0]]))
        prices.append(learner.multipliers[0])
    assert prices[-1] == 0.5
    assert max(price for price in prices if price < 0.5) > 0


def test_dope_plans_with_pessimistic_constraints_and_an_optimistic_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, K = problem_with(2), 40
    learner: Any = make_learner("dope", problem, episodes=K)
    plays = episodes_of(problem, Policy.uniform(problem.space), 30)
    for play in plays:
        count(learner, play)
    asked: list[Any] = []

    def ask(
        space: LayeredSpace, box: Intervals, loss: FloatArray, constraints: FloatArray, budgets: FloatArray
    ) -> None:
        asked[:] = [box, loss, constraints, budgets]
        raise ConvergenceError("enough")

    monkeypatch.setattr("tightrope.learners.dope.plan", ask)
    with pytest.raises(ConvergenceError):
        learner.offer(learner.state)
    N, M, sums = averages(problem, plays)
    beta_c, beta_p = radii(problem, N, M, K)
    beta_l, beta_bar = np.minimum(beta_c, 1), problem.space.sum_over_successors(beta_p)
    H, gamma = problem.space.n_layers, np.min(problem.budgets - learner.parameters["safe_usage"]) / 2
    means = sums / np.maximum(N, 1)
    np.testing.assert_allclose(asked[2], means[1:] + beta_l + H * beta_bar)
    np.testing.assert_allclose(asked[1], means[0] - beta_l - H / gamma * (H * beta_bar + 2 * beta_l))
    np.testing.assert_allclose(asked[3], (problem.budgets + H) / 2)


def one_step() -> Problem:
    """Three actions: use nothing at a loss, use 0.5 of the budget of 0.8 for nothing, use it all for a gain."""
    space = LayeredSpace.dense([1, 1], 3)
    return Problem(
        name="one step",
        mdp=LayeredMDP(space, [1.0, 1.0, 1.0]),
        losses=Coins([[0.9, 0.3, -0.9], [0.7, -0.3, -0.7]]),
        constraints=Deterministic([[0.0, 0.5, 1.0]]),
        budgets=np.array([0.8]),
        constraint_names=("use",),
    )


def test_dope_with_its_published_radii_leaves_the_safe_policy_and_never_exceeds_a_budget() -> None:
    problem, T = one_step(), 8000
    learner = make_learner("dope", problem, episodes=T)
    assert isinstance(learner, DOPE)
    np.testing.assert_array_equal(learner.policy.probabilities, [1, 0, 0])
    history = run(problem, learner, episodes=T, seed=1)
    assert history["strong_violation"][-1] <= 1e-9 * T
    early = history["episode"] <= 500
    np.testing.assert_allclose(history["loss"][early], 0.8 * history["episode"][early], atol=0.1 * 500)
    assert learner.policy.probabilities[0] < 0.7
    safe = run(problem, "safe-baseline", episodes=T, seed=1)
    assert history["regret"][-1] < 0.8 * safe["regret"][-1]


#: Published radii are made for millions of episodes; these for the few thousand of a test.
SCALES = {
    "opt-cmdp": 0.1, "opt-dual-cmdp": 0.1, "opt-primal-dual": 0.02, "opdop": 0.02, "dope": 0.02, "always-safe": 0.1,
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_regret_and_violation_per_episode_fall_with_their_number(name: str) -> None:
    problem = two_choices()

    def per_episode(T: int) -> tuple[float, float]:
        learner = make_learner(name, problem, episodes=T, radius_scale=SCALES[name])
        history = run(problem, learner, episodes=T, records=1)
        return abs(history["regret"][-1]) / T, history["violation"][-1] / T

    few, many = per_episode(250), per_episode(4000)
    assert many[0] <= 0.5 * few[0]
    assert max(many) <= 0.5 * max(few)
    if name == "dope":
        assert few[1] == many[1] == 0


@pytest.mark.parametrize("name", NAMES)
def test_an_episode_that_cannot_be_worked_off_leaves_no_trace(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = problem_with(2)
    learner = make_learner(name, problem, episodes=20)
    plays = episodes_of(problem, Policy.uniform(problem.space), 6)
    for play in plays[:5]:
        learner.observe(play)
    before, policy = fingerprint(learner), learner.policy.probabilities.copy()

    def fail(*args: Any) -> None:
        raise ConvergenceError("no answer")

    for what in ("plan", "best_response"):
        monkeypatch.setattr(f"{type(learner).__module__}.{what}", fail, raising=False)
    monkeypatch.setattr(core, "mirror_step", fail)
    with pytest.raises(ConvergenceError):
        learner.observe(plays[5])
    assert fingerprint(learner) == before
    np.testing.assert_array_equal(learner.policy.probabilities, policy)
    monkeypatch.undo()
    learner.observe(plays[5])
    assert learner.observed == 6


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("options", [{"level": 0.0}, {"radius_scale": -1.0}])
def test_parameters_out_of_range_are_refused(name: str, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match=next(iter(options))):
        make_learner(name, problem_with(1), episodes=10, **options)


@pytest.mark.parametrize("kind", [OptDualCMDP, OptPrimalDual, OPDOP])
def test_no_slack_is_refused(kind: type[LearnerBase]) -> None:
    space = LayeredSpace.dense([1, 2, 1], 2)
    with pytest.raises(InvalidInputError, match="Slater"):
        kind(space, [0.5], episodes=10, slack=0.0)  # type: ignore[call-arg]
    with pytest.raises(InvalidInputError, match="dual_step"):
        kind(space, [0.5], episodes=10, slack=0.5, dual_step=-1.0)  # type: ignore[call-arg]


def test_a_policy_that_is_not_strictly_safe_is_refused() -> None:
    space = LayeredSpace.dense([1, 2, 1], 2)
    with pytest.raises(InvalidInputError, match="less is needed"):
        DOPE(space, [0.5, 0.5], episodes=10, safe_policy=Policy.uniform(space), safe_usage=[0.1, 0.5])
    other = LayeredSpace.dense([1, 3, 1], 2)
    with pytest.raises(InvalidInputError, match="expected one on LayeredSpace"):
        DOPE(space, [0.5], episodes=10, safe_policy=Policy.uniform(other), safe_usage=[0.1])
