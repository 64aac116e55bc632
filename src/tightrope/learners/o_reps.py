"""O-REPS: online relative entropy policy search, with the model known (Zimin & Neu 2013).

In every episode t:
1. Play π_t(a|s) ∝ q_t(s,a); q_1 has the largest entropy of all occupancy measures of the model.
2. q_{t+1} = argmin over the occupancy measures q of the model of η <f^t, q> + D(q, q_t).

The publication measures D over pairs. Measures of one model, q(s,a) P(s'|s,a), have the same D over tuples, so this is
UC-O-REPS with a point for a confidence set, and another q_1.

Feedback: full information. Needs to know: the space, the number of episodes T and the model. Budgets are not looked at.
Where we depart from the publication: losses may be negative (its analysis needs |ηf| <= 1 only).
"""

import numpy as np

from tightrope.arithmetic import log
from tightrope.confidence import ConfidenceSet, Counts, KnownModel
from tightrope.learners.base import LearnerBase, Offer, Seen
from tightrope.learners.parameters import POSITIVE, PUBLISHED, parameter
from tightrope.learners.parts import FLOOR, MirrorStep, policy_of_measure, positive
from tightrope.learners.shared.counting import MirrorState
from tightrope.model import LayeredMDP
from tightrope.space import FloatArray


class OREPS(LearnerBase[MirrorState]):
    """Online relative entropy policy search: adversarial losses, known dynamics, no budgets.

    Parameters
    ----------
    space, budgets : the space and the budgets, which have no effect.
    episodes : T, the number of episodes that the parameters are set for.
    model : the true one.
    learning_rate : η; by default sqrt(log(|S||A|/L) / T), which gives the published regret 2L sqrt(T log(|S||A|/L)).
    """

    name = "o-reps"
    reference = (
        "Zimin, Neu: Online learning in episodic Markovian decision processes by relative entropy policy search "
        "(NIPS 2013)"
    )
    constants = "published"
    needs = ("model",)

    learns_from = "any"

    model: LayeredMDP
    learning_rate: float = parameter(POSITIVE, default=PUBLISHED)

    def configure(self) -> None:
        S, A, L, T = self.space.n_states, self.space.n_actions, self.space.n_layers, self.episodes
        self.default_to(learning_rate=float(np.sqrt(log(S * A / L) / T)))
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
        """Return the next state (line 2)."""
        return stepped(self._mirror_step, state, seen, self.learning_rate * seen.loss)


def first_state(mirror_step: MirrorStep, model: LayeredMDP) -> MirrorState:
    """Return the state with the measure of largest entropy of the model."""
    space, counts = model.space, Counts(model.space)
    begin = mirror_step.begin(counts)
    theta, solver = mirror_step(begin, counts, np.maximum(model.transitions, FLOOR), np.zeros(space.n_tuples))
    return MirrorState(counts=counts, theta=theta, solver=solver)


def stepped(mirror_step: MirrorStep, state: MirrorState, seen: Seen, cost: FloatArray) -> MirrorState:
    """Return the state after a mirror step with this cost (n_tuples,), η times a loss."""
    counts, reference = state.counts.counted(seen.path), positive(mirror_step.space, state.theta)
    theta, solver = mirror_step(state.solver, counts, reference, cost)
    return MirrorState(observed=state.observed + 1, counts=counts, theta=theta, solver=solver)
