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
        self.met = np.zeros(1 + n_constraints)  #: Σ of the losses met, then of each constraint
        self.allowed = np.zeros(n_constraints)  #: (I,) Σ of the budgets of those episodes

    def after(self, met: FloatArray, budgets: FloatArray) -> "Account":
        """This account and one more episode: met (1 + I,) is what it lost, then what it used."""
        account = object.__new__(Account)
        account.told, account.met, account.allowed = self.told + 1, self.met + met, self.allowed + budgets
        account.met.setflags(write=False)  # others may look at it
        account.allowed.setflags(write=False)
        return account

    @property
    def loss(self) -> float:
        """Σ of the losses met."""
        return float(self.met[0])

    @property
    def spent(self) -> FloatArray:
        """(I,) Σ of the constraints met."""
        return self.met[1:]

    def state(self) -> dict[str, Any]:
        """All of it."""
        return dict(vars(self))

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state` gave."""
        if state["told"] < 0 or not np.isfinite(np.hstack([state["met"], state["allowed"]])).all():
            raise InvalidInputError("its account is of no episodes")
        vars(self).update(state)
