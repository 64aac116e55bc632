"""Episodes as learners observe them, and the check that they are within Assumption 2."""

from dataclasses import FrozenInstanceError, dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope import core
from tightrope.arguments import real
from tightrope.arguments.arrays import floats
from tightrope.errors import InvalidInputError
from tightrope.model import Policy
from tightrope.space import FloatArray, IntArray, LayeredSpace
from tightrope.units import BOUND_TOLERANCE


@dataclass(frozen=True, slots=True)
class Episode:
    """An episode with full information: the path, and the loss and constraint functions.

    Parameters
    ----------
    states : (L + 1,) the states of the path.
    actions : (L,) the actions of the path.
    loss : (n_tuples,) the loss of every tuple in this episode.
    constraints : (I, n_tuples) the use of each budget by every tuple in this episode.

    Examples
    --------
    >>> Episode(states=[0, 1, 3], actions=[0, 1], loss=[0.5, 0.0, 1.0, -1.0], constraints=[[0.1, 0.0, 0.2, 0.3]])
    Episode(states=[0, 1, 3], actions=[0, 1], loss=[0.5, 0.0, 1.0, -1.0], constraints=[[0.1, 0.0, 0.2, 0.3]])
    """

    states: ArrayLike  # (L + 1,)
    actions: ArrayLike  # (L,)
    loss: ArrayLike  # (n_tuples,) f^t
    constraints: ArrayLike  # (I, n_tuples) g^t


class CheckedEpisode(Episode):
    """An episode that `checked_parts` has checked, with its arrays; it is not checked again for its space."""

    __slots__ = ("path", "space")

    loss: FloatArray
    constraints: FloatArray
    space: LayeredSpace
    path: NDArray[np.int64]  #: (L,) the tuple of each step

    def __new__(cls, *parts: ArrayLike, **by_name: ArrayLike) -> Any:
        """Return an unchecked `Episode`, since `replace` calls this with other fields."""
        return Episode(*parts, **by_name)

    @classmethod
    def of(cls, space: LayeredSpace, path: NDArray[np.int64], loss: FloatArray, constraints: FloatArray) -> Self:
        """Return an episode that has been checked."""
        episode, put = object.__new__(cls), object.__setattr__  # it is frozen
        put(episode, "space", space)
        put(episode, "path", path)
        put(episode, "loss", loss)
        put(episode, "constraints", constraints)
        return episode

    @property
    def states(self) -> NDArray[np.int64]:
        """(L + 1,) the states of the path."""
        return self.space.trajectory(self.path)[0]

    @property
    def actions(self) -> NDArray[np.int64]:
        """(L,) the actions of the path."""
        return self.space.trajectory(self.path)[1]

    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __reduce__(self) -> tuple[Any, ...]:
        return CheckedEpisode.of, (self.space, self.path, self.loss, self.constraints)


@dataclass(frozen=True, slots=True)
class BanditEpisode:
    """An episode with bandit feedback: the path, and the losses and constraints of its steps.

    Parameters
    ----------
    states : (L + 1,) the states of the path.
    actions : (L,) the actions of the path.
    losses : (L,) the loss of each step.
    constraints : (I, L) the use of each budget by each step.
    policy : the policy that played the episode, if it is not the learner's.

    Examples
    --------
    >>> BanditEpisode(states=[0, 1, 3], actions=[0, 1], losses=[0.5, -1.0], constraints=[[0.1, 0.3]])
    BanditEpisode(states=[0, 1, 3], actions=[0, 1], losses=[0.5, -1.0], constraints=[[0.1, 0.3]], policy=None)
    """

    states: ArrayLike  # (L + 1,)
    actions: ArrayLike  # (L,)
    losses: ArrayLike  # (L,) f^t at each step
    constraints: ArrayLike  # (I, L) g^t at each step
    policy: Policy | None = None  # the policy that played it; None: that of the learner that observes it


def checked_budgets(space: LayeredSpace, budgets: ArrayLike) -> FloatArray:
    """Return budgets as a float array (I,), after checking Assumption 2 (3): Σ|c_i| <= L."""
    c = floats(budgets if real(budgets) is None else [budgets], "budgets", ("n_constraints",)).copy()
    if not np.isfinite(c).all():
        raise InvalidInputError(f"budget {int(np.argmin(np.isfinite(c)))} is {c[np.argmin(np.isfinite(c))]}")
    with np.errstate(over="ignore"):
        total = np.abs(c).sum()
    if total > space.n_layers * (1 + BOUND_TOLERANCE):
        raise InvalidInputError(
            f"the budgets' absolute values sum to {total:.6g}, above the {space.n_layers} steps of an "
            "episode; scale budgets and constraints down together (Assumption 2)"
        )
    return c


def checked_episode(
    space: LayeredSpace, n_constraints: int, number: int, episode: Episode
) -> tuple[NDArray[np.int64], FloatArray, FloatArray]:
    """Return the episode as (path, f, g); refuse one that is impossible or breaks Assumption 2, with its number."""
    if isinstance(episode, CheckedEpisode) and episode.space is space and len(episode.constraints) == n_constraints:
        return episode.path, episode.loss, episode.constraints
    _check_kind(episode, Episode, "full", number)
    told = (episode.states, episode.actions, episode.loss, episode.constraints)
    return checked_parts(space, n_constraints, number, "full", *told)


def checked_bandit_episode(
    space: LayeredSpace, n_constraints: int, number: int, episode: BanditEpisode
) -> tuple[NDArray[np.int64], FloatArray, FloatArray]:
    """Return the episode as (path, losses, constraints), after the checks of `checked_episode`."""
    _check_kind(episode, BanditEpisode, "bandit", number)
    told = (episode.states, episode.actions, episode.losses, episode.constraints)
    return checked_parts(space, n_constraints, number, "bandit", *told)


def _check_kind(episode: object, kind: type, feedback: str, number: int) -> None:
    if not isinstance(episode, kind):
        raise InvalidInputError(
            f"episode {number}: this learner takes {feedback} feedback ({kind.__name__}); "
            f"it was given {type(episode).__name__}"
        )


def checked_parts(
    space: LayeredSpace,
    n_constraints: int,
    number: int,
    feedback: Literal["full", "bandit"],
    *parts: ArrayLike,
) -> tuple[NDArray[np.int64], FloatArray, FloatArray]:
    """Return an episode as (path, f, g), with f and g whole or along the path, after checking it.

    Its parts: states, actions, loss and constraints.
    """
    path, f, g = shaped_parts(space, n_constraints, number, feedback, *parts)
    refuse_beyond(space.tuples if feedback == "full" else space.tuples[path], f, g, number)
    return path, f, g


def shaped_parts(
    space: LayeredSpace,
    n_constraints: int,
    number: int,
    feedback: Literal["full", "bandit"],
    states: ArrayLike,
    actions: ArrayLike,
    loss: ArrayLike,
    constraints: ArrayLike,
) -> tuple[NDArray[np.int64], FloatArray, FloatArray]:
    """Return the parts of an episode as `checked_parts` does, without checking Assumption 2."""
    n, what = (space.n_tuples, "loss") if feedback == "full" else (space.n_layers, "losses")
    try:
        path = space.path(states, actions)
        return path, floats(loss, what, (n,)), floats(constraints, "constraints", (n_constraints, n))
    except InvalidInputError as error:
        raise InvalidInputError(f"episode {number}: {error}") from None


def refuse_beyond(tuples: IntArray, f: FloatArray, g: FloatArray, number: int) -> None:
    """Refuse a loss (n,) and constraints (I, n) at n tuples beyond Assumption 2, in episode `number`."""
    if core.within(f, g, 1 + BOUND_TOLERANCE):
        return
    # max and argmax return NaN if there is one, and NaN fails every comparison
    if not max(f.max(), -f.min()) <= 1 + BOUND_TOLERANCE:
        j = int(np.argmax(np.abs(f)))
        s, a, s_next = tuples[j]
        raise InvalidInputError(
            f"episode {number}: loss is {f[j]:.6g} at tuple ({s}, {a}, {s_next}); losses lie in [-1, 1] (Assumption 2)"
        )
    largest = np.maximum(g.max(axis=1), -g.min(axis=1))
    if not largest.sum() <= 1 + BOUND_TOLERANCE:
        i = int(np.argmax(largest))
        j = int(np.argmax(np.abs(g[i])))
        s, a, s_next = tuples[j]
        raise InvalidInputError(
            f"episode {number}: constraint {i} is {g[i, j]:.6g} at tuple ({s}, {a}, {s_next}); the largest absolute "
            "values of the constraints must be finite and sum to at most 1 (Assumption 2), here "
            f"{largest.sum():.6g}"
        )
