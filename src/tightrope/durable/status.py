"""What is to be seen of a directory: immutable, so that it is read without waiting for who learns."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from tightrope.arguments import shown, texts
from tightrope.arguments.arrays import floats
from tightrope.durable.state import State
from tightrope.errors import InvalidInputError
from tightrope.model import Policy
from tightrope.space import FloatArray


@dataclass(frozen=True, slots=True)
class Units:
    """What the budgets are called, and what a use of 1 is in their own units."""

    names: tuple[str, ...]
    scales: tuple[float, ...]
    units: tuple[str, ...]

    @classmethod
    def of(cls, problem: Any, n_constraints: int) -> "Units":
        """Those of a problem; without one, numbers, and the units of the learner."""
        if problem is None:
            numbered = tuple(f"constraint {i}" for i in range(n_constraints))
            return cls(numbered, (1.0,) * n_constraints, ("",) * n_constraints)
        names = texts(getattr(problem, "constraint_names", None), "problem.constraint_names")
        scales = floats(getattr(problem, "constraint_scales", None), "problem.constraint_scales", ("I",))
        units = texts(getattr(problem, "constraint_units", ()), "problem.constraint_units") or ("",) * n_constraints
        if not len(names) == len(scales) == len(units) == n_constraints:
            raise InvalidInputError(f"problem has the budgets {shown(names)}; the learner has {n_constraints}")
        return cls(names, tuple(scales.tolist()), units)


@dataclass(frozen=True, slots=True)
class Spending:
    """One budget, in its own units."""

    name: str
    unit: str
    budget: float  #: of an episode, now
    spent: float  #: along all paths that were told
    allowed: float  #: the budgets of those episodes
    multiplier: float  #: the price of one unit; 0 for a learner without prices

    @property
    def share(self) -> float:
        """Of what was allowed, how much was spent."""
        return self.spent / self.allowed if self.allowed else np.inf * np.sign(self.spent) if self.spent else 0.0


@dataclass(frozen=True, slots=True)
class Status:
    """A directory after some event."""

    event: int  #: its number
    asked: int  #: episodes ever handed out
    open: int
    told: int
    policy: Policy  #: what is handed out now
    epoch: int
    loss: float  #: Σ over all that was told
    spending: tuple[Spending, ...]
    multipliers: FloatArray
    trouble: str  #: what went wrong since the last snapshot and was put off; "" if nothing did

    @property
    def given_up(self) -> int:
        """Episodes that nobody will tell of."""
        return self.asked - self.told - self.open


def status_of(state: State, units: Units, event: int, asked: int, open_: int, trouble: str = "") -> Status:
    """What is to be seen now."""
    learner, account = state.learner, state.account
    numbers = zip(learner.budgets, account.spent, account.allowed, learner.multipliers, strict=True)
    spending = tuple(
        Spending(name, unit, float(c * scale), float(spent * scale), float(allowed * scale), float(price / scale))
        for name, unit, scale, (c, spent, allowed, price) in zip(
            units.names, units.units, units.scales, numbers, strict=True
        )
    )
    return Status(
        event, asked, open_, account.told, learner.policy, learner.epoch, account.loss, spending,
        learner.multipliers.copy(), trouble,
    )  # fmt: skip
