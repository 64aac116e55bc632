"""The status of a durable learner: an immutable value, published after every event and read without waiting."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from msgspec import Meta, Struct

from tightrope.arguments import number, shown, text, texts, unknown
from tightrope.arguments.arrays import floats
from tightrope.errors import InvalidInputError
from tightrope.learners.base import LearnerBase
from tightrope.model import Policy
from tightrope.ops.corrections import Corrected
from tightrope.ops.state import Account, Guard, Shadow, State
from tightrope.space import FloatArray
from tightrope.units import Units


@dataclass(frozen=True, slots=True)
class BudgetUnits:
    """The names of the budgets, and their scales and units, and those of the loss."""

    names: tuple[str, ...]
    scales: tuple[float, ...]  #: a use of 1 in the unit of each budget
    units: tuple[str, ...]
    loss_scale: float = 1.0  #: a loss of 1 in its own unit
    loss_unit: str = ""

    @classmethod
    def of(cls, problem: Any, n_constraints: int) -> "BudgetUnits":
        """Return the units of a problem; without one, numbered budgets in the units of the learner."""
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
        """Return the units as the journal stores them."""
        found: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in facts.items()}
        return cls(**found)

    def changed(self, budgets: FloatArray, named: Mapping[str, float]) -> FloatArray:
        """Return the learner's budgets (I,) with some of them replaced: by name, in their own units."""
        changed = budgets.copy()
        for name, budget in named.items():
            if name not in self.names:
                raise unknown("there is no budget", name, self.names)
            i = self.names.index(name)
            changed[i] = number(budget, f"the budget {name}", -np.inf, np.inf) / self.scales[i]
        return changed

    def prices(self, multipliers: FloatArray, loss_weight: float) -> FloatArray:
        """Return what a unit of each budget is worth to a learner (I,), in units of the loss."""
        units = Units(loss_scale=self.loss_scale, constraint_scales=np.array(self.scales))
        return units.prices(multipliers, loss_weight)

    @property
    def price_units(self) -> tuple[str, ...]:
        """The units of the prices, such as "euros per hour"; a unit without a name is left out."""
        return tuple(" ".join(filter(None, [self.loss_unit, unit and f"per {_singular(unit)}"])) for unit in self.units)


class Spending(Struct, frozen=True):
    """One budget, in its own units."""

    name: str
    unit: str
    budget: Annotated[float, Meta(description="of an episode, now")]
    spent: Annotated[float, Meta(description="along all paths that were told")]
    allowed: Annotated[float, Meta(description="the sum of the budgets of those episodes")]
    share: Annotated[
        float,
        Meta(
            description="spent / allowed; null if something was spent and nothing was allowed",
            extra_json_schema={"type": ["number", "null"]},
        ),
    ]
    price: Annotated[float, Meta(description="what a unit is worth to the champion, in price_unit; 0 without prices")]
    price_unit: Annotated[str, Meta(description="the unit of the loss per unit of the budget, such as euros per hour")]
    stopped: Annotated[bool, Meta(description="whether its stop-loss has the safe policy played")]


class Standing(Struct, frozen=True):
    """A learner, and what it would have lost and spent if its policy had been played; sums in their own units."""

    name: str
    settings: Mapping[str, float | str]
    policy: Policy
    weighed: int  #: episodes estimated by importance
    loss: float  #: the sum of their losses, in the learner's units
    would_have_spent: tuple[float, ...]  #: by importance
    standard_errors: tuple[float, ...]
    on_paths: int  #: episodes played by an unknown policy
    spent_on_paths: tuple[float, ...]  #: what was spent in them
    uncovered: int  #: episodes left out: their policy does not take all actions that this one may take
    failed: str  #: why it learns no more; "" while it does


class LearnerView(Struct, frozen=True):
    """A learner at the time of a status."""

    name: str
    learner: LearnerBase  #: for its settings
    policy: Policy
    shadow: Shadow
    failed: str

    @property
    def settings(self) -> Mapping[str, float | str]:
        """Every parameter."""
        return self.learner.settings

    def standing(self, scales: FloatArray) -> Standing:
        """Return its standing, with the scales of the budgets (I,)."""
        shadow = self.shadow
        sums = (shadow.by_importance, shadow.standard_error(), shadow.by_path)
        estimates, errors, met = (tuple((scales * each[1:]).tolist()) for each in sums)
        return Standing(
            self.name,
            self.settings,
            _copy(self.policy),
            shadow.weighed,
            float(shadow.by_importance[0]),
            estimates,
            errors,
            shadow.met,
            met,
            shadow.uncovered,
            self.failed,
        )


class Status(Struct, frozen=True):
    """A directory after an event."""

    event: int  #: number of the event
    asked: int  #: episodes ever opened
    open: int  #: episodes that are open
    retracted: int  #: episodes that were told and retracted
    left_out: int  #: episodes that were told and that the corrected learner could not learn
    champion: str
    epoch: int
    budgets: FloatArray  #: (I,) of an episode, now, in the learner's units
    multipliers: FloatArray  #: (I,)
    loss_weight: float
    trouble: str  #: why the last snapshot could not be written; "" if it could
    expired: int  #: episodes given up since the directory was opened, because they were open for too long
    account: Account
    guard: Guard
    units: BudgetUnits
    entrants: tuple[LearnerView, ...]
    _policy: Policy  #: not to be changed

    @property
    def policy(self) -> Policy:
        """A copy of the policy that `ask` returns now, the champion's or the safe one."""
        return _copy(self._policy)

    @property
    def told(self) -> int:
        """Episodes that were learned."""
        return self.account.told

    @property
    def loss(self) -> float:
        """The sum of the losses along all paths that were told."""
        return self.account.loss

    @property
    def given_up(self) -> int:
        """Episodes that were given up."""
        return self.asked - self.told - self.open - self.retracted - self.left_out

    @property
    def stopped(self) -> bool:
        """Whether a stop-loss has the safe policy played."""
        return self.guard.stops

    @property
    def spending(self) -> tuple[Spending, ...]:
        """Every budget, in its own units."""
        units, account, scales = self.units, self.account, np.array(self.units.scales)
        columns = (scales * column for column in (self.budgets, account.spent, account.allowed))
        budgets, spent, allowed = (column.tolist() for column in columns)
        prices = units.prices(self.multipliers, self.loss_weight).tolist()
        return tuple(
            Spending(*columns)
            for columns in zip(
                units.names,
                units.units,
                budgets,
                spent,
                allowed,
                map(_share, spent, allowed),
                prices,
                units.price_units,
                self.guard.stopped.tolist(),
                strict=True,
            )
        )

    @property
    def standings(self) -> tuple[Standing, ...]:
        """All learners, in the order in which they came."""
        return tuple(one.standing(np.array(self.units.scales)) for one in self.entrants)


def status_of(
    state: State,
    units: BudgetUnits,
    event: int,
    asked: int,
    open_: int,
    corrected: Corrected,
    trouble: str = "",
    expired: int = 0,
) -> Status:
    """Return the status after an event; later events do not change it."""
    learner = state.learner
    return Status(
        event=event,
        asked=asked,
        open=open_,
        retracted=corrected.retracted,
        left_out=corrected.left_out,
        champion=state.champion,
        epoch=learner.epoch,
        budgets=learner.budgets.copy(),
        multipliers=learner.multipliers.copy(),
        loss_weight=learner.loss_weight,
        trouble=trouble,
        expired=expired,
        account=state.account,
        guard=state.guard,
        units=units,
        entrants=tuple(
            [
                LearnerView(name, one.learner, one.learner.policy, one.shadow, one.failed)
                for name, one in state.entrants.items()
            ]
        ),
        _policy=state.policy,
    )


def _copy(policy: Policy) -> Policy:
    return Policy.unchecked(policy.space, policy.probabilities.copy())


def _singular(unit: str) -> str:
    """Return the singular of a unit: hour for hours; kWh and ms are both."""
    return unit[:-1] if len(unit) > 3 and unit.endswith("s") and not unit.endswith("ss") else unit


def _share(spent: float, allowed: float) -> float:
    return spent / allowed if allowed else float(np.inf * np.sign(spent)) if spent else 0.0
