"""HiGHS beside the mixtures of policies: the same answers, and what steps in should a mixture not be good enough."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

import tightrope as tr
from tests.conftest import FloatArray, mdps, random_mdp, random_policy, rngs
from tests.planning.test_hindsight import feasible_problem, fork
from tightrope import ConvergenceError, LayeredMDP, LayeredSpace, solve_cmdp
from tightrope.linear_program import LinearProgram, Method, Optimum
from tightrope.planning import hindsight
from tightrope.planning.hindsight import CMDPSolution, HindsightLP, slater_slack
from tightrope.problems import PROBLEMS


def numbers(rng: np.random.Generator, shape: tuple[int, int], whole: bool) -> FloatArray:
    """Of [-1, 1]; if whole, -1, 0 and 1 alone, which makes ties everywhere."""
    drawn: FloatArray = rng.integers(-1, 2, shape).astype(np.float64) if whole else rng.uniform(-1, 1, shape)
    return drawn


def pair_costs(mdp: LayeredMDP, values: FloatArray) -> FloatArray:
    return mdp.space.sum_over_successors(values * mdp.transitions)


@contextmanager
def without_highs() -> Iterator[None]:
    """Make HiGHS fail, so that only mixtures of policies are left."""

    def refuse(*args: Any) -> None:
        raise AssertionError("the mixture was not good enough")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hindsight, "visits_by_highs", refuse)
        patch.setattr(hindsight, "slackest_visits_by_highs", refuse)
        yield


@contextmanager
def without_mixtures() -> Iterator[None]:
    """Every mixture is a poor one: HiGHS has to step in."""

    def poor(space: LayeredSpace, intervals: Any, c: FloatArray, D: FloatArray, *args: Any) -> Any:
        return SimpleNamespace(x=np.zeros(space.n_pairs), multipliers=np.full(len(D), 100.0))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hindsight, "best_mixture", poor)
        yield


def check_against_highs(mdp: LayeredMDP, losses: list[FloatArray], g: FloatArray, c: FloatArray) -> None:
    """Losses and constraints are of order one; the budgets can be met."""
    with without_highs():
        lp = HindsightLP(mdp, g, c)
        answers = [lp.solve(f) for f in losses]
    for f, answer in zip(losses, answers, strict=True):
        x, _ = hindsight.visits_by_highs(mdp, pair_costs(mdp, f), pair_costs(mdp, g), c)
        # HiGHS meets a row to 1e-10 or so, and what a budget is worth multiplies that
        tolerance = 1e-9 * mdp.space.n_layers * (1 + answer.multipliers.sum())
        assert answer.value == pytest.approx(pair_costs(mdp, f) @ x, abs=tolerance)


# -------------------------------------------------------------------------------- the same, without HiGHS


@pytest.mark.parametrize("name", PROBLEMS)
def test_mixtures_agree_with_highs_on_the_suite(name: str, rng: np.random.Generator) -> None:
    problem = tr.make(name)
    adversary = problem.losses.begin(rng)
    seen = [np.asarray(adversary.loss(t)) for t in range(1, 4)]
    losses = [seen[0], np.mean(seen, axis=0), -seen[0], rng.uniform(-1, 1, problem.space.n_tuples)]
    check_against_highs(problem.mdp, losses, problem.constraints.mean, problem.budgets)


@given(
    mdps(),
    rngs(),
    st.sampled_from([0, 1, 2, 3, 10]),
    st.booleans(),
    st.sampled_from(["met", "just met", "wide", "edge"]),
)
def test_mixtures_agree_with_highs_on_random_models(
    mdp: LayeredMDP, rng: np.random.Generator, n_budgets: int, whole: bool, kind: str
) -> None:
    f, *rows = numbers(rng, (n_budgets + 1, mdp.space.n_tuples), whole)
    g = np.array(rows[:1] + rows[:-1] if whole else rows).reshape(n_budgets, mdp.space.n_tuples)  # a budget, twice
    c = g @ mdp.occupancy(random_policy(rng, mdp.space, zeros=1.0 if kind == "just met" else 0.0))
    if kind == "edge" and n_budgets > 0:
        c -= slater_slack(mdp, g, c)
    check_against_highs(mdp, [f, -f], g, c + (0.1 if kind == "wide" else 1e-10 if kind == "edge" else 0.0))


@given(mdps(), rngs(), st.integers(1, 4), st.booleans())
def test_slack_agrees_with_highs(mdp: LayeredMDP, rng: np.random.Generator, n_budgets: int, whole: bool) -> None:
    g, c = numbers(rng, (n_budgets, mdp.space.n_tuples), whole), rng.uniform(0, 1, n_budgets)
    x, q = hindsight.slackest_visits_by_highs(mdp, pair_costs(mdp, g), c)
    assert q.sum() == pytest.approx(1.0, abs=1e-9)
    with without_highs():
        slack = slater_slack(mdp, g, c)
    assert slack == pytest.approx((c - pair_costs(mdp, g) @ x).min(), abs=1e-8)


# ------------------------------------------------------------------------------------ should they fail


@given(mdps(), rngs(), st.integers(0, 3))
def test_highs_steps_in(mdp: LayeredMDP, rng: np.random.Generator, n_budgets: int) -> None:
    f, g, c = feasible_problem(rng, mdp, n_budgets)
    x, q = hindsight.visits_by_highs(mdp, pair_costs(mdp, f), pair_costs(mdp, g), c)
    with without_mixtures():
        answer = solve_cmdp(mdp, f, g, c)
    assert answer.value == pytest.approx(pair_costs(mdp, f) @ x, abs=1e-8 * (1 + q.sum()))
    assert answer.violation <= 1e-8


Change = Callable[[Method, bool, Optimum], Optimum | None]


def replace_answers(monkeypatch: pytest.MonkeyPatch, change: Change) -> None:
    """Let `change` replace every answer of HiGHS; it is given the method and whether the LP was presolved."""

    class Changed(LinearProgram):
        def solve(self, method: Method = "simplex", *, presolve: bool = True) -> Optimum | None:
            answer = super().solve(method, presolve=presolve)
            assert answer is not None
            changed = change(method, presolve, answer)
            self.message = "Unbounded" if changed is None else self.message
            return changed

    monkeypatch.setattr(hindsight, "LinearProgram", Changed)


def solve_half() -> CMDPSolution:
    with without_mixtures():
        lp = HindsightLP(fork(2), [[0.0, 1.0]], [0.5])
        return lp.solve([1.0, 0.0])


def test_a_solver_that_gives_up_is_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    replace_answers(monkeypatch, lambda method, presolve, answer: None)
    with pytest.raises(ConvergenceError, match=r"HiGHS could not solve .*: Unbounded$"):
        solve_half()


def test_a_second_method_steps_in(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []

    def first_gives_up(method: Method, presolve: bool, answer: Optimum) -> Optimum | None:
        tried.append(method)
        return None if method == "ipx" else answer

    replace_answers(monkeypatch, first_gives_up)
    assert solve_half().value == pytest.approx(0.5, abs=1e-12)
    assert set(tried) == {"ipx", "simplex"}


def replace_x(monkeypatch: pytest.MonkeyPatch, x: list[float]) -> None:
    """Replace the answer of the hindsight LP itself, not that of the check of the budgets."""
    replace_answers(monkeypatch, lambda _, __, answer: answer._replace(x=np.array(x)) if len(answer.x) == 2 else answer)


@pytest.mark.parametrize("x", [[0.51, 0.49], [0.49, 0.51]])
def test_a_wrong_answer_of_the_solver_is_not_passed_on(monkeypatch: pytest.MonkeyPatch, x: list[float]) -> None:
    """Feasible but not the best, or better but over the budget."""
    replace_x(monkeypatch, x)
    with pytest.raises(ConvergenceError, match="hindsight LP was not solved well enough"):
        solve_half()


@pytest.mark.parametrize("off", [1e-10, -1e-10])
def test_the_certificate_is_in_the_units_of_loss_and_budget(monkeypatch: pytest.MonkeyPatch, off: float) -> None:
    """A hair too careful or over the budget: passed on, and said."""
    replace_x(monkeypatch, [0.5 + off, 0.5 - off])
    with without_mixtures():
        solution = solve_cmdp(fork(2), [1e5, 0.0], [[0.0, 1e3]], [500.0])
    assert solution.duality_gap == pytest.approx(max(0.0, 1e5 * off), rel=1e-4, abs=1e-10)
    assert solution.violation == pytest.approx(max(0.0, -1e3 * off), rel=1e-4, abs=1e-10)


def test_a_wrong_slack_of_the_solver_is_not_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def spoil(method: Method, presolve: bool, answer: Optimum) -> Optimum:
        return answer._replace(x=np.append(answer.x[-2::-1], answer.x[-1]))

    replace_answers(monkeypatch, spoil)
    with without_mixtures(), pytest.raises(ConvergenceError, match="slack was not solved well enough"):
        slater_slack(fork(2), [[0.0, 1.0]], [0.5])


def test_an_lp_that_presolving_spoils_is_solved_without(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    mdp = random_mdp(rng, LayeredSpace.dense([1, 3, 2, 1], 2))
    f, g, c = feasible_problem(rng, mdp, 1)
    expected = solve_cmdp(mdp, f, g, c).value
    replace_answers(monkeypatch, lambda method, presolve, answer: None if presolve else answer)
    with without_mixtures():
        assert solve_cmdp(mdp, f, g, c).value == pytest.approx(expected, abs=1e-8)


# ------------------------------------------------------------------------------- against another solver


def tuple_lp(mdp: LayeredMDP, f: FloatArray, g: FloatArray, c: FloatArray) -> Any:
    """SciPy's dual simplex on the same polytope, written out over pairs as dense rows, and unscaled."""
    space, last = mdp.space, mdp.space.n_states - 1
    flow = np.zeros((last, space.n_pairs))
    np.add.at(flow, (space.pairs[:, 0], np.arange(space.n_pairs)), 1.0)
    inner = space.csr.successor < last
    np.add.at(flow, (space.csr.successor[inner], space.pair_of_tuple[inner]), -mdp.transitions[inner])
    return linprog(f, g if len(g) else None, c if len(c) else None, flow, np.eye(last)[0], method="highs-ds")


@given(mdps(), rngs(), st.integers(0, 3))
def test_best_visits_agree_with_scipy(mdp: LayeredMDP, rng: np.random.Generator, n_budgets: int) -> None:
    f, g, c = feasible_problem(rng, mdp, n_budgets)
    D = pair_costs(mdp, g)
    x, q = hindsight.visits_by_highs(mdp, pair_costs(mdp, f), D, c)
    expected = tuple_lp(mdp, pair_costs(mdp, f), D, c)
    assert pair_costs(mdp, f) @ x == pytest.approx(expected.fun, abs=1e-6 * (1 + q.sum()))
    assert (q >= 0).all()
    lagrangian = tuple_lp(mdp, pair_costs(mdp, f) + q @ D, np.empty((0, len(x))), np.empty(0))
    assert lagrangian.fun - q @ c == pytest.approx(expected.fun, abs=1e-6 * (1 + q.sum()))  # q is a dual optimum
