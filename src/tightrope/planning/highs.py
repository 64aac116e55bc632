"""The occupancy measures of a model as a polytope over pairs, for HiGHS: slow, and independent of everything here.

Since θ(s,a,s') = x(s,a) P(s'|s,a), it is x >= 0 and, at every state s but the last,

    Σ_a x(s,a) − Σ_{r,a} P(s|r,a) x(r,a) = 1 if s is the first state, else 0.
"""

import itertools

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, hstack

from tightrope.errors import ConvergenceError
from tightrope.model import LayeredMDP
from tightrope.space import FloatArray

#: HiGHS reads coefficients below 1e-9 as zero and meets rows to 1e-10 at best: rows are scaled up, so that
#: rare transitions count (exact: a power of two).
ROW_SCALE = 2.0**10


def best_visits(mdp: LayeredMDP, c: FloatArray, D: FloatArray, alpha: FloatArray) -> tuple[FloatArray, FloatArray]:
    """min <c, x> subject to D x <= alpha: x (n_pairs,), and the multipliers (I,) of alpha."""
    x, marginals = _highs(c, ROW_SCALE * csr_array(D), ROW_SCALE * alpha, *_flow(mdp))
    return x, -ROW_SCALE * marginals


def slackest_visits(mdp: LayeredMDP, D: FloatArray, alpha: FloatArray) -> tuple[FloatArray, FloatArray]:
    """max z subject to D x + z <= alpha: x (n_pairs,), and the multipliers (I,), which sum to 1; |z| <= 2 L."""
    flow, source = _flow(mdp)
    rows = hstack([csr_array(D), csr_array(np.ones((len(alpha), 1)))], format="csr")
    flow = hstack([flow, csr_array((len(source), 1))], format="csr")
    cost = np.append(np.zeros(mdp.space.n_pairs), -1.0)
    # the last variable is z + 2L, which cannot be negative
    bounds = alpha + 2.0 * mdp.space.n_layers
    x, marginals = _highs(cost, ROW_SCALE * rows, ROW_SCALE * bounds, flow, source)
    return x[:-1], -ROW_SCALE * marginals


def _flow(mdp: LayeredMDP) -> tuple[csr_array, FloatArray]:
    """(flow, source): what x conserves, flow·x = source."""
    space, last = mdp.space, mdp.space.n_states - 1
    moves = (space.csr.successor < last) & (mdp.transitions > 0)
    inflow = csr_array(
        (mdp.transitions[moves], (space.csr.successor[moves], space.pair_of_tuple[moves])),
        (last, space.n_pairs),
    )
    outflow = csr_array((np.ones(space.n_pairs), (space.pairs[:, 0], np.arange(space.n_pairs))), (last, space.n_pairs))
    source = np.zeros(last)
    source[0] = ROW_SCALE
    return ROW_SCALE * (outflow - inflow), source


def _highs(
    cost: FloatArray, rows: csr_array, bounds: FloatArray, flow: csr_array, source: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """min cost·x over x >= 0, rows·x <= bounds, flow·x = source: x, and the marginals (<= 0) of bounds."""
    # interior points are faster on large models; and presolving may leave one that is infeasible by rounding
    for presolve, method in itertools.product((True, False), ("highs-ipm", "highs-ds")):
        answer = linprog(  # type: ignore[call-overload]  # the stubs know of dense matrices only
            cost,
            A_ub=rows,
            b_ub=bounds,
            A_eq=flow,
            b_eq=source,
            method=method,
            options={
                "presolve": presolve,
                "primal_feasibility_tolerance": 1e-10,
                "dual_feasibility_tolerance": 1e-10,
            },
        )
        if answer.status == 0:
            return answer.x, np.minimum(answer.ineqlin.marginals, 0.0)
    raise ConvergenceError(f"HiGHS could not solve the occupancy LP: {answer.message}")
