"""What was spent: along the paths that were told, against what the budgets allowed until then."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from tightrope.errors import InvalidInputError
from tightrope.space import FloatArray


class Account:
    """Sums over all episodes that were told. It does not change: one more episode makes a new one."""

    def __init__(self, n_constraints: int) -> None:
        self.told = 0
        #: (2, 1 + I) Σ of what was met and of what was allowed: of the loss, which nothing allows, then of each budget
        self.sums = np.zeros((2, 1 + n_constraints))

    def after(self, charges: FloatArray) -> "Account":
        """This account and one more episode, in which so much was met and allowed (2, 1 + I)."""
        account = object.__new__(Account)
        account.told, account.sums = self.told + 1, self.sums + charges
        account.sums.setflags(write=False)  # others may look at it
        return account

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
