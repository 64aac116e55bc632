"""Bandit O-REPS: online relative entropy policy search from the losses of the path, the model known (Zimin & Neu 2013).

In every episode t, with losses ℓ in [0, 1]:
1. Play π_t(a|s) ∝ q_t(s,a); q_1 has the largest entropy of all occupancy measures of the model.
2. Estimate the losses: ℓ̂_t(s,a) = ℓ^t(s,a) / q_t(s,a) where the trajectory went, 0 elsewhere.
3. q_{t+1} = argmin over the occupancy measures q of the model of η <ℓ̂_t, q> + D(q, q_t).

Feedback: bandit. Needs to know: the space, the number of episodes T and the model. Budgets are not looked at.
Where we depart from the publication: losses here are ℓ = (f + 1)/2; the loss of a step may depend on the state it leads
to, and ℓ̂_t(s,a) then estimates its mean. Of an episode that another policy played, the probability q is that policy's.
"""

import numpy as np

from tightrope.arithmetic import log
from tightrope.confidence import ConfidenceSet, KnownModel
from tightrope.learners.base import LearnerBase, Offer, Seen
from tightrope.learners.o_reps import first_state, stepped
from tightrope.learners.parameters import POSITIVE, PUBLISHED, parameter
from tightrope.learners.parts import MirrorStep, policy_of_measure, unbiased
from tightrope.learners.shared.counting import MirrorState
from tightrope.model import LayeredMDP


class BanditOREPS(LearnerBase[MirrorState]):
    """O-REPS from the losses of the path: adversarial losses, bandit feedback, known dynamics, no budgets.

    Parameters
    ----------
    space, budgets : the space and the budgets, which have no effect.
    episodes : T, the number of episodes that the parameters are set for.
    model : the true one.
    learning_rate : η; by default sqrt(L log(|S||A|/L) / (T|S||A|)), which gives the published regret
        2 sqrt(L|S||A|T log(|S||A|/L)).
    """

    name = "bandit-o-reps"
    feedback = "bandit"
    learns_from = "told"

    reference = (
        "Zimin, Neu: Online learning in episodic Markovian decision processes by relative entropy policy search "
        "(NIPS 2013)"
    )
    constants = "published"
    needs = ("model",)

    model: LayeredMDP
    learning_rate: float = parameter(POSITIVE, default=PUBLISHED)

    def configure(self) -> None:
        S, A, L, T = self.space.n_states, self.space.n_actions, self.space.n_layers, self.episodes
        self.default_to(learning_rate=float(np.sqrt(L * log(S * A / L) / (T * S * A))))
        self.rule = KnownModel(transitions=self.model.transitions)
        self._mirror_step = MirrorStep(self.space, self.rule)

    def initial(self) -> MirrorState:
        """Line 1: the measure of largest entropy."""
        return first_state(self._mirror_step, self.model)

    @property
    def confidence_set(self) -> ConfidenceSet:
        """The set of models that contains the true one only."""
        return self._mirror_step.set_of(self.state.counts)

    def offer(self, state: MirrorState) -> Offer:
        return Offer(policy_of_measure(self.space, state.theta), np.zeros(len(self.budgets)))

    def step(self, state: MirrorState, seen: Seen) -> MirrorState:
        """Return the next state (lines 2 and 3)."""
        estimate = unbiased(self.model, seen.policy, seen.path, (seen.loss + 1) / 2, state.observed + 1)
        return stepped(self._mirror_step, state, seen, self.learning_rate * estimate)
