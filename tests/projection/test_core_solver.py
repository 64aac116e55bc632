"""The solver of the core at its border: bad arguments, interrupts, threads and forks."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import FloatArray
from tests.instances import Instance, random_instance
from tightrope import L1Ball, LayeredMDP, LayeredSpace, core
from tightrope.projection.projector import hand_over


def solver_of(instance: Instance, kind: Any = core.Solver, direct: bool = True) -> Any:
    solver = kind(instance.space.native, direct)
    hand_over(instance.confidence, solver, instance.confidence.free(instance.space))
    return solver


Call = tuple[Callable[..., Any], list[Any]]


def calls() -> list[Call]:
    """Every function of the solver that takes arrays, with arguments that fit."""
    instance = random_instance(3)
    space, n_states = instance.space, instance.space.n_states
    tuples, pairs, states = np.full(space.n_tuples, 0.5), np.full(space.n_pairs, 0.5), np.zeros(n_states)
    free, rows = np.zeros(space.n_pairs, dtype=bool), np.ones((2, space.n_tuples))
    solver, parts = solver_of(instance), solver_of(instance, core.Parts)
    parts.evaluate(instance.reference, instance.cost, states)
    factor = np.zeros(solver.factor_size)
    return [
        (solver.set_l1, [tuples, pairs, free]),
        (solver.set_box, [0 * tuples, 2 * tuples, free]),
        (solver.set_cut_box, [0 * tuples, 2 * tuples, tuples, pairs, free]),
        (solver.set_kl, [tuples, pairs, free]),
        (solver_of(instance).solve, [instance.reference, instance.cost, 1e-9, tuples.copy()]),
        (solver.state, [np.empty((2, space.n_pairs)), np.empty_like(factor)]),
        (solver.restore, [states, np.zeros((2, space.n_pairs)), factor, np.nan]),
        (parts.evaluate, [instance.reference, instance.cost, states]),
        (parts.sweep, [states, True]),
        (parts.conjugate_gradients, [0.1, 1e-3, states.copy()]),
        (parts.respond, [rows, 0.1, np.empty((2, n_states)), np.empty((2, n_states)), np.empty((2, 2))]),
        (core.least_prices, [np.eye(3), np.ones(3)]),
        (core.solve_tridiagonal, [np.array([1, 2]), np.arange(7.0), np.ones(3)]),
    ]


def spoilt(array: np.ndarray, how: str) -> Any:
    """Something like the array that does not fit."""
    if how == "longer":
        return np.concatenate([array, array[:1]])
    if how == "shorter":
        return array[:-1].copy()
    if how == "other numbers":
        return array.astype(np.float32)
    if how == "apart":
        return np.repeat(array, 2, axis=-1)[..., ::2]
    if how == "more axes":
        return array[None]
    return array.tolist() if how == "a list" else None


@given(
    st.integers(0, 12),
    st.integers(0, 5),
    st.sampled_from(["longer", "shorter", "other numbers", "apart", "more axes", "a list", "none"]),
)
def test_arguments_that_do_not_fit_are_refused(which: int, argument: int, how: str) -> None:
    function, arguments = calls()[which]
    arrays = [i for i, value in enumerate(arguments) if isinstance(value, np.ndarray)]
    function(*arguments)
    bad = arrays[argument % len(arrays)]
    arguments[bad] = spoilt(arguments[bad], how)
    with pytest.raises((TypeError, ValueError)):
        function(*arguments)


def test_what_was_not_prepared_is_refused() -> None:
    space = random_instance(3).space
    tuples, states = np.ones(space.n_tuples), np.zeros(space.n_states)
    with pytest.raises(RuntimeError, match="no confidence set"):
        core.Solver(space.native, True).solve(tuples, tuples, 1e-9, tuples.copy())
    parts: Any = core.Parts(space.native, True)
    for function, arguments in ((parts.divided, ()), (parts.sweep, (states, True)), (parts.assembled, (0.0,))):
        with pytest.raises(RuntimeError, match="nothing was evaluated"):
            function(*arguments)
    parts = core.Parts(space.native, False)
    parts.set_l1(tuples, np.zeros(space.n_pairs), np.zeros(space.n_pairs, dtype=bool))
    parts.evaluate(tuples, tuples, states)
    with pytest.raises(RuntimeError, match="no panels"):
        parts.assembled(0.0)
    with pytest.raises((TypeError, RuntimeError)):
        core.Solver("no space", True)


@given(st.integers(1, 12), st.integers(0, 12), st.integers(0, 10_000))
def test_the_least_prices_meet_their_conditions(m: int, rank: int, seed: int) -> None:
    """y >= 0, S y − r >= 0, and one of them 0: also where rows are equal or empty."""
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((m, rank)) * (rng.random((m, 1)) < 0.8)
    root[rng.integers(m)] = root[0]
    S = root @ root.T + 1e-6 * np.diag(np.abs(root).sum(axis=1))
    r = S @ rng.standard_normal(m) * (np.diag(S) > 0)
    y = core.least_prices(S, r)
    slope, size = S @ y - r, 1 + np.abs(S) @ y + np.abs(r)
    assert (y >= 0).all()
    assert (slope >= -1e-7 * size).all()
    assert (np.minimum(y, slope) <= 1e-7 * size).all()
    assert not y[np.diag(S) == 0].any()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no timers")
def test_a_long_solve_can_be_interrupted_and_starts_cold_after_it() -> None:
    """Other threads of Python run meanwhile."""
    space = LayeredSpace.dense([1, 40, 40, 40, 1], 4)
    ball = L1Ball(LayeredMDP.even(space).transitions, np.full(space.n_pairs, 0.2))
    cost = np.random.default_rng(0).uniform(0, 1, space.n_tuples)
    instance = Instance(space, np.ones(space.n_tuples), cost, ball)
    solver, theta, again = solver_of(instance), np.empty((2, space.n_tuples)), threading.Event()
    other = threading.Thread(target=again.wait)
    other.start()

    def stop(*_: object) -> None:
        again.set()
        other.join()
        raise KeyboardInterrupt

    solver.solve(instance.reference, 0.5 * cost, 1e-9, theta[0])
    assert solver.potentials.any()
    usual = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        with pytest.raises(KeyboardInterrupt):
            solver.solve(instance.reference, cost, -1.0, theta[0])  # no residual is below 0: seconds
    finally:
        signal.signal(signal.SIGALRM, usual)
    assert not solver.potentials.any()
    for each, answer in ((solver, theta[0]), (solver_of(instance), theta[1])):
        each.solve(instance.reference, cost, 1e-9, answer)
    np.testing.assert_array_equal(theta[0], theta[1])


MANY = """
import hashlib, os, sys
import numpy as np
import tightrope as tr
from tightrope import L1Ball, LayeredMDP, LayeredSpace, core

def answers():
    found = []
    for space, direct in (
        (tr.LayeredSpace.dense([1, 90, 90, 90, 1], 8), True),
        (tr.make("grid", n_rows=14, n_columns=14, n_steps=24).space, False),
        (tr.LayeredSpace.dense([1, 90, 90, 90, 1], 8), False),
    ):
        rng = np.random.default_rng(5)
        center = tr.LayeredMDP.even(space).transitions * rng.uniform(0.2, 1, space.n_tuples)
        center /= space.expand_to_tuples(space.sum_over_successors(center))
        solver, theta = core.Solver(space.native, direct), np.empty(space.n_tuples)
        solver.set_l1(center, np.full(space.n_pairs, 0.2), np.zeros(space.n_pairs, dtype=bool))
        for scale in (1.0, 1.01):
            _, residual, _, _ = solver.solve(center + 1e-3, scale * rng.uniform(0, 1, space.n_tuples), 1e-9, theta)
            assert residual <= 1e-9
            found.append(hashlib.sha256(theta.tobytes()).hexdigest())
    return found

first = answers()
print(first)
child = os.fork()
if child == 0:
    os._exit(0 if answers() == first else 1)
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
def test_any_number_of_threads_gives_the_same_bits_also_after_a_fork() -> None:
    printed = set()
    for threads in ("1", "2", "4"):
        environment = os.environ | {"TIGHTROPE_THREADS": threads}
        done = subprocess.run(
            [sys.executable, "-c", MANY], env=environment, capture_output=True, text=True, check=False, timeout=300
        )
        assert done.returncode == 0, done.stderr
        printed.add(done.stdout)
    assert len(printed) == 1


def test_a_solver_serves_one_thread_at_a_time() -> None:
    """A thread that calls during a solve gets an error or waits; no thread gets a wrong answer."""
    instance = random_instance(11, max_steps=6, max_width=8)
    solver, right = solver_of(instance), np.empty(instance.space.n_tuples)
    solver.solve(instance.reference, instance.cost, 1e-12, right)
    wrong: list[FloatArray] = []

    def ask() -> None:
        theta = np.empty_like(right)
        for _ in range(50):
            try:
                solver.solve(instance.reference, instance.cost, 1e-12, theta)
            except RuntimeError as error:
                assert "in use by another thread" in str(error)
            else:
                wrong.extend([theta.copy()] if np.abs(theta - right).max() > 1e-9 else [])

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
