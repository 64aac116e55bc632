"""Learners of unknown dynamics: they count where their paths lead."""

from typing import ClassVar

from tightrope.learners.base import LearnerBase, LearnsFrom, S
from tightrope.ties import Ties


class CountingLearner(LearnerBase[S]):
    """A learner whose state has counts of pairs and tuples; tied pairs share what is known of their law.

    No publication has ties: a learner gets them if it is asked to use them (`make_learner(…, ties=True)`).
    """

    ties_by_default: ClassVar[bool] = False
    learns_from: ClassVar[LearnsFrom] = "any"

    ties: Ties | None = None
