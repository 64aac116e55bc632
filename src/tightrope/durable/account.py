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
        self.loss = 0.0  #: Σ of the losses met
        self.spent = np.zeros(n_constraints)  #: (I,) Σ of the constraints met
        self.allowed = np.zeros(n_constraints)  #: (I,) Σ of the budgets of those episodes

    def after(self, met: FloatArray, budgets: FloatArray) -> "Account":
        """This account and one more episode: met (1 + I,) is what it lost, then what it used."""
        account = object.__new__(Account)
        account.told = self.told + 1
        account.loss = self.loss + float(met[0])
        account.spent = self.spent + met[1:]
        account.allowed = self.allowed + budgets
        account.spent.flags.writeable = account.allowed.flags.writeable = False  # others may look at it
        return account

    def state(self) -> dict[str, Any]:
        """All of it."""
        return dict(vars(self))

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state` gave."""
        numbers = np.hstack([state["loss"], state["spent"], state["allowed"]])
        if state["told"] < 0 or not np.isfinite(numbers).all():
            raise InvalidInputError("its account is of no episodes")
        vars(self).update(state)
