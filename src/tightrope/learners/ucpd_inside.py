"""UCPD with the budgets inside the step: exactly what the theorem of docs/explanation/theory.md (section 7) is about.

θ^{t+1} is chosen after t = 0, 1, 2, … episodes. U is uniform on the tuples of every layer, f^0 = f^{−1} = 0.

1. Play π_t(a|s) ∝ Σ_s' θ^t(s,a,s'), see f^t and g^t, count the path; Δ_{t+1} holds the model at all times.
2. g̲_i = max{ḡ_i − b_i, −1}, ḡ_i the mean of the t draws and b_i an anytime bound on its error: g̲_i <= g_i at all times.
3. W_t = Σ_k (½ span of f^t − f^{t−1} on layer k)², and 1/η_t = ρ_t = √((4L + Σ_{τ<=t} W_τ) / R),
   R = Σ_k log(tuples of layer k) + L log 2.
4. θ̃^t = (1 − λ_t) θ^t + λ_t U, λ_t = 1/(t + 1)², and

       θ^{t+1} = argmin of <2 f^t − f^{t−1}, θ> + ρ_{t−1} D(θ, θ̃^t) + (ρ_t − ρ_{t−1}) D(θ, U)
                 over the θ in Δ_{t+1} with <g̲_i, θ> <= c_i − δ_{t+1} for all i,     δ_s = κ √(log(s + 1) / s)

   If there is none, all right-hand sides are raised by the least amount with which there is one. With κ = 0 and budgets
   that some policy meets, that happens only if a bound of 1 or 2 fails (probability 2ζ). Where almost no measure meets
   them, so that the solver finds no prices, they are raised by 1e-5, or by up to 1e-2: the theorem neglects that.

So the best policy within the budgets is allowed in every step, regret is that of optimistic mirror descent, and what is
overspent is what was not known: both are of order √T up to logarithms, without Slater's condition, a horizon, or
multipliers to keep bounded.

Feedback: full information. Needs to know: the space and the budgets.
"""

import math
from contextlib import suppress
from dataclasses import field
from typing import Any

import numpy as np

from tightrope import core
from tightrope.arithmetic import log
from tightrope.confidence import ConfidenceRule, ConfidenceSet, Counts
from tightrope.errors import ConvergenceError, InfeasibleError
from tightrope.learners.base import Offer, Seen
from tightrope.learners.parameters import NOT_NEGATIVE, POSITIVE_SHARE, PROBABILITY, parameter
from tightrope.learners.parts import Dynamics, MirrorStep, Warmed, WarmStart, policy_of_measure
from tightrope.learners.shared.counting import CountingLearner, MirrorState
from tightrope.model import LayeredMDP
from tightrope.projection.priced import PricedProjector, least_excess
from tightrope.space import FloatArray, LayeredSpace
from tightrope.storage.state import numbers, state

#: What right-hand sides are raised by where almost no measure meets them; the next one where that is not enough: of a
#: single measure no solver finds the prices.
ROOMS = (1e-5, 1e-4, 1e-3, 1e-2)


@state
class InsideState(MirrorState):
    """The state of UCPD with the budgets inside the step."""

    multipliers: FloatArray = numbers(least=0)  #: (I,) the prices of the budgets in the last step, per unit of loss
    mean_constraints: FloatArray = numbers()  #: (I, n_tuples) ḡ
    squares: FloatArray = numbers(least=0)  #: (I, n_tuples) Σ (g − ḡ before)²
    last_loss: FloatArray = numbers()  #: (n_tuples,) f^t
    variation: float = numbers(least=0)  #: Σ W_t


class StepInside:
    """θ ← argmin over θ' in Δ with <rows_i, θ'> <= limits_i of <cost, θ'> + D(θ', reference).

    If there is no such θ', all limits are raised by the least amount with which there is one, and by the first of
    `ROOMS` with which it can be computed.
    """

    def __init__(self, space: LayeredSpace, rule: ConfidenceRule, n_budgets: int) -> None:
        self._plain = MirrorStep(space, rule)
        self._space = space
        self._n_budgets = n_budgets
        self._projector = Warmed(PricedProjector(space, n_budgets))

    def set_of(self, counts: Counts) -> ConfidenceSet:
        """Return the confidence set of the epoch of these counts."""
        return self._plain.set_of(counts)

    def begin(self, counts: Counts) -> WarmStart:
        """Return the warm start before the first step; raise what the rule raises for these counts."""
        plain = self._plain.begin(counts)
        return self._projector.now() if self._n_budgets else plain

    def __call__(
        self,
        warm: WarmStart,
        counts: Counts,
        reference: FloatArray,
        cost: FloatArray,
        rows: FloatArray,
        limits: FloatArray,
    ) -> tuple[FloatArray, FloatArray, WarmStart]:
        """Return θ (n_tuples,), the prices (I,) of the limits, and where the next step begins."""
        if self._n_budgets == 0:
            theta, warm = self._plain(warm, counts, reference, cost)
            return theta, np.zeros(0), warm
        subproblem, projector = (reference, cost, self.set_of(counts), rows), self._projector.from_(warm)
        try:
            return self._solve(projector, *subproblem, limits)
        except InfeasibleError:
            limits = limits + max(least_excess(self._space, self.set_of(counts), rows, limits)[0], 0.0)
        except ConvergenceError:  # almost no measure meets the limits
            pass
        for room in ROOMS[:-1]:
            with suppress(ConvergenceError, InfeasibleError):
                return self._solve(self._cold(), *subproblem, limits + room)
        return self._solve(self._cold(), *subproblem, limits + ROOMS[-1])

    def _cold(self) -> PricedProjector:
        self._projector = Warmed(PricedProjector(self._space, self._n_budgets))
        return self._projector.from_(self._projector.now())

    def _solve(
        self,
        projector: PricedProjector,
        reference: FloatArray,
        cost: FloatArray,
        confidence: ConfidenceSet,
        rows: FloatArray,
        limits: FloatArray,
    ) -> tuple[FloatArray, FloatArray, WarmStart]:
        theta, without_bound = np.empty(self._space.n_tuples), np.full(self._n_budgets, np.inf)
        projector.solve(reference, cost, confidence, rows, limits, without_bound, theta)
        return theta, projector.multipliers, self._projector.now()


class UCPDInside(CountingLearner[InsideState]):
    """Budgets as constraints of an optimistic step: regret and strong violation proved to be of order √T.

    Parameters
    ----------
    space, budgets : the space and (I,) the limits per episode.
    episodes : not needed, unless the confidence rule has a horizon; nothing else depends on it.
    confidence, radius_scale, renewal, ties : as in `UCPD`, with other defaults. The theorem is about rules that hold at
        all times, a scale of 1 and a renewal of at most 1; the numbers of `tightrope.theory.bounds_inside` about `kl`
        and `kl-l1`.
    level : ζ, for the sets, and for the bounds on the constraints' means.
    tightening : κ, by how much each step aims below the budgets: c_i − κ √(log(t + 1) / t), in the learner's units.

    Example
    -------
    >>> import tightrope as tr
    >>> history = tr.run("random", "ucpd-inside", episodes=50)
    >>> int(history["episode"][-1])
    50
    """

    name = "ucpd-inside"
    reference = (
        "tightrope: after UC-O-REPS (Rosenberg, Mansour, ICML 2019) with optimistic constraints in the step (Stradi, "
        "Castiglioni, Marchesi, Gatti, ICML 2025); docs/explanation/theory.md has the theorem"
    )
    constants = "published"
    plans = False

    model: LayeredMDP | None = field(init=False, default=None)
    episodes: Any = None
    confidence: str | ConfidenceRule = "kl"
    level: float = parameter(PROBABILITY, default=0.01)
    radius_scale: float = parameter(NOT_NEGATIVE, default=1.0)
    renewal: float = parameter(POSITIVE_SHARE, default=0.1)
    tightening: float = parameter(NOT_NEGATIVE, default=0.0)

    def configure(self) -> None:
        space = self.space
        self.unreported = set() if self.confidence == "paper" else {"episodes"}
        self._dynamics = Dynamics.of(self)
        self.rule = self._dynamics.rule
        self._step = StepInside(space, self.rule, len(self.budgets))
        self._uniform = core.mix(space.native, np.zeros(space.n_tuples), 1.0)
        self.log_inverse = log(2 * max(1, len(self.budgets) * space.n_tuples) / self.level)  # both sides of each mean
        self.range_of_D = range_of_D(space)

    def initial(self) -> InsideState:
        """Return the first state; θ^1 is the measure in Δ_1 nearest to U."""
        space, n, counts = self.space, len(self.budgets), Counts(self.space, self.ties, self.renewal)
        plain = MirrorStep(space, self.rule)
        theta, _ = plain(plain.begin(counts), counts, self._uniform, np.zeros(space.n_tuples))
        return InsideState(
            counts=counts, theta=theta, solver=self._step.begin(counts), multipliers=np.zeros(n),
            mean_constraints=np.zeros((n, space.n_tuples)), squares=np.zeros((n, space.n_tuples)),
            last_loss=np.zeros(space.n_tuples), variation=0.0,
        )  # fmt: skip

    @property
    def confidence_set(self) -> ConfidenceSet:
        """The confidence set Δ of the epoch."""
        return self._step.set_of(self.state.counts)

    def offer(self, state: InsideState) -> Offer:
        return Offer(policy_of_measure(self.space, state.theta), state.multipliers, state.counts.epoch)

    def step(self, state: InsideState, seen: Seen) -> InsideState:
        """Return the next state (lines 1 to 4 for episode t, then θ for episode t + 1)."""
        path, f, g, _ = seen
        t, counts = state.observed + 1, state.counts.counted(path)
        off = g - state.mean_constraints
        mean, squares = core.average(state.mean_constraints, g, t), state.squares + off * off
        variation = state.variation + layer_variation(self.space, f - state.last_loss)
        rho, rho_before = self._rho(variation), self._rho(state.variation)
        theta_mixed = core.mix(self.space.native, state.theta, 1 / (t + 1) ** 2)
        # of (ρ_t − ρ_{t−1}) D(θ, U) remains, beside ρ_t D(θ, θ̃), what is linear in θ: U is constant on a layer
        cost = (2 * f - state.last_loss) / rho + (1 - rho_before / rho) * log(theta_mixed)
        limits = self.budgets - tightened_by(self.tightening, t + 1.0)
        lower = lower_bounds(mean, squares, t, self.log_inverse)
        theta, prices, solver = self._step(state.solver, counts, theta_mixed, cost, lower, limits)
        return InsideState(
            observed=t, counts=counts, theta=theta, solver=solver, multipliers=prices * rho, mean_constraints=mean,
            squares=squares, last_loss=f.copy(), variation=variation,
        )  # fmt: skip

    def _rho(self, variation: float) -> float:
        """Return ρ_t = 1/η_t of the next step."""
        return math.sqrt((4 * self.space.n_layers + variation) / self.range_of_D)


def range_of_D(space: LayeredSpace) -> float:
    """R: D(θ, U) of any measure, and what mixing adds in all episodes together."""
    return float(np.sum(log(np.diff(space.tuples_before)))) + space.n_layers * math.log(2)


def tightened_by(kappa: float, s: Any) -> Any:
    """δ_s of an episode s >= 2, or of each of an array of them."""
    return kappa * np.sqrt(log(s + 1.0) / s)


def layer_variation(space: LayeredSpace, change: FloatArray) -> float:
    """W: the sum over layers of (½ span)², given f^t − f^{t−1} (n_tuples,)."""
    first = space.tuples_before[:-1]
    spans = np.maximum.reduceat(change, first) - np.minimum.reduceat(change, first)
    return float(np.sum(spans * spans)) / 4


def lower_bounds(mean: FloatArray, squares: FloatArray, t: int, log_inverse: float) -> FloatArray:
    """g̲ (I, n_tuples) after t draws: (1 + g)/2 is in [0, 1], where `core.lower_means` bounds means."""
    draws = np.full(mean.shape[1], t)
    lower: FloatArray = 2 * core.lower_means(draws, t * (1 + mean) / 2, squares / 4, log_inverse, 1.0) - 1
    return lower
