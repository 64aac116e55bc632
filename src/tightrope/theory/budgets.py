"""Budgets that exclude each other, and the least loss against each budget.

The frontier of one budget: as η rises from 0, best policies for f + η g use less and lose more. Their points (use,
loss) are the corners of the convex, piecewise linear v(b) = min {<f, θ> : <g, θ> <= b}. The price η at which the next
corner becomes the best is the multiplier of every budget between the two, and the dual function of a budget c is

    q(η) = min over corners of loss + η (use − c).

Dynamic programming finds all corners: take the price at which two corners are equally good. If no policy is better,
the corners are neighbours; otherwise the best policy gives a corner between them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tightrope.arguments import EXTREME, LARGEST, instance, number, whole
from tightrope.errors import InfeasibleError
from tightrope.model import LayeredMDP, flat, inner
from tightrope.planning.hindsight import TOLERANCE, best_policy, slater_slack, solve_cmdp, tolerance
from tightrope.problems.base import Problem
from tightrope.space import FloatArray

#: The weight of a use added to the loss, so that among policies with equal loss the one with less use is chosen.
FRUGALITY = 1e-8

#: Values that differ by less than this, per step and unit of price, differ by rounding only.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Frontier:
    """The corners of the frontier up to some largest price."""

    use: FloatArray  # (n,) <g, θ>, falling
    loss: FloatArray  # (n,) <f, θ>, rising

    @property
    def prices(self) -> FloatArray:
        """(n − 1,) the increasing prices above which each corner is better than the one before it."""
        return np.maximum(-np.diff(self.loss) / np.diff(self.use), 0.0)  # rounding may leave less

    def dual(self, price: float, budget: float) -> float:
        """Return the dual function q(η) for a budget c."""
        eta, c = number(price, "price", 0, EXTREME), number(budget, "budget", -EXTREME, EXTREME)
        return float((self.loss + eta * (self.use - c)).min())

    def multipliers(self, budget: float) -> tuple[float, float]:
        """Return the smallest and largest maximiser η of the dual function of a budget.

        They differ if it is at a corner.
        """
        c, prices = number(budget, "budget", -EXTREME, EXTREME), np.concatenate([[0.0], self.prices, [np.inf]])
        more, not_less = self.use > c + TOLERANCE, self.use >= c - TOLERANCE
        return float(prices[more.sum()]), float(prices[not_less.sum()])

    def vartheta(self, budget: float, sigma: float) -> float:
        """The least ϑ with q* − q(η) >= σ dist(η, V*) wherever the distance is at least ϑ."""
        budget, sigma = number(budget, "budget", -EXTREME, EXTREME), number(sigma, "sigma", 0, EXTREME)
        low, high = self.multipliers(budget)
        if high == np.inf:
            raise InfeasibleError(f"no policy leaves slack in a budget of {budget:g}, so its multipliers have no bound")
        best, spare = self.dual(low, budget), budget - self.use

        def reach(price: float, slope: FloatArray) -> float:
            """Return the distance d beyond which q* − q >= σ d; q is a minimum of lines, so one of them suffices."""
            above, steep = self.loss - price * spare - best, slope > sigma
            above[above < ROUNDING * (1 + price)] = 0.0
            return float((above[steep] / (slope[steep] - sigma)).min(initial=np.inf))

        # prices below the multipliers end at 0
        return max(reach(high, spare), min(reach(low, -spare), float(np.nextafter(low, np.inf))) if low > 0 else 0.0)


def frontier(mdp: LayeredMDP, loss: ArrayLike, use: ArrayLike, most: float) -> Frontier:
    """All corners of loss (n_tuples,) against use (n_tuples,), for prices from 0 to `most`."""
    space = instance(mdp, "mdp", LayeredMDP).space
    f, g = flat(loss, space.n_tuples, "loss"), flat(use, space.n_tuples, "use")
    most = number(most, "most", 0, LARGEST)

    def corner(price: float) -> tuple[float, float]:
        theta = mdp.occupancy(best_policy(mdp, f + price * g)[1])
        return float(inner(g, theta)), float(inner(f, theta))

    rounding = ROUNDING * space.n_layers
    found, ahead = [corner(0.0)], [corner(most)]
    while ahead:
        (use_here, loss_here), (use_next, loss_next) = found[-1], ahead[-1]
        if use_here - use_next <= rounding:  # the same corner, or a worse one
            ahead.pop()
            continue
        price = max(0.0, (loss_next - loss_here) / (use_here - use_next))
        between = corner(price)
        gained = loss_here + price * use_here - (between[1] + price * between[0])
        if gained > rounding * (1 + price) and use_next < between[0] < use_here:
            ahead.append(between)
        else:
            found.append(ahead.pop())
    return Frontier(*np.array(found).T)


def with_budgets(problem: Problem, budgets: Mapping[str, float]) -> Problem:
    """`problem.with_budgets(budgets)`."""
    return instance(problem, "problem", Problem).with_budgets(budgets)


@dataclass(frozen=True, eq=False)
class Conflict:
    """Budgets that no policy meets together, but that can be met without any one of them; in the learner's units."""

    members: tuple[int, ...]
    excess: float  # every policy exceeds one of them by at least this
    enough: FloatArray  # (k,) for each budget: the limit at which all can be met if the others are unchanged


def conflict(problem: Problem) -> Conflict | None:
    """A minimal set of budgets that exclude each other; None if all can be met."""
    mdp, g, c = instance(problem, "problem", Problem).mdp, problem.constraints.mean, problem.budgets
    allowed = -tolerance(problem.space)

    def slack(members: Sequence[int]) -> float:
        return slater_slack(mdp, g[list(members)], c[list(members)])

    members = list(range(len(c)))
    if slack(members) >= allowed:
        return None
    for i in range(len(c)):
        others = [j for j in members if j != i]
        if slack(others) < allowed:
            members = others
    enough = []
    for i in members:
        others = [j for j in members if j != i]
        enough.append(solve_cmdp(mdp, g[i], g[others], c[others]).value)
    return Conflict(tuple(members), -slack(members), np.array(enough))


@dataclass(frozen=True, eq=False)
class Curve:
    """The least loss of an episode against one budget, the others unchanged; in the problem's own units."""

    constraint: int
    budgets: FloatArray  # (n,) increasing, from the least feasible one to the least that no larger one improves on
    losses: FloatArray  # (n,) falling
    # (n,) the decrease of the loss per unit of the budget; infinite at the least feasible budget
    multipliers: FloatArray
    yours: int | None  # the index of the problem's budget; None if it cannot be met


def budget_curve(problem: Problem, loss: FloatArray, constraint: int, points: int = 9) -> Curve:
    """The curve of one constraint under a loss (n_tuples,), at `points` evenly spaced budgets and at the problem's.

    Raises InfeasibleError where the other budgets cannot be met.
    """
    mdp, g, c = instance(problem, "problem", Problem).mdp, problem.constraints.mean, problem.budgets
    f = flat(loss, problem.space.n_tuples, "loss")
    i, points = whole(constraint, "constraint", 0, len(c) - 1), whole(points, "points", 2, 10_000)
    others = np.arange(len(c)) != i
    least = solve_cmdp(mdp, g[i], g[others], c[others]).value
    frugal = solve_cmdp(mdp, f + FRUGALITY * g[i], g[others], c[others])
    free = float(inner(g[i], frugal.occupancy))

    allowed = tolerance(problem.space)
    budgets, yours = np.linspace(least, max(free, least + allowed), points), None
    if c[i] >= least - allowed:
        own = max(c[i], least)
        budgets = np.sort(np.append(budgets[np.abs(budgets - own) > allowed], own))
        yours = int(np.searchsorted(budgets, own))
    solved = [solve_cmdp(mdp, f, g, np.where(others, c, budget)) for budget in budgets]
    multipliers = np.array([solution.multipliers[i] for solution in solved])
    # at a corner of the curve the multiplier is not unique; at both ends of the curve it is known
    multipliers[budgets >= free] = 0.0
    multipliers[0] = np.inf
    scale = problem.constraint_scales[i]
    return Curve(
        constraint=i,
        budgets=scale * budgets,
        losses=problem.loss_in_units(np.array([solution.value for solution in solved]), np.ones(len(budgets))),
        multipliers=problem.regret_in_units(multipliers) / scale,
        yours=yours,
    )


def least_use(problem: Problem) -> FloatArray:
    """(I,) the least use of each budget by any policy, in the learner's units."""
    return np.array([best_policy(problem.mdp, g)[0] for g in problem.constraints.mean])
