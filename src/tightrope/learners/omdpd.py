"""OMDPD: optimistic mirror descent with a potential in place of the multiplier (Zhu, Yu, Lee, Liu, Wei 2025).

In every episode t, from θ^1 = θ̂^1, the measure of the uniform policy with equally likely successors, and w^0 = 0:
1. Play π_t(a|s) ∝ Σ_s' θ^t(s,a,s').
2. λ_i ← λ_i + α [<g_i^t, θ^t> − c_i]_+: the price of a budget never falls.
3. The price of budget i is q_i = Φ'(λ_i) / V with the potential Φ(x) = e^{βx} − 1, and at most 2 (β/V) (1 + 2VT).
4. w^t = f^t + Σ_i q_i g_i^t over the budgets that were exceeded: a gradient at θ^t of f^t + Σ_i q_i [g_i^t − c_i]_+.
5. Count the trajectory; at the end of an epoch compute the confidence set Δ.
6. θ̂^{t+1} = argmin over θ in Δ of η_t <w^t, θ> + D(θ, (1 − γ) θ̂^t + γ uniform).
7. θ^{t+1} = argmin over θ in Δ of η_{t+1} <w^t, θ> + D(θ, (1 − γ) θ̂^{t+1} + γ uniform): the same step again, with w^t
   as a prediction of w^{t+1}. η_t = √(E / (L + Σ_{τ<t} Σ_k max |w^τ − w^{τ-1}|²)), the max over the tuples of layer k;
   E = Σ_k log(n_k/γ), n_k the number of these tuples: a bound on D.

Losses and constraints may both be chosen by an adversary. The comparator is the best policy that is within the
budgets in every episode (docs/explanation/changing-budgets.md), and the bounds are on the strong violation.

Feedback: full information. Needs to know: the space, the budgets and the number of episodes T.
Where we depart from the publication: its rewards are drawn, and observed along the path; here losses are adversarial
and observed in full. It has one constraint; here each has its own potential. D is the relative entropy. The sets are
those of `ucpd-inside`: valid at all times, renewed often, with tied counts. We know the form of its steps, but not
the values of its constants. β = 1/(2√T) and the bound on prices are those of A. Sinha, R. Vaze, "Optimal algorithms for
online convex optimization with adversarial constraints" (NeurIPS 2024), theorem 1, whose argument applies. V = 1/√T,
instead of their 1, lets prices begin at 1/2 and keeps the order of both bounds. For known dynamics the argument needs
an α of about 1/(4√(2EL)), 10 to 200 times less than our α = 1; the benefit of the larger one is measured, not proved.
"""

from dataclasses import field

import numpy as np

from tightrope import core
from tightrope.arithmetic import exp, log
from tightrope.confidence import ConfidenceRule, ConfidenceSet, Counts
from tightrope.learners.base import Offer, Seen
from tightrope.learners.parameters import NOT_NEGATIVE, POSITIVE, POSITIVE_SHARE, PROBABILITY, PUBLISHED, parameter
from tightrope.learners.parts import Dynamics, MirrorStep, Warmed, WarmStart, policy_of_measure
from tightrope.learners.shared.counting import CountingLearner, MirrorState
from tightrope.model import LayeredMDP, inner
from tightrope.projection.projector import Projector
from tightrope.space import FloatArray
from tightrope.storage.state import measure, numbers, part, state


@state
class OMDPDState(MirrorState):
    """The state of OMDPD between two episodes."""

    excess: FloatArray = numbers(least=0)  #: (I,) λ
    anchor: FloatArray = measure()  #: (n_tuples,) θ̂
    gradient: FloatArray = numbers()  #: (n_tuples,) w of the episode before
    surprise: float = numbers(least=0)  #: Σ_τ Σ_k max |w^τ − w^{τ-1}|²
    solver_ahead: WarmStart = part(written_as="_projector_ahead")  #: the warm start of line 7, which has its own solver


class OMDPD(CountingLearner[OMDPDState]):
    """Optimistic mirror descent, prices by a potential: losses and constraints may both change.

    Parameters
    ----------
    space, budgets : the space and (I,) the limits per episode.
    episodes : T, the number of episodes that the parameters are set for.
    confidence, level, radius_scale, renewal, ties : as in `UCPD`, with other defaults.
    alpha : α, the weight of a violation; a larger one gives less violation.
    beta, V : β and V of the potential; by default 1/(2√T) and 1/√T.
    mixing : γ; by default 1/T.
    """

    name = "omdpd"
    reference = (
        "Zhu, Yu, Lee, Liu, Wei: An optimistic algorithm for online CMDPs with anytime adversarial constraints "
        "(ICML 2025)"
    )
    constants = "balanced by us"
    ties_by_default = True

    model: LayeredMDP | None = field(init=False, default=None)
    confidence: str | ConfidenceRule = "kl"
    level: float = parameter(PROBABILITY, default=0.01)
    radius_scale: float = parameter(NOT_NEGATIVE, default=1.0)
    renewal: float = parameter(POSITIVE, default=0.1)
    alpha: float = parameter(POSITIVE, default=1.0)
    beta: float = parameter(POSITIVE, default=PUBLISHED)
    V: float = parameter(POSITIVE, default=PUBLISHED)
    mixing: float = parameter(POSITIVE_SHARE, default=PUBLISHED)

    def configure(self) -> None:
        root = float(np.sqrt(self.episodes))
        self.default_to(beta=1 / (2 * root), V=1 / root, mixing=1 / self.episodes)
        self._dynamics = Dynamics.of(self)
        self.rule = self._dynamics.rule
        self._mirror_step = MirrorStep(self.space, self.rule)
        self._ahead = Warmed(Projector(self.space))
        self._tuples_before = self.space.tuples_before
        self._most = 2 * self.beta / self.V * (1 + 2 * self.V * self.episodes)
        self._far = float(log(np.diff(self._tuples_before) / self.mixing).sum())  # E

    def initial(self) -> OMDPDState:
        counts, theta = Counts(self.space, self.ties, self.renewal), self._dynamics.first_measure()
        return OMDPDState(
            counts=counts,
            theta=theta,
            solver=self._mirror_step.begin(counts),
            excess=np.zeros(len(self.budgets)),
            anchor=theta,
            gradient=np.zeros(self.space.n_tuples),
            surprise=0.0,
            solver_ahead=self._ahead.now(),
        )

    @property
    def confidence_set(self) -> ConfidenceSet:
        """The confidence set Δ of the epoch."""
        return self._mirror_step.set_of(self.state.counts)

    def offer(self, state: OMDPDState) -> Offer:
        return Offer(policy_of_measure(self.space, state.theta), self._prices(state.excess), state.counts.epoch)

    def step(self, state: OMDPDState, seen: Seen) -> OMDPDState:
        """Return the next state (lines 2 to 7)."""
        path, f, g, _ = seen
        over = inner(g, state.theta) - self.budgets
        excess = state.excess + self.alpha * np.maximum(over, 0.0)
        prices, theta = self._prices(excess), np.empty(self.space.n_tuples)
        w = core.weigh(1.0, f, np.where(over > 0, prices, 0.0), g, 1.0)
        changes = np.maximum.reduceat(np.abs(w - state.gradient), self._tuples_before[:-1])
        surprise = state.surprise + float((changes * changes).sum())
        counts = state.counts.counted(path)
        cost = self._rate(state.surprise) * w
        anchor, solver = self._mirror_step(state.solver, counts, self._mixed(state.anchor), cost)
        ahead, known = self._ahead.from_(state.solver_ahead), self._mirror_step.set_of(counts)
        ahead.solve(self._mixed(anchor), self._rate(surprise) * w, known, theta)
        return OMDPDState(
            observed=state.observed + 1, counts=counts, theta=theta, solver=solver, excess=excess, anchor=anchor,
            gradient=w, surprise=surprise, solver_ahead=self._ahead.now(),
        )  # fmt: skip

    def _prices(self, excess: FloatArray) -> FloatArray:
        """Return the prices of line 3."""
        first = self.beta / self.V
        beyond = log(self._most / first)  # the cap avoids overflow of the power
        prices: FloatArray = first * exp(np.minimum(self.beta * excess, beyond))
        return prices

    def _rate(self, surprise: float) -> float:
        """Return the step size η of the next step."""
        return float(np.sqrt(self._far / (self.space.n_layers + surprise)))

    def _mixed(self, measure: FloatArray) -> FloatArray:
        """Return (1 − γ) θ + γ uniform."""
        reference: FloatArray = core.mix(self.space.native, measure, self.mixing)
        return reference
