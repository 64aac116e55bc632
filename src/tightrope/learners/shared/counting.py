"""Learners of unknown dynamics, which count where their paths lead, and the state of those that take mirror steps.

A mirror learner moves an occupancy measure by entropic mirror steps inside a confidence set,

    θ ← argmin over θ' in Δ of <cost, θ'> + D(θ', reference),

where Δ are the measures whose conditionals lie in the confidence set of the epoch (`projection`). An epoch ends when
some pair was visited as often in it as before it (at least once; or a share of that), and a new set is made from all
counts.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from tightrope.arguments import shown
from tightrope.confidence import Counts
from tightrope.errors import InvalidInputError
from tightrope.learners.base import LearnerBase, LearnsFrom
from tightrope.learners.parts import WarmStart
from tightrope.space import FloatArray, LayeredSpace
from tightrope.storage.state import State, measure, part, state
from tightrope.ties import Ties


@state
class CountingState(State):
    """Visits of pairs and tuples, in epochs."""

    counts: Counts = part()


@state
class MirrorState(CountingState):
    """Counts, the occupancy measure, and the warm start of the next mirror step."""

    theta: FloatArray = measure()
    solver: WarmStart = part(written_as="_projector")


C = TypeVar("C", bound=CountingState)


class Logged(Protocol):
    """Recorded episodes, such as `tightrope.read_log` returns."""

    def paths(self, space: LayeredSpace) -> Sequence[NDArray[np.int64]]:
        """Return the tuples of each episode."""
        ...


class CountingLearner(LearnerBase[C]):
    """A learner whose state has counts of pairs and tuples; tied pairs share what is known of their law.

    No publication has ties: a learner gets them if it is asked to use them (`make_learner(…, ties=True)`).
    """

    ties_by_default: ClassVar[bool] = False
    learns_from: ClassVar[LearnsFrom] = "any"

    ties: Ties | None = None

    def learn_from(self, log: Logged) -> None:
        """Count the recorded episodes of a log, whichever policy played them.

        Only the counts of the dynamics change: losses and constraints of the log are not read, the policy stays, and
        no episode counts as observed. Call it before the first episode.

        Raises `InvalidInputError` for a learner that averages costs over its visits or knows the dynamics, after the
        first episode, and for an episode that cannot happen in the space. The learner is then as before.
        """
        if self.feedback != "full" or "model" in self.needs:
            reason = "knows the dynamics" if "model" in self.needs else "averages costs over its own visits"
            raise InvalidInputError(f"{self.name} {reason}, and cannot learn from a log; ucpd-practical can")
        if self.observed:
            raise InvalidInputError(f"{self.name} has observed {self.observed} episodes; a log comes before the first")
        if not hasattr(log, "paths"):
            raise InvalidInputError(f"log is {shown(log)}; expected a Log: tr.read_log(FILE, budgets=[…])")
        counts = self.state.counts
        for path in log.paths(self.space):
            counts = counts.counted(path)
        if counts.n.any():
            counts = counts.next_epoch()  # the confidence set is that of the counts before the epoch
        warm = replace(self.state, counts=counts)
        self.offered(warm)  # before the state is replaced: an error leaves the learner as it was
        self.state = warm
