"""Tabular Gymnasium environments as problems: the same values as plain dynamic programming on their tables."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.toy_text.cliffwalking import CliffWalkingEnv
from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv
from gymnasium.envs.toy_text.taxi import TaxiEnv

import tightrope as tr
from tightrope import InvalidInputError, solve_cmdp
from tightrope.interop import problem_from_gym
from tightrope.planning.hindsight import best_policy, slater_slack
from tightrope.problems.suite import frozen_lake, taxi_fuel


def value_by_the_table(P: Mapping[int, Any], start: Mapping[int, float], n_steps: int) -> float:
    """The largest expected sum of rewards in n_steps steps, by backward induction on the table itself."""
    V = dict.fromkeys(P, 0.0)
    for _ in range(n_steps):
        V = {
            s: max(sum(p * (r + (0.0 if over else V[t])) for p, t, r, over in outcomes) for outcomes in P[s].values())
            for s in P
        }
    return sum(p * V[s] for s, p in start.items())


def use_by_the_table(P: Mapping[int, Any], start: Mapping[int, float], n_steps: int, cost: Any) -> float:
    """The expected sum of costs in n_steps steps of random actions, by propagating the distribution."""
    at, total = dict(start), 0.0
    for _ in range(n_steps):
        after: dict[int, float] = {}
        for s, mass in at.items():
            for a, outcomes in P[s].items():
                for p, t, _, over in outcomes:
                    total += mass * p / len(P[s]) * cost(s, a, t)
                    if not over:
                        after[t] = after.get(t, 0.0) + mass * p / len(P[s])
        at = after
    return total


@pytest.mark.parametrize(
    ("env", "n_steps"),
    [
        (FrozenLakeEnv(), 15),
        (FrozenLakeEnv(is_slippery=False), 7),
        (FrozenLakeEnv(map_name="8x8"), 18),
        (CliffWalkingEnv(), 14),
        (TaxiEnv(), 7),
    ],
)
def test_values_and_uses_are_those_of_the_table(env: Any, n_steps: int) -> None:
    P, chances = env.P, env.initial_state_distrib
    start = {int(s): float(chances[s]) for s in np.flatnonzero(chances)}

    def cost(state: int, action: int, next_state: int) -> float:
        return (state + 2 * action + 3 * next_state) % 7 / 7

    problem = problem_from_gym(env, n_steps=n_steps, cost={"odd": cost}, budgets={"odd": 1.0})
    loss = problem.losses.begin(np.random.default_rng(0)).loss(1)
    value, _ = best_policy(problem.mdp, loss)
    assert problem.loss_in_units(value, 1.0) == pytest.approx(-value_by_the_table(P, start, n_steps), abs=1e-9)
    theta = problem.mdp.occupancy(tr.Policy.uniform(problem.space))
    used = problem.use_in_units(problem.constraints.mean @ theta)[0]
    assert used == pytest.approx(use_by_the_table(P, start, n_steps, cost), rel=1e-9)
    assert problem.name == type(env).__name__
    assert problem.space.n_layers == n_steps + (len(start) > 1)


def test_an_environment_with_an_id_gives_its_name() -> None:
    env = gymnasium.make("FrozenLake-v1", map_name="8x8")
    problem = problem_from_gym(env, n_steps=3, cost={}, budgets={})
    assert problem.name == "FrozenLake-v1"
    assert problem.space.layer_sizes == (1, 3, 6, 1)


def two_states() -> SimpleNamespace:
    """Duplicates with different rewards, and a state that is met with and without ending the episode."""
    go = [
        (0.25, 1, 2.0, False),
        (0.25, 1, 4.0, False),
        (0.25, 1, 6.0, True),
        (0.125, 0, 1.0, False),
        (0.125, 0, 0.0, True),
    ]
    table = {0: {0: go, 1: [(1.0, 0, 0.0, False), (0.0, 1, 9.0, True)]}, 1: {0: [(1.0, 0, -1.0, False)]}}
    return SimpleNamespace(P=table)


def test_duplicates_are_added_up_and_ends_merged() -> None:
    problem = problem_from_gym(
        two_states(),
        n_steps=2,
        start=0,
        cost={"moves": lambda s, a, t: float(s != t), "ups": lambda s, a, t: float(a)},
        budgets={"moves": 1.0, "ups": 2.0},
        state_names=("low", "high"),
        action_names=("go", "wait"),
    )
    f = problem.loss_scale * problem.losses.begin(np.random.default_rng(0)).loss(1)
    g = problem.constraint_scales[:, None] * problem.constraints.mean
    rows = {problem.tuple_name(j): (problem.mdp.transitions[j], f[j], *g[:, j]) for j in range(problem.space.n_tuples)}
    assert problem.name == "SimpleNamespace"
    expected = {
        "low, step 0 → go → low, step 1": (0.125, -1, 0, 0),
        "low, step 0 → go → high, step 1": (0.5, -3, 1, 0),
        "low, step 0 → go → done, step 1": (0.375, -(0.25 * 6 + 0.125 * 0) / 0.375, 0.25 / 0.375, 0),
        "low, step 0 → wait → low, step 1": (1, 0, 0, 1),
        "low, step 1 → go → end": (1, -(0.5 * 3 + 0.25 * 6 + 0.125), 0.75, 0),
        "low, step 1 → wait → end": (1, 0, 0, 1),
        "high, step 1 → go → end": (1, 1, 1, 0),
        "done, step 1 → go → end": (1, 0, 0, 0),
    }
    assert set(rows) == set(expected)
    for name, values in expected.items():
        assert rows[name] == pytest.approx(values, abs=1e-12), name


def test_scenarios_and_losses() -> None:
    problem = problem_from_gym(
        two_states(),
        n_steps=2,
        start={0: 0.5, 1: 0.5},
        cost={},
        budgets={},
        scenarios=[lambda s, a, t: 5.0],
        losses={"name": "switching", "period": 1},
        loss_bounds=(-6, 6),
        name="two",
    )
    assert problem.name == "two"
    play = problem.losses.begin(np.random.default_rng(0))
    play.loss(1)
    second = problem.loss_scale * play.loss(2) + problem.loss_offset
    assert set(np.round(second, 9)) == {0.0, 5.0}  # drawing the start and being done are charged nothing
    assert problem.budgets.shape == (0,)


@pytest.mark.parametrize(
    ("env", "options", "words"),
    [
        (SimpleNamespace(), {}, "has no table unwrapped.P; play it live instead"),
        (SimpleNamespace(P={0: {0: [(1.0, 0)]}}), {"start": 0}, "is not of the form P"),
        (two_states(), {}, "has no initial_state_distrib"),
        (two_states(), {"start": 0, "cost": {"a": lambda s, a, t: 0.0}}, r"\['a'\] and budgets for \[\]"),
        (SimpleNamespace(P={0: {0: [(0.5, 0, 0.0, False)]}}), {"start": 0}, "sum to 0.5, not 1"),
    ],
)
def test_what_is_refused(env: Any, options: dict[str, Any], words: str) -> None:
    arguments: dict[str, Any] = {"n_steps": 2, "cost": {}, "budgets": {}} | options
    with pytest.raises(InvalidInputError, match=words):
        problem_from_gym(env, **arguments)


#: From their docstrings: name, scenario, loss and use without the budget, loss and multiplier within it.
RECORDED = [
    ("frozen-lake", 0, -0.199, 0.094, -0.130, 4.20),
    ("frozen-lake", 1, 0.197, 0.947, 0.813, 5.61),
    ("frozen-lake", 2, 0.233, 0.971, 0.943, 1.41),
    ("frozen-lake", None, 0.131, 0.947, 0.542, 3.74),
    ("taxi-fuel", 0, -7.28, 11.72, -0.80, 2.00),
    ("taxi-fuel", 1, 6.32, 11.72, 9.08, 0.79),
    ("taxi-fuel", 2, -1.60, 11.72, 2.55, 1.39),
    ("taxi-fuel", None, -0.85, 11.72, 3.63, 1.44),
]


@pytest.mark.parametrize(("name", "scenario", "free", "use", "bound", "multiplier"), RECORDED)
def test_the_numbers_in_the_docstring(
    name: str, scenario: int | None, free: float, use: float, bound: float, multiplier: float
) -> None:
    line = f"{'mean' if scenario is None else scenario}"
    module = {"frozen-lake": frozen_lake, "taxi-fuel": taxi_fuel}[name]
    assert any(
        row.split() and row.split()[0] == line and f"{free:g}" in row.replace("-1.60", "-1.6").replace("-0.80", "-0.8")
        for row in (module.__doc__ or "").splitlines()
    )
    problem = tr.make(name)
    scenarios = problem.losses.scenarios  # type: ignore[attr-defined]
    loss = scenarios.mean(axis=0) if scenario is None else scenarios[scenario]
    g, scale = problem.constraints.mean, problem.constraint_scales[0]
    value, frugal = best_policy(problem.mdp, loss + 1e-7 * g[0])
    assert problem.loss_in_units(value, 1.0) == pytest.approx(free, abs=6e-3 if name == "taxi-fuel" else 6e-4)
    assert scale * (g @ problem.mdp.occupancy(frugal))[0] == pytest.approx(use, abs=6e-3 if use > 1 else 6e-4)
    within = solve_cmdp(problem.mdp, loss, g, problem.budgets)
    assert problem.loss_in_units(within.value, 1.0) == pytest.approx(bound, abs=6e-3 if use > 1 else 6e-4)
    assert within.multipliers[0] * problem.loss_scale / scale == pytest.approx(multiplier, abs=6e-3)
    assert scale * slater_slack(problem.mdp, g, problem.budgets) == pytest.approx(8 if name == "taxi-fuel" else 0.03)


def test_options_of_the_two_problems() -> None:
    dry = tr.make("frozen-lake", slippery=False, n_steps=6, budget=0)
    loss = dry.losses.begin(np.random.default_rng(0)).loss(1)
    assert solve_cmdp(dry.mdp, loss, dry.constraints.mean, dry.budgets).value == pytest.approx(-1)  # six moves suffice
    assert tr.make("frozen-lake", map_name="8x8", n_steps=15).state_name(0) == "row 0, column 0, step 0"
    taxi = tr.make("taxi-fuel", passenger="Y", destination="G", n_steps=5, budget=2)
    assert "passenger at Y" in taxi.state_name(1)
    for options, words in (
        ({"map_name": "5x5"}, "no map '5x5'"),
        ({"budget": 2.0}, "budget is 2.0"),
        ({"n_steps": 0}, "n_steps is 0"),
    ):
        with pytest.raises(InvalidInputError, match=words):
            tr.make("frozen-lake", **options)
    for options, words in (({"passenger": "X"}, "no place 'X'"), ({"destination": "R"}, "both R")):
        with pytest.raises(InvalidInputError, match=words):
            tr.make("taxi-fuel", **options)
