"""Mirror steps with the budgets as constraints: the part that `ucpd-practical` and its kin are composed of.

The docstring of `ucpd_practical` has the equations; the lines below are its lines.
"""

import logging
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tightrope import core
from tightrope.arithmetic import products
from tightrope.confidence import ConfidenceSet, Counts
from tightrope.errors import ConvergenceError
from tightrope.learners.parts import Dynamics, MirrorStep, Warmed, WarmStart, even_measure, standard_deviations
from tightrope.learners.shared.counting import CountingState
from tightrope.projection.priced import PricedProjector
from tightrope.space import FloatArray, LayeredSpace
from tightrope.storage.state import measure, numbers, part, state, tuples

log = logging.getLogger("tightrope")

#: On the flow residual of θ, and on constraints in units of their largest coefficient.
TOLERANCE = 1e-7
#: A target that is exceeded by less, in units of the largest coefficient of its row, is met.
EXCEEDED = 1e-5
#: A step that goes at least this share of the way to its targets goes on: the cap on prices may hold it back.
PROGRESS = 0.1
#: The least κ, and the factor by which a step that gets on raises it.
LEAST_CAUTION, RECOVERY = 1 / 16, 1.03
#: B: no price tilts θ by more than e^B in one step. A budget that would need more is exceeded for that step.
LARGEST_TILT = 200.0


@state
class BudgetedState(CountingState):
    """The state of a learner that takes budgeted steps."""

    theta: FloatArray = measure()
    solver: WarmStart = part(written_as="_projector")  #: where the solver of the next mirror step begins
    multipliers: FloatArray = numbers(least=0)  #: (I,) the prices, per unit of the constraint
    losses: FloatArray = numbers()  #: (n_tuples,) sum of the losses of the block
    waiting: int = numbers(least=0)  #: how many they are
    paths: NDArray[np.int64] = tuples()  #: (most, L) their paths, in the first `waiting` rows
    last_use: FloatArray = numbers()  #: (I,) of the path before
    squares: FloatArray = numbers(least=0)  #: (I,) of the differences between uses of successive paths, summed
    steps: int = numbers(least=0)  #: m
    overspent: FloatArray = numbers()  #: (I,) V, in spans of the constraint
    caution: float = numbers(least=LEAST_CAUTION, most=1)  #: κ
    gap: float = numbers(least=0)  #: G
    largest_span: float = numbers(least=0)  #: F
    last_loss: FloatArray = numbers()  #: (n_tuples,) f of the step before


def no_paths(space: LayeredSpace, most: int) -> NDArray[np.int64]:
    """Return the paths of a new block of at most `most` episodes, (most, L)."""
    return np.zeros((most, space.n_layers), dtype=np.int64)


def paths_after(state: BudgetedState, path: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the paths of the block (most, L) with one more path (L,)."""
    paths = state.paths.copy()
    paths[state.waiting] = path
    return paths


class Stepped(NamedTuple):
    """The fields of the state that a step changes."""

    theta: FloatArray
    solver: WarmStart
    multipliers: FloatArray
    overspent: FloatArray
    caution: float
    gap: float
    largest_span: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Prudence:
    """How far below its budget a step aims: the parameters of line 3."""

    errors: float  #: z
    repayment: float  #: τ
    least_share: float  #: the least share of a budget that is aimed at

    def targets(
        self, budgets: FloatArray, overspent: FloatArray, sigma: FloatArray, t: int, caution: float = 1.0
    ) -> FloatArray:
        """Return c_i(t) (I,), given V (I,) and σ (I,), all in the same units, and κ."""
        owed = self.errors * sigma + np.maximum(overspent, 0.0) / self.repayment
        targets: FloatArray = budgets - caution * np.minimum(owed / np.sqrt(t), (1 - self.least_share) * budgets)
        return targets


class BudgetedStep:
    """Lines 1 to 6 of `ucpd-practical`, given what is known of the dynamics and the parameters of the learner."""

    def __init__(
        self, space: LayeredSpace, budgets: FloatArray, dynamics: Dynamics, prudence: Prudence, optimism: float,
        first_rate: float,
    ) -> None:  # fmt: skip
        self._space, self._budgets, self._dynamics = space, budgets, dynamics
        self._prudence, self._optimism, self._first_rate = prudence, optimism, first_rate
        self._plain = MirrorStep(space, dynamics.rule, TOLERANCE)
        self._priced = Warmed(PricedProjector(space, len(budgets), TOLERANCE))
        self._even = even_measure(space)[space.csr.pair_ptr[:-1]]  # the same for all successors of a pair

    def set_of(self, counts: Counts) -> ConfidenceSet:
        """Return the confidence set of the epoch of these counts."""
        return self._plain.set_of(counts)

    def begin(self, counts: Counts) -> WarmStart:
        """Return the warm start before the first step; raise what the rule raises for these counts."""
        self.set_of(counts)
        return self._priced.now()

    def __call__(
        self,
        state: BudgetedState,
        pi: FloatArray,
        counts: Counts,
        squares: FloatArray,
        paths: NDArray[np.int64],
        *,
        loss: FloatArray,
        next_loss: FloatArray,
        mean: FloatArray,
        excess: FloatArray | None = None,
    ) -> Stepped:
        """Take the step after a block.

        Parameters
        ----------
        state : the state before the last episode of the block.
        pi : (n_pairs,) the policy of the block.
        counts, squares : with the last episode of the block.
        paths : (n, L) the tuples of the n paths of the block.
        loss : (n_tuples,) f, the mean loss of the block.
        next_loss : (n_tuples,) what is expected of the next block; `state.last_loss` was expected of this one.
        mean : (I, n_tuples) ḡ; it is overwritten.
        excess : (I,) the excess of the block over the budgets; None for û_i and the surprises e_i of line 3.
        """
        space, t = self._space, state.observed + 1
        G, F, eta = self._rate(state, loss - state.last_loss, next_loss)  # line 5

        limits, units = core.in_spans(space.native, mean, self._budgets)
        rows, evidence = mean, self._dynamics.evidence
        counted = paths if self._dynamics.model is None else paths[:0]  # nothing about a known model is a surprise
        optimism = self._optimism / state.caution
        use, e = core.advantages(
            space.native, pi, *evidence(counts), state.theta, rows, optimism, counted.ravel()
        )  # line 2
        grown = state.overspent + len(paths) * (use - limits) + e
        V = grown if excess is None else state.overspent + excess / units
        targets = self._prudence.targets(limits, V, standard_deviations(squares, t) / units, t, state.caution)  # line 3

        cost = core.from_least(space.native, next_loss + (loss - state.last_loss))
        cost *= eta
        reference = core.mix_pairs(space.native, state.theta, 1 / (11 + state.steps), self._even)
        theta, prices, solver, gets_on = self._move(state, counts, reference, cost, rows, targets - use)  # line 4
        caution = min(1.0, RECOVERY * state.caution) if gets_on else max(state.caution / 2, LEAST_CAUTION)
        return Stepped(theta, solver, prices / (eta * units), V, caution, G, F)

    def _rate(self, state: BudgetedState, surprise: FloatArray, loss: FloatArray) -> tuple[float, float, float]:
        """Return G, F and η: line 5; `surprise` is f − f'', and F is a span of `loss`."""
        space, G = self._space, state.gap
        if state.steps > 0 and state.largest_span > 0:
            before = rate(state.largest_span, G / space.n_layers, self._first_rate)
            G += core.mix_gap(space.native, state.theta, surprise, before)
        span = core.span(space.native, loss)
        F = max(state.largest_span, span if span >= core.SMALLEST else 0.0)
        return G, F, rate(F, G / space.n_layers, self._first_rate)

    def _move(
        self,
        state: BudgetedState,
        counts: Counts,
        reference: FloatArray,
        cost: FloatArray,
        rows: FloatArray,
        limits: FloatArray,
    ) -> tuple[FloatArray, FloatArray, WarmStart, bool]:
        """Return θ, the prices (I,) in units of cost, where the next step begins, and whether θ gets on.

        Where floating point does not reach the tolerance, θ stays: the next step differs, and the run goes on.
        """
        theta, confidence = np.empty(self._space.n_tuples), self.set_of(counts)
        size = np.abs(rows).max(axis=1, initial=0.0)
        most = LARGEST_TILT / np.where(size > 0, size, 1.0)
        projector = self._priced.from_(state.solver)
        try:
            projector.solve(reference, cost, confidence, rows, limits, most, theta)
        except ConvergenceError as error:
            log.warning("episode %d: no step was taken; %s", state.observed + 1, error)
            projector.forget()
            return state.theta, np.zeros(len(limits)), self._priced.now(), False
        now, nearest = products(rows, theta[None]).ravel(), np.where(limits < 0, PROGRESS * limits, limits)
        gets_on = bool(((now <= limits + EXCEEDED * size) | (now <= nearest)).all())
        return theta, projector.multipliers, self._priced.now(), gets_on


def rate(F: float, G: float, first_rate: float) -> float:
    """Return η = 1 / √((F / h)² + G²); 1 as long as no loss made a difference."""
    return 1.0 / float(np.hypot(F / first_rate, G)) if F > 0 else 1.0
