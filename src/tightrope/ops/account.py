"""What was spent: along the paths that were told, against what the budgets allowed until then."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from tightrope.errors import InvalidInputError
from tightrope.ops.kernels import meet
from tightrope.space import FloatArray, IntArray


class Account:
    """Sums over all episodes that were told. It does not change: one more episode makes a new one."""

    def __init__(self, n_constraints: int) -> None:
        self.told = 0
        #: (2, 1 + I) Σ of what was met and of what was allowed: of the loss, which nothing allows, then of each budget
        self.sums = np.zeros((2, 1 + n_constraints))
        self.sums.setflags(write=False)  # others may look at it

    def after(self, steps: IntArray, f: FloatArray, g: FloatArray, budgets: FloatArray) -> tuple["Account", FloatArray]:
        """This account and one more episode; and the loss and then the constraints of each of its steps (1 + I, L).

        steps (L,) says where in f and in every g_i the steps are.
        """
        account, costs = object.__new__(Account), np.empty((1 + len(g), len(steps)))
        account.told, account.sums = self.told + 1, self.sums.copy()
        meet(steps, f, g, budgets, costs, account.sums)
        account.sums.setflags(write=False)
        return account, costs

    @property
    def loss(self) -> float:
        """Σ of the losses met."""
        return float(self.sums[0, 0])

    @property
    def spent(self) -> FloatArray:
        """(I,) Σ of the constraints met."""
        met: FloatArray = self.sums[0, 1:]
        return met

    @property
    def allowed(self) -> FloatArray:
        """(I,) Σ of the budgets of those episodes."""
        budgets: FloatArray = self.sums[1, 1:]
        return budgets

    def state(self) -> dict[str, Any]:
        """All of it."""
        return dict(vars(self))

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state` gave."""
        if state["told"] < 0 or not np.isfinite(state["sums"]).all():
            raise InvalidInputError("its account is of no episodes")
        vars(self).update(state)
        self.sums.setflags(write=False)
