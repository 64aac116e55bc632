"""What a learner is: it offers a policy, an episode is played, it observes what came of it."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope.errors import InvalidInputError
from tightrope.model import Policy, flat
from tightrope.space import FloatArray, LayeredSpace

#: How far losses and constraints may exceed the bounds of Assumption 2 by rounding.
BOUND_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Episode:
    """What is known after an episode: the trajectory, and (full information) the loss and constraint functions."""

    states: ArrayLike  #: (L + 1,)
    actions: ArrayLike  #: (L,)
    loss: ArrayLike  #: (n_tuples,) f^t
    constraints: ArrayLike  #: (I, n_tuples) g^t


@runtime_checkable
class Learner(Protocol):
    """The protocol of an online learner."""

    space: LayeredSpace
    budgets: FloatArray  #: (I,)

    @property
    def policy(self) -> Policy:
        """The policy for the episode about to be played."""

    def observe(self, episode: Episode) -> None:
        """Learn from the episode just played, or refuse it and stay as before."""

    @property
    def multipliers(self) -> FloatArray:
        """(I,) the current price of each budget; zeros for a learner without one."""

    @property
    def epoch(self) -> int:
        """How many times the learner's picture of the dynamics was renewed, from 1."""

    @property
    def settings(self) -> dict[str, float | str]:
        """Every parameter it runs with, for the record."""


def checked_budgets(space: LayeredSpace, budgets: ArrayLike) -> FloatArray:
    """Budgets as a float array that meets Assumption 2 (3): Σ|c_i| <= L."""
    c = np.atleast_1d(np.array(budgets, dtype=np.float64))
    if c.ndim != 1:
        raise InvalidInputError(f"budgets has shape {c.shape}; expected (n_constraints,)")
    if not np.isfinite(c).all():
        raise InvalidInputError(f"budget {int(np.argmin(np.isfinite(c)))} is {c[np.argmin(np.isfinite(c))]}")
    if np.abs(c).sum() > space.n_layers * (1 + BOUND_TOLERANCE):
        raise InvalidInputError(
            f"the budgets' absolute values sum to {np.abs(c).sum():.6g}, above the {space.n_layers} steps of an "
            "episode; scale budgets and constraints down together (Assumption 2)"
        )
    return c


def checked_episode(
    space: LayeredSpace, n_constraints: int, number: int, episode: Episode
) -> tuple[NDArray[np.int64], FloatArray, FloatArray]:
    """The episode as (path, f, g), refused with its number if it cannot have happened or breaks Assumption 2."""
    try:
        path = space.path(episode.states, episode.actions)
        f = flat(episode.loss, space.n_tuples, "loss")
        g = np.require(np.asarray(episode.constraints, dtype=np.float64), requirements=["C", "W"])
        if g.shape != (n_constraints, space.n_tuples):
            raise InvalidInputError(f"constraints has shape {g.shape}; expected ({n_constraints}, {space.n_tuples})")
        largest = np.maximum(g.max(axis=1), -g.min(axis=1))
        if max(f.max(), -f.min()) > 1 + BOUND_TOLERANCE:
            s, a, s_next = space.tuples[np.argmax(np.abs(f))]
            raise InvalidInputError(
                f"loss is {f[np.argmax(np.abs(f))]:.6g} at tuple ({s}, {a}, {s_next}); losses lie in "
                "[-1, 1] (Assumption 2)"
            )
        if not largest.sum() <= 1 + BOUND_TOLERANCE:
            i = int(np.argmax(~np.isfinite(largest))) if not np.isfinite(largest).all() else int(np.argmax(largest))
            j = int(np.argmax(~np.isfinite(g[i]))) if not np.isfinite(g[i]).all() else int(np.argmax(np.abs(g[i])))
            s, a, s_next = space.tuples[j]
            raise InvalidInputError(
                f"constraint {i} is {g[i, j]:.6g} at tuple ({s}, {a}, {s_next}); the largest absolute values of the "
                f"constraints must be finite and sum to at most 1 (Assumption 2), here {largest.sum():.6g}"
            )
    except InvalidInputError as error:
        raise InvalidInputError(f"episode {number}: {error}") from None
    return path, f, g
