"""The extended LP of Efroni, Mannor & Pirotta over measures q(s,a,s'), row by row, for HiGHS."""

from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog

from tests.conftest import FloatArray, pair_of_tuple
from tightrope import LayeredSpace

#: What a unit of the common excess over all budgets costs.
RELIEF = 1e4


class Answer(NamedTuple):
    """The solution of the extended LP."""

    value: float  # <c, x>, x(s,a) = Σ_s' q(s,a,s'); and RELIEF for every unit of the excess
    x: FloatArray  # (n_pairs,)
    multipliers: FloatArray  # (I,)
    excess: float


def extended_lp(
    space: LayeredSpace,
    lower: FloatArray,
    upper: FloatArray,
    c: FloatArray,
    D: FloatArray,
    alpha: FloatArray,
    policy: FloatArray | None = None,
) -> Answer:
    """min <c, x> with <d_i, x> <= α_i, lower x <= q <= upper x and flow conserved; with a policy, for that one only."""
    n, pair = space.n_tuples, pair_of_tuple(space)
    of_pair, of_state = np.zeros((space.n_pairs, n)), np.zeros((space.n_states, n))
    of_pair[pair, np.arange(n)] = 1.0
    of_state[space.tuples[:, 0], np.arange(n)] = 1.0
    mass = of_pair[pair]  # Σ_y q(s,a,y) for each tuple (s,a,s')
    flow = of_state.copy()
    flow[space.tuples[:, 2], np.arange(n)] -= 1.0
    equal = flow[:-1]
    if policy is not None:
        equal = np.vstack([equal, of_pair - policy[:, None] * of_state[space.pairs[:, 0]]])
    rows = np.vstack([np.eye(n) - upper[:, None] * mass, lower[:, None] * mass - np.eye(n), D @ of_pair])
    relief = np.append(np.zeros(2 * n), np.full(len(alpha), -1.0))
    answer = linprog(
        np.append(c @ of_pair, RELIEF),
        A_ub=np.column_stack([rows, relief]),
        b_ub=np.append(np.zeros(2 * n), alpha),
        A_eq=np.column_stack([equal, np.zeros(len(equal))]),
        b_eq=np.eye(1, len(equal))[0],
        method="highs-ds",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert answer.x is not None and answer.fun is not None, answer.message
    return Answer(answer.fun, of_pair @ answer.x[:-1], -answer.ineqlin.marginals[2 * n :], float(answer.x[-1]))
