"""Values without budgets by QuantEcon's backward induction, on every problem of the suite."""

import fcntl
import os
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from tests.problems.suite import NAMES, make_or_skip
from tests.problems.twin import scenarios
from tightrope.planning.hindsight import best_policy


@pytest.fixture(scope="module")
def markov() -> Any:
    # as it is imported QuantEcon compiles into a cache of its own, which two processes that do so at once leave
    # broken: LLVM then aborts both ("Symbol not found")
    with Path(tempfile.gettempdir(), f"tightrope-{os.getuid()}-quantecon.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return pytest.importorskip("quantecon.markov")


@pytest.mark.parametrize("name", NAMES)
def test_values_without_budgets(name: str, markov: Any) -> None:
    problem = make_or_skip(name)
    space, P = problem.space, problem.mdp.transitions
    end = space.n_states - 1
    s, a = space.pairs.T
    pair = space.expand_to_tuples(np.arange(space.n_pairs))
    # it knows no end: the last state stays where it is, at no charge
    states, actions = np.append(s, end), np.append(a, 0)
    Q = csr_array(
        (np.append(P, 1.0), (np.append(pair, space.n_pairs), np.append(space.csr.successor, end))),
        (space.n_pairs + 1, space.n_states),
    )
    for loss in scenarios(problem):
        reward = np.append(-space.sum_over_successors(P * loss), 0.0)
        with warnings.catch_warnings(action="ignore"):  # that no discount rules out an infinite horizon
            ddp = markov.DiscreteDP(reward, Q, 1.0, states, actions)
        values, _ = markov.backward_induction(ddp, space.n_layers)
        assert -values[0, 0] == pytest.approx(best_policy(problem.mdp, loss)[0], rel=1e-9, abs=1e-9)
