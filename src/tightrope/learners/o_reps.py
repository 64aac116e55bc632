"""O-REPS: online relative entropy policy search, with the model known (Zimin & Neu 2013).

In every episode t:
1. Play π_t(a|s) ∝ q_t(s,a); q_1 has the largest entropy of all occupancy measures of the model.
2. Bandit O-REPS only: estimate the losses ℓ = (f + 1)/2 by ℓ̂_t(s,a) = ℓ^t(s,a) / q_t(s,a) along the trajectory, and by
   0 elsewhere.
3. q_{t+1} = argmin over the occupancy measures q of the model of η <f^t, q> + D(q, q_t), with ℓ̂_t for f^t in Bandit
   O-REPS.

The publication measures D over pairs. Measures of one model, q(s,a) P(s'|s,a), have the same D over tuples, so this is
UC-O-REPS with a point for a confidence set, and another q_1.

Feedback: full information for O-REPS, bandit for Bandit O-REPS. Needs to know: the space, the number of episodes T and
the model. Budgets are ignored.
Where we depart from the publication: in O-REPS losses may be negative (its analysis needs |ηf| <= 1 only). In Bandit
O-REPS the loss of a step may depend on the next state, and ℓ̂_t(s,a) then estimates its mean; for an episode that was
played with another policy, q_t is the measure of that policy.
"""

from abc import abstractmethod

import numpy as np

from tightrope.arithmetic import log
from tightrope.confidence import ConfidenceSet, Counts, KnownModel
from tightrope.learners.base import LearnerBase, Offer, Seen
from tightrope.learners.parameters import POSITIVE, PUBLISHED, parameter
from tightrope.learners.parts import FLOOR, MirrorStep, policy_of_measure, unbiased
from tightrope.learners.shared.counting import MirrorState, stepped
from tightrope.model import LayeredMDP


def first_state(mirror_step: MirrorStep, model: LayeredMDP) -> MirrorState:
    """Return the state with the measure of largest entropy of the model (line 1)."""
    space, counts = model.space, Counts(model.space)
    begin = mirror_step.begin(counts)
    theta, solver = mirror_step(begin, counts, np.maximum(model.transitions, FLOOR), np.zeros(space.n_tuples))
    return MirrorState(counts=counts, theta=theta, solver=solver)


class KnownModelSearch(LearnerBase[MirrorState]):
    """The base of both learners: mirror steps over the occupancy measures of a known model."""

    reference = (
        "Zimin, Neu: Online learning in episodic Markovian decision processes by relative entropy policy search "
        "(NIPS 2013)"
    )
    constants = "published"
    needs = ("model",)

    model: LayeredMDP
    learning_rate: float = parameter(POSITIVE, default=PUBLISHED)

    def configure(self) -> None:
        self.default_to(learning_rate=float(np.sqrt(self._published_square())))
        self.rule = KnownModel(transitions=self.model.transitions)
        self._mirror_step = MirrorStep(self.space, self.rule)

    @abstractmethod
    def _published_square(self) -> float:
        """Return the published η²."""

    def initial(self) -> MirrorState:
        return first_state(self._mirror_step, self.model)

    @property
    def confidence_set(self) -> ConfidenceSet:
        """The confidence set, which contains the true model only."""
        return self._mirror_step.set_of(self.state.counts)

    def offer(self, state: MirrorState) -> Offer:
        return Offer(policy_of_measure(self.space, state.theta), np.zeros(len(self.budgets)))


class OREPS(KnownModelSearch):
    """Online relative entropy policy search: adversarial losses, known dynamics, no budgets.

    Parameters
    ----------
    space, budgets : the space and the budgets, which have no effect.
    episodes : T, the number of episodes that the parameters are set for.
    model : the true one.
    learning_rate : η; by default sqrt(log(|S||A|/L) / T), which gives the published regret 2L sqrt(T log(|S||A|/L)).
    """

    name = "o-reps"
    learns_from = "any"

    def _published_square(self) -> float:
        return float(log(self.space.n_states * self.space.n_actions / self.space.n_layers) / self.episodes)

    def step(self, state: MirrorState, seen: Seen) -> MirrorState:
        """Return the next state (line 3)."""
        return stepped(self._mirror_step, state, seen.path, self.learning_rate * seen.loss)


class BanditOREPS(KnownModelSearch):
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

    def _published_square(self) -> float:
        S, A, L, T = self.space.n_states, self.space.n_actions, self.space.n_layers, self.episodes
        return float(L * log(S * A / L) / (T * S * A))

    def step(self, state: MirrorState, seen: Seen) -> MirrorState:
        """Return the next state (lines 2 and 3)."""
        estimate = unbiased(self.model, seen.policy, seen.path, (seen.loss + 1) / 2, state.observed + 1)
        return stepped(self._mirror_step, state, seen.path, self.learning_rate * estimate)
