"""What every learner that is told the dynamics has in common: its confidence set is a point."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from tightrope.confidence import ConfidenceRule, Counts, KnownModel
from tightrope.learners.shared.mirror import Laws
from tightrope.model import LayeredMDP
from tightrope.ties import Ties

#: Draws beside which those that a belief begins with are rounding.
FOREVER = 1e18


@dataclass(kw_only=True, eq=False, repr=False, init=False)
class KnownDynamics:
    """Named before a `ConfidentLearner` among the bases, it takes the model in place of all that is said about sets."""

    needs: ClassVar[tuple[str, ...]] = ("model",)

    model: LayeredMDP
    confidence: str | ConfidenceRule = field(init=False)
    level: float = field(init=False)
    radius_scale: float = field(init=False)
    renewal: float = field(init=False, default=1.0)
    ties: Ties | None = field(init=False, default=None)

    def _make_rule(self) -> ConfidenceRule:
        self.confidence = KnownModel(transitions=self.model.transitions)
        return self.confidence

    def _first_model(self) -> LayeredMDP:
        return self.model

    def _evidence(self, counts: Counts) -> Laws:
        """As if every law had been drawn from so often that nothing else can be believed."""
        return np.full(len(counts.N), FOREVER), FOREVER * self.model.transitions

    @property
    def epoch(self) -> int:
        """1: a set that is known never changes."""
        return 1
