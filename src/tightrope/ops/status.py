"""What is to be seen of a directory: immutable, so that it is read without waiting for who learns."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from tightrope.arguments import number, shown, text, texts, unknown
from tightrope.arguments.arrays import floats
from tightrope.errors import InvalidInputError
from tightrope.model import Policy
from tightrope.ops.account import Account
from tightrope.ops.guard import Guard
from tightrope.ops.shadow import Shadow
from tightrope.ops.state import State
from tightrope.space import FloatArray
from tightrope.units import Units


@dataclass(frozen=True, slots=True)
class BudgetUnits:
    """What the budgets are called, what a use of 1 is in their own units, and what they are paid for in."""

    names: tuple[str, ...]
    scales: tuple[float, ...]
    units: tuple[str, ...]
    loss_scale: float = 1.0  #: what a loss of 1 is in its own units
    loss_unit: str = ""

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
        own = Units(loss_scale=getattr(problem, "loss_scale", 1.0), constraint_scales=scales)
        loss_unit = text(getattr(problem, "loss_unit", ""), "problem.loss_unit")
        return cls(names, tuple(scales.tolist()), units, own.loss_scale, loss_unit)

    @classmethod
    def read(cls, facts: Mapping[str, Any]) -> "BudgetUnits":
        """As the journal keeps them."""
        found: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in facts.items()}
        return cls(**found)

    def changed(self, budgets: FloatArray, named: Mapping[str, float]) -> FloatArray:
        """Budgets as the learner meets them, some of them others: by name, in their own units."""
        changed = budgets.copy()
        for name, budget in named.items():
            if name not in self.names:
                raise unknown("there is no budget", name, self.names)
            i = self.names.index(name)
            changed[i] = number(budget, f"the budget {name}", -np.inf, np.inf) / self.scales[i]
        return changed

    def prices(self, multipliers: FloatArray, loss_weight: float) -> FloatArray:
        """(I,) what a unit of each budget is worth to a learner, in units of the loss."""
        units = Units(loss_scale=self.loss_scale, constraint_scales=np.array(self.scales))
        return units.prices(multipliers, loss_weight)

    @property
    def price_units(self) -> tuple[str, ...]:
        """In which: "euros per hour"; what has no name is left out."""
        return tuple(" ".join(filter(None, [self.loss_unit, unit and f"per {_one(unit)}"])) for unit in self.units)


@dataclass(frozen=True, slots=True)
class Spending:
    """One budget, in its own units."""

    name: str
    unit: str
    budget: float  #: of an episode, now
    spent: float  #: along all paths that were told
    allowed: float  #: the budgets of those episodes
    price: float  #: what a unit of it is worth to the champion, in units of the loss; 0 for a learner without prices
    price_unit: str  #: "euros per hour"
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
    uncovered: int  #: episodes whose policy may not do all that this one may: nothing can be said of them
    failed: str  #: why it learns no more; "" if it does


class Seen(msgspec.Struct, frozen=True):
    """What of a learner does not change any more."""

    name: str
    settings: Mapping[str, float | str]
    policy: Policy
    shadow: Shadow
    failed: str


class Status(msgspec.Struct, frozen=True):
    """A directory after some event. Sums in own units are worked out when somebody looks, not with every episode."""

    event: int  #: its number
    asked: int  #: episodes ever handed out
    open: int
    _plays: Policy  #: nobody may change it
    champion: str
    epoch: int
    budgets: FloatArray  #: of an episode, now, as the learner meets them
    multipliers: FloatArray
    loss_weight: float
    trouble: str  #: why the last snapshot could not be written; "" if it could
    account: Account
    guard: Guard
    units: BudgetUnits
    entrants: tuple[Seen, ...]

    @property
    def policy(self) -> Policy:
        """What is handed out now, the champion's or the safe one: a copy."""
        return _copied(self._plays)

    @property
    def told(self) -> int:
        """Episodes that were learnt."""
        return self.account.told

    @property
    def loss(self) -> float:
        """Σ over all that was told."""
        return self.account.loss

    @property
    def given_up(self) -> int:
        """Episodes that nobody will tell of."""
        return self.asked - self.told - self.open

    @property
    def stopped(self) -> bool:
        """Whether a stop-loss has the safe policy handed out."""
        return self.guard.stops

    @property
    def spending(self) -> tuple[Spending, ...]:
        """Every budget, in its own units."""
        units, account = self.units, self.account
        own = (np.array(units.scales) * column for column in (self.budgets, account.spent, account.allowed))
        return tuple(
            Spending(*columns)
            for columns in zip(
                units.names,
                units.units,
                *(column.tolist() for column in own),
                units.prices(self.multipliers, self.loss_weight).tolist(),
                units.price_units,
                self.guard.stopped.tolist(),
                strict=True,
            )
        )

    @property
    def standings(self) -> tuple[Standing, ...]:
        """All learners, in the order in which they came."""
        return tuple(_standing(one, np.array(self.units.scales)) for one in self.entrants)


def status_of(state: State, units: BudgetUnits, event: int, asked: int, open_: int, trouble: str = "") -> Status:
    """What is to be seen now: nothing of it changes with the next event."""
    learner = state.learner
    return Status(
        event,
        asked,
        open_,
        state.policy,
        state.champion,
        learner.epoch,
        learner.budgets.copy(),
        learner.multipliers.copy(),
        learner.loss_weight,
        trouble,
        state.account,
        state.guard,
        units,
        tuple(
            [
                Seen(name, one.settings, one.learner.policy, one.shadow, one.failed)
                for name, one in state.entrants.items()
            ]
        ),
    )


def _copied(policy: Policy) -> Policy:
    """One that may be changed."""
    return Policy.unchecked(policy.space, policy.probabilities.copy())


def _one(unit: str) -> str:
    """One of what a unit names in the plural: hours, hour; kWh and ms are both."""
    return unit[:-1] if len(unit) > 3 and unit.endswith("s") and not unit.endswith("ss") else unit


def _standing(seen: Seen, scales: FloatArray) -> Standing:
    shadow = seen.shadow
    uses = (shadow.by_importance, shadow.standard_error(), shadow.by_path)
    estimated, error, met = (tuple((scales * sums[1:]).tolist()) for sums in uses)
    return Standing(
        seen.name,
        seen.settings,
        _copied(seen.policy),
        shadow.weighed,
        float(shadow.by_importance[0]),
        estimated,
        error,
        shadow.met,
        met,
        shadow.uncovered,
        seen.failed,
    )
