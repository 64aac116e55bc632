"""What else could solve the subproblem: CVXPY with a conic solver, and the paper's own dual by a quasi-Newton method."""

import warnings
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize

from benchmarks.episodes import Subproblem
from benchmarks.measure import clock
from tests.instances import Instance, flow_residual, objective, set_violation
from tightrope.confidence import L1Ball
from tightrope.space import FloatArray, LayeredSpace

TIME_LIMIT = 60.0  # seconds


class Result(NamedTuple):
    """One rival on one subproblem."""

    seconds: float
    own_seconds: float  #: the solver's own time, without what CVXPY takes to prepare it
    residual: float
    violation: float
    above: float  #: objective above ours; meaningful where residual and violation are small
    iterations: int
    status: str


class Conic:
    """The subproblem as one would write it in CVXPY; solved once to prepare, then again with other numbers."""

    def __init__(self, space: LayeredSpace, confidence: L1Ball) -> None:
        n, rows = space.n_tuples, np.arange(space.n_tuples)
        pair = space.expand_to_tuples(np.arange(space.n_pairs))
        by_pair = sp.csr_matrix((np.ones(n), (pair, rows)))
        by_layer = sp.csr_matrix((np.ones(n), (space.layer_of_pair[pair], rows)))
        leaving = sp.csr_matrix((np.ones(n), (space.tuples[:, 0], rows)), (space.n_states, n))
        entering = sp.csr_matrix((np.ones(n), (space.tuples[:, 2], rows)), (space.n_states, n))
        bound = np.flatnonzero(confidence.radius < 2)
        self.space = space
        self.theta = cp.Variable(n, nonneg=True)
        self.price = cp.Parameter(n)  # cost − log(reference): the objective is linear in it, as CVXPY likes it
        balls = []
        if len(bound):
            off = self.theta - sp.diags(confidence.center) @ by_pair.T @ by_pair @ self.theta
            balls = [by_pair[bound] @ cp.abs(off) <= sp.diags(confidence.radius[bound]) @ by_pair[bound] @ self.theta]
        self.problem = cp.Problem(
            cp.Minimize(self.price @ self.theta - cp.sum(cp.entr(self.theta))),  # D but for constants
            [by_layer @ self.theta == 1, (entering - leaving)[1:-1] @ self.theta == 0, *balls],
        )

    def solve(self, subproblem: Subproblem, solver: str, ours: float) -> Result:
        """With the other numbers of an episode."""
        assert isinstance(subproblem.confidence, L1Ball)
        limit = {"CLARABEL": "time_limit", "SCS": "time_limit_secs"}[solver]
        self.price.value = subproblem.cost - np.log(subproblem.reference)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "may be inaccurate": it is measured here
            begin = clock()
            try:
                self.problem.solve(solver=solver, **{limit: TIME_LIMIT})
                status = str(self.problem.status)
            except cp.SolverError:
                status = "failed"
            spent = clock() - begin
        stats: Any = self.problem.solver_stats
        if self.theta.value is None or stats is None:
            return Result(spent, np.nan, np.nan, np.nan, np.nan, 0, status)
        theta = np.maximum(self.theta.value, 0.0)
        instance = Instance(self.space, subproblem.reference, subproblem.cost, subproblem.confidence)
        return Result(
            spent,
            float(stats.solve_time),
            flow_residual(self.space, theta),
            set_violation(instance, theta),
            objective(instance, theta) - ours,
            int(stats.num_iters),
            status,
        )


def full_dual(space: LayeredSpace, subproblem: Subproblem, ours: float, seconds: float = 10.0) -> Result:
    """The paper's dual by L-BFGS-B: two multipliers per tuple, one potential per state, from zero potentials.

    The ball of a pair is held by μ⁺, μ⁻ >= 0 with μ⁺ + μ⁻ = ν the same for all of its successors (docs/errata.md); with
    y = μ⁺ − μ⁻, θ ∝ reference · exp(−cost + β(s') − β(s) − y + Σ P̂ y + ε ν) on every layer, and the sum of the
    logarithms of the layers' totals is minimised. To have bounds alone, μ⁺ = ν h and μ⁻ = ν (1 − h), 0 <= h <= 1.
    """
    assert isinstance(subproblem.confidence, L1Ball)
    center, radius = subproblem.confidence.center, subproblem.confidence.radius
    origin, successor = space.tuples[:, 0], space.tuples[:, 2]
    pair = space.expand_to_tuples(np.arange(space.n_pairs))
    layer = space.layer_of_pair[pair]
    held = np.flatnonzero(radius < 2)
    inside = np.flatnonzero((radius < 2)[pair])  # the tuples of those pairs
    ball = np.searchsorted(held, pair[inside])
    P, eps = center[inside], radius[held]
    inner, L = space.n_states - 2, space.n_layers
    base = np.log(subproblem.reference) - subproblem.cost
    theta, evaluations, deadline = np.empty(space.n_tuples), [0], clock() + seconds

    def dual(x: FloatArray) -> tuple[float, FloatArray]:
        evaluations[0] += 1
        beta = np.concatenate([[0.0], x[:inner], [0.0]])
        nu, h = x[inner : inner + len(held)], x[inner + len(held) :]
        sign = 2 * h - 1
        exponent = base + beta[successor] - beta[origin]
        exponent[inside] += nu[ball] * (np.bincount(ball, P * sign, minlength=len(held))[ball] - sign + eps[ball])
        top = np.full(L, -np.inf)
        np.maximum.at(top, layer, exponent)
        np.exp(exponent - top[layer], out=theta)
        Z = np.bincount(layer, theta)
        theta[:] /= Z[layer]
        q = np.bincount(pair, theta)[held]
        off = theta[inside] - P * q[ball]
        flow = np.bincount(successor, theta, space.n_states) - np.bincount(origin, theta, space.n_states)
        slope = eps * q - np.bincount(ball, sign * off, minlength=len(held))
        return float(np.sum(top + np.log(Z))), np.concatenate([flow[1:-1], slope, -2 * nu[ball] * off])

    def stop(_: FloatArray) -> None:
        if clock() > deadline:
            raise StopIteration

    start = np.concatenate([np.zeros(inner), np.full(len(held), 0.1), np.full(len(inside), 0.5)])
    bounds = [(None, None)] * inner + [(0.0, None)] * len(held) + [(0.0, 1.0)] * len(inside)
    options = {"maxiter": 100_000, "maxfun": 1_000_000, "ftol": 1e-16, "gtol": 1e-11, "maxcor": 20}
    begin = clock()
    found = minimize(dual, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options, callback=stop)
    spent = clock() - begin
    dual(found.x)
    instance = Instance(space, subproblem.reference, subproblem.cost, subproblem.confidence)
    return Result(
        spent,
        spent,
        flow_residual(space, theta),
        set_violation(instance, theta),
        objective(instance, theta) - ours,
        int(found.nit),
        "out of time" if clock() > deadline else "stopped",
    )
