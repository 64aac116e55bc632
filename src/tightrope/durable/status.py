"""What is to be seen of a directory: immutable, so that it is read without waiting for who learns."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tightrope.arguments import shown, texts
from tightrope.arguments.arrays import floats
from tightrope.durable.state import Entrant, State
from tightrope.errors import InvalidInputError
from tightrope.model import Policy
from tightrope.space import FloatArray


@dataclass(frozen=True, slots=True)
class BudgetUnits:
    """What the budgets are called, and what a use of 1 is in their own units."""

    names: tuple[str, ...]
    scales: tuple[float, ...]
    units: tuple[str, ...]

    @classmethod
    def of(cls, problem: Any, n_constraints: int) -> "BudgetUnits":
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

    @classmethod
    def read(cls, facts: Mapping[str, Any]) -> "BudgetUnits":
        """As the journal keeps them."""
        return cls(**{name: tuple(values) for name, values in facts.items()})


@dataclass(frozen=True, slots=True)
class Spending:
    """One budget, in its own units."""

    name: str
    unit: str
    budget: float  #: of an episode, now
    spent: float  #: along all paths that were told
    allowed: float  #: the budgets of those episodes
    multiplier: float  #: the champion's price of one unit; 0 for a learner without prices
    stopped: bool  #: whether its stop-loss has the safe policy played

    @property
    def share(self) -> float:
        """Of what was allowed, how much was spent."""
        return self.spent / self.allowed if self.allowed else float(np.inf * np.sign(self.spent)) if self.spent else 0.0


@dataclass(frozen=True, slots=True)
class Standing:
    """A learner, and what it would have lost and spent, had its policy been played; sums, in own units."""

    name: str
    settings: Mapping[str, float | str]
    policy: Policy
    weighed: int  #: episodes by importance
    loss: float  #: their losses, as the learner meets them
    would_have_spent: tuple[float, ...]  #: by importance
    standard_errors: tuple[float, ...]
    on_paths: int  #: episodes whose policy nobody knows
    spent_on_paths: tuple[float, ...]  #: what was met on their paths


@dataclass(frozen=True, slots=True)
class Status:
    """A directory after some event."""

    event: int  #: its number
    asked: int  #: episodes ever handed out
    open: int
    told: int
    policy: Policy  #: what is handed out now: the champion's, or the safe one
    champion: str
    standings: tuple[Standing, ...]  #: of all learners, in the order in which they came
    epoch: int
    loss: float  #: Σ over all that was told
    spending: tuple[Spending, ...]
    multipliers: FloatArray
    trouble: str  #: why the last snapshot could not be written; "" if it could

    @property
    def given_up(self) -> int:
        """Episodes that nobody will tell of."""
        return self.asked - self.told - self.open

    @property
    def stopped(self) -> bool:
        """Whether a stop-loss has the safe policy handed out."""
        return any(one.stopped for one in self.spending)


def status_of(state: State, units: BudgetUnits, event: int, asked: int, open_: int, trouble: str = "") -> Status:
    """What is to be seen now."""
    learner, account = state.learner, state.account
    numbers = zip(
        learner.budgets, account.spent, account.allowed, learner.multipliers, state.guard.stopped, strict=True
    )
    spending = tuple(
        Spending(name, unit, float(c * by), float(spent * by), float(allowed * by), float(price / by), bool(stopped))
        for name, unit, by, (c, spent, allowed, price, stopped) in zip(
            units.names, units.units, units.scales, numbers, strict=True
        )
    )
    return Status(
        event=event,
        asked=asked,
        open=open_,
        told=account.told,
        policy=state.policy,
        champion=state.champion,
        standings=tuple(_standing(name, one, units) for name, one in state.entrants.items()),
        epoch=learner.epoch,
        loss=account.loss,
        spending=spending,
        multipliers=learner.multipliers.copy(),
        trouble=trouble,
    )


def _standing(name: str, entrant: Entrant, units: BudgetUnits) -> Standing:
    shadow, scales = entrant.shadow, np.array(units.scales)
    uses = (shadow.by_importance, shadow.standard_error(), shadow.by_path)
    estimated, error, met = (tuple((scales * sums[1:]).tolist()) for sums in uses)
    learner, loss = entrant.learner, float(shadow.by_importance[0])
    return Standing(name, entrant.settings, learner.policy, shadow.weighed, loss, estimated, error, shadow.met, met)
