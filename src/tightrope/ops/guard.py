"""A stop-loss: a rule per budget after which a safe policy is handed out, until the budget is back.

With spent(t) and allowed(t) summed over the t episodes that were told, a rule looks at

    by="spent"       spent(t) − allowed(t)
    by="predicted"   spent(t) + (T − t) r − allowed(t) − (T − t) c,    T the horizon,

c the budget and r the mean use of the last `window` episodes or so (a running mean) that were not played by the safe
policy, since there are rules: what is to be expected if the learner goes on. Until there were as many, r is c: one
episode says nothing of thousands. Above `most` it stops, at `back` or below it goes on.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tightrope.arguments import choice, number, whole
from tightrope.errors import InvalidInputError
from tightrope.ops.account import Account
from tightrope.space import FloatArray

#: Larger sums are nobody's.
LARGEST = 1e300


@dataclass(frozen=True, slots=True)
class StopLoss:
    """When to stop, for one budget; numbers are in the budget's own units."""

    most: float  #: how far over the budget, in sum, is too far
    by: Literal["spent", "predicted"] = "spent"
    back: float = 0.0  #: how far over it may be to go on
    horizon: int = 0  #: T, for by="predicted"
    window: int = 100  #: episodes that r looks back

    def __post_init__(self) -> None:
        choice(self.by, "by", ("spent", "predicted"))
        for name in ("most", "back"):
            object.__setattr__(self, name, number(getattr(self, name), name, -LARGEST, LARGEST))
        if self.back > self.most:
            raise InvalidInputError(f"back is {self.back:g}, above most, {self.most:g}: it would never stop")
        for name, least in (("horizon", int(self.by == "predicted")), ("window", 1)):
            object.__setattr__(self, name, whole(getattr(self, name), name, least))
        if self.by == "spent" and self.horizon:
            raise InvalidInputError(f'horizon is {self.horizon}, and nothing is predicted; say by="predicted"')

    def within(self, largest: float, budget: str) -> None:
        """Refuse numbers beyond this, of a budget of that name."""
        for name in ("most", "back"):
            if abs(getattr(self, name)) > largest:
                raise InvalidInputError(f"{name} of {budget} is {getattr(self, name):g}; at most {largest:g} is taken")


class Guard:
    """The rules, by budget, and which of them has stopped the learner. It does not change: others are made of it."""

    def __init__(self, n_pairs: int, n_constraints: int) -> None:
        self.safe = np.zeros(n_pairs)  #: probabilities of the safe policy; zeros: there is none, and no rule
        self.most, self.back = np.full((2, n_constraints), LARGEST)  #: in the learner's units; LARGEST: no rule
        self.horizon = np.zeros(n_constraints, dtype=np.int64)  #: 0: by what was spent
        self.window = np.ones(n_constraints, dtype=np.int64)
        self.rate = np.zeros(n_constraints)  #: r
        self.rated = 0  #: episodes that r has seen
        self.stopped = np.zeros(n_constraints, dtype=np.bool_)
        self._follow()

    def _follow(self) -> None:
        """Work out what is asked in every episode."""
        #: Whether there is anything that could stop the learner, and whether the safe policy is to be played.
        self.has_rules = bool((self.most < LARGEST).any())
        self.stops = bool(self.stopped.any())

    def ruled(
        self,
        safe: FloatArray,
        rules: Mapping[int, StopLoss],
        scales: FloatArray,
        account: Account,
        budgets: FloatArray,
    ) -> "Guard":
        """With these rules in place of what there is: they hold at once, and what they stopped stays so until back."""
        guard = Guard(len(self.safe), len(self.most))
        guard.safe = safe
        safe.flags.writeable = False  # others may look at it
        if self.has_rules:
            guard.rate, guard.rated, guard.stopped = self.rate, self.rated, self.stopped
        for i, rule in rules.items():
            guard.most[i], guard.back[i] = rule.most / scales[i], rule.back / scales[i]
            guard.horizon[i] = rule.horizon if rule.by == "predicted" else 0
            guard.window[i] = rule.window
        return guard.judged(account, budgets)

    def judged(self, account: Account, budgets: FloatArray) -> "Guard":
        """The same rules, after something changed that they look at."""
        return self._but(stopped=self.over(account, budgets) > np.where(self.stopped, self.back, self.most))

    def after(self, account: Account, use: FloatArray, budgets: FloatArray, *, by_safe: bool) -> "Guard":
        """One more episode was told, which used `use` (I,)."""
        if not self.has_rules:
            return self
        if by_safe:
            return self.judged(account, budgets)
        rated = self.rated + 1
        rate = self.rate + (use - self.rate) / np.minimum(rated, self.window)
        return self._but(rate=rate, rated=rated).judged(account, budgets)

    def _but(self, **changes: Any) -> "Guard":
        guard = object.__new__(Guard)
        guard.__dict__ = self.__dict__ | changes
        guard._follow()
        return guard

    def over(self, account: Account, budgets: FloatArray) -> FloatArray:
        """(I,) what the rules look at."""
        left = np.where(self.rated >= self.window, np.maximum(self.horizon - account.told, 0), 0)
        over: FloatArray = account.spent - account.allowed + left * (self.rate - budgets)
        return over

    def state(self) -> dict[str, Any]:
        """All of it that does not follow from the rest."""
        return {name: value for name, value in vars(self).items() if name not in ("has_rules", "stops")}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state` gave."""
        numbers = np.hstack([state[name] for name in ("safe", "most", "back", "rate")])
        if not np.isfinite(numbers).all() or state["safe"].min() < 0 or state["window"].min(initial=1) < 1:
            raise InvalidInputError("its rules are none")
        if state["stopped"].any() and not state["safe"].any():
            raise InvalidInputError("it is stopped and has no safe policy")
        vars(self).update(state)
        self._follow()
        self.safe.flags.writeable = False
