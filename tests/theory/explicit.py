"""Linear programs written out over all tuples, for HiGHS, and all deterministic policies one by one."""

import itertools

import numpy as np
from scipy.optimize import linprog

from tests import twins
from tests.conftest import FloatArray
from tightrope import LayeredMDP, Policy


def _measures(mdp: LayeredMDP) -> tuple[FloatArray, FloatArray]:
    """(A, b) with A θ = b for the occupancy measures θ: mass on every layer, flow, and conditionals P."""
    space = mdp.space
    s, a, s_next = space.tuples.T
    layer = twins.layer_of_state(space)[s]
    rows = [(layer == k).astype(float) for k in range(space.n_layers)]
    rows += [(s_next == state) * 1.0 - (s == state) for state in range(1, space.n_states - 1)]
    same_pair = (s[:, None] == s) & (a[:, None] == a)
    rows += list(np.eye(space.n_tuples) - mdp.transitions[:, None] * same_pair)
    return np.array(rows), np.array([1.0] * space.n_layers + [0.0] * (len(rows) - space.n_layers))


def lp_value(mdp: LayeredMDP, f: FloatArray, g: FloatArray, c: FloatArray) -> float:
    """min <f, θ> with <g_i, θ> <= c_i; infinite where there is no such θ."""
    A, b = _measures(mdp)
    answer = linprog(f, A_ub=g if len(g) else None, b_ub=c if len(g) else None, A_eq=A, b_eq=b, method="highs")
    assert answer.status in (0, 2)
    return np.inf if answer.fun is None else float(answer.fun)


def lp_slack(mdp: LayeredMDP, g: FloatArray, c: FloatArray) -> float:
    """max z with <g_i, θ> + z <= c_i."""
    A, b = _measures(mdp)
    cost = np.append(np.zeros(mdp.space.n_tuples), -1.0)
    answer = linprog(
        cost,
        A_ub=np.column_stack([g, np.ones(len(g))]),
        b_ub=c,
        A_eq=np.column_stack([A, np.zeros(len(A))]),
        b_eq=b,
        bounds=[(0, None)] * mdp.space.n_tuples + [(None, None)],
        method="highs",
    )
    assert answer.x is not None
    return float(answer.x[-1])


def deterministic_points(mdp: LayeredMDP, values: FloatArray) -> FloatArray:
    """(n_policies, k) <values_k, θ> of every deterministic policy; values is (k, n_tuples)."""
    space = mdp.space
    choices = [np.flatnonzero(space.pairs[:, 0] == s) for s in range(space.n_states - 1)]
    points = []
    for chosen in itertools.product(*choices):
        pi = np.zeros(space.n_pairs)
        pi[list(chosen)] = 1.0
        points.append(values @ mdp.occupancy(Policy(space, pi)))
    return np.array(points)
