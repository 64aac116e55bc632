"""What a run cost, in the problem's own units."""

import numpy as np

from tightrope.experiments.run import History
from tightrope.problems.base import Problem


def in_units(problem: Problem, history: History) -> History:
    """`history` with loss, hindsight and regret in the units of the losses, and violations in those of the budgets.

    A violation is one number over all constraints. If they were scaled differently it has no unit, and stays as it is:
    each constraint in shares of what Assumption 2 allows it.
    """
    columns = dict(history)
    for name in ("loss", "hindsight"):
        columns[name] = problem.loss_in_units(columns[name], columns["episode"])
    columns["regret"] = problem.regret_in_units(columns["regret"])
    scale = violation_scale(problem)
    for name in ("violation", "strong_violation"):
        columns[name] = columns[name] * scale
    return History(columns, history.settings)


def violation_scale(problem: Problem) -> float:
    """What a violation of 1 is in the units of the budgets, if they were all scaled alike; else 1."""
    scales = np.unique(problem.constraint_scales)
    return float(scales[0]) if len(scales) == 1 else 1.0


def describe_units(problem: Problem) -> str:
    """One line about the units of `in_units`; empty if there is nothing to say."""
    parts = []
    if problem.loss_unit:
        parts.append(f"loss, LP value and regret in {problem.loss_unit}")
    units = {unit for unit in problem.constraint_units if unit}
    if len(np.unique(problem.constraint_scales)) > 1:
        parts.append("violations in shares of what each budget's use was scaled to, since the budgets' units differ")
    elif len(units) == 1:
        parts.append(f"violations in {units.pop()}")
    return "; ".join(parts)
