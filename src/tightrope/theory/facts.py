"""A check as plain data, for other programs."""

import math
from typing import Any

import numpy as np

from tightrope.model import Policy
from tightrope.theory.check import Check
from tightrope.theory.page import remedies


def facts(check: Check) -> dict[str, Any]:
    """The numbers of a page as plain data; what has no bound is None."""
    problem, windows = check.problem, check.windows
    constants = {
        "any_losses": check.constants,
        "these_losses": check.constants_here,
        "these_losses_exactly": check.constants_exact,
    }
    told: dict[str, Any] = _plain(
        {
            "problem": problem.name,
            "losses": problem.losses.name,
            "episodes": check.episodes,
            "seed": check.seed,
            "level": check.level,
            "holds": check.holds,
            "feasible": check.feasible,
            "bounded": check.bounded,
            "slater": check.slater,
            "least_episodes": check.least_episodes,
            "largest_level": check.largest_level,
            "largest_loss": windows.largest,
            "largest_constraints": check.largest_constraints,
            "slack": check.slack.slack,
            "safest_policy": _choices(check.slack.policy),
            "constraints": list(problem.constraint_names),
            "budgets": problem.budgets,
            "least_use": check.least,
            "conflict": vars(check.conflict) if check.conflict else None,
            "windows": {"length": windows.length, "count": windows.count, "played_by": windows.learner},
            "multipliers": check.multipliers.values if check.multipliers else None,
            "constants": {name: values and vars(values) for name, values in constants.items()},
            "curves": [vars(curve) for curve in check.curves],
            "what_to_do": list(remedies(check)),
        }
    )
    return told


def _choices(policy: Policy) -> list[tuple[str, str, float]]:
    """State, action and probability of all that the policy may do."""
    table = policy.table()
    rows = zip(table["state_name"], table["action_name"], table["probability"], strict=True)
    return [row for row in rows if row[2] > 0]


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
