"""Budgets that exclude each other, and what the best loss is against each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tightrope.arguments import instance, whole
from tightrope.model import flat, inner
from tightrope.planning.hindsight import best_policy, slater_slack, solve_cmdp, tolerance
from tightrope.problems.base import Problem
from tightrope.problems.overview import FRUGALITY
from tightrope.space import FloatArray


def with_budgets(problem: Problem, budgets: Mapping[str, float]) -> Problem:
    """`problem.with_budgets(budgets)`."""
    return instance(problem, "problem", Problem).with_budgets(budgets)


@dataclass(frozen=True, eq=False)
class Conflict:
    """Budgets that no policy meets together, though it could without any one of them. In the learner's units."""

    members: tuple[int, ...]
    excess: float  # every policy exceeds one of them by at least this
    enough: FloatArray  # to which each of them would have to be raised, the others as they are


def conflict(problem: Problem) -> Conflict | None:
    """Some budgets that exclude each other; None if all can be met."""
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
    """The least loss of an episode against one budget, the others as they are; in the problem's own units."""

    constraint: int
    budgets: FloatArray  # (n,) rising: from the least that can be met to where more gains nothing, and beyond
    losses: FloatArray  # (n,) falling
    multipliers: FloatArray  # (n,) by how much one more unit of the budget lowers the loss; no bound at the least one
    yours: int | None  # where the problem's budget is; None if it cannot be met


def budget_curve(problem: Problem, loss: FloatArray, constraint: int, points: int = 9) -> Curve:
    """The curve of one constraint under a loss (n_tuples,), at `points` budgets evenly apart and at the problem's.

    Raises InfeasibleError where the other budgets cannot be met by themselves.
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
    # at a corner of the curve many are right, and one is solved for: where two ends are known, they are put in
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
    """(I,) what no policy goes below, budget by budget, in the learner's units."""
    return np.array([best_policy(problem.mdp, g)[0] for g in problem.constraints.mean])
