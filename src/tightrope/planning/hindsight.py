"""Planning when the model is known: the best fixed policy in hindsight, with and without budgets.

The hindsight LP asks for the best occupancy measure θ of the model,

    minimise <f, θ>   subject to   <g_i, θ> <= c_i,   i = 1..I.

Since θ(s,a,s') = x(s,a) P(s'|s,a), it is solved over pairs: as the best mixture of policies
(`planning.dynamic_programming`), or by HiGHS if that is not accurate enough. For HiGHS the occupancy measures are a
polytope: x >= 0 and, at every state s but the last,

    Σ_a x(s,a) − Σ_{r,a} P(s|r,a) x(r,a) = 1 if s is the first state, else 0.

For any q >= 0, dynamic programming on f + Σ_i q_i g_i bounds the value from below (weak duality), independently of the
solver. Every solution is checked against this bound before it is returned.
"""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tightrope import core
from tightrope.arguments import instance
from tightrope.arguments.arrays import finite, floats
from tightrope.arithmetic import combine, dot
from tightrope.errors import ConvergenceError, InfeasibleError
from tightrope.linear_program import LinearProgram, Method
from tightrope.model import LayeredMDP, Policy, flat
from tightrope.planning.dynamic_programming import Intervals, best_mixture, deterministic, largest
from tightrope.space import FloatArray, LayeredSpace

#: The largest error of a value, or excess over a budget: per step, in units of the largest |f| or |g_i|.
TOLERANCE = 1e-9


@dataclass(frozen=True, kw_only=True, eq=False)
class CMDPSolution:
    """The best policy within the budgets, with a certificate.

    No policy within the budgets has a value below `value - duality_gap`, and this one exceeds no budget by more than
    `violation`. A change of the budgets by d changes the value by −multipliers·d, to first order.
    """

    value: float  # <f, θ>
    occupancy: FloatArray  # (n_tuples,) θ, exactly the occupancy measure of `policy`
    policy: Policy
    multipliers: FloatArray  # (I,) q >= 0: the price of a unit of each budget
    duality_gap: float
    violation: float


class Slack(NamedTuple):
    """The most slack to all budgets at once, the policy that attains it, and a certificate.

    For every policy Σ_i weights_i (c_i − <g_i, θ>) <= `slack`, and the weights sum to 1.
    """

    slack: float  # max over policies of min_i c_i − <g_i, θ>; if negative, the budgets cannot be met
    policy: Policy
    weights: FloatArray  # (I,) >= 0


def best_policy(mdp: LayeredMDP, loss: ArrayLike) -> tuple[float, Policy]:
    """Return the least expected loss without budgets, for a loss (n_tuples,), and a policy that attains it."""
    space = instance(mdp, "mdp", LayeredMDP).space
    V, best = core.best_actions(space.native, mdp.transitions, flat(loss, space.n_tuples, "loss"))
    return float(V[0]), deterministic(space, best)


def solve_cmdp(mdp: LayeredMDP, loss: ArrayLike, constraints: ArrayLike, budgets: ArrayLike) -> CMDPSolution:
    """Solve the hindsight LP. To solve it for many losses, keep a `HindsightLP`.

    Parameters
    ----------
    mdp : the model.
    loss : (n_tuples,).
    constraints, budgets : (I, n_tuples) and (I,); I may be 0.

    Returns
    -------
    CMDPSolution : the best policy within the budgets, with a certificate.

    Raises
    ------
    InfeasibleError : if no policy meets the budgets.
    ConvergenceError : if no solver is accurate enough.

    Examples
    --------
    >>> mdp = LayeredMDP(LayeredSpace.dense([1, 1], 2), [1.0, 1.0])  # one step, two actions
    >>> best = solve_cmdp(mdp, loss=[1.0, 0.0], constraints=[[0.0, 1.0]], budgets=[0.25])
    >>> best.policy.probabilities.round(3).tolist(), round(best.value, 3)
    ([0.75, 0.25], 0.75)
    """
    return HindsightLP(mdp, constraints, budgets).solve(loss)


def slater_slack(mdp: LayeredMDP, constraints: ArrayLike, budgets: ArrayLike) -> float:
    """Return the largest slack min_i c_i − <g_i, θ> of any policy; if negative, the budgets cannot be met."""
    return most_slack(mdp, constraints, budgets).slack


def most_slack(mdp: LayeredMDP, constraints: ArrayLike, budgets: ArrayLike) -> Slack:
    """Return the Slater slack with the policy that attains it; without constraints it is infinite."""
    g, c = _checked(mdp, constraints, budgets)
    if len(c) == 0:
        return Slack(math.inf, Policy.uniform(mdp.space), np.empty(0))
    unit = largest(g)
    slack, policy, weights = _Model(mdp).common_slack(g / unit, c / unit)
    return Slack(slack * unit, policy, weights)


class HindsightLP:
    """The hindsight LP of one model and its budgets, to be solved for any number of losses.

    Budgets that no policy can meet are refused here, before the first loss. An answer does not depend on what was
    solved before: the same loss, the same bits.
    """

    def __init__(self, mdp: LayeredMDP, constraints: ArrayLike, budgets: ArrayLike) -> None:
        self.mdp = mdp
        self.constraints, self.budgets = _checked(mdp, constraints, budgets)
        self._model = _Model(mdp)
        self._units = np.array([largest(g) for g in self.constraints])
        self._g = self.constraints / self._units[:, None]
        # |<g, θ>| <= L in these units: a much larger budget never binds, and would only reduce accuracy
        self._c = np.minimum(self.budgets / self._units, 2.0 * mdp.space.n_layers)
        self._c += self._shortfall()
        self._rows = self._model.pair_costs(self._g)

    def _shortfall(self) -> float:
        """Return by how much the budgets are infeasible, if by rounding only; raise InfeasibleError otherwise."""
        if len(self.budgets) == 0:
            return 0.0
        allowed = self._model.tolerance
        for i, (g, c, unit) in enumerate(zip(self._g, self._c, self._units, strict=True)):
            least = best_policy(self.mdp, g)[0]
            if least - c > allowed:
                raise InfeasibleError(
                    f"budget {i} cannot be met: no policy spends less than {least * unit:.9g}, "
                    f"at least {(least - c) * unit:.6g} over the budget of {self.budgets[i]:.9g}"
                )
        slack, _, q = self._model.common_slack(self._g, self._c)
        if -slack > allowed:
            over = [f"budget {i} by at least {-slack * self._units[i]:.6g}" for i in np.flatnonzero(q > 1e-9)]
            raise InfeasibleError(
                "each budget can be met, but not all together: every policy exceeds " + " or ".join(over)
            )
        return max(0.0, -slack)

    def solve(self, loss: ArrayLike) -> CMDPSolution:
        """Return the best policy within the budgets for `loss`, (n_tuples,)."""
        f = flat(loss, self.mdp.space.n_tuples, "loss")
        unit, allowed = largest(f), self._model.tolerance
        for x, q in self._model.best_visits(self._model.pair_costs(f / unit), self._rows, self._c):
            policy, theta = self._model.policy_and_occupancy(x)
            bound = best_policy(self.mdp, f / unit + combine(q, self._g))[0] - dot(q, self._c)
            gap = float(dot(f, theta) / unit - bound)
            violation = float((dot(self._g, theta) - self._c).max(initial=0.0))
            # an error of `allowed` in a budget changes the value by q times as much
            if gap <= allowed * (1.0 + q.sum()) and violation <= allowed:
                return CMDPSolution(
                    value=float(dot(f, theta)),
                    occupancy=theta,
                    policy=policy,
                    multipliers=q * unit / self._units + 0.0,  # no -0.0
                    duality_gap=max(0.0, gap * unit),
                    violation=float((dot(self.constraints, theta) - self.budgets).max(initial=0.0)),
                )
        raise ConvergenceError(
            f"the hindsight LP was not solved well enough: duality gap {gap:.3g} and violation "
            f"{violation:.3g} in units of the largest loss and constraint, {allowed:.3g} allowed"
        )


class _Model:
    """A known model, with the solvers of its LPs."""

    def __init__(self, mdp: LayeredMDP) -> None:
        self.mdp = mdp
        self.tolerance = tolerance(mdp.space)
        self._intervals = Intervals(mdp.transitions, mdp.transitions, np.zeros(mdp.space.n_pairs))

    def pair_costs(self, values: FloatArray) -> FloatArray:
        """Return Σ_s' P(s'|s,a) values(s,a,s'), (…, n_pairs), of values (…, n_tuples)."""
        return self.mdp.space.sum_over_successors(values * self.mdp.transitions)

    def policy_and_occupancy(self, x: FloatArray) -> tuple[Policy, FloatArray]:
        """Return π(a|s) ∝ x(s,a), and its exact occupancy measure."""
        space = self.mdp.space
        theta = space.expand_to_tuples(np.maximum(x, 0.0)) * self.mdp.transitions
        policy = Policy.from_occupancy(space, theta)
        return policy, self.mdp.occupancy(policy)

    def best_visits(self, c: FloatArray, D: FloatArray, alpha: FloatArray) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Yield, solver by solver, x (n_pairs,) that minimises <c, x> subject to D x <= alpha, and multipliers (I,)."""
        best = best_mixture(self.mdp.space, self._intervals, c, D, alpha, self.tolerance)
        yield best.x, best.multipliers
        yield visits_by_highs(self.mdp, c, D, alpha)

    def slackest_visits(self, D: FloatArray, alpha: FloatArray) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Yield, solver by solver, x (n_pairs,) with the most slack, and dual weights (I,); |D| <= 1, alpha >= 0."""
        space = self.mdp.space
        # with budgets that no policy can meet, the least excess gives the most slack
        out_of_reach = alpha - 2.0 * space.n_layers
        best = best_mixture(space, self._intervals, np.zeros(space.n_pairs), D, out_of_reach, self.tolerance)
        yield best.x, best.multipliers
        yield slackest_visits_by_highs(self.mdp, D, alpha)

    def common_slack(self, g: FloatArray, c: FloatArray) -> Slack:
        """Return max over policies of z = min_i c_i − <g_i, θ>, the policy, and dual weights q; |g| <= 1.

        For every policy, Σ_i q_i (c_i − <g_i, θ>) <= z: its slack is at most z at some i with q_i > 0.
        """
        base = float(c.min())
        spare = np.minimum(c - base, 2.0 * self.mdp.space.n_layers)  # a wider budget is never the tightest
        for x, weights in self.slackest_visits(self.pair_costs(g), spare):
            policy, theta = self.policy_and_occupancy(x)
            q = weights / weights.sum()
            z = float((spare - dot(g, theta)).min())
            bound = dot(q, spare) - best_policy(self.mdp, combine(q, g))[0]
            if bound - z <= self.tolerance:
                return Slack(base + z, policy, q)
        raise ConvergenceError(
            f"the LP of the budgets' slack was not solved well enough: duality gap {bound - z:.3g} "
            f"in units of the largest constraint, {self.tolerance:.3g} allowed"
        )


def tolerance(space: LayeredSpace) -> float:
    """Return the largest error of a value on this space; less slack counts as none."""
    return TOLERANCE * space.n_layers


def _checked(mdp: LayeredMDP, constraints: ArrayLike, budgets: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return copies of the constraints, (I, n_tuples), and the budgets, (I,), after checking that they are finite."""
    n = instance(mdp, "mdp", LayeredMDP).space.n_tuples
    g = finite(floats(constraints, "constraints", ("I", n)), "constraints").copy()
    return g, flat(budgets, len(g), "budgets").copy()


#: HiGHS reads coefficients below 1e-9 as zero and meets rows to 1e-10 at best: rows are scaled up, so that
#: rare transitions count (exact: a power of two).
ROW_SCALE = 2.0**10

#: In the order in which they are tried.
METHODS: tuple[Method, ...] = ("ipx", "simplex")


def visits_by_highs(mdp: LayeredMDP, c: FloatArray, D: FloatArray, alpha: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Minimise <c, x> subject to D x <= alpha; return x (n_pairs,), and the multipliers (I,) of alpha."""
    return _solved(mdp, c, D, alpha)


def slackest_visits_by_highs(mdp: LayeredMDP, D: FloatArray, alpha: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Maximise z subject to D x + z <= alpha; return x (n_pairs,), and the multipliers (I,), sum 1; |z| <= 2 L."""
    cost = np.append(np.zeros(mdp.space.n_pairs), -1.0)
    # the last variable is z + 2L, which cannot be negative
    x, multipliers = _solved(mdp, cost, np.column_stack([D, np.ones(len(D))]), alpha + 2.0 * mdp.space.n_layers)
    return x[:-1], multipliers


def _solved(mdp: LayeredMDP, cost: FloatArray, rows: FloatArray, bounds: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Minimise cost·x over x >= 0 with rows·x <= bounds; the first n_pairs entries are visits.

    Return x and multipliers.
    """
    lp = LinearProgram(cost, np.zeros(len(cost)), tolerance=1e-10)
    i, p = np.nonzero(rows)
    lp.add_rows(i, p, ROW_SCALE * rows[i, p], np.full(len(rows), -np.inf), ROW_SCALE * bounds)
    _add_flow(lp, mdp)
    # interior points are faster on large models; presolve may return a point that is infeasible by rounding
    for presolve, method in itertools.product((True, False), METHODS):
        lp.clear()
        answer = lp.solve(method, presolve=presolve)
        if answer is not None:
            return answer.x, -ROW_SCALE * np.minimum(answer.duals[: len(rows)], 0.0)
    raise ConvergenceError(f"HiGHS could not solve the occupancy LP: {lp.message}")


def _add_flow(lp: LinearProgram, mdp: LayeredMDP) -> None:
    """Add the conservation of flow at every state but the last."""
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
