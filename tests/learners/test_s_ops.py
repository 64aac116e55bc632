"""S-OPS: every episode within all budgets, whatever the model of the set, and regret that falls all the same."""

from typing import Any

import numpy as np
import pytest

from tests.conftest import random_mdp, random_policy
from tightrope import ConvergenceError, InvalidInputError, LayeredMDP, LayeredSpace, Problem, Run, make_learner, run
from tightrope.confidence.sets import bounds_of, worst_use
from tightrope.learners.s_ops import SOPS
from tightrope.problems.constraints import make_constraints
from tightrope.problems.losses import make_losses
from tightrope.projection.priced import PricedProjector


def tempting(losses: str = "fixed") -> Problem:
    """The second action pays and uses, most where it leads to; one budget, which binds."""
    space = LayeredSpace.dense([1, 2, 1], 2)
    mdp = LayeredMDP(space, [0.8, 0.2, 0.3, 0.7, 1, 1, 1, 1])
    f = np.array([0.5, 0.5, -0.5, -0.5, 0.5, -0.5, 0.5, -0.5])
    g = np.array([[0.1, 0.1, 0.4, 0.4, 0.1, 0.5, 0.2, 0.8]])
    return Problem(
        name="tempting",
        mdp=mdp,
        losses=make_losses(losses, np.stack([f, 0.8 * f]), mdp),
        constraints=make_constraints("scaled", g),
        budgets=np.array([0.7]),
        constraint_names=("use",),
    )


def sops(problem: Problem, **options: Any) -> SOPS:
    learner = make_learner("s-ops", problem, episodes=1000, **options)
    assert isinstance(learner, SOPS)
    return learner


def test_no_episode_of_any_run_is_over_a_budget_and_without_pessimism_some_are() -> None:
    """The budget binds: nothing but the sets holds it."""
    problem, T = tempting(), 100

    def over(seed: int, **options: Any) -> float:
        history = run(problem, sops(problem, block=4, **options), episodes=T, seed=seed, records=1)
        return float(history["strong_violation"][-1])

    assert [over(seed) for seed in range(24)] == [0.0] * 24
    assert sum(over(seed, radius_scale=0.0) > 1e-6 for seed in range(6)) >= 4


def test_where_no_step_can_be_found_theta_stays_and_budgets_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every third projection gives up."""
    problem, solve, asked = tempting(), PricedProjector.solve, [0, 0]

    def gives_up(self: PricedProjector, *given: Any) -> None:
        asked[0] += 1
        if asked[0] % 3 == 0:
            asked[1] += 1
            raise ConvergenceError("enough")
        solve(self, *given)

    monkeypatch.setattr(PricedProjector, "solve", gives_up)
    learner, stayed = sops(problem, block=4), 0
    played = Run(problem, learner, episodes=100, regret="never")
    for t in range(1, 101):
        theta, failed = learner.state.theta, asked[1]
        played.play(until=t)
        if asked[1] > failed:
            np.testing.assert_array_equal(learner.state.theta, theta)
            stayed += 1
    assert stayed > 10
    assert played.account.strong_violation == 0.0


def test_the_first_weight_by_hand() -> None:
    """L = 2, c = 0.7, and the safe policy uses 0.1 + 0.8 · 0.1 + 0.2 · 0.2 = 0.22: μ₀² = 1 − 0.48/1.78."""
    problem = tempting()
    learner = sops(problem)
    assert learner.safe_usage == pytest.approx([0.22])
    assert learner.first_weight == pytest.approx(0.854597, abs=1e-6)
    assert learner.policy.probabilities == pytest.approx([0.927298, 0.072702] * 3, abs=1e-6)  # half of the rest each


def test_the_first_weight_holds_whatever_the_model_and_the_rest() -> None:
    """Against constraints at their largest wherever the safe policy does not go, and any other policy."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        space = LayeredSpace.dense([1, 3, 2, 1], 2)
        mdp, safe = random_mdp(rng, space), random_policy(rng, space)
        safe = type(safe)(space, np.tile([1.0, 0.0], space.n_states - 1))
        g = np.where(space.tuples[:, 1] == 0, rng.uniform(-1, 1, space.n_tuples), 1.0)
        used = float(g @ mdp.occupancy(safe))
        learner = SOPS(space, [used + 0.3], safe_policy=safe, safe_usage=[used])
        mixed = learner._mixed(random_policy(rng, space).probabilities, learner.first_weight)
        assert g @ mdp.occupancy(mixed) <= used + 0.3


def test_what_it_plays_is_within_the_budgets_under_every_model_of_its_set() -> None:
    """Once its weight is below μ₀, with constraints at their upper bounds or at their means."""
    problem = tempting()
    learner = sops(problem)
    run(problem, learner, episodes=600, seed=3, records=1)
    assert learner.state.weight < 0.5 * learner.first_weight
    bounds = bounds_of(learner.confidence_set, problem.mdp.space)
    mean = problem.constraints.mean[0]
    assert worst_use(problem.mdp.space, bounds, learner.policy, mean).most < 0.7
    used = float(mean @ problem.mdp.occupancy(learner.policy))
    assert 0.5 < used < worst_use(problem.mdp.space, bounds, learner.policy, mean).most  # and not idle
    upper = learner._upper(learner.observed, learner.state.mean_constraints, learner.state.squares)[0]
    assert ((mean <= upper) & (upper <= mean + 0.1)).all()


def test_regret_per_episode_falls_and_is_below_that_of_the_safe_policy() -> None:
    problem, T = tempting("switching"), 1500
    history = run(problem, sops(problem), episodes=T, seed=0)
    assert history["strong_violation"][-1] == 0
    per_episode = history["regret"] / history["episode"]
    early = int(np.searchsorted(history["episode"], 100))
    assert per_episode[-1] < 0.5 * per_episode[early]
    assert history["regret"][-1] < 0.3 * run(problem, "safe-baseline", episodes=T, seed=0)["regret"][-1]


def test_a_policy_that_is_not_strictly_safe_is_refused() -> None:
    problem = tempting()
    learner = sops(problem)
    with pytest.raises(InvalidInputError, match="less is needed of each"):
        SOPS(problem.mdp.space, [0.2], safe_policy=learner.safe_policy, safe_usage=learner.safe_usage)
