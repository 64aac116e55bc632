"""UCPD: upper confidence primal-dual mirror descent (Qiu, Wei, Yang, Ye, Wang: Algorithm 1).

In every episode t:
1. θ^t = argmin over θ in Δ(ℓ(t), ζ) of <V f^{t-1} + Σ_i Q_i(t-1) g_i^{t-1}, θ> + α D(θ, θ̃^{t-1}), where
   θ̃^{t-1} = (1-λ) θ^{t-1} + λ uniform mixes in mass that is uniform on every layer; θ^1 is the measure of the
   uniform policy with equally likely successors (also uniform on every layer, if layers are dense).
2. Play π_t(a|s) ∝ Σ_s' θ^t(s,a,s').
3. Q_i(t) = max{Q_i(t-1) + <g_i^{t-1}, θ^t> − c_i, 0}: the constraints seen last with the measure just chosen.
4. Count the trajectory; when some pair's count inside the epoch reaches its count before it (and 1), start a new
   epoch: fold the counts in and compute the confidence set Δ around the frequencies.

Three options, all off in the publication, change these lines (docs/explanation/theory.md):
- charge="played" in 3: Q_i(t) = max{Q_i(t-1) + e_i, 0}, e_i = ĝ_i^{t-1}(π_{t-1}) − c_i the estimated excess of the last
policy
  over its budget by the counts, whereas <g_i^{t-1}, θ^t> is an optimistic estimate.
- proportional=κ in 1: Q_i(t-1) + κ √T [e_i]_+ in place of Q_i(t-1).
- draws="mean" in 1 and 3: the mean of g_i^1, …, g_i^{t-1} in place of g_i^{t-1}.

Feedback: full information. Needs to know: the space, the budgets and the number of episodes T.
The epoch rule and the treatment of unvisited pairs follow docs/explanation/errata.md.
"""

from dataclasses import field
from typing import Any, Literal

import numpy as np

from tightrope import core
from tightrope.arguments import choice
from tightrope.confidence import ConfidenceRule, ConfidenceSet, Counts
from tightrope.learners.base import Episode, Offer, Seen
from tightrope.learners.parameters import (
    NOT_NEGATIVE,
    POSITIVE,
    POSITIVE_SHARE,
    PROBABILITY,
    PUBLISHED,
    parameter,
)
from tightrope.learners.parts import Dynamics, MirrorStep, policy_of_measure
from tightrope.learners.shared.counting import CountingLearner, MirrorState
from tightrope.model import LayeredMDP
from tightrope.space import FloatArray
from tightrope.storage.state import numbers, state
from tightrope.ties import Ties

__all__ = ["UCPD", "Episode", "UCPDState"]


@state
class UCPDState(MirrorState):
    """The state of UCPD between two episodes."""

    multipliers: FloatArray = numbers(least=0)  #: (I,) Q
    mean_constraints: FloatArray = numbers(since=4)  #: (I, n_tuples) of all draws; (0, 0) where the last one counts


class UCPD(CountingLearner[UCPDState]):
    """Upper confidence primal-dual: adversarial losses, unknown dynamics, budgets that hold in the long run.

    Parameters
    ----------
    space : the layered space.
    budgets : (I,) the budgets per episode.
    episodes : T, the number of episodes that the parameters are set for.
    confidence : the name of a confidence rule, or a rule of your own (`tightrope.confidence`).
    alpha, V, mixing : α, V and λ; by default the theorem's L·T, L·√T and 1/T.
    level : ζ, the probability that the model may leave its confidence set. The theorem asks for at most
        1/(4 + 8L/σ̄), where σ̄ depends on the problem; the default 0.01 is admissible whenever σ̄ >= L/12.
    radius_scale : multiplies the confidence radius; 1 is the published one. This and `level` apply to a rule
        given by name; a rule of your own has its own parameters.
    charge : what the multipliers are charged for: "optimistic", <g, θ> of the θ chosen, as published; or "played".
    proportional : κ, the weight of the excess of the last policy over its budgets; 0 as published.
    draws : which constraints count: the "last" draw, as published, or the "mean" of all so far.

    Example
    -------
    >>> import numpy as np
    >>> from tightrope import LayeredSpace
    >>> space = LayeredSpace.dense(layer_sizes=[1, 2, 1], n_actions=2)
    >>> learner = UCPD(space, budgets=[0.5], episodes=100)
    >>> learner.observe(Episode([0, 1, 3], [0, 1], loss=np.zeros(8), constraints=np.zeros((1, 8))))
    >>> learner.policy.probabilities
    array([0.5, 0.5, 0.5, 0.5, 0.5, 0.5])
    """

    name = "ucpd"
    reference = (
        "Qiu, Wei, Yang, Ye, Wang: Upper confidence primal-dual reinforcement learning for CMDP with adversarial loss "
        "(NeurIPS 2020)"
    )
    constants = "published"

    model: LayeredMDP | None = field(init=False, default=None)
    confidence: str | ConfidenceRule = "paper"
    level: float = parameter(PROBABILITY, default=0.01)
    radius_scale: float = parameter(NOT_NEGATIVE, default=1.0)
    renewal: float = parameter(POSITIVE, default=1.0)
    alpha: float = parameter(POSITIVE, default=PUBLISHED)
    V: float = parameter(POSITIVE, default=PUBLISHED)
    mixing: float = parameter(POSITIVE_SHARE, default=PUBLISHED)
    charge: Literal["optimistic", "played"] = "optimistic"
    proportional: float = parameter(NOT_NEGATIVE, default=0.0)
    draws: Literal["last", "mean"] = "last"

    def configure(self) -> None:
        space, L, T = self.space, self.space.n_layers, self.episodes
        choice(self.charge, "charge", ("optimistic", "played"))
        choice(self.draws, "draws", ("last", "mean"))
        self.default_to(alpha=L * T, V=L * np.sqrt(T), mixing=1 / T)
        self.loss_weight = self.V
        self._dynamics = Dynamics.of(self)
        self.rule = self._dynamics.rule
        self._mirror_step = MirrorStep(space, self.rule)
        self._kappa = self.proportional * float(np.sqrt(T))
        self._looks_back = self.charge == "played" or self._kappa > 0

    def initial(self) -> UCPDState:
        space, n, counts = self.space, len(self.budgets), Counts(self.space, self.ties, self.renewal)
        return UCPDState(
            counts=counts,
            theta=self._dynamics.first_measure(),
            multipliers=np.zeros(n),
            mean_constraints=np.zeros((n, space.n_tuples) if self.draws == "mean" else (0, 0)),
            solver=self._mirror_step.begin(counts),
        )

    @property
    def confidence_set(self) -> ConfidenceSet:
        """The confidence set Δ of the epoch."""
        return self._mirror_step.set_of(self.state.counts)

    def offer(self, state: UCPDState) -> Offer:
        return Offer(
            policy_of_measure(self.space, state.theta), state.multipliers, self._dynamics.epoch_of(state.counts)
        )

    def step(self, state: UCPDState, seen: Seen) -> UCPDState:
        """Return the next state (lines 6 to 15 of Algorithm 1 for episode t, then θ and Q for episode t + 1)."""
        path, f, g, _ = seen
        Q, c, mean = state.multipliers, self.budgets, state.mean_constraints
        if self.draws == "mean":
            g = mean = core.average(mean, g, state.observed + 1)
        e: Any = self._used(state, g) - c if self._looks_back else 0.0  # by how much π_t is over its budgets
        weights = Q + self._kappa * np.maximum(e, 0.0) if self._kappa > 0 else Q
        psi = core.weigh(self.V, f, weights, g, self.alpha)  # (V f + Σ_i Q_i g_i) / α
        reference = core.mix(self.space.native, state.theta, self.mixing)  # (1 − λ) θ + λ uniform
        counts = state.counts.counted(path)
        theta, solver = self._mirror_step(state.solver, counts, reference, psi)
        Q = core.dual_step(Q, g, theta, c) if self.charge == "optimistic" else np.maximum(Q + e, 0.0)
        return UCPDState(
            observed=state.observed + 1, counts=counts, theta=theta, multipliers=Q, mean_constraints=mean, solver=solver
        )

    def _used(self, state: UCPDState, g: FloatArray) -> FloatArray:
        """Return the estimated uses (I,) of the last policy: by the counts, and by θ where visits are few."""
        laws, pi = self._dynamics.evidence(state.counts), self.offered(state).policy.probabilities
        use: FloatArray = core.uses(self.space.native, pi, *laws, state.theta, g)
        return use


class UCPDKnown(UCPD):
    """UCPD with known dynamics: adversarial losses, budgets that hold in the long run.

    Parameters
    ----------
    space, budgets, episodes, alpha, V, mixing, charge, proportional, draws : as in `UCPD`.
    model : the true one.
    """

    name = "ucpd-known"
    needs = ("model",)

    model: LayeredMDP = field()  # known, so the parameters of confidence sets do not apply
    ties: Ties | None = field(init=False, default=None)
    confidence: str | ConfidenceRule = field(init=False, default="")
    level: float = field(init=False, default=0.0)
    radius_scale: float = field(init=False, default=0.0)
    renewal: float = field(init=False, default=1.0)
