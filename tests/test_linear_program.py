"""Linear programs: SciPy's answers, rows added between solves, silence, one thread, interrupts."""

import os
import signal
from typing import Any

import highspy
import numpy as np
import pytest
from highspy.highs import HighsCallbackEvent
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from tests.conftest import FloatArray, rngs
from tightrope.linear_program import LinearProgram, Method

METHODS: tuple[Method, ...] = ("ipx", "simplex")


class Program:
    """Random: bounded and feasible; free variables, equal rows, rows of zeros."""

    def __init__(self, rng: np.random.Generator, n: int, n_rows: int) -> None:
        self.A = rng.integers(-2, 3, (n_rows, n)) * rng.uniform(0.5, 2, (n_rows, n))
        x = rng.uniform(0, 1, n)
        y = rng.uniform(0, 1, n_rows)  # dual: the cost is a combination of rows, and of x >= 0 where it is bounded
        kind = rng.integers(0, 3, n_rows)  # at least, at most, equal
        self.low = np.where(kind == 1, -np.inf, self.A @ x - np.where(kind == 0, rng.uniform(0, 1, n_rows), 0.0))
        self.high = np.where(kind == 0, np.inf, self.A @ x + np.where(kind == 1, rng.uniform(0, 1, n_rows), 0.0))
        free = rng.random(n) < 0.3
        self.lower = np.where(free, -np.inf, 0.0)
        self.cost = self.A.T @ np.where(kind == 1, -y, y) + np.where(free, 0.0, rng.uniform(0, 1, n))

    def made(self, rows: slice = slice(None)) -> LinearProgram:
        lp = LinearProgram(self.cost, self.lower)
        self.extend(lp, rows)
        return lp

    def extend(self, lp: LinearProgram, rows: slice) -> None:
        i, j = np.nonzero(self.A[rows])
        lp.add_rows(i, j, self.A[rows][i, j], self.low[rows], self.high[rows])

    def expected(self) -> float:
        low, high, A = np.isfinite(self.low), np.isfinite(self.high), self.A
        answer: Any = linprog(
            self.cost,
            np.vstack([-A[low], A[high]]),
            np.concatenate([-self.low[low], self.high[high]]),
            bounds=[(None if np.isinf(bound) else 0, None) for bound in self.lower],
        )
        assert answer.status == 0
        return float(answer.fun)


@given(rngs(), st.integers(1, 12), st.integers(1, 8), st.sampled_from(METHODS), st.booleans())
def test_answers_agree_with_scipy(
    rng: np.random.Generator, n: int, n_rows: int, method: Method, presolve: bool
) -> None:
    program = Program(rng, n, n_rows)
    answer = program.made().solve(method, presolve=presolve)
    assert answer is not None
    assert program.cost @ answer.x == pytest.approx(program.expected(), abs=1e-6)
    assert (answer.x >= program.lower - 1e-6).all()
    used = program.A @ answer.x
    assert (used >= program.low - 1e-6).all() and (used <= program.high + 1e-6).all()
    # the duals prove the value: weak duality, with every bound at the side that its sign says
    at = np.where(answer.duals > 0, program.low, program.high)
    worth = np.where(np.abs(answer.duals) > 1e-9, answer.duals * np.where(np.isfinite(at), at, 0.0), 0.0).sum()
    assert worth == pytest.approx(program.expected(), abs=1e-6)
    assert (program.cost - program.A.T @ answer.duals >= -1e-6).all()


@given(rngs(), st.integers(1, 12), st.integers(2, 8))
def test_rows_can_be_added_between_solves(rng: np.random.Generator, n: int, n_rows: int) -> None:
    program = Program(rng, n, n_rows)
    lp = program.made(slice(0, 1))
    for i in range(1, n_rows):
        lp.solve()
        program.extend(lp, slice(i, i + 1))
    answer = lp.solve()
    assert answer is not None and program.cost @ answer.x == pytest.approx(program.expected(), abs=1e-6)


def some_row(lp: LinearProgram, low: float, high: float) -> None:
    lp.add_rows(np.array([0]), np.array([0]), np.ones(1), np.array([low]), np.array([high]))


@pytest.mark.parametrize("method", METHODS)
def test_a_program_without_an_optimum_raises(method: Method) -> None:
    lp = LinearProgram(-np.ones(1), np.zeros(1))
    assert lp.solve(method, presolve=False) is None and lp.message == "Unbounded"
    some_row(lp, -np.inf, -1.0)
    assert lp.solve(method, presolve=False) is None and lp.message == "Infeasible"


def dense(seed: int, kind: type[LinearProgram] = LinearProgram, n_rows: int = 60) -> tuple[LinearProgram, FloatArray]:
    """A program that takes some iterations, and its cost."""
    rng = np.random.default_rng(seed)
    A, cost = rng.random((n_rows, 3 * n_rows)), rng.random(3 * n_rows)
    lp = kind(cost, np.zeros(len(cost)))
    i, j = np.nonzero(A)
    lp.add_rows(i, j, A[i, j], A.mean(axis=1), np.full(n_rows, np.inf))
    return lp, cost


@pytest.mark.parametrize("method", METHODS)
def test_solving_is_silent_and_gives_the_same_bits(method: Method, capfd: pytest.CaptureFixture[str]) -> None:
    answers = [dense(1)[0].solve(method) for _ in range(2)]
    again, _ = dense(1)
    again.solve("simplex")
    again.clear()
    answers.append(again.solve(method))
    for answer in answers:
        assert answer is not None and answers[0] is not None
        np.testing.assert_array_equal(answer.x, answers[0].x)
        np.testing.assert_array_equal(answer.duals, answers[0].duals)
    assert capfd.readouterr() == ("", "")


def test_own_use_of_highs_with_more_threads_does_not_disturb_it() -> None:
    """HiGHS refuses to run with another number of threads than before."""
    expected = dense(2)[0].solve()
    own = highspy.Highs()  # type: ignore[no-untyped-call]
    for name, value in {"output_flag": False, "threads": 2}.items():
        own.setOptionValue(name, value)
    own.addVar(0.0, 1.0)
    assert own.run() == highspy.HighsStatus.kOk
    answer = dense(2)[0].solve()
    assert answer is not None and expected is not None
    np.testing.assert_array_equal(answer.x, expected.x)
    assert own.run() == highspy.HighsStatus.kOk


class Interrupting(LinearProgram):
    """Sends an interrupt to this process from its first iteration, and waits until it is asked to stop."""

    asked = False

    def _look(self, event: HighsCallbackEvent) -> None:
        if not self.asked:
            self.asked = True
            os.kill(os.getpid(), signal.SIGINT)
            assert self._stop.wait(60)
        super()._look(event)


@pytest.mark.parametrize("method", METHODS)
def test_a_solve_can_be_interrupted_and_started_again(method: Method) -> None:
    lp, cost = dense(3, Interrupting)
    expected = dense(3)[0].solve(method, presolve=False)
    with pytest.raises(KeyboardInterrupt):
        lp.solve(method, presolve=False)
    assert "nterrupt" in lp._highs.modelStatusToString(lp._highs.getModelStatus())
    lp.clear()
    answer = lp.solve(method, presolve=False)
    assert answer is not None and expected is not None and lp.message == "Optimal"
    assert cost @ answer.x == pytest.approx(cost @ expected.x)
