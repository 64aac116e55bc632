"""The hindsight LP against enumeration, a conic solver and its own optimality conditions."""

import itertools
import re
from collections.abc import Iterator
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import twins
from tests.conftest import FloatArray, mdps, pair_of_tuple, random_mdp, random_policy, random_sparse_space, rngs
from tightrope import InfeasibleError, InvalidInputError, LayeredMDP, LayeredSpace, Policy, core, solve_cmdp
from tightrope.planning.hindsight import HindsightLP, best_policy, most_slack, slater_slack


def deterministic_policies(space: LayeredSpace) -> Iterator[Policy]:
    choices = [np.flatnonzero(space.pairs[:, 0] == s) for s in range(space.n_states - 1)]
    for chosen in itertools.product(*choices):
        pi = np.zeros(space.n_pairs)
        pi[list(chosen)] = 1.0
        yield Policy(space, pi)


def feasible_problem(
    rng: np.random.Generator, mdp: LayeredMDP, n_budgets: int, spare: float = 0.02
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(loss, constraints, budgets) that some random policy meets with `spare` left of every budget."""
    f = rng.uniform(-1, 1, mdp.space.n_tuples)
    g = rng.uniform(-1, 1, (n_budgets, mdp.space.n_tuples))
    return f, g, g @ mdp.occupancy(random_policy(rng, mdp.space)) + spare


def conic_value(mdp: LayeredMDP, f: FloatArray, g: FloatArray, c: FloatArray) -> float:
    """The LP over tuples as algorithm.md states it, conditions (a), (b), (c) one by one, by Clarabel."""
    space = mdp.space
    s, _, s_next = space.tuples.T
    layer = twins.layer_of_state(space)
    pair = pair_of_tuple(space)
    theta = cp.Variable(space.n_tuples, nonneg=True)
    P = mdp.transitions
    conditions = [(layer[s] == k).astype(float) @ theta == 1 for k in range(space.n_layers)]
    conditions += [
        (s_next == state).astype(float) @ theta == (s == state).astype(float) @ theta
        for state in range(1, space.n_states - 1)
    ]
    conditions += [theta[j] == P[j] * ((pair == pair[j]).astype(float) @ theta) for j in range(space.n_tuples)]
    conditions += [g[i] @ theta <= c[i] for i in range(len(c))]
    problem: Any = cp.Problem(cp.Minimize(f @ theta), conditions)
    return float(problem.solve(solver=cp.CLARABEL))


def fork(n_actions: int) -> LayeredMDP:
    """One decision, then the end: θ is the action distribution itself."""
    space = LayeredSpace.dense([1, 1], n_actions)
    return LayeredMDP(space, np.ones(n_actions))


# ---------------------------------------------------------------------------------- without budgets


@given(mdps(), rngs())
def test_dynamic_programming_kernel_and_twin(mdp: LayeredMDP, rng: np.random.Generator) -> None:
    space, f = mdp.space, rng.uniform(-1, 1, mdp.space.n_tuples)
    V, best = core.best_actions(space.native, mdp.transitions, f)
    V_twin, q_twin = twins.pair_values(space, mdp.transitions, f)
    np.testing.assert_allclose(V, V_twin, rtol=0, atol=1e-14)
    assert (space.pairs[best, 0] == np.arange(space.n_states - 1)).all()
    np.testing.assert_allclose(q_twin[best], V_twin[:-1], rtol=0, atol=1e-14)


@given(mdps(max_steps=3, max_width=2), rngs())
def test_best_policy_is_the_best_of_all_deterministic_policies(mdp: LayeredMDP, rng: np.random.Generator) -> None:
    f = rng.uniform(-1, 1, mdp.space.n_tuples)
    value, policy = best_policy(mdp, f)
    assert f @ mdp.occupancy(policy) == pytest.approx(value, abs=1e-14)
    assert value == pytest.approx(min(f @ mdp.occupancy(pi) for pi in deterministic_policies(mdp.space)), abs=1e-14)


def test_best_policy_takes_the_first_of_equal_actions() -> None:
    _, policy = best_policy(fork(3), [2.0, 1.0, 1.0])
    assert policy.probabilities.tolist() == [0.0, 1.0, 0.0]


@given(mdps(), rngs(), st.booleans())
def test_lp_without_budgets_is_dynamic_programming(mdp: LayeredMDP, rng: np.random.Generator, as_list: bool) -> None:
    f = rng.uniform(-1, 1, mdp.space.n_tuples)
    solution = solve_cmdp(mdp, f, [] if as_list else np.empty((0, mdp.space.n_tuples)), [])
    assert solution.value == pytest.approx(best_policy(mdp, f)[0], abs=1e-9)
    assert solution.multipliers.shape == (0,)
    assert solution.violation == 0.0


# ------------------------------------------------------------------------------------- with budgets


@given(mdps(max_steps=3, max_width=2), rngs(), st.sampled_from([0.0, 0.02, 0.3]))
def test_one_budget_is_the_lower_hull_of_all_deterministic_policies(
    mdp: LayeredMDP, rng: np.random.Generator, spare: float
) -> None:
    """With one budget some mixture of two deterministic policies is optimal: try all of them."""
    f, g, c = feasible_problem(rng, mdp, 1, spare)
    thetas = [mdp.occupancy(pi) for pi in deterministic_policies(mdp.space)]
    loss, spent = np.array([f @ theta for theta in thetas]), np.array([g[0] @ theta for theta in thetas])
    within = spent <= c[0] + 1e-12
    best = loss[within].min()
    for i, j in itertools.product(np.flatnonzero(within), np.flatnonzero(~within)):
        share = (c[0] - spent[i]) / (spent[j] - spent[i])
        best = min(best, (1 - share) * loss[i] + share * loss[j])
    assert solve_cmdp(mdp, f, g, c).value == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_agrees_with_a_conic_solver_on_the_lp_over_tuples(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes, n_actions = [1, *rng.integers(1, 5, size=3), 1], int(rng.integers(2, 4))
    space = LayeredSpace.dense(sizes, n_actions) if seed % 2 else random_sparse_space(rng, sizes, n_actions)
    mdp = random_mdp(rng, space, zeros=0.3 * (seed % 3 == 0))
    f, g, c = feasible_problem(rng, mdp, n_budgets=1 + seed % 3)
    assert solve_cmdp(mdp, f, g, c).value == pytest.approx(conic_value(mdp, f, g, c), abs=1e-6)


@given(mdps(), rngs(), st.integers(1, 3), st.sampled_from([0.0, 0.05]))
def test_optimality_conditions(mdp: LayeredMDP, rng: np.random.Generator, n_budgets: int, spare: float) -> None:
    f, g, c = feasible_problem(rng, mdp, n_budgets, spare)
    solution = solve_cmdp(mdp, f, g, c)
    theta, q = solution.occupancy, solution.multipliers
    np.testing.assert_array_equal(theta, mdp.occupancy(solution.policy))
    assert solution.value == pytest.approx(f @ theta, rel=1e-13, abs=1e-13)
    assert (g @ theta <= c + 1e-9).all()
    assert (q >= 0).all()
    # the policy minimises the Lagrangian, and a budget with something left is worth nothing
    scale = 1 + q.sum()
    assert (f + q @ g) @ theta == pytest.approx(best_policy(mdp, f + q @ g)[0], abs=1e-9 * scale)
    np.testing.assert_allclose(q * (c - g @ theta), 0, atol=1e-9 * scale)
    assert solution.duality_gap <= 1e-9 * scale
    assert solution.violation <= 1e-9


@given(mdps(), rngs(), st.integers(1, 3))
def test_multipliers_bound_the_value_of_other_budgets(
    mdp: LayeredMDP, rng: np.random.Generator, n_budgets: int
) -> None:
    """The value is convex in the budgets and −q a subgradient: value(c + d) >= value(c) − q·d for every d."""
    f, g, c = feasible_problem(rng, mdp, n_budgets, spare=0.05)
    solution = solve_cmdp(mdp, f, g, c)
    for d in (*np.eye(n_budgets), *(-0.04 * np.eye(n_budgets)), rng.uniform(-0.04, 0.3, n_budgets)):
        other = solve_cmdp(mdp, f, g, c + d).value
        assert other >= solution.value - solution.multipliers @ d - 1e-9 * (1 + solution.multipliers.sum())


def test_multipliers_are_the_slopes_of_the_value() -> None:
    rng = np.random.default_rng(4)
    mdp = random_mdp(rng, LayeredSpace.dense([1, 4, 4, 4, 1], 3))
    f, g, c = feasible_problem(rng, mdp, n_budgets=3)
    solution, h = solve_cmdp(mdp, f, g, c), 1e-5
    slopes = [
        (solve_cmdp(mdp, f, g, c - h * e).value - solve_cmdp(mdp, f, g, c + h * e).value) / (2 * h) for e in np.eye(3)
    ]
    assert solution.multipliers.max() > 0.1
    np.testing.assert_allclose(solution.multipliers, slopes, atol=1e-7)


def test_known_answer() -> None:
    """Free but bad, or good at a cost of 1: half a unit of budget buys half of the good, worth 2 a unit."""
    solution = solve_cmdp(fork(2), [2.0, 0.0], [[0.0, 1.0]], [0.5])
    assert solution.value == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(solution.policy.probabilities, [0.5, 0.5], atol=1e-12)
    np.testing.assert_allclose(solution.occupancy, [0.5, 0.5], atol=1e-12)
    np.testing.assert_allclose(solution.multipliers, [2.0], atol=1e-12)


# ------------------------------------------------------------------------- scales, rare moves, re-use


@pytest.mark.parametrize("scale", [1e-15, 1e5, 1e12])
def test_cumulative_losses_keep_their_digits(rng: np.random.Generator, scale: float) -> None:
    mdp = random_mdp(rng, LayeredSpace.dense([1, 5, 5, 5, 1], 3))
    f, g, c = feasible_problem(rng, mdp, n_budgets=2)
    one, many = solve_cmdp(mdp, f, g, c), solve_cmdp(mdp, scale * f, g, c)
    assert many.value == pytest.approx(scale * one.value, rel=1e-9, abs=0.0)
    np.testing.assert_allclose(many.multipliers, scale * one.multipliers, rtol=1e-9, atol=1e-9 * scale)
    assert many.duality_gap <= 1e-9 * scale


def test_budgets_of_any_size_stand_side_by_side(rng: np.random.Generator) -> None:
    """In small units, in large units, or so wide that it never binds: a budget means the same."""
    mdp = random_mdp(rng, LayeredSpace.dense([1, 4, 4, 1], 3))
    f, g, c = feasible_problem(rng, mdp, n_budgets=2)
    plain = solve_cmdp(mdp, f, g, c)
    units = np.array([1e-7, 1e6, 1.0])
    wide = np.vstack([g, rng.uniform(-1, 1, mdp.space.n_tuples)])
    mixed = solve_cmdp(mdp, f, units[:, None] * wide, units * np.append(c, 1e25))
    assert mixed.value == pytest.approx(plain.value, abs=1e-9)
    np.testing.assert_allclose(mixed.multipliers, np.append(plain.multipliers, 0.0) / units, rtol=1e-6, atol=1e-9)


def test_the_largest_number_is_a_budget_that_never_binds() -> None:
    """Scaled up for the solver it would overflow: beyond what an episode can spend, budgets are all alike."""
    never = np.finfo(np.float64).max
    g = [[0.0, 1.0], [1.0, 0.0]]
    solution = solve_cmdp(fork(2), [2.0, 0.0], g, [0.5, never])
    assert solution.value == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(solution.multipliers, [2.0, 0.0], atol=1e-12)
    assert slater_slack(fork(2), g, [0.5, never]) == pytest.approx(0.5, abs=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_transitions_of_tiny_probability_count(seed: int) -> None:
    """Probabilities down to 1e-14, many below what the LP solver itself would drop."""
    rng = np.random.default_rng(seed)
    space = LayeredSpace.dense([1, *[10] * 8, 1], 4)
    groups, weights = pair_of_tuple(space), 10.0 ** rng.uniform(-14, 0, space.n_tuples)
    mdp = LayeredMDP(space, weights / np.bincount(groups, weights)[groups])
    f, g, c = feasible_problem(rng, mdp, n_budgets=2, spare=0.0)
    solution = solve_cmdp(mdp, f, g, c)
    assert solution.violation <= 5e-10
    assert solution.duality_gap <= 5e-10 * (1 + solution.multipliers.sum())


def test_a_loss_of_zero_has_value_zero(rng: np.random.Generator) -> None:
    mdp = random_mdp(rng, LayeredSpace.dense([1, 3, 1], 2))
    _, g, c = feasible_problem(rng, mdp, n_budgets=2)
    solution = solve_cmdp(mdp, np.zeros(mdp.space.n_tuples), g, c)
    assert solution.value == 0.0
    np.testing.assert_allclose(solution.multipliers, 0.0, atol=1e-12)


def test_one_lp_for_many_losses(rng: np.random.Generator) -> None:
    mdp = random_mdp(rng, random_sparse_space(rng, [1, 5, 6, 5, 1], 3))
    f, g, c = feasible_problem(rng, mdp, n_budgets=2)
    g_before, c_before = g.copy(), c.copy()
    lp = HindsightLP(mdp, g, c)
    g[:], c[:] = 0.0, -1.0  # the LP holds its own copies
    for t in (1, 10, 100):
        again = lp.solve(t * f)
        once = solve_cmdp(mdp, t * f, g_before, c_before)
        assert again.value == once.value
        np.testing.assert_array_equal(again.occupancy, once.occupancy)
        np.testing.assert_array_equal(again.multipliers, once.multipliers)


# ----------------------------------------------------------------------------------- budgets too small


def test_a_budget_below_the_least_possible_is_named_with_what_is_missing() -> None:
    g = [[0.0, 1.0], [0.75, 0.5]]
    with pytest.raises(InfeasibleError, match=r"budget 1 cannot be met.*0\.5, at least 0\.2 over.*of 0\.3$"):
        solve_cmdp(fork(2), [0.0, 0.0], g, [1.0, 0.3])


@given(mdps(), rngs(), st.floats(1e-6, 10.0), st.sampled_from([1e-3, 1.0, 1e4]))
def test_what_is_missing_is_what_dynamic_programming_says(
    mdp: LayeredMDP, rng: np.random.Generator, missing: float, unit: float
) -> None:
    g = unit * rng.uniform(-1, 1, (2, mdp.space.n_tuples))
    least = best_policy(mdp, g[1])[0]
    with pytest.raises(InfeasibleError, match="budget 1") as caught:
        HindsightLP(mdp, g, [unit * 100.0, least - unit * missing])
    said = re.search(r"at least (\S+) over", str(caught.value))
    assert said is not None
    assert float(said[1]) == pytest.approx(unit * missing, rel=1e-5)


def test_budgets_that_exclude_each_other_are_named_with_what_is_missing() -> None:
    """Each action spends another budget; 0.9 in all is not enough, and budget 1 has no part in it."""
    g = [[1.0, 0.0], [0.1, 0.1], [0.0, 1.0]]
    with pytest.raises(InfeasibleError) as caught:
        solve_cmdp(fork(2), [0.0, 0.0], g, [0.4, 0.5, 0.5])
    assert str(caught.value) == (
        "each budget can be met, but not all together: "
        "every policy exceeds budget 0 by at least 0.05 or budget 2 by at least 0.05"
    )


def test_what_is_missing_together_is_in_the_units_of_each_budget() -> None:
    with pytest.raises(InfeasibleError, match=r"budget 0 by at least 0\.1 or budget 1 by at least 10$"):
        solve_cmdp(fork(2), [0.0, 0.0], [[1.0, 0.0], [0.0, 100.0]], [0.4, 40.0])


@given(mdps(), rngs(), st.sampled_from([1e-7, 0.01, 0.5]))
def test_refused_exactly_when_there_is_no_slack(mdp: LayeredMDP, rng: np.random.Generator, step: float) -> None:
    g = rng.uniform(-1, 1, (3, mdp.space.n_tuples))
    c = rng.uniform(-1, 1, 3)
    edge = c - slater_slack(mdp, g, c)
    HindsightLP(mdp, g, edge + step)
    HindsightLP(mdp, g, edge).solve(g[0])
    with pytest.raises(InfeasibleError):
        HindsightLP(mdp, g, edge - step)


@given(mdps(), rngs(), st.sampled_from([0.0, 5e-10]))
def test_a_budget_at_the_least_possible_can_be_met(mdp: LayeredMDP, rng: np.random.Generator, rounding: float) -> None:
    """Also when rounding put it a little below."""
    f, g = rng.uniform(-1, 1, (2, mdp.space.n_tuples))
    g /= np.abs(g).max()
    solution = solve_cmdp(mdp, f, [g], [best_policy(mdp, g)[0] - rounding])
    assert solution.violation <= rounding + 1e-9


# ----------------------------------------------------------------------------------------- Slater slack


def test_slack_known_answers() -> None:
    exclusive = [[1.0, 0.0], [0.0, 1.0]]
    assert slater_slack(fork(2), exclusive, [0.7, 0.7]) == pytest.approx(0.2, abs=1e-12)
    assert slater_slack(fork(2), exclusive, [0.4, 0.4]) == pytest.approx(-0.1, abs=1e-12)
    assert slater_slack(fork(2), exclusive, [0.1, 1e12]) == pytest.approx(0.1, abs=1e-12)
    assert slater_slack(fork(2), [], []) == np.inf


@given(mdps(), rngs(), st.integers(1, 3), st.floats(-5, 5))
def test_slack_is_attained_never_beaten_and_moves_with_the_budgets(
    mdp: LayeredMDP, rng: np.random.Generator, n_budgets: int, shift: float
) -> None:
    g, c = rng.uniform(-1, 1, (n_budgets, mdp.space.n_tuples)), rng.uniform(-1, 1, n_budgets)
    slack = slater_slack(mdp, g, c)
    assert slater_slack(mdp, g, c + shift) == pytest.approx(slack + shift, abs=1e-8)
    assert slater_slack(mdp, 1e3 * g, 1e3 * c) == pytest.approx(1e3 * slack, abs=1e-5)
    for _ in range(5):
        theta = mdp.occupancy(random_policy(rng, mdp.space, zeros=0.5))
        assert (c - g @ theta).min() <= slack + 1e-8
    found = most_slack(mdp, g, c)
    assert (c - g @ mdp.occupancy(found.policy)).min() == pytest.approx(slack, abs=1e-8)
    # no policy does better: the weighted sum of the slacks is at most this for every policy
    assert (found.weights >= 0).all() and found.weights.sum() == pytest.approx(1.0)
    assert found.weights @ c - best_policy(mdp, found.weights @ g)[0] == pytest.approx(slack, abs=1e-8)


# ------------------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"loss": [0.0] * 3}, r"loss has shape \(3,\); expected \(2,\)"),
        ({"loss": [0.0, np.nan]}, "loss is nan at index 1"),
        ({"loss": [np.inf, 0.0]}, "loss is inf at index 0"),
        ({"constraints": [0.0, 1.0]}, r"constraints has shape \(2,\); expected \(I, 2\)"),
        ({"constraints": [[0.0], [1.0]]}, r"constraints has shape \(2, 1\); expected \(I, 2\)"),
        ({"constraints": [[0.0, 1.0], [1.0]]}, r"constraints is no \(I, 2\) array"),
        ({"constraints": "many"}, r"constraints is no \(I, 2\) array"),
        ({"constraints": [[0.0, 1.0], [-np.inf, 0.0]]}, "constraints is -inf at index 1, 0"),
        ({"budgets": [1.0]}, r"budgets has shape \(1,\); expected \(2,\)"),
        ({"budgets": [1.0, np.nan]}, "budgets is nan at index 1"),
    ],
)
def test_bad_input_is_named(change: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {
        "loss": [0.0, 0.0],
        "constraints": [[0.0, 1.0], [1.0, 0.0]],
        "budgets": [1.0, 1.0],
    } | change
    with pytest.raises(InvalidInputError, match=message):
        solve_cmdp(fork(2), **given)


def test_bad_input_is_named_by_the_others_too() -> None:
    with pytest.raises(InvalidInputError, match="loss is nan at index 0"):
        best_policy(fork(2), [np.nan, 0.0])
    with pytest.raises(InvalidInputError, match=r"budgets has shape \(1,\); expected \(0,\)"):
        slater_slack(fork(2), [], [1.0])
