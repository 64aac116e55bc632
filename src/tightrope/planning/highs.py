"""The occupancy measures of a model as a polytope over pairs, for HiGHS: slow, and independent of everything here.

Since θ(s,a,s') = x(s,a) P(s'|s,a), it is x >= 0 and, at every state s but the last,

    Σ_a x(s,a) − Σ_{r,a} P(s|r,a) x(r,a) = 1 if s is the first state, else 0.
"""

import itertools

import numpy as np

from tightrope.errors import ConvergenceError
from tightrope.linear_program import LinearProgram, Method
from tightrope.model import LayeredMDP
from tightrope.space import FloatArray

#: HiGHS reads coefficients below 1e-9 as zero and meets rows to 1e-10 at best: rows are scaled up, so that
#: rare transitions count (exact: a power of two).
ROW_SCALE = 2.0**10

#: In the order in which they are tried.
METHODS: tuple[Method, ...] = ("ipx", "simplex")


def best_visits(mdp: LayeredMDP, c: FloatArray, D: FloatArray, alpha: FloatArray) -> tuple[FloatArray, FloatArray]:
    """min <c, x> subject to D x <= alpha: x (n_pairs,), and the multipliers (I,) of alpha."""
    return _solved(mdp, c, D, alpha)


def slackest_visits(mdp: LayeredMDP, D: FloatArray, alpha: FloatArray) -> tuple[FloatArray, FloatArray]:
    """max z subject to D x + z <= alpha: x (n_pairs,), and the multipliers (I,), which sum to 1; |z| <= 2 L."""
    cost = np.append(np.zeros(mdp.space.n_pairs), -1.0)
    # the last variable is z + 2L, which cannot be negative
    x, multipliers = _solved(mdp, cost, np.column_stack([D, np.ones(len(D))]), alpha + 2.0 * mdp.space.n_layers)
    return x[:-1], multipliers


def _solved(mdp: LayeredMDP, cost: FloatArray, rows: FloatArray, bounds: FloatArray) -> tuple[FloatArray, FloatArray]:
    """min cost·x over x >= 0 whose first n_pairs entries are visits, rows·x <= bounds: x, and the multipliers >= 0."""
    lp = LinearProgram(cost, np.zeros(len(cost)), tolerance=1e-10)
    i, p = np.nonzero(rows)
    lp.add_rows(i, p, ROW_SCALE * rows[i, p], np.full(len(rows), -np.inf), ROW_SCALE * bounds)
    _add_flow(lp, mdp)
    # interior points are faster on large models; and presolving may leave one that is infeasible by rounding
    for presolve, method in itertools.product((True, False), METHODS):
        lp.clear()
        answer = lp.solve(method, presolve=presolve)
        if answer is not None:
            return answer.x, -ROW_SCALE * np.minimum(answer.duals[: len(rows)], 0.0)
    raise ConvergenceError(f"HiGHS could not solve the occupancy LP: {lp.message}")


def _add_flow(lp: LinearProgram, mdp: LayeredMDP) -> None:
    """Require of x what is conserved at every state but the last."""
    space, last = mdp.space, mdp.space.n_states - 1
    moves = (space.csr.successor < last) & (mdp.transitions > 0)
    source = np.zeros(last)
    source[0] = ROW_SCALE
    lp.add_rows(
        np.concatenate([space.pairs[:, 0], space.csr.successor[moves]]),
        np.concatenate([np.arange(space.n_pairs), space.pair_of_tuple[moves]]),
        ROW_SCALE * np.concatenate([np.ones(space.n_pairs), -mdp.transitions[moves]]),
        source,
        source,
    )
