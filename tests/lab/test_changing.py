"""Runs under constraints that change: every column recomputed, the comparators by an LP written out."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import tightrope as tr
from tests.conftest import FloatArray, pair_of_tuple
from tests.learners.problems import problem_with
from tightrope import LayeredMDP, Policy, Problem
from tightrope.lab import tables
from tightrope.lab.history import in_units
from tightrope.learners.needs import NEEDS
from tightrope.planning.hindsight import slater_slack
from tightrope.problems.constraints import make_constraints

T = 40


def changing(choice: Any, n_constraints: int = 2) -> Problem:
    problem = problem_with(n_constraints, period=3)
    mean = 0.6 * problem.constraints.mean  # room for dear times
    return replace(problem, constraints=make_constraints(choice, mean, problem.mdp), budgets=0.75 * problem.budgets)


def explicit_least(mdp: LayeredMDP, f: FloatArray, g: FloatArray, c: FloatArray) -> float:
    """min <f, θ> over occupancy measures of the model with <g_i, θ> <= c_i, as one LP over tuples; NaN if none is."""
    space = mdp.space
    s, _, s_next = space.tuples.T
    rows, right = [], []
    for state in range(space.n_states - 1):
        rows.append((s == state).astype(float) - (s_next == state))
        right.append(float(state == 0))
    pair = pair_of_tuple(space)
    for j in range(space.n_tuples):  # θ(s,a,s') = P(s'|s,a) Σ θ(s,a,·)
        rows.append((np.arange(space.n_tuples) == j) - mdp.transitions[j] * (pair == pair[j]))
        right.append(0.0)
    found = linprog(f, A_ub=g, b_ub=c, A_eq=np.array(rows), b_eq=right)
    return float(found.fun or 0.0) if found.status == 0 else np.nan


class Player:
    """Plays given policies in turn and remembers what it was shown."""

    feedback, epoch, settings = "full", 1, {"learner": "player"}

    def __init__(self, problem: Problem, policies: list[Policy]) -> None:
        self.space, self.budgets, self.policies = problem.space, problem.budgets, policies
        self.multipliers, self.episodes = np.zeros(len(problem.budgets)), list[Any]()

    @property
    def policy(self) -> Policy:
        return self.policies[len(self.episodes) % len(self.policies)]

    def observe(self, episode: Any) -> None:
        self.episodes.append(episode)


@pytest.mark.parametrize(
    "choice", [{"name": "switching", "period": 7, "swing": 0.3}, {"name": "chaser", "memory": 5, "swing": 0.3}]
)
def test_every_column_is_what_it_says(choice: Any) -> None:
    problem = changing(choice)
    rng = np.random.default_rng(0)
    policies = [Policy.from_occupancy(problem.space, rng.random(problem.space.n_tuples)) for _ in range(3)]
    player = Player(problem, policies)
    history = tr.run(problem, player, episodes=T, records=6)  # type: ignore[arg-type]
    mdp, c = problem.mdp, problem.budgets
    f, g = (np.array([getattr(e, name) for e in player.episodes]) for name in ("loss", "constraints"))
    thetas = [mdp.occupancy(policies[k % 3]) for k in range(T)]
    over = np.array([g[k] @ thetas[k] - c for k in range(T)])
    if choice["name"] == "switching":
        factors = g / problem.constraints.mean
        np.testing.assert_allclose(factors[[0, 6, 7, 13, 14]].mean(axis=(1, 2)), [0.7, 0.7, 1.3, 1.3, 0.7])
    else:
        assert len(np.unique(np.round(g, 9), axis=0)) > T / 2  # it answers to what is played
    always = 1.3 * problem.constraints.mean
    for row, t in enumerate(history["episode"].astype(int)):
        loss = sum(f[k] @ thetas[k] for k in range(t))
        best = explicit_least(mdp, f[:t].sum(axis=0), g[:t].mean(axis=0), c)
        best_always = explicit_least(mdp, f[:t].sum(axis=0), always, c)
        expected = {
            "loss": loss,
            "hindsight": best,
            "regret": loss - best,
            "hindsight_always": best_always,
            "regret_always": loss - best_always,
            "violation": np.linalg.norm(np.maximum(over[:t].sum(axis=0), 0)),
            "strong_violation": np.linalg.norm(np.maximum(over[:t], 0), axis=1).sum(),
        }
        for name, value in expected.items():
            assert history[name][row] == pytest.approx(value, abs=1e-6, nan_ok=True), (name, t)
    assert history["strong_violation"][-1] > history["violation"][-1] + 0.1
    assert np.isfinite(history["regret"][-1])
    assert history["hindsight_always"][-1] > history["hindsight"][-1] + 0.1


def test_a_constant_sequence_is_a_law_of_one_draw() -> None:
    """All columns that both have; the two comparators are one."""
    law = problem_with(2, period=3)
    same = replace(law, constraints=make_constraints({"name": "recorded", "table": [law.constraints.mean]}, [[0.0]]))
    one, other = (tr.run(problem, "ucpd", episodes=T, records=5) for problem in (law, same))
    for name in one:
        np.testing.assert_allclose(one[name], other[name], rtol=1e-9, atol=1e-9, err_msg=name)
    np.testing.assert_allclose(other["regret_always"], one["regret"], atol=1e-9)
    assert "regret_always" not in one


def test_regret_is_nan_where_no_policy_meets_the_budgets() -> None:
    problem = problem_with(1)
    table = np.stack([np.full((1, problem.space.n_tuples), 0.8), np.zeros((1, problem.space.n_tuples))])
    problem = replace(problem, constraints=make_constraints({"name": "recorded", "table": table}, [[0.0]]))
    history = tr.run(problem, "uniform", episodes=4, records=4, spacing="linear")
    # any policy uses 2.4 in the first episode, nothing in the second, and so on: on average 2.4, 1.2, 1.6, 1.2
    assert 1.2 < problem.budgets[0] < 1.6
    assert np.isnan(history["regret"]).tolist() == [True, False, True, False]
    assert np.isnan(history["regret_always"]).all()


def test_own_units_reach_both_comparators() -> None:
    problem = tr.make("inventory", noise="switching")
    history = tr.run(problem, "uniform", episodes=10, records=1)
    own = in_units(problem, history)
    assert problem.loss_scale != 1
    for name in ("hindsight", "hindsight_always"):
        assert own[name][-1] == pytest.approx(problem.loss_in_units(history[name][-1], 10))
    assert own["regret_always"][-1] == pytest.approx(own["loss"][-1] - own["hindsight_always"][-1])


def test_what_learners_know_holds_for_every_extreme_of_the_constraints() -> None:
    problem = changing({"name": "switching", "period": 7, "swing": 0.3})
    policy = NEEDS["safe_policy"].answer(problem, T, 0)
    dear = 1.3 * problem.constraints.mean @ problem.mdp.occupancy(policy)
    np.testing.assert_allclose(NEEDS["safe_usage"].answer(problem, T, 0), dear)
    slack = NEEDS["slack"].answer(problem, T, 0)
    assert slack == pytest.approx((problem.budgets - dear).min(), abs=1e-9)
    assert slack < slater_slack(problem.mdp, problem.constraints.mean, problem.budgets) - 0.05
    # and the best in hindsight is so for the constraints that come: no regret
    history = tr.run(problem, "hindsight", episodes=T, records=1)
    assert history["regret"][-1] == pytest.approx(0, abs=1e-6)
    assert history["violation"][-1] == pytest.approx(0, abs=1e-6)


def test_tables_show_both_comparators() -> None:
    problem = changing({"name": "switching", "period": 7, "swing": 0.3})
    runs = {name: [tr.run(problem, name, episodes=5, records=1)] for name in ("uniform", "ucpd")}
    lines = tables.results(5, [0], runs, {name: {"learner": name} for name in runs})
    assert lines[0].endswith("violation  strong violation  LP value, always  regret, always")
    assert lines[1].split()[-1] == f"{runs['uniform'][0]['regret_always'][-1]:.4f}"
    assert lines[-1].startswith("LP value, always: least loss of a fixed policy within the budgets in every episode")
    law = problem_with(2)
    head, *_, last = tables.results(5, [0], {"uniform": [tr.run(law, "uniform", episodes=5, records=1)]}, {})
    assert "always" not in head + last
