"""What `ucpd-practical` and its kin have in common: blocks, prices and mirror steps; its docstring has the equations.

They differ in what they know of losses and constraints when a step is due: a `View`.
"""

from dataclasses import field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tightrope import core
from tightrope.arguments import whole
from tightrope.confidence import ConfidenceRule, Counts
from tightrope.learners.base import sums_of
from tightrope.learners.parameters import NOT_NEGATIVE, POSITIVE, SHARE, carried, parameter
from tightrope.learners.shared.mirror import ConfidentLearner, Laws
from tightrope.learners.shared.rates import rate
from tightrope.model import LayeredMDP, Policy
from tightrope.space import FloatArray

#: After so many episodes blocks may be longer by one.
BLOCK_GROWTH = 250
#: A price may be as high as if what is charged differed by so much, in shares of the constraint's span.
LEAST_SPAN = 1e-3


class View(NamedTuple):
    """What a step looks at, by tuple."""

    loss: FloatArray  #: (n_tuples,) f: θ is moved by it
    picture: FloatArray  #: (n_tuples,) the losses that prices are balanced with
    mean: FloatArray  #: (I, n_tuples) ḡ: what the policy is charged
    optimism: FloatArray | None = None  #: (I, n_tuples) what is taken off ḡ where θ is moved; None: nothing


class PricingLearner(ConfidentLearner):
    """Blocks of one policy, and a step after each. Its `observe` asks `_gather`, then `_step_on`, what changes."""

    ties_by_default = True
    plans = False
    tolerance = 1e-6

    episodes: Any = None
    confidence: str | ConfidenceRule = "kl"
    renewal: float = parameter(POSITIVE, default=0.1)
    first_rate: float = parameter(POSITIVE, default=1.0)
    change_rate: float = parameter(POSITIVE, default=5.0)
    correction: float = parameter(POSITIVE, default=0.3)
    prudence: float = parameter(NOT_NEGATIVE, default=0.5)
    integral: float = parameter(POSITIVE, default=3.0)
    realism: float = parameter(SHARE, default=0.5)
    largest_tilt: float = parameter(POSITIVE, default=100.0)
    block: int = 6

    integrals: FloatArray = carried()  #: (I,) Q, per span of the constraint
    multipliers: FloatArray = carried()  #: (I,) the prices, per unit of the constraint
    losses: FloatArray = carried(since=4)  #: (n_tuples,) sum of the losses of the block
    waiting: int = carried(since=4)  #: how many they are
    last_use: FloatArray = carried(since=4)  #: (I,) of the path before
    squares: FloatArray = carried(since=4)  #: (I,) of the differences between uses of successive paths, summed
    changes: float = carried()  #: S
    steps: int = carried()  #: m
    _laws: Laws = field(init=False)
    _renewed: int = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.block = whole(self.block, "block", 1)
        space = self.space
        even = LayeredMDP.even(space).occupancy(Policy.uniform(space))
        self._even = even[space.csr.pair_ptr[:-1]]  # the same for all successors of a pair
        self.integrals, self.last_use, self.squares = np.zeros((3, len(self.budgets)))
        self.losses = np.zeros(space.n_tuples)
        self.changes = 0.0
        self.waiting = self.steps = 0
        self._renewed, self._laws = self.counts.epoch, self._evidence(self.counts)

    def _block_now(self) -> int:
        """How many episodes are in the block of the episode just played."""
        return min(self.block, 1 + (self.observed + 1) // BLOCK_GROWTH)

    def _gather(self, f: FloatArray, met: FloatArray) -> tuple[FloatArray | None, dict[str, Any]]:
        """The mean loss of the block if this f ends it, else None; and what changes with the constraints (I, L) met."""
        use, losses, waiting = met.sum(axis=1), self.losses + f, self.waiting + 1
        squares = self.squares + (use - self.last_use) ** 2 if self.observed > 0 else self.squares
        changes = {"last_use": use, "squares": squares}
        if waiting < self._block_now():
            return None, changes | {"losses": losses, "waiting": waiting}
        losses /= waiting
        return losses, changes | {"losses": np.zeros_like(losses), "waiting": 0}

    def _aims(self, squares: FloatArray) -> FloatArray:
        """Line 2: c − z σ/√t."""
        t = self.observed + 1
        aims: FloatArray = self.budgets - self.prudence * np.sqrt(squares / 2 / max(t - 1, 1) / t)
        return aims

    def _step_on(self, view: View, F: float, S: float, squares: FloatArray, counts: Counts) -> dict[str, Any]:
        """Lines 1 to 5 with the span F, the changes S and the squares of line 2: what they change."""
        confidence_set, laws = self.confidence_set, self._laws
        if counts.epoch != self._renewed:
            confidence_set, laws = self._set_of(counts), self._evidence(counts)
        space, m = self.space, self.steps + 1
        loss = core.from_least(space.native, view.loss)
        costs, limits, units = core.in_spans(space.native, view.mean, self._aims(squares))
        picture = loss if view.picture is view.loss else view.picture
        over, b, A, spans = core.assess(
            space.native, self.policy.probabilities, *laws, self.theta, picture, costs, self.realism, limits
        )

        eta = rate(F, S, self.first_rate, self.change_rate)
        rho, mixing = self.integral * F / (space.n_layers * np.sqrt(m)), 1 / (10 + m)
        most = self.largest_tilt / eta / np.maximum(spans, LEAST_SPAN)

        integrals = np.clip(self.integrals + rho * over, 0.0, most)
        prices = core.least_prices(A, (A * integrals).sum(axis=1) + self.correction / eta * over - b)
        np.minimum(prices, most, out=prices)
        priced = np.where(costs.any(axis=1), prices / units, 0.0)
        if view.optimism is not None:
            costs -= view.optimism / units[:, None]
        np.minimum(loss, self.largest_tilt / eta, out=loss)
        cost = core.weigh(1.0, loss, prices, costs, 1 / eta)  # η (f + Σ_i w_i g̃_i)
        del loss, picture, costs  # the solver needs the memory next
        reference = core.mix_pairs(space.native, self.theta, mixing, self._even)
        theta = self._step(reference, cost, confidence_set)
        return {
            "confidence_set": confidence_set,
            "_laws": laws,
            "_renewed": counts.epoch,
            "theta": theta,
            "policy": self._policy_of(theta),
            "integrals": integrals,
            "multipliers": priced,
            "changes": S,
            "steps": m,
        }

    def bounds(self) -> dict[str, tuple[ArrayLike, ArrayLike]]:
        return super().bounds() | {
            "integrals": (0, np.inf),
            "multipliers": (0, np.inf),
            "last_use": sums_of(self.space.n_layers, least=-1),
            "squares": (0, 17 * (self.space.n_layers * self.space.n_layers) * self.observed),
            "waiting": (0, self.block - 1),
            "steps": (0, self.observed),
        }

    def _restored(self) -> None:
        super()._restored()
        self._renewed, self._laws = self.counts.epoch, self._evidence(self.counts)

    @property
    def settings(self) -> dict[str, float | str]:
        planned = self.confidence == "paper"
        return {name: value for name, value in super().settings.items() if planned or name != "episodes"}
