"""What is told of an episode, as the journal keeps it: arrays of known shapes, one after another, bit for bit."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope.arguments.arrays import wholes
from tightrope.learners.base import BanditEpisode, Episode, Feedback
from tightrope.learners.episodes import checked_bandit_episode, checked_episode
from tightrope.model import Policy
from tightrope.space import FloatArray, LayeredSpace

WHOLE, REAL = np.dtype("<i8"), np.dtype("<f8")


def bytes_of(numbers: FloatArray) -> bytes:
    """Floats as the journal keeps them."""
    return numbers.astype(REAL, copy=False).tobytes()


def decoded(body: bytes) -> FloatArray:
    """The other way round."""
    return np.frombuffer(bytearray(body), REAL)


class Told(NamedTuple):
    """An episode that was checked."""

    states: NDArray[np.int64]  #: (L + 1,)
    actions: NDArray[np.int64]  #: (L,)
    loss: FloatArray  #: (n_tuples,), or (L,) along the path
    constraints: FloatArray  #: (I, n_tuples), or (I, L)
    path: NDArray[np.int64]  #: (L,) the tuple of each step


class Form(NamedTuple):
    """What the arrays of an episode look like."""

    space: LayeredSpace
    n_constraints: int
    feedback: Feedback

    def checked(self, number: int, states: ArrayLike, actions: ArrayLike, loss: ArrayLike, g: ArrayLike) -> Told:
        """What was told of episode `number`, or a refusal that says what is wrong with it."""
        L = self.space.n_layers
        if self.feedback == "full":
            path, f, g = checked_episode(self.space, self.n_constraints, number, Episode(states, actions, loss, g))
        else:
            episode = BanditEpisode(states, actions, loss, g)
            path, f, g = checked_bandit_episode(self.space, self.n_constraints, number, episode)
        return Told(wholes(states, "states", (L + 1,)), wholes(actions, "actions", (L,)), f, g, path)

    def encode(self, told: Told) -> tuple[bytes, bytes, bytes]:
        """Its bytes, loss and constraints apart, the same for the same episode, however it was given.

        Whole functions are the same in many episodes, and kept once; what was met on the way is part of the first.
        """
        path = told.states.astype(WHOLE, copy=False).tobytes() + told.actions.astype(WHOLE, copy=False).tobytes()
        loss, constraints = bytes_of(told.loss), bytes_of(told.constraints)
        return (path, loss, constraints) if self.feedback == "full" else (path + loss + constraints, b"", b"")

    def decode(self, body: bytes, loss: bytes, constraints: bytes) -> Told:
        """The other way round."""
        L, n = self.space.n_layers, self.space.n_tuples
        if self.feedback == "bandit":
            n, at = L, WHOLE.itemsize * (2 * L + 1)
            body, loss, constraints = body[:at], body[at : at + REAL.itemsize * n], body[at + REAL.itemsize * n :]
        steps, f, g = np.frombuffer(bytearray(body), WHOLE), decoded(loss), decoded(constraints)
        states, actions = steps[: L + 1], steps[L + 1 :]
        return Told(states, actions, f, g.reshape(self.n_constraints, n), self.space.path(states, actions))

    def met(self, told: Told) -> FloatArray:
        """(1 + I, L) losses, then constraints, along the path."""
        at = slice(None) if self.feedback == "bandit" else told.path
        costs = np.empty((1 + self.n_constraints, self.space.n_layers))
        costs[0], costs[1:] = told.loss[at], told.constraints[:, at]
        return costs

    def episode(self, told: Told, feedback: Feedback, policy: Policy | None) -> Any:
        """What a learner of that feedback observes, played by `policy`; None: nobody knows by whom."""
        if feedback == "full":
            return Episode(told.states, told.actions, told.loss, told.constraints)
        costs = self.met(told)
        return BanditEpisode(told.states, told.actions, costs[0], costs[1:], policy)
