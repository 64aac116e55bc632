"""What every learner of unknown dynamics has in common: it counts where its paths lead."""

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope.arguments import instance
from tightrope.confidence import Counts
from tightrope.errors import InvalidInputError
from tightrope.learners.base import LearnsFrom
from tightrope.learners.carrying import CarryingLearner
from tightrope.learners.parameters import carried
from tightrope.ties import Ties


class CountingLearner(CarryingLearner):
    """Counts of pairs and tuples, in epochs; pairs that are tied share what is known of their law.

    No publication has ties: a learner is given them if it is asked to use them (`make_learner(…, ties=True)`).
    """

    ties_by_default: ClassVar[bool] = False
    learns_from: ClassVar[LearnsFrom] = "any"

    ties: Ties | None = None
    counts: Counts = carried()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ties is not None and instance(self.ties, "ties", Ties).space != self.space:
            raise InvalidInputError(f"ties is {self.ties!r} on {self.ties.space!r}; expected some on {self.space!r}")
        self.counts = Counts(self.space, self.ties, self._growth())

    def _growth(self) -> float:
        """By which share a count has to grow for an epoch to end; published is 1."""
        return 1.0

    def bounds(self) -> dict[str, tuple[ArrayLike, ArrayLike]]:
        counted = self.counts.episodes
        return super().bounds() | {"observed": (counted, counted)}

    def _counted(self, path: NDArray[np.int64]) -> Counts:
        """The counts with one more path, in a new epoch if that ends the old one."""
        counts, epoch_is_over = self.counts.after(path)
        return counts.next_epoch() if epoch_is_over else counts

    @property
    def epoch(self) -> int:
        """How often some count has grown by its share (doubled, as published), from 1."""
        return self.counts.epoch

    @property
    def settings(self) -> dict[str, float | str]:
        settings = super().settings
        return settings | {"ties": str(self.ties or "none")} if "ties" in settings else settings
