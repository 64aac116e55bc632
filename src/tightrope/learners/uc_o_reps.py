"""UC-O-REPS: upper confidence online relative entropy policy search (Rosenberg & Mansour 2019).

In every episode t:
1. Play π_t(a|s) ∝ Σ_s' q_t(s,a,s'); q_1 as θ^1 of `ucpd`.
2. Count the trajectory; when some pair's count inside the epoch reaches its count before it (and 1), start a new
   epoch: fold the counts in and compute the confidence set Δ around the frequencies.
3. q_{t+1} = argmin over q in Δ of η <f^t, q> + D(q, q_t).

That is UCPD without budgets and without mixing; budgets are ignored.

Feedback: full information. Needs to know: the space and the number of episodes T.
Where we depart from the publication: losses may be negative (its analysis needs |ηf| <= 1 only); the epoch rule and
unvisited pairs are treated as in UCPD (docs/explanation/errata.md).
"""

from dataclasses import field

import numpy as np

from tightrope.arithmetic import log
from tightrope.confidence import ConfidenceRule, ConfidenceSet, Counts
from tightrope.learners.base import Offer, Seen
from tightrope.learners.parameters import NOT_NEGATIVE, POSITIVE, PROBABILITY, PUBLISHED, parameter
from tightrope.learners.parts import Dynamics, MirrorStep, policy_of_measure
from tightrope.learners.shared.counting import CountingLearner, MirrorState, stepped
from tightrope.model import LayeredMDP


class UCOREPS(CountingLearner[MirrorState]):
    """Upper confidence O-REPS: adversarial losses, unknown dynamics, no budgets.

    Parameters
    ----------
    space, budgets : the space and the budgets, which have no effect.
    episodes : T, the number of episodes that the parameters are set for.
    confidence : the name of a confidence rule, or a rule of your own (`tightrope.confidence`).
    learning_rate : η; by default sqrt(log(|S|²|A|/L²) / T), which balances the two terms of the published bound
        L log(|S|²|A|/L²)/η + η L T on the regret within Δ.
    level : δ, the probability that the model may leave its confidence set.
    radius_scale : multiplies the confidence radius; 1 is the published one. This and `level` apply to a rule
        given by name; a rule of your own has its own parameters.
    """

    name = "uc-o-reps"
    reference = "Rosenberg, Mansour: Online convex optimization in adversarial Markov decision processes (ICML 2019)"
    constants = "balanced by us"

    model: LayeredMDP | None = field(init=False, default=None)
    confidence: str | ConfidenceRule = "paper"
    level: float = parameter(PROBABILITY, default=0.01)
    radius_scale: float = parameter(NOT_NEGATIVE, default=1.0)
    renewal: float = parameter(POSITIVE, default=1.0)
    learning_rate: float = parameter(POSITIVE, default=PUBLISHED)

    def configure(self) -> None:
        S, A, L, T = self.space.n_states, self.space.n_actions, self.space.n_layers, self.episodes
        self.default_to(learning_rate=np.sqrt(log(S**2 * A / L**2) / T))
        self._dynamics = Dynamics.of(self)
        self.rule = self._dynamics.rule
        self._mirror_step = MirrorStep(self.space, self.rule)

    def initial(self) -> MirrorState:
        counts = Counts(self.space, self.ties, self.renewal)
        solver = self._mirror_step.begin(counts)
        return MirrorState(counts=counts, theta=self._dynamics.first_measure(), solver=solver)

    @property
    def confidence_set(self) -> ConfidenceSet:
        """The confidence set Δ of the epoch."""
        return self._mirror_step.set_of(self.state.counts)

    def offer(self, state: MirrorState) -> Offer:
        """Return the next policy (line 1)."""
        return Offer(policy_of_measure(self.space, state.theta), np.zeros(len(self.budgets)), state.counts.epoch)

    def step(self, state: MirrorState, seen: Seen) -> MirrorState:
        """Return the next state (lines 2 and 3)."""
        return stepped(self._mirror_step, state, seen.path, self.learning_rate * seen.loss)
