"""Other ways to solve the subproblem: CVXPY with a conic solver, and the paper's own dual by a quasi-Newton method."""

import warnings
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from scipy.optimize import Bounds, minimize

from benchmarks.episodes import Subproblem
from benchmarks.measure import clock
from tests.instances import Instance, flow_residual, objective, set_violation
from tightrope.confidence import L1Ball
from tightrope.space import FloatArray, LayeredSpace


class Result(NamedTuple):
    """The result of one rival on one subproblem."""

    seconds: float
    own_seconds: float  #: the solver's own time, without what CVXPY takes to prepare it
    residual: float
    violation: float
    above: float  #: objective above ours; meaningful where residual and violation are small
    iterations: int
    status: str


class Conic:
    """The subproblem as a user would write it in CVXPY; prepared once, then solved with other numbers."""

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
        self.price = cp.Parameter(
            n
        )  # cost − log(reference): the objective is linear in it, as CVXPY requires of a parameter
        balls = []
        if len(bound):
            off = self.theta - sp.diags(confidence.center) @ by_pair.T @ by_pair @ self.theta
            balls = [by_pair[bound] @ cp.abs(off) <= sp.diags(confidence.radius[bound]) @ by_pair[bound] @ self.theta]
        self.problem = cp.Problem(
            cp.Minimize(self.price @ self.theta - cp.sum(cp.entr(self.theta))),  # D up to constants
            [by_layer @ self.theta == 1, (entering - leaving)[1:-1] @ self.theta == 0, *balls],
        )

    def solve(self, subproblem: Subproblem, solver: str, ours: float, seconds: float = 60.0) -> Result:
        """Solve with the numbers of an episode, within a time limit."""
        assert isinstance(subproblem.confidence, L1Ball)
        limit = {"CLARABEL": "time_limit", "SCS": "time_limit_secs"}[solver]
        self.price.value = subproblem.cost - np.log(subproblem.reference)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "may be inaccurate": accuracy is measured here
            begin = clock()
            try:
                self.problem.solve(solver=solver, **{limit: seconds})
                status = str(self.problem.status)
            except (cp.SolverError, MemoryError) as error:
                status = "out of memory" if isinstance(error, MemoryError) else "failed"
            spent = clock() - begin
        stats: Any = self.problem.solver_stats
        if self.theta.value is None or stats is None:
            return Result(spent, np.nan, np.nan, np.nan, np.nan, 0, status)
        theta = np.maximum(self.theta.value, 0.0)
        instance = Instance(self.space, subproblem.reference, subproblem.cost, subproblem.confidence)
        return Result(
            spent,
            min(float(stats.solve_time), spent),  # theirs is wall-clock time, and the machine may be busy
            flow_residual(self.space, theta),
            set_violation(instance, theta),
            objective(instance, theta) - ours,
            int(stats.num_iters),
            status,
        )


def full_dual(space: LayeredSpace, subproblem: Subproblem, ours: float, seconds: float = 10.0) -> Result:
    """The paper's dual by L-BFGS-B: two multipliers per tuple, one potential per state, from zero.

    The ball of a pair is held by μ⁺, μ⁻ >= 0 with μ⁺ + μ⁻ = ν the same for all of its successors
    (docs/explanation/errata.md). With y = μ⁺ − μ⁻, on every layer
    θ ∝ reference · exp(−cost + β(s') − β(s) − y + Σ P̂ y + ε ν), and the sum of the logarithms of the layers' totals is
    minimised. L-BFGS-B knows bounds; the coupling is held by an augmented Lagrangian around it, until that and the set
    are met to 1e-5, or time is up.
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
    inner, n, m = space.n_states - 2, len(held), len(inside)
    base = np.log(subproblem.reference) - subproblem.cost
    theta, weight = np.empty(space.n_tuples), 1.0 / space.n_pairs
    multiplier = np.zeros(m)  # of the coupling μ⁺ + μ⁻ = ν
    instance = Instance(space, subproblem.reference, subproblem.cost, subproblem.confidence)
    begin = clock()

    def dual(x: FloatArray) -> tuple[float, FloatArray]:
        beta = np.concatenate([[0.0], x[:inner], [0.0]])
        nu, up, down = x[inner : inner + n], x[inner + n : inner + n + m], x[inner + n + m :]
        y = up - down
        exponent = base + beta[successor] - beta[origin]
        exponent[inside] += (np.bincount(ball, P * y, minlength=n) + eps * nu)[ball] - y
        top = np.maximum.reduceat(exponent, first_of_layer)
        np.exp(exponent - top[layer], out=theta)
        Z = np.bincount(layer, theta)
        np.divide(theta, Z[layer], out=theta)
        q = np.bincount(pair, theta)[held]
        off = theta[inside] - P * q[ball]
        flow = np.bincount(successor, theta, space.n_states) - np.bincount(origin, theta, space.n_states)
        apart = up + down - nu[ball]
        pull = multiplier + weight * apart
        value = np.sum(top + np.log(Z)) + apart @ (multiplier + 0.5 * weight * apart)
        slope = eps * q - np.bincount(ball, pull, minlength=n)
        return float(value), np.concatenate([flow[1:-1], slope, pull - off, pull + off])

    def stop(at: FloatArray) -> None:
        if clock() > begin + seconds:
            raise StopIteration

    first_of_layer = np.searchsorted(layer, np.arange(space.n_layers))
    x = np.zeros(inner + n + 2 * m)
    bounds = Bounds(np.concatenate([np.full(inner, -np.inf), np.zeros(n + 2 * m)]), np.inf)
    iterations, status, violation, worst = 0, "out of time", np.inf, np.inf
    while clock() < begin + seconds:
        found = minimize(  # type: ignore[call-overload]
            dual, x, jac=True, method="L-BFGS-B", bounds=bounds, callback=stop,
            options={"maxiter": 10_000, "maxfun": 100_000, "ftol": 0.0, "gtol": 1e-10, "maxcor": 20},
        )  # fmt: skip
        x, iterations = found.x, iterations + int(found.nit)
        dual(x)
        violation = set_violation(instance, theta)
        apart = x[inner + n : inner + n + m] + x[inner + n + m :] - x[inner : inner + n][ball]
        if max(violation, np.abs(apart).max(initial=0.0)) <= 1e-5:
            status = "stopped"
            break
        multiplier = multiplier + weight * apart
        if np.abs(apart).max() > 0.5 * worst:
            weight = min(3.0 * weight, 1e3)
        worst = float(np.abs(apart).max())
    above = objective(instance, theta) - ours
    spent = clock() - begin
    return Result(spent, spent, flow_residual(space, theta), violation, above, iterations, status)
