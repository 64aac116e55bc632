"""What the theorem says about a problem: whether its assumptions hold, and the constants that its bounds depend on.

print(tr.theory.check(problem, episodes=20_000))
"""

from tightrope.theory.budgets import Conflict, Curve, budget_curve, conflict, with_budgets
from tightrope.theory.check import Check, check
from tightrope.theory.constants import Constants, constants
from tightrope.theory.frontier import Frontier, frontier

__all__ = [
    "Check",
    "Conflict",
    "Constants",
    "Curve",
    "Frontier",
    "budget_curve",
    "check",
    "conflict",
    "constants",
    "frontier",
    "with_budgets",
]
