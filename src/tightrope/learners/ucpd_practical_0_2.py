"""The preset of 0.2: Algorithm 1 with other prices, steps and sets. `ucpd-practical` replaces it.

Budgets on rare events are exceeded and slow waves of the losses are followed too late; it goes in the next version.

Episodes are played in blocks of one policy, of 1 episode at first and 6 later; after each comes a step m, with f the
mean of the losses of the block. With f, g_i and budgets c_i taken from the least of each layer, in shares of their
spans:
1. The sets are anytime balls on the declared successors (`rules`), with the counts of tied pairs pooled, renewed when a
   count has grown by a tenth. The model is in all of them, at all times, with probability 1 − ζ.
2. Charge what was played: e_i = ĝ_i(π) + z σ_i/√t − c_i is by how much the policy uses more than budget i under P̂, for
   the mean ḡ_i of all draws so far, and prudently: σ_i/√t is the standard error of the mean use of t paths, by the
   differences of successive ones. (Algorithm 1 charges the optimistic θ, which believes to be within budget while sets
   are wide.) Q_i ← Q_i + ρ_m e_i, held between 0 and the most of line 3, ρ_m = 3 F / (L √m).
3. Prices: w = argmin over w >= 0 of ½ wᵀ A w − w·(A Q + k e / η − b), at most B/η for what g̃_i differs by in a layer. A
   step of length η changes the uses by −η (b + A w) to first order (`core/played.hpp`), so −b/A is the price
   at which losses and budgets balance, k e / (η A) brings back a share k of the excess in one step, and Q collects what
   this picture gets wrong. For one budget, w = [Q + (k e / η − b) / A]_+.
4. θ ← argmin over θ in Δ of η <f + Σ_i w_i g̃_i, θ> + D(θ, (1 − λ_m) θ + λ_m even), λ_m = 1/(10 + m); even, which
   is θ^1 as well, is the measure of the uniform policy where every successor is as likely. g̃_i = r a_i + (1 − r) ḡ_i,
   a_i(s,a) what π uses more under P̂ from (s,a) on than from s on: with it another policy is charged what it uses more
   than π, by the counts. With ḡ_i alone θ would escape prices to dynamics in which nothing is used; with a_i alone it
   would not try what only seems to use much.
5. η = 1/√(F²/h² + S/κ²): F is the largest span of an f so far, S the sum of squares of the spans of f − (f before).
   Losses that do not change leave η at h/F; those that change all the time make it fall like 1/√m.

Nothing depends on the units of losses and constraints, or on the number of episodes: none needs to be planned. No
step tilts θ by more than e^(h + I B), which the solver takes; so no price is above B/η, which is B F/h at first and
grows as η falls, for what g̃_i differs by.

Feedback: full information. Needs to know: the space and the budgets; with known dynamics also the model. Then
nothing is believed but the model, and what is charged (line 2) is what the policy uses.
"""

from dataclasses import field
from typing import Any

import numpy as np

from tightrope import core
from tightrope.arguments import whole
from tightrope.confidence import ConfidenceRule, ConfidenceSet, Counts
from tightrope.learners.base import Offer, Seen
from tightrope.learners.parameters import NOT_NEGATIVE, POSITIVE, PROBABILITY, SHARE, parameter
from tightrope.learners.parts import Dynamics, PolicyOfMeasure, block_after, block_loss, no_losses, spans_after
from tightrope.learners.shared.counting import CountingLearner
from tightrope.learners.shared.pricing import Prices, PriceStep, PricingState, View
from tightrope.model import LayeredMDP
from tightrope.space import FloatArray
from tightrope.storage.state import numbers, state
from tightrope.ties import Ties


@state
class PracticalState02(PricingState):
    """The state of ucpd-practical-0.2."""

    mean_constraints: FloatArray = numbers()  #: (I, n_tuples) ḡ
    last_loss: FloatArray = numbers()  #: (n_tuples,) f of the step before
    largest_span: float = numbers(least=0)  #: F


class UCPDPractical02(CountingLearner[PracticalState02]):
    """The practical preset of 0.2, kept for one version: prices from integrals, and eleven constants.

    Parameters
    ----------
    space, budgets : the space and (I,) the limits per episode.
    episodes : not needed, unless the confidence rule has a horizon; nothing else depends on it.
    confidence, level, radius_scale, renewal, ties : as in `UCPD`, with other defaults.
    first_rate, change_rate : h and κ of the learning rate η.
    correction : k, the share of the excess that a step brings back.
    prudence : z, how many standard errors it aims below each budget; 0 aims at the budget, and misses it half the time.
    integral : the 3 of ρ_m.
    realism : r, how much of a price is for uses by the counts; the rest is for uses as an optimist sees them.
    largest_tilt : B.
    block : the most episodes that are played with one policy; 1 takes a step after each, at several times the cost.
    """

    name = "ucpd-practical-0.2"
    reference = "tightrope: after Qiu, Wei, Yang, Ye, Wang, with prices and steps of its own (this package)"
    constants = "declared departure"

    plans = False
    ties_by_default = True

    model: LayeredMDP | None = field(init=False, default=None)
    episodes: Any = None
    confidence: str | ConfidenceRule = "kl"
    level: float = parameter(PROBABILITY, default=0.01)
    radius_scale: float = parameter(NOT_NEGATIVE, default=1.0)
    renewal: float = parameter(POSITIVE, default=0.1)
    first_rate: float = parameter(POSITIVE, default=1.0)
    change_rate: float = parameter(POSITIVE, default=5.0)
    correction: float = parameter(POSITIVE, default=0.3)
    prudence: float = parameter(NOT_NEGATIVE, default=0.5)
    integral: float = parameter(POSITIVE, default=3.0)
    realism: float = parameter(SHARE, default=0.5)
    largest_tilt: float = parameter(POSITIVE, default=100.0)
    block: int = 6

    def configure(self) -> None:
        self.block = whole(self.block, "block", 1)
        self.unreported = set() if getattr(self, "confidence", None) == "paper" else {"episodes"}
        self._dynamics = Dynamics.of(self)
        self.rule = self._dynamics.rule
        self._price_step = PriceStep(self, self._dynamics)
        self._policy_of = PolicyOfMeasure(self.space)

    def initial(self) -> PracticalState02:
        space, n = self.space, len(self.budgets)
        counts, zeros, no_loss = Counts(space, self.ties, self.renewal), np.zeros(n), np.zeros(space.n_tuples)
        return PracticalState02(
            counts=counts, theta=self._dynamics.first_measure(), solver=self._price_step.mirror_step.begin(counts),
            integrals=zeros, multipliers=zeros, losses=no_losses(space.n_tuples), waiting=0, last_use=zeros,
            squares=zeros,
            changes=0.0, steps=0, mean_constraints=np.zeros((n, space.n_tuples)), last_loss=no_loss, largest_span=0.0,
        )  # fmt: skip

    @property
    def confidence_set(self) -> ConfidenceSet:
        """The confidence set of the next step."""
        return self._price_step.mirror_step.set_of(self.state.counts)

    def offer(self, state: PracticalState02) -> Offer:
        policy = self._policy_of(state.theta)
        return Offer(policy, state.multipliers, self._dynamics.epoch_of(state.counts))

    def step(self, state: PracticalState02, seen: Seen) -> PracticalState02:
        """Count the path, add up losses and constraints; at the end of a block take a step."""
        path, f, g, _ = seen
        counts, block = state.counts.counted(path), block_after(state, f, g[:, path], self.block)
        m, theta, solver, last_loss = state.steps, state.theta, state.solver, state.last_loss
        prices = Prices(state.integrals, state.multipliers, state.largest_span, state.changes)
        if block.waiting == 0:
            policy = self.offered(state).policy
            theta, solver, prices = self._price_step(
                state, policy, lambda: self._view(state, f, g), block.squares, counts
            )
            m, last_loss = m + 1, block_loss(state, f).copy()
        return PracticalState02(
            observed=state.observed + 1, counts=counts, theta=theta, solver=solver, **prices._asdict(),
            **block._asdict(), steps=m, mean_constraints=self._mean_with(state, g), last_loss=last_loss,
        )  # fmt: skip

    def _view(self, state: PracticalState02, f: FloatArray, g: FloatArray) -> View:
        """Return what the step looks at after the block that f and g end."""
        loss = block_loss(state, f)
        F, S = spans_after(self.space, loss, state.last_loss, state.largest_span, state.changes, state.steps)  # line 5
        mean = self._mean_with(state, g)
        return View(loss, loss, mean.copy() if mean is state.mean_constraints else mean, F, S)

    def _mean_with(self, state: PracticalState02, g: FloatArray) -> FloatArray:
        """Return ḡ with one more draw."""
        mean: FloatArray = core.average(state.mean_constraints, g, state.observed + 1)
        return mean


class UCPDPracticalKnown02(UCPDPractical02):
    """The practical preset of 0.2 with known dynamics, kept for one version; it needs no prudence.

    Parameters
    ----------
    space, budgets, first_rate, change_rate, correction, integral, largest_tilt, block : as in `UCPDPractical02`.
    prudence : the same, 0 unless told otherwise.
    model : the true one.
    """

    name = "ucpd-practical-known-0.2"
    needs = ("model",)
    ties_by_default = False

    model: LayeredMDP = field()  # known: none of what is said about confidence sets applies
    ties: Ties | None = field(init=False, default=None)
    confidence: str | ConfidenceRule = field(init=False, default="")
    level: float = field(init=False, default=0.0)
    radius_scale: float = field(init=False, default=0.0)
    renewal: float = field(init=False, default=1.0)
    prudence: float = parameter(NOT_NEGATIVE, default=0.0)
