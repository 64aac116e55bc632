"""The theorem applied to a problem: its assumptions, constants and bounds, and the terms of the bounds in runs.

print(tr.theory.check(problem, episodes=20_000))
"""

from tightrope.theory.bounds import Bound, Constants, bounds, constants
from tightrope.theory.budgets import Conflict, Curve, Frontier, budget_curve, conflict, frontier, with_budgets
from tightrope.theory.check import Check, check
from tightrope.theory.inside import bounds_inside, met_from
from tightrope.theory.runs import MeasuredRun, measure

__all__ = [
    "Bound",
    "Check",
    "Conflict",
    "Constants",
    "Curve",
    "Frontier",
    "MeasuredRun",
    "bounds",
    "bounds_inside",
    "budget_curve",
    "check",
    "conflict",
    "constants",
    "frontier",
    "measure",
    "met_from",
    "with_budgets",
]
