"""A check as plain data, for other programs."""

import math
from typing import Any

import numpy as np

from tightrope.model import Policy
from tightrope.theory.check import Check
from tightrope.theory.page import remedies


def facts(check: Check) -> dict[str, Any]:
    """The numbers of a page as plain data; what has no bound is None. Both units, each under its own name."""
    windows = check.windows
    told: dict[str, Any] = _plain(
        {
            "problem": check.problem.name,
            "losses": check.problem.losses.name,
            "noise": check.problem.noise,
            "episodes": check.episodes,
            "seed": check.seed,
            "level": check.level,
            "holds": check.holds,
            "feasible": check.feasible,
            "bounded": check.bounded,
            "slater": check.slater,
            "drawn": check.drawn,
            "least_episodes": check.least_episodes,
            "largest_level": check.largest_level,
            "windows": {"length": windows.length, "count": windows.count, "played_by": windows.learner},
            "safest_policy": _choices(check.slack.policy),
            "own_units": _in_own_units(check),
            "learner_units": _in_units_of_the_learner(check),
            "what_to_do": list(remedies(check)),
            "warnings": list(check.problem.warnings),
        }
    )
    return told


def _in_own_units(check: Check) -> dict[str, Any]:
    """What the page tells: budgets one by one, and in which unit."""
    problem, scales, clash = check.problem, check.problem.constraint_scales, check.conflict
    names, units = problem.constraint_names, problem.constraint_units or [""] * len(scales)
    limits, least = problem.use_in_units(problem.budgets), problem.use_in_units(check.least)
    prices = None if check.multipliers is None else problem.regret_in_units(check.multipliers.values / scales)
    return {
        "loss_unit": problem.loss_unit,
        "budgets": [
            {
                "name": names[i],
                "unit": units[i],
                "limit": limits[i],
                "least_use": least[i],
                "slack": check.slack.slack * scales[i],
                "multipliers": None if prices is None else prices[:, i],
            }
            for i in range(len(scales))
        ],
        "conflict": clash
        and {
            "budgets": [names[i] for i in clash.members],
            "excess": [clash.excess * scales[i] for i in clash.members],
            "enough": clash.enough * scales[list(clash.members)],
        },
        "curves": [vars(curve) | {"constraint": names[curve.constraint]} for curve in check.curves],
    }


def _in_units_of_the_learner(check: Check) -> dict[str, Any]:
    """What the theorem's bounds are made of."""
    constants = {
        "any_losses": check.constants,
        "these_losses": check.constants_here,
        "these_losses_exactly": check.constants_exact,
    }
    return {
        "largest_loss": check.windows.largest,
        "largest_constraints": check.largest_constraints,
        "slack": check.slack.slack,
        "budgets": check.problem.budgets,
        "least_use": check.least,
        "multipliers": check.multipliers and check.multipliers.values,
        "constants": {name: values and vars(values) for name, values in constants.items()},
    }


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
