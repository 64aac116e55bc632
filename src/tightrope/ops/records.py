"""What is told of an episode, as the journal keeps it: arrays of known shapes, one after another, bit for bit."""

from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope.errors import InvalidInputError
from tightrope.learners.base import BanditEpisode, Feedback
from tightrope.learners.episodes import CheckedEpisode, refuse_beyond, shaped_parts
from tightrope.model import Policy
from tightrope.ops.arrays import bytes_of, decoded
from tightrope.space import FloatArray, LayeredSpace

WHOLE = np.dtype("<i8")

#: In place of a function that is in the body.
NOTHING = np.empty(0)


class Told(msgspec.Struct, frozen=True):
    """What is told of an episode."""

    path: NDArray[np.int64]  #: (L,) the tuple of each step
    loss: FloatArray  #: (n_tuples,), or (L,) along the path
    constraints: FloatArray  #: (I, n_tuples), or (I, L)

    def copy(self) -> "Told":
        """The same in arrays of its own."""
        return Told(self.path.copy(), self.loss.copy(), self.constraints.copy())


class Form(NamedTuple):
    """What the arrays of an episode look like."""

    space: LayeredSpace
    n_constraints: int
    feedback: Feedback

    def shaped(self, number: int, states: ArrayLike, actions: ArrayLike, loss: ArrayLike, g: ArrayLike) -> Told:
        """What was told of episode `number`, maybe in arrays of who told it; or a refusal that says what is wrong."""
        parts = (states, actions, loss, g)
        return Told(*shaped_parts(self.space, self.n_constraints, number, self.feedback, *parts))

    def refuse_beyond(self, number: int, told: Told) -> None:
        """Refuse what is not within Assumption 2."""
        tuples = self.space.tuples if self.feedback == "full" else self.space.tuples[told.path]
        refuse_beyond(tuples, told.loss, told.constraints, number)

    def encode(self, told: Told) -> bytes:
        """The body of its event, the same for the same episode, however it was given.

        Whole functions are the same in many episodes, and kept apart (`Arrays`); what was met on the way is in it.
        """
        path = told.path.astype(WHOLE, copy=False).tobytes()
        return path if self.feedback == "full" else path + bytes_of(told.loss) + bytes_of(told.constraints)

    def decode(self, body: bytes, loss: FloatArray = NOTHING, constraints: FloatArray = NOTHING) -> Told:
        """The other way round, of the same numbers, with the whole functions that were kept apart."""
        L = self.space.n_layers
        if len(body) != 8 * L * (1 if self.feedback == "full" else 2 + self.n_constraints):
            raise InvalidInputError(f"its body has {len(body)} bytes, as many as no episode")
        path = np.frombuffer(bytearray(body), WHOLE, L)
        if self.feedback == "bandit":
            met = decoded(body[path.nbytes :])
            loss, constraints = met[:L], met[L:]
        self.space.trajectory(path)  # a body that was made up is refused
        return Told(path.astype(np.int64), loss, constraints.reshape(self.n_constraints, len(loss)))

    def steps(self, told: Told) -> NDArray[np.int64]:
        """(L,) where in its loss, and in each of its constraints, the steps of an episode are."""
        return told.path if self.feedback == "full" else np.arange(self.space.n_layers)

    def episode(self, told: Told, costs: FloatArray, feedback: Feedback, played: FloatArray | None) -> Any:
        """What a learner of that feedback observes, played with these probabilities; None: nobody knows which."""
        if feedback == "full":
            return CheckedEpisode.of(self.space, told.path, told.loss, told.constraints)
        policy = None if played is None else Policy.unchecked(self.space, played.copy())
        return BanditEpisode(*self.space.trajectory(told.path), costs[0].copy(), costs[1:].copy(), policy)
