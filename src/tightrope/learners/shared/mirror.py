"""What every O-REPS has in common: an occupancy measure that moves by entropic mirror steps inside a confidence set.

    θ ← argmin over θ' in Δ of <cost, θ'> + D(θ', reference),

Δ the measures whose conditionals lie in the confidence set of the epoch (`projection`). An epoch ends when some pair
was visited as often inside it as before it (and once; or a share of that), and the set is made anew from all counts.
"""

from abc import abstractmethod
from dataclasses import field, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope import core
from tightrope.arguments import function, shown, unknown
from tightrope.confidence import CONFIDENCE_RULES, ConfidenceRule, ConfidenceSet, Counts
from tightrope.errors import InvalidInputError
from tightrope.learners.parameters import NOT_NEGATIVE, POSITIVE, PROBABILITY, carried, parameter
from tightrope.learners.shared.counting import CountingLearner
from tightrope.model import LayeredMDP, Policy, check_measure
from tightrope.projection.projector import Projector
from tightrope.space import FloatArray

#: The share of its layer that a state keeps in a reference at the least, and the share of its state that a tuple does:
#: D is infinite where nothing is left, and the solver holds weights that are this far apart (docs/solver.md).
FLOOR = 1e-140

#: Visits of every pair and every tuple, those of their ties included.
Laws = tuple[NDArray[Any], NDArray[Any]]


class MirrorLearner(CountingLearner):
    """A measure θ, the counts, the confidence set that a rule makes of them; the policy is that of θ.

    Its `observe` asks `_move` for what an episode changes. If that raises, all is as it was, the solver's warm start
    aside: later answers then agree to the solver's tolerance instead of the last bit.
    """

    tolerance: ClassVar[float] = 1e-9  #: on the flow residual of θ

    rule: ConfidenceRule = field(init=False)
    confidence_set: ConfidenceSet = field(init=False)  #: Δ of the epoch
    theta: FloatArray = carried()
    _projector: Projector = carried()

    def __post_init__(self) -> None:
        super().__post_init__()
        self.rule = self._make_rule()
        self.confidence_set = self._set_of(self.counts)
        self.theta = self._first_model().occupancy(Policy.uniform(self.space))
        self._projector = Projector(self.space, self.tolerance)
        self.policy = self._policy_of(self.theta)

    @abstractmethod
    def _make_rule(self) -> ConfidenceRule:
        """What makes its confidence sets."""

    def _first_model(self) -> LayeredMDP:
        """Whose measure of the uniform policy θ^1 is; before the first visit every set holds it.

        Where layers are dense θ^1 is uniform on each, as published; elsewhere that would be no occupancy measure.
        """
        return LayeredMDP.even(self.space)

    def _move(self, path: NDArray[np.int64], reference: FloatArray, cost: FloatArray) -> dict[str, Any]:
        """Count the path, renew the confidence set if that ends the epoch, take the mirror step: what that changes."""
        counts = self._counted(path)
        confidence_set = self.confidence_set if counts.epoch == self.counts.epoch else self._set_of(counts)
        theta = self._step(reference, cost, confidence_set)
        return {"counts": counts, "confidence_set": confidence_set, "theta": theta, "policy": self._policy_of(theta)}

    def _reference(self) -> FloatArray:
        """θ itself, positive everywhere: for methods that mix no other mass in."""
        reference: FloatArray = core.lift(self.space.native, self.theta, FLOOR)
        return reference

    def _step(self, reference: FloatArray, cost: FloatArray, confidence_set: ConfidenceSet) -> FloatArray:
        """argmin over the set of <cost, θ> + D(θ, reference)."""
        theta = np.empty(self.space.n_tuples)
        self._projector.solve(reference, cost, confidence_set, theta)
        return theta

    def _set_of(self, counts: Counts) -> ConfidenceSet:
        """Δ around all that was counted before the epoch; a rule of one's own may have got it wrong."""
        confidence_set = self.rule(self.space, *counts.laws)
        if not isinstance(confidence_set, ConfidenceSet):
            raise InvalidInputError(f"the confidence rule made {shown(confidence_set)}; expected a set, such as L1Ball")
        confidence_set.check(self.space)
        return confidence_set

    def _policy_of(self, theta: FloatArray) -> Policy:
        return Policy.unchecked(self.space, core.policy_of(self.space.native, theta))

    def bounds(self) -> dict[str, tuple[ArrayLike, ArrayLike]]:
        return super().bounds() | {"theta": (0, np.inf)}

    def _restored(self) -> None:
        check_measure(self.space, self.theta, "theta")
        self.confidence_set = self._set_of(self.counts)
        self.policy = self._policy_of(self.theta)


class ConfidentLearner(MirrorLearner):
    """A mirror learner whose confidence rule is a parameter: the name of one, or a rule of one's own.

    `level` and `radius_scale` are for a rule given by name; a rule of one's own has them, or not, in itself. A set that
    is valid at all times may be renewed when a count has grown by a smaller share than the published 1, `renewal`.
    """

    confidence: str | ConfidenceRule = "paper"
    level: float = parameter(PROBABILITY, default=0.01)
    radius_scale: float = parameter(NOT_NEGATIVE, default=1.0)
    renewal: float = parameter(POSITIVE, default=1.0)

    def _growth(self) -> float:
        return self.renewal

    def _make_rule(self) -> ConfidenceRule:
        if not isinstance(self.confidence, str):
            return function(self.confidence, "confidence")
        if self.confidence not in CONFIDENCE_RULES:
            raise unknown("there is no confidence rule", self.confidence, CONFIDENCE_RULES)
        rule = CONFIDENCE_RULES[self.confidence]
        if "episodes" not in self.parameters and "episodes" in {field.name for field in fields(rule)}:
            raise InvalidInputError(f"the confidence rule {self.confidence!r} has to be told the number of episodes")
        known = {"episodes": self.episodes, "level": self.level, "scale": self.radius_scale, "laws": self._n_laws()}
        made: ConfidenceRule = rule(**{field.name: known[field.name] for field in fields(rule)})
        return made

    def _evidence(self, counts: Counts) -> Laws:
        """What the uses of a policy are believed from, where that is asked (`core.believe`)."""
        return counts.laws

    def _n_laws(self) -> int | None:
        """How many laws there are to learn; None: one for every pair with more than one successor."""
        return None if self.ties is None else len(np.unique(self.ties.law[self.space.successors_per_pair > 1]))

    @property
    def settings(self) -> dict[str, float | str]:
        unused = () if isinstance(self.confidence, str) else ("level", "radius_scale")
        return {name: value for name, value in super().settings.items() if name not in unused}
