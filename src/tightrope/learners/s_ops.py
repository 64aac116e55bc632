"""S-OPS: no budget is exceeded in any episode (after Stradi, Castiglioni, Marchesi & Gatti 2025).

After every block of episodes with one policy π, with f the mean of its losses:
1. Confidence sets C on the model as in `ucpd-inside`: anytime balls, counts of tied pairs pooled. g⁺_i is an upper
   bound on the mean of constraint i, tuple by tuple, at all times (empirical Bernstein). Both hold with probability
   1 − 2ζ.
2. Worst-case use, by dynamic programming over actions and models:
   V_i(s) = Σ_a π(a|s) q_i(s,a), q_i(s,a) = max over p in C(s,a) of Σ_s' p(s') (g⁺_i(s,a,s') + V_i(s')); U_i(π) = V_i at
   the first state. A policy with U_i(π) <= c_i for all i is within the budgets, whatever the model.
3. θ ← argmin over θ in Δ with <q_i − V_i, θ> <= [c_i − U_i(π)]_+ of η <f, θ> + D(θ, (1 − λ_m) θ + λ_m even):
   optimistic in the loss, since θ picks its model; pessimistic in the constraints, since another policy uses at most
   <q_i − V_i, its measure> more than π, in the worst case. π itself meets the inequalities, so they can be met; where
   almost nothing else does and no answer is found, θ stays what it is.
4. The next policy is μ π° + (1 − μ) π^θ in every state, π° the safe policy that uses β of the budgets, with the least μ
   that is found (halving an interval) such that U_i <= c_i for all i, or μ₀ if none is: then all L actions are those of
   π° with probability μ₀^L, so the use is at most μ₀^L β_i + (1 − μ₀^L) L = c_i.
5. η and λ_m as in `ucpd-practical`.

So with probability 1 − 2ζ every episode of the run is within all budgets in expectation, without a horizon, even if
losses are adversarial; constraints must be drawn independently from one distribution. That the regret per episode
decreases like 1/√t is measured, not proved.

Feedback: full information. Needs to know: the space, the budgets, a policy π° strictly within them, and its uses β.
Where we depart from the publication: it has bandit feedback, and estimates losses and constraints along paths, with
Bernstein boxes and Hoeffding's bounds. It steps over optimistic constraints, and mixes by drawing π° with
probability λ_t before the episode, so that budgets hold on average over that draw; here every policy
satisfies them, by mixing within states, which is why λ_0 = (L − c)/(L − β) is μ₀^L here. Its bound on the use of π_t
is <g⁺, û> with a separate upper occupancy bound for each state; line 2 is the use under one model, which is smaller.
"""

from dataclasses import field
from typing import Any, NamedTuple

import numpy as np

from tightrope import core
from tightrope.arguments import whole
from tightrope.arithmetic import log, power
from tightrope.confidence import ConfidenceRule, ConfidenceSet, Counts
from tightrope.confidence.sets import Bounds, bounds_of, most_paid, worst_use
from tightrope.errors import ConvergenceError, InfeasibleError
from tightrope.learners.base import Offer, Seen, require
from tightrope.learners.parameters import NOT_NEGATIVE, POSITIVE, PROBABILITY, parameter
from tightrope.learners.parts import (
    Dynamics,
    MirrorStep,
    Warmed,
    WarmStart,
    even_measure,
    policy_of_measure,
    rate,
    spans_after,
)
from tightrope.learners.shared.counting import CountingLearner, MirrorState
from tightrope.model import LayeredMDP, Policy, flat
from tightrope.projection.priced import PricedProjector
from tightrope.space import FloatArray
from tightrope.storage.state import numbers, state

#: Blocks may become one episode longer after every so many episodes.
BLOCK_GROWTH = 100
#: The number of bisections of the interval of μ.
HALVINGS = 6
#: The tolerance of the flow residual of θ, and of inequalities.
TOLERANCE = 1e-6
#: Uses below this are rounding.
ROUNDING = 1e-9


@state
class SOPSState(MirrorState):
    """The state of S-OPS between two episodes."""

    mean_constraints: FloatArray = numbers()  #: (I, n_tuples) ḡ
    squares: FloatArray = numbers(least=0)  #: (I, n_tuples) Σ (g − ḡ before)²
    last_loss: FloatArray = numbers()  #: (n_tuples,) f of the step before
    losses: FloatArray = numbers()  #: (n_tuples,) sum of the losses of the block
    waiting: int = numbers(least=0)  #: how many they are
    largest_span: float = numbers(least=0)  #: F of η
    changes: float = numbers(least=0)  #: S of η
    steps: int = numbers(least=0)  #: m
    weight: float = numbers(least=0, most=1)  #: μ
    multipliers: FloatArray = numbers(least=0)  #: (I,) of the inequalities of line 3, per unit of loss


class Stepped(NamedTuple):
    """The fields of the state that a step changes."""

    theta: FloatArray
    solver: WarmStart
    weight: float
    multipliers: FloatArray
    largest_span: float
    changes: float


class SOPS(CountingLearner[SOPSState]):
    """Budgets hold in every episode, from a safe policy: adversarial losses, unknown dynamics.

    Parameters
    ----------
    space, budgets : the space and (I,) the limits per episode.
    episodes : not needed, unless the confidence rule has a horizon; nothing else depends on it.
    safe_policy, safe_usage : π°, and its expected use of each budget (I,).
    confidence, radius_scale, renewal, ties : as in `UCPD`, with other defaults. Below a scale of 1 the guarantee is
    lost.
    level : ζ, for the sets and for the constraints each.
    first_rate, change_rate : of the learning rate η, as in `UCPDPractical`.
    block : the most episodes that are played with one policy.
    """

    name = "s-ops"
    reference = (
        "after Stradi, Castiglioni, Marchesi, Gatti: Learning adversarial MDPs with stochastic hard constraints "
        "(ICML 2025)"
    )
    constants = "declared departure"
    needs = ("safe_policy", "safe_usage")
    ties_by_default = True
    plans = False

    model: LayeredMDP | None = field(init=False, default=None)
    safe_policy: Policy
    safe_usage: Any
    episodes: Any = None
    confidence: str | ConfidenceRule = "kl"
    level: float = parameter(PROBABILITY, default=0.005)
    radius_scale: float = parameter(NOT_NEGATIVE, default=1.0)
    renewal: float = parameter(POSITIVE, default=0.1)
    first_rate: float = parameter(POSITIVE, default=1.0)
    change_rate: float = parameter(POSITIVE, default=5.0)
    block: int = 10

    def configure(self) -> None:
        space, n = self.space, len(self.budgets)
        self.block = whole(self.block, "block", 1)
        self.unreported = set() if self.confidence == "paper" else {"episodes"}
        usage = flat(self.safe_usage, n, "safe_usage")
        require(
            bool((usage < self.budgets).all()),
            f"the safe policy uses {usage} of the budgets {self.budgets}; less is needed of each",
        )
        apart = float(np.min((self.budgets - usage) / np.maximum(space.n_layers - usage, 1e-300), initial=1.0))
        self.first_weight: float = power(1 - apart, 1 / space.n_layers)  #: μ₀
        self._dynamics = Dynamics.of(self)
        self.rule = self._dynamics.rule
        self._mirror_step = MirrorStep(space, self.rule, TOLERANCE)
        self._projector = Warmed(PricedProjector(space, n, TOLERANCE))
        self._even = even_measure(space)[space.csr.pair_ptr[:-1]]

    def initial(self) -> SOPSState:
        space, n = self.space, len(self.budgets)
        counts, no_loss, no_use = (
            Counts(space, self.ties, self.renewal), np.zeros(space.n_tuples), np.zeros((n, space.n_tuples)),
        )  # fmt: skip
        solver = self._mirror_step.begin(counts) if n == 0 else self._projector.now()
        self._mirror_step.set_of(counts)
        return SOPSState(
            counts=counts, theta=self._dynamics.first_measure(), solver=solver, mean_constraints=no_use,
            squares=no_use, last_loss=no_loss, losses=no_loss, waiting=0, largest_span=0.0, changes=0.0, steps=0,
            weight=self.first_weight, multipliers=np.zeros(n),
        )  # fmt: skip

    @property
    def confidence_set(self) -> ConfidenceSet:
        """The confidence set of the next step."""
        return self._mirror_step.set_of(self.state.counts)

    def offer(self, state: SOPSState) -> Offer:
        policy = self._mixed(policy_of_measure(self.space, state.theta).probabilities, state.weight)
        return Offer(policy, state.multipliers, state.counts.epoch)

    def step(self, state: SOPSState, seen: Seen) -> SOPSState:
        """Count the path, add up losses and constraints; at the end of a block take a step."""
        t, off = state.observed + 1, seen.constraints - state.mean_constraints
        counts, mean, squares = (
            state.counts.counted(seen.path),
            state.mean_constraints + off / t,
            state.squares + off * off,
        )
        losses, waiting, m, last_loss = state.losses + seen.loss, state.waiting + 1, state.steps, state.last_loss
        stepped = Stepped(state.theta, state.solver, state.weight, state.multipliers, state.largest_span, state.changes)
        if waiting >= min(self.block, 1 + t // BLOCK_GROWTH):
            loss = losses / waiting
            stepped = self._step_on(state, loss, self._upper(t, mean, squares), counts)
            losses, waiting, m, last_loss = np.zeros_like(loss), 0, m + 1, loss
        return SOPSState(
            observed=t, counts=counts, theta=stepped.theta, solver=stepped.solver, mean_constraints=mean,
            squares=squares, last_loss=last_loss, losses=losses, waiting=waiting, largest_span=stepped.largest_span,
            changes=stepped.changes, steps=m, weight=stepped.weight, multipliers=stepped.multipliers,
        )  # fmt: skip

    def _upper(self, t: int, mean: FloatArray, squares: FloatArray) -> FloatArray:
        """Return g⁺ (I, n_tuples) of line 1, from lower bounds on the means of (1 − g)/2, which lies in [0, 1]."""
        log_inverse = log(max(1, mean.size) / self.level)
        n = np.full(self.space.n_tuples, t)
        lower = core.lower_means(n, t * (1 - mean) / 2, squares / 4, log_inverse, self.radius_scale)
        upper: FloatArray = 1 - 2 * lower
        return upper

    def _step_on(self, state: SOPSState, f: FloatArray, upper: FloatArray, counts: Counts) -> Stepped:
        """Take a step and choose the next policy (lines 2 to 5)."""
        confidence_set, m = self._mirror_step.set_of(counts), state.steps + 1
        bounds, policy = bounds_of(confidence_set, self.space), self.offered(state).policy
        F, S = spans_after(self.space, f, state.last_loss, state.largest_span, state.changes, state.steps)
        eta = rate(F, S, self.first_rate, self.change_rate)
        reference = core.mix_pairs(self.space.native, state.theta, 1 / (10 + m), self._even)
        multipliers = state.multipliers
        if len(self.budgets) == 0:
            theta, solver = self._mirror_step(state.solver, counts, reference, eta * f)
        else:
            theta, uses = np.empty_like(f), [worst_use(self.space, bounds, policy, g) for g in upper]
            more = np.array([use.more for use in uses])
            more[np.abs(more) < ROUNDING] = 0.0
            room = np.maximum(self.budgets - [use.most for use in uses], ROUNDING)
            projector = self._projector.from_(state.solver)
            try:
                projector.solve(reference, eta * f, confidence_set, more, room, np.full(len(room), np.inf), theta)
                multipliers, solver = projector.multipliers / eta, self._projector.now()
            except (ConvergenceError, InfeasibleError):  # keep θ, and start cold next time
                theta = state.theta
                solver = Warmed(PricedProjector(self.space, len(self.budgets), TOLERANCE)).now()
        weight = self._within(policy_of_measure(self.space, theta).probabilities, bounds, upper)
        return Stepped(theta, solver, weight, multipliers, F, S)

    def _within(self, pi: FloatArray, bounds: Bounds, upper: FloatArray) -> float:
        """Return the largest share μ of line 4."""

        def holds(policy: Policy) -> bool:
            return all(
                most_paid(self.space, bounds, policy, g)[0] <= c - ROUNDING
                for g, c in zip(upper, self.budgets, strict=True)
            )

        least, most = 0.0, self.first_weight
        policy = self._mixed(pi, least)
        if holds(policy):
            return least
        policy = self._mixed(pi, most)
        if not holds(policy):
            return most
        for _ in range(HALVINGS):
            middle = (least + most) / 2
            tried = self._mixed(pi, middle)
            if holds(tried):
                most = middle
            else:
                least = middle
        return most

    def _mixed(self, pi: FloatArray, weight: float) -> Policy:
        """Return μ π° + (1 − μ) π in every state."""
        return Policy.unchecked(self.space, weight * self.safe_policy.probabilities + (1 - weight) * pi)
