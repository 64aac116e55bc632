"""Optimistic planning: against HiGHS on the whole extended LP, against planning in a known model."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import FloatArray, mdps, random_counts, random_mdp, random_policy, rngs
from tests.extended_lp import extended_lp
from tightrope import ConvergenceError, InvalidInputError, LayeredMDP, LayeredSpace, Policy, core, solve_cmdp
from tightrope.planning import dynamic_programming
from tightrope.planning.dynamic_programming import Intervals, best_response, plan
from tightrope.planning.hindsight import best_policy


@st.composite
def tasks(draw: st.DrawFn) -> tuple[LayeredSpace, Intervals, FloatArray, FloatArray, FloatArray]:
    """Boxes from free to single points, up to three budgets: loose, binding or impossible."""
    mdp, rng = draw(mdps()), draw(rngs())
    space, n_constraints = mdp.space, draw(st.integers(0, 3))
    N, M = random_counts(rng, mdp, draw(st.sampled_from([2, 20, 2000])))
    intervals = Intervals.of_counts(space, N, M, log_term=3.0, scale=draw(st.sampled_from([0.0, 0.05, 1.0])))
    c, D = rng.uniform(-1, 1, space.n_pairs), rng.uniform(-1, 1, (n_constraints, space.n_pairs))
    usual = best_response(space, intervals, rng.uniform(-1, 1, space.n_pairs))[1]
    return space, intervals, c, D, D @ usual + draw(st.sampled_from([-0.3, 0.02, 0.3]))


@given(tasks())
def test_the_plan_is_the_answer_of_the_extended_lp(
    task: tuple[LayeredSpace, Intervals, FloatArray, FloatArray, FloatArray],
) -> None:
    space, intervals, c, D, alpha = task
    answer = plan(space, intervals, c, D, alpha)
    expected = extended_lp(space, intervals.lower, intervals.upper, c, D, alpha)
    assert answer.excess == pytest.approx(expected.excess, abs=1e-6)
    Policy(space, answer.policy.probabilities)
    if expected.excess < 1e-9:
        assert answer.value == pytest.approx(expected.value, abs=1e-6)
        assert (D @ answer.visits <= alpha + 1e-6).all()
        assert (answer.multipliers >= 0).all()


@given(mdps(), rngs())
def test_with_zero_radii_it_is_the_lp_of_the_model(mdp: LayeredMDP, rng: np.random.Generator) -> None:
    space = mdp.space
    f, g = rng.uniform(-1, 1, space.n_tuples), rng.uniform(-1, 1, (2, space.n_tuples))
    c = g @ mdp.occupancy(random_policy(rng, space)) + 0.05
    expected = solve_cmdp(mdp, f, g, c)
    per_pair = space.sum_over_successors(np.vstack([f, g]) * mdp.transitions)
    answer = plan(space, Intervals.around(mdp), per_pair[0], per_pair[1:], c)
    assert answer.value == pytest.approx(expected.value, abs=1e-7)
    theta = mdp.occupancy(answer.policy)
    assert f @ theta == pytest.approx(expected.value, abs=1e-7)
    assert (g @ theta <= c + 1e-7).all()
    bound = best_policy(mdp, f + answer.multipliers @ g)[0] - answer.multipliers @ c
    assert bound == pytest.approx(expected.value, abs=1e-7)


@given(mdps(), rngs())
def test_with_the_model_inside_it_is_optimistic_and_the_more_so_the_wider(
    mdp: LayeredMDP, rng: np.random.Generator
) -> None:
    space = mdp.space
    c, D = rng.uniform(-1, 1, space.n_pairs), rng.uniform(-1, 1, (1, space.n_pairs))
    usage = space.sum_over_successors(mdp.occupancy(random_policy(rng, space)))
    beta = rng.uniform(0, 0.5, space.n_tuples)
    values = [
        plan(space, Intervals.around(mdp, scale * beta), c, D, D @ usage + 0.01).value for scale in (0.0, 0.2, 1.0)
    ]
    true = solve_cmdp(mdp, space.expand_to_tuples(c), space.expand_to_tuples(D), D @ usage + 0.01).value
    assert values[0] == pytest.approx(true, abs=1e-7)
    assert values[2] <= values[1] + 1e-7 <= values[0] + 2e-7


@given(mdps(), rngs())
def test_without_budgets_it_is_dynamic_programming(mdp: LayeredMDP, rng: np.random.Generator) -> None:
    space, cost = mdp.space, rng.uniform(-1, 1, mdp.space.n_pairs)
    value, x, policy = best_response(space, Intervals.around(mdp), cost)
    assert value == pytest.approx(best_policy(mdp, space.expand_to_tuples(cost))[0])
    assert cost @ x == pytest.approx(value)
    np.testing.assert_allclose(space.expand_to_tuples(x) * mdp.transitions, mdp.occupancy(policy), atol=1e-12)
    answer = plan(space, Intervals.around(mdp), cost, np.empty((0, space.n_pairs)), [])
    np.testing.assert_array_equal(answer.policy.probabilities[x > 0], policy.probabilities[x > 0])


def test_where_a_plan_never_goes_its_policy_is_still_the_best_one() -> None:
    space = LayeredSpace.dense([1, 2, 1], 2)
    mdp = LayeredMDP(space, [1, 0, 1, 0, 1, 1, 1, 1])  # always to the first of the two states
    answer = plan(space, Intervals.around(mdp), [0, 1, 0, 1, 1, 0], np.empty((0, 6)), [])
    np.testing.assert_array_equal(answer.policy.probabilities, [1, 0, 1, 0, 0, 1])


@pytest.mark.parametrize("shortage", [0.0, 1e-12, 1e-9])
def test_budgets_that_leave_no_room_at_all_are_met(shortage: float, rng: np.random.Generator) -> None:
    """The least use is the budget: whether there is an answer is a matter of rounding."""
    for _ in range(20):
        mdp = random_mdp(rng, LayeredSpace.dense([1, 3, 3, 1], 2))
        intervals = Intervals.around(mdp, 0.1)
        c, d = rng.uniform(-1, 1, (2, mdp.space.n_pairs))
        least, x, _ = best_response(mdp.space, intervals, d)
        answer = plan(mdp.space, intervals, c, [d], [least - shortage])
        assert answer.excess == 0
        assert answer.value == pytest.approx(c @ x, abs=1e-4)


@pytest.mark.parametrize(
    ("c", "D"),
    [
        ([2, 3, 3, 2, 3, 1], [[1, 2, 2, 0, 1, 1], [2, 1, 1, 2, 1, 2]]),
        ([0, 2, 0, 2, 1, 0], [[0, 2, 1, 1, 1, 1], [1, 1, 1, 2, 0, 2]]),
    ],
)
def test_of_columns_that_run_out_together_relief_leaves_first(c: list[int], D: list[list[int]]) -> None:
    """The policy that meets the budgets exactly leaves several columns without weight at once."""
    space, rows = LayeredSpace.dense([1, 2, 1], 2), np.array(D, dtype=float)
    P = np.append(np.full(4, 0.5), np.ones(4))
    x = best_response(space, Intervals(P, P, np.zeros(6)), rows[0])[1]
    over, _, mixture = core.best_mixture(space.native, P, P, np.array(c, dtype=float), rows, rows @ x, 1e-11, 100)
    assert not over
    assert (rows @ mixture <= rows @ x + 1e-12).all()


def test_a_plan_that_is_not_good_enough_is_not_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dynamic_programming, "MAX_PIVOTS", 1)
    space = LayeredSpace.dense([1, 3, 3, 1], 2)
    rng = np.random.default_rng(2)
    c, D = rng.uniform(-1, 1, space.n_pairs), rng.uniform(-1, 1, (3, space.n_pairs))
    intervals = Intervals.around(random_mdp(rng, space))
    with pytest.raises(ConvergenceError, match="optimistic LP"):
        plan(space, intervals, c, D, D @ best_response(space, intervals, D.sum(axis=0))[1] + 0.01)


def test_a_box_by_the_empirical_bernstein_bound(rng: np.random.Generator) -> None:
    mdp = random_mdp(rng, LayeredSpace.dense([1, 3, 2, 1], 2))
    space = mdp.space
    N, M = random_counts(rng, mdp, 400)
    N[3], M[space.csr.pair_ptr[3] : space.csr.pair_ptr[4]] = 0, 0
    intervals = Intervals.of_counts(space, N, M, log_term=2.0, scale=0.5)
    n = space.expand_to_tuples(np.maximum(N, 1))
    P_hat = M / n
    beta = np.minimum(0.5 * (np.sqrt(4 * P_hat * (1 - P_hat) * 2 / n) + 14 * 2 / (3 * n)), 1)
    free = space.expand_to_tuples(N) == 0
    np.testing.assert_allclose(intervals.lower, np.where(free, 0, np.maximum(P_hat - beta, 0)), atol=1e-15)
    np.testing.assert_allclose(intervals.upper, np.where(free, 1, np.minimum(P_hat + beta, 1)), atol=1e-15)
    np.testing.assert_allclose(intervals.radius, space.sum_over_successors(beta))
    assert (intervals.lower[~free] > 0).any() and (intervals.upper[~free] < 1).any()


def test_what_makes_no_sense_is_refused() -> None:
    space = LayeredSpace.dense([1, 2, 1], 2)
    mdp = LayeredMDP(space, [0.5, 0.5, 0.5, 0.5, 1, 1, 1, 1])
    with pytest.raises(InvalidInputError, match="radius is -1"):
        Intervals.around(mdp, -1.0)
    with pytest.raises(InvalidInputError, match="loss has shape"):
        plan(space, Intervals.around(mdp), np.zeros(5), np.zeros((1, 6)), [1.0])
    with pytest.raises(InvalidInputError, match="constraints has shape"):
        plan(space, Intervals.around(mdp), np.zeros(6), np.zeros((2, 6)), [1.0])
