"""What every O-REPS has in common: an occupancy measure that moves by entropic mirror steps inside a confidence set.

    θ ← argmin over θ' in Δ of <cost, θ'> + D(θ', reference),

Δ the measures whose conditionals lie in the confidence set of the epoch (`projection`). An epoch ends when some pair
was visited as often inside it as before it (and once), and the set is then made anew from all counts.
"""

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope.confidence import CONFIDENCE_RULES, ConfidenceRule, ConfidenceSet, Counts
from tightrope.errors import InvalidInputError
from tightrope.kernels.occupancy import policy_of
from tightrope.learners.base import COUNTS, LearnerBase, require_confidence
from tightrope.model import Policy
from tightrope.projection.projector import Projector
from tightrope.space import FloatArray, LayeredSpace

#: The least mass that a measure keeps as a reference: D is infinite where it is zero.
FLOOR = 1e-290


class MirrorLearner(LearnerBase):
    """A measure θ, the counts, the confidence set that `rule` makes of them; the policy is that of θ.

    Its `observe` calls `_move`, which either does all of its work or raises and leaves everything as it was
    (the solver's warm start aside).
    """

    carries: ClassVar[tuple[str, ...]] = ("observed", *COUNTS, "theta", "_projector")

    def __init__(self, space: LayeredSpace, budgets: ArrayLike, *, episodes: int, rule: ConfidenceRule) -> None:
        super().__init__(space, budgets, episodes=episodes)
        self.rule = rule
        self.counts = Counts(space)
        self.confidence = self._confidence_set()
        self.theta = space.uniform()
        self._projector = Projector(space)
        self.policy = self._policy_of_theta()

    def _move(self, path: NDArray[np.int64], reference: FloatArray, cost: FloatArray) -> None:
        """Count the path, renew the confidence set if that ends the epoch, and take the mirror step."""
        counts = self.counts
        counts.add(path)
        try:
            new_epoch = counts.epoch_is_over(path)
            confidence = self._confidence_set() if new_epoch else self.confidence
            self._step(reference, cost, confidence)
        except BaseException:  # an interrupt of the solver, too, must not leave half an episode behind
            counts.add(path, times=-1)
            raise
        if new_epoch:
            counts.start_epoch()
            self.confidence = confidence
        self.observed += 1

    def _reference(self) -> FloatArray:
        """θ itself, positive everywhere: for methods that mix no other mass in."""
        return np.maximum(self.theta, FLOOR)

    def _step(self, reference: FloatArray, cost: FloatArray, confidence: ConfidenceSet) -> None:
        """θ ← argmin over `confidence` of <cost, θ> + D(θ, reference), and its policy."""
        theta = np.empty(self.space.n_tuples)
        self._projector.solve(reference, cost, confidence, theta)
        self.theta = theta
        self.policy = self._policy_of_theta()

    def _confidence_set(self) -> ConfidenceSet:
        """Δ around all that was counted; a rule of one's own may have got it wrong."""
        confidence = self.rule(self.space, *self.counts.totals())
        confidence.check(self.space)
        return confidence

    def _policy_of_theta(self) -> Policy:
        csr, probabilities = self.space.csr, np.empty(self.space.n_pairs)
        policy_of(csr.state_ptr, csr.pair_ptr, self.theta, probabilities)
        return Policy._of_kernel(self.space, probabilities)

    def _restored(self) -> None:
        self.confidence = self.rule(self.space, self.counts.N, self.counts.M)
        self.policy = self._policy_of_theta()

    @property
    def epoch(self) -> int:
        """ℓ(t)."""
        return self.counts.epoch


def make_rule(confidence: str | ConfidenceRule, *, episodes: int, level: float, radius_scale: float) -> ConfidenceRule:
    """The confidence rule of that name, or the one given."""
    require_confidence(level, radius_scale)
    if not isinstance(confidence, str):
        return confidence
    if confidence not in CONFIDENCE_RULES:
        raise InvalidInputError(f"no confidence rule {confidence!r}; there is {', '.join(CONFIDENCE_RULES)}")
    return CONFIDENCE_RULES[confidence](episodes=episodes, level=level, scale=radius_scale)
