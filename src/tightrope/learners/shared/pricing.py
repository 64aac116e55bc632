"""Prices and mirror steps of `ucpd-practical-0.2` and `ucpd-bandit-0.2`; the docstring of the former has the equations.

The learners differ in their information about losses and constraints at a step: a `View`.
"""

import logging
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tightrope import core
from tightrope.confidence import Counts
from tightrope.errors import ConvergenceError
from tightrope.learners.parts import Dynamics, MirrorStep, WarmStart, even_measure, rate
from tightrope.learners.shared.counting import CountingState
from tightrope.model import Policy
from tightrope.space import FloatArray, LayeredSpace
from tightrope.storage.state import measure, numbers, part, state

log = logging.getLogger("tightrope")

#: The least difference of charges in the bound on prices, as a share of the constraint's span.
LEAST_SPAN = 1e-3
#: How many times a mirror step that the solver cannot take is halved before it is skipped.
MAX_HALVINGS = 8


@state
class PricingState(CountingState):
    """The measure, the prices, and the block."""

    theta: FloatArray = measure()
    solver: WarmStart = part(written_as="_projector")  #: where the solver of the next mirror step begins
    multipliers: FloatArray = numbers(least=0)  #: (I,) the prices, per unit of the constraint
    losses: FloatArray = numbers(since=4)  #: (n_tuples,) sum of the losses of the block
    waiting: int = numbers(least=0, since=4)  #: how many they are
    last_use: FloatArray = numbers(since=4)  #: (I,) of the path before
    squares: FloatArray = numbers(least=0, since=4)  #: (I,) of the differences between uses of successive paths, summed
    steps: int = numbers(least=0)  #: m
    integrals: FloatArray = numbers(least=0)  #: (I,) Q, per span of the constraint
    changes: float = numbers(least=0)  #: S


class View(NamedTuple):
    """The input of a step, whose arrays it overwrites: arrays by tuple, and the quantities of the learning rate."""

    loss: FloatArray  #: (n_tuples,) f, the loss of the mirror step
    picture: FloatArray  #: (n_tuples,) the losses that prices are balanced with
    mean: FloatArray  #: (I, n_tuples) ḡ, by which the policy is charged
    largest_span: float  #: F
    changes: float  #: S
    optimism: FloatArray | None = None  #: (I, n_tuples) subtracted from ḡ in the mirror step; None for nothing


class Prices(NamedTuple):
    """The prices of a step and the quantities that they are computed from."""

    integrals: FloatArray
    multipliers: FloatArray
    largest_span: float
    changes: float


class Stepped(NamedTuple):
    """The fields of the state that a step changes."""

    theta: FloatArray
    solver: WarmStart
    prices: Prices


class PriceStep:
    """Lines 1 to 5 of `ucpd-practical-0.2`, given a learner with its parameters and what it knows of the dynamics."""

    def __init__(self, learner: Any, dynamics: Dynamics) -> None:
        space: LayeredSpace = learner.space
        self._learner, self._dynamics = learner, dynamics
        self.mirror_step = MirrorStep(space, dynamics.rule, tolerance=1e-6)
        self._even = even_measure(space)[space.csr.pair_ptr[:-1]]  # the values of all successors are equal

    def _aims(self, t: int, squares: FloatArray) -> FloatArray:
        """Return the targets c − z σ/√t of line 2."""
        learner = self._learner
        aims: FloatArray = learner.budgets - learner.prudence * np.sqrt(squares / 2 / max(t - 1, 1) / t)
        return aims

    def __call__(
        self, state: PricingState, policy: Policy, view: Callable[[], View], squares: FloatArray, counts: Counts
    ) -> Stepped:
        """Take the step after a block of `policy`, given a function that makes the view.

        The squares (I,) of line 2.

        The view is released before the solver runs, to save memory.
        """
        self.mirror_step.set_of(counts)  # made before the view, since it needs memory, too
        cost, prices = self._price(state, policy, view(), squares, self._dynamics.evidence(counts))
        reference = core.mix_pairs(counts.space.native, state.theta, 1 / (10 + state.steps + 1), self._even)
        theta, solver = self._move(state, counts, reference, cost)
        return Stepped(theta, solver, prices)

    def _move(
        self, state: PricingState, counts: Counts, reference: FloatArray, cost: FloatArray
    ) -> tuple[FloatArray, WarmStart]:
        """Take the mirror step; if the solver misses its tolerance, halve it, several times if needed.

        A shorter step in the same direction is a mirror step with a smaller η. Prices of rare events can make costs
        too far apart for the solver. If no part of the step can be taken, θ stays, and the run continues.
        """
        warm = state.solver
        for halving in range(MAX_HALVINGS):
            try:
                return self.mirror_step(warm, counts, reference, cost * 0.5**halving if halving else cost)
            except ConvergenceError:
                warm = self.mirror_step.solver.now()  # the solver starts cold after an error
        log.warning("episode %d: no step was taken, the solver missed its tolerance", state.observed + 1)
        return state.theta, warm

    def _price(
        self, state: PricingState, policy: Policy, view: View, squares: FloatArray, laws: tuple[Any, Any]
    ) -> tuple[FloatArray, Prices]:
        """Lines 2, 3 and 5: the cost η (f + Σ_i w_i g̃_i) (n_tuples,) that θ is moved by, and the prices in it."""
        learner, space, m = self._learner, self._learner.space, state.steps + 1
        _, picture, costs, F, S, optimism = view
        loss = core.from_least(space.native, view.loss)
        limits, units = core.in_spans(space.native, costs, self._aims(state.observed + 1, squares))
        if picture is view.loss:
            picture = loss
        over, b, A, spans = core.assess(
            space.native, policy.probabilities, *laws, state.theta, picture, costs, learner.realism, limits
        )
        del laws

        eta = rate(F, S, learner.first_rate, learner.change_rate)
        rho = learner.integral * F / (space.n_layers * math.sqrt(m))
        most = learner.largest_tilt / eta / np.maximum(spans, LEAST_SPAN)

        integrals = np.minimum(np.maximum(state.integrals + rho * over, 0.0), most)
        prices = core.least_prices(A, (A * integrals).sum(axis=1) + learner.correction / eta * over - b)
        np.minimum(prices, most, out=prices)
        multipliers = np.where(costs.any(axis=1), prices / units, 0.0)
        if optimism is not None:
            costs -= optimism / units[:, None]
        np.minimum(loss, learner.largest_tilt / eta, out=loss)
        cost = core.weigh(1.0, loss, prices, costs, 1 / eta)
        return cost, Prices(integrals, multipliers, F, S)
