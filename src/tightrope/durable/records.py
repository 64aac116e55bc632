"""What is told of an episode, as the journal keeps it: arrays of known shapes, one after another, bit for bit."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope.durable.arrays import bytes_of, decoded
from tightrope.durable.kernels import meet
from tightrope.learners.base import BanditEpisode, Episode, Feedback
from tightrope.learners.episodes import CheckedEpisode, checked_bandit_episode, checked_episode
from tightrope.model import Policy
from tightrope.space import FloatArray, LayeredSpace

WHOLE = np.dtype("<i8")

#: In place of a function that is in the body, or of no constraints.
NOTHING = np.empty(0)


class Told(NamedTuple):
    """An episode that was checked."""

    states: NDArray[np.int64]  #: (L + 1,)
    actions: NDArray[np.int64]  #: (L,)
    path: NDArray[np.int64]  #: (L,) the tuple of each step
    loss: FloatArray  #: (n_tuples,), or (L,) along the path
    constraints: FloatArray  #: (I, n_tuples), or (I, L)


class Form(NamedTuple):
    """What the arrays of an episode look like."""

    space: LayeredSpace
    n_constraints: int
    feedback: Feedback

    def checked(self, number: int, states: ArrayLike, actions: ArrayLike, loss: ArrayLike, g: ArrayLike) -> Told:
        """What was told of episode `number`, or a refusal that says what is wrong with it.

        Whole functions may still be the caller's own arrays; the rest is not.
        """
        if self.feedback == "full":
            path, f, g = checked_episode(self.space, self.n_constraints, number, Episode(states, actions, loss, g))
        else:
            episode = BanditEpisode(states, actions, loss, g)
            path, f, g = checked_bandit_episode(self.space, self.n_constraints, number, episode)
            f, g = f.copy(), g.copy()
        return Told(np.array(states, WHOLE), np.array(actions, WHOLE), path, f, g)

    def encode(self, told: Told) -> tuple[bytes, bytes, bytes]:
        """Its bytes, loss and constraints apart, the same for the same episode, however it was given.

        Whole functions are the same in many episodes, and kept once; what was met on the way is part of the first.
        """
        path = told.states.tobytes() + told.actions.tobytes()
        loss, constraints = bytes_of(told.loss), bytes_of(told.constraints)
        return (path, loss, constraints) if self.feedback == "full" else (path + loss + constraints, b"", b"")

    def decode(self, body: bytes, loss: FloatArray, constraints: FloatArray) -> Told:
        """The other way round, of the same numbers."""
        L = self.space.n_layers
        steps = np.frombuffer(bytearray(body), WHOLE, 2 * L + 1)
        states, actions = steps[: L + 1], steps[L + 1 :]
        if self.feedback == "bandit":
            met = decoded(body[steps.nbytes :])
            loss, constraints = met[:L], met[L:]
        path = self.space.path(states, actions)
        return Told(states, actions, path, loss, constraints.reshape(self.n_constraints, len(loss)))

    def met(self, told: Told) -> tuple[FloatArray, FloatArray]:
        """Along the path: the loss and then the constraints of each step (1 + I, L), and their sums (1 + I,)."""
        steps = told.path if self.feedback == "full" else np.arange(self.space.n_layers)
        costs, sums = np.empty((1 + self.n_constraints, len(steps))), np.empty(1 + self.n_constraints)
        meet(steps, told.loss, told.constraints, costs, sums)
        return costs, sums

    def episode(self, told: Told, costs: FloatArray, feedback: Feedback, played: FloatArray | None) -> Any:
        """What a learner of that feedback observes, played with these probabilities; None: nobody knows which."""
        if feedback == "full":
            return CheckedEpisode(told.states, told.actions, told.loss, told.constraints, self.space, told.path)
        policy = None if played is None else Policy.unchecked(self.space, played)
        return BanditEpisode(told.states, told.actions, costs[0].copy(), costs[1:].copy(), policy)
