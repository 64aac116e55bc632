"""Whom a run is compared with: the fixed policy that would have lost least, within the budgets.

Under constraints that are drawn from a law, "within the budgets" is under its mean. Under constraints that change there
are two answers, and both are computed:

    hindsight         within the budgets on average: Σ_τ <g^τ, θ> ≤ t c over the t episodes so far. In general no
                      learner comes near it and keeps the budgets, too (Mannor, Tsitsiklis, Yu 2009; `mannor-game`)
    hindsight_always  within the budgets in every episode, whatever comes: <g, θ> ≤ c for every extreme g

Where no policy is, the value is NaN.
"""

from contextlib import suppress

import numpy as np

from tightrope.errors import InfeasibleError
from tightrope.lab.account import Account
from tightrope.planning.hindsight import HindsightLP
from tightrope.problems.base import Problem
from tightrope.problems.constraints import ChangingConstraints


class Comparators:
    """The best fixed policies for one problem; budgets that no policy can meet under a law are refused here."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._mean: HindsightLP | None = None
        self._always: HindsightLP | None = None
        law = problem.constraints
        if not isinstance(law, ChangingConstraints):
            self._mean = HindsightLP(problem.mdp, law.mean, problem.budgets)
            return
        K, _, n = law.extremes.shape
        with suppress(InfeasibleError):
            self._always = HindsightLP(problem.mdp, law.extremes.reshape(-1, n), np.tile(problem.budgets, K))

    def least(self, account: Account, episodes: int) -> float:
        """The least loss of a fixed policy within the budgets, on average over the episodes played."""
        if self._mean is not None:
            return self._mean.solve(account.total_loss).value
        average, problem = account.total_constraints / episodes, self.problem
        try:
            return HindsightLP(problem.mdp, average, problem.budgets).solve(account.total_loss).value
        except InfeasibleError:
            return np.nan

    def least_always(self, account: Account) -> float:
        """The least loss of a fixed policy within the budgets in every episode."""
        return np.nan if self._always is None else self._always.solve(account.total_loss).value
