"""What the theorem says about a problem: whether its assumptions hold, the constants that its bounds depend on, these
bounds, and what they come to in a run.

print(tr.theory.check(problem, episodes=20_000))
"""

from tightrope.theory.bounds import Bound, bounds
from tightrope.theory.budgets import Conflict, Curve, budget_curve, conflict, with_budgets
from tightrope.theory.check import Check, check
from tightrope.theory.constants import Constants, constants
from tightrope.theory.frontier import Frontier, frontier
from tightrope.theory.measured import MeasuredRun, measure

__all__ = [
    "Bound",
    "Check",
    "Conflict",
    "Constants",
    "Curve",
    "Frontier",
    "MeasuredRun",
    "bounds",
    "budget_curve",
    "check",
    "conflict",
    "constants",
    "frontier",
    "measure",
    "with_budgets",
]
