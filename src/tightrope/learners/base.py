"""What a learner is: it offers a policy, an episode is played, it observes what came of it.

`Learner` is the protocol, all that a run asks for. `LearnerBase` is what ours derive from, and anybody's may: it keeps
what a learner was made with apart from what it has learnt, so that one mechanism saves and loads them all.
"""

import inspect
from abc import ABC, abstractmethod
from copy import copy
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope.arguments import whole
from tightrope.errors import InvalidInputError
from tightrope.kernels.feedback import within
from tightrope.model import Policy
from tightrope.space import FloatArray, IntArray, LayeredSpace
from tightrope.storage import checkpoints

#: How far losses and constraints may exceed the bounds of Assumption 2 by rounding.
BOUND_TOLERANCE = 1e-9

#: What a learner is shown after an episode: whole functions, or only what was met on the way.
Feedback = Literal["full", "bandit"]


@dataclass(frozen=True, slots=True)
class Episode:
    """What is known after an episode: the trajectory, and (full information) the loss and constraint functions."""

    states: ArrayLike  #: (L + 1,)
    actions: ArrayLike  #: (L,)
    loss: ArrayLike  #: (n_tuples,) f^t
    constraints: ArrayLike  #: (I, n_tuples) g^t


@dataclass(frozen=True, slots=True)
class BanditEpisode:
    """What is known after an episode with bandit feedback: the trajectory, and what each of its steps cost."""

    states: ArrayLike  #: (L + 1,)
    actions: ArrayLike  #: (L,)
    losses: ArrayLike  #: (L,) f^t at each step
    constraints: ArrayLike  #: (I, L) g^t at each step


@runtime_checkable
class Learner(Protocol):
    """The protocol of an online learner."""

    space: LayeredSpace
    budgets: FloatArray  #: (I,)

    @property
    def feedback(self) -> Feedback:
        """ "full": it observes an `Episode`; "bandit": a `BanditEpisode`."""

    @property
    def policy(self) -> Policy:
        """The policy for the episode about to be played."""

    def observe(self, episode: Any) -> None:
        """Learn from the episode just played, of the kind it declares; or refuse it and stay as before."""

    @property
    def multipliers(self) -> FloatArray:
        """(I,) the current price of each budget; zeros for a learner without one."""

    @property
    def epoch(self) -> int:
        """How many times the learner's picture of the dynamics was renewed, from 1."""

    @property
    def settings(self) -> dict[str, float | str]:
        """Every parameter it runs with, for the record."""


#: What a learner that counts visits carries of its `counts` (`confidence.Counts`).
COUNTS = ("counts.N", "counts.M", "counts.n", "counts.m", "counts.epoch")


class LearnerBase(ABC):
    """What every learner of ours has in common.

    A subclass says who it is in class attributes. Its `__init__` takes (space, budgets, *, episodes, …) and what it
    `needs` by those names, calls this one, and sets up the attributes that `carries` names. Its `observe` checks the
    episode (`_full` or `_bandit`), and only then changes anything; `observed` is the number of episodes so far.
    """

    name: ClassVar[str]
    reference: ClassVar[str]  #: who published it, where
    feedback: ClassVar[Feedback] = "full"
    needs: ClassVar[tuple[str, ...]] = ()  #: what it must be told beyond space and budgets (`learners.needs.NEEDS`)
    #: The attributes that make up its state (dots reach inside): arrays and numbers that change as it learns, and
    #: generators and objects with `state` and `restore`. All else follows from its parameters and these.
    carries: ClassVar[tuple[str, ...]] = ("observed",)

    __signature__: ClassVar[inspect.Signature]
    parameters: dict[str, Any]  #: what it was made with
    policy: Policy
    multipliers: FloatArray

    def __init_subclass__(cls) -> None:
        whole = inspect.signature(cls.__init__)
        cls.__signature__ = whole.replace(parameters=list(whole.parameters.values())[1:])

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        self = super().__new__(cls)
        given = cls.__signature__.bind(*args, **kwargs).arguments
        # a copy, so that a caller's array may change afterwards
        self.parameters = {
            name: copy(value) if isinstance(value, list | np.ndarray) else value for name, value in given.items()
        }
        return self

    def __init__(self, space: LayeredSpace, budgets: ArrayLike, *, episodes: int) -> None:
        self.space = space
        self.budgets = checked_budgets(space, budgets)
        self.episodes = whole(episodes, "episodes", 1)
        self.multipliers = np.zeros(len(self.budgets))
        self.observed = 0

    @abstractmethod
    def observe(self, episode: Any) -> None:
        """Learn from the episode just played, or refuse it and stay as before."""

    @property
    def epoch(self) -> int:
        """How many times the learner's picture of the dynamics was renewed, from 1."""
        return 1

    @property
    def settings(self) -> dict[str, float | str]:
        """Every parameter it runs with, for the record; subclasses add their own."""
        return {"learner": self.name, "episodes": self.episodes}

    @classmethod
    def summary(cls) -> str:
        """The first line of its docstring."""
        return inspect.getdoc(cls).partition("\n")[0] if cls.__doc__ else ""  # type: ignore[union-attr]

    def save(self, path: str | PathLike[str]) -> None:
        """Write all that is needed to go on from here to `path`; `tightrope.load` reads it back."""
        checkpoints.save(self, Path(path))

    @abstractmethod
    def _restored(self) -> None:
        """Bring what follows from the state (the policy, a confidence set, …) up to date with it."""

    def _full(self, episode: Any) -> tuple[NDArray[np.int64], FloatArray, FloatArray]:
        """(path, f, g) of the episode just played, or a refusal."""
        return checked_episode(self.space, len(self.budgets), self.observed + 1, episode)

    def _bandit(self, episode: Any) -> tuple[NDArray[np.int64], FloatArray, FloatArray]:
        """(path, losses (L,), constraints (I, L)) of the episode just played, or a refusal."""
        return checked_bandit_episode(self.space, len(self.budgets), self.observed + 1, episode)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value}" for name, value in self.settings.items() if name != "learner")
        return f"{type(self).__name__}({self.space!r}, {shown}, observed={self.observed})"


def require(holds: bool, otherwise: str) -> None:
    """Refuse a parameter."""
    if not holds:
        raise InvalidInputError(otherwise)


def require_positive(**parameters: float) -> None:
    """Refuse a parameter that is not positive and finite."""
    for name, value in parameters.items():
        require(0 < value < np.inf, f"{name} is {value}; it must be positive")


def require_not_negative(**parameters: float) -> None:
    """Refuse a parameter that is negative or not finite."""
    for name, value in parameters.items():
        require(0 <= value < np.inf, f"{name} is {value}; it must be finite and not negative")


def require_confidence(level: float, radius_scale: float) -> None:
    """Refuse what is no probability to be wrong, or no factor of a confidence radius."""
    require(0 < level < 1, f"level is {level}; it is a probability strictly between 0 and 1")
    require_not_negative(radius_scale=radius_scale)


def checked_budgets(space: LayeredSpace, budgets: ArrayLike) -> FloatArray:
    """Budgets as a float array that meets Assumption 2 (3): Σ|c_i| <= L."""
    try:
        c = np.atleast_1d(np.array(budgets, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"budgets is no array of numbers: {error}") from error
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
        _check_kind(episode, Episode, "full")
        path = space.path(episode.states, episode.actions)
        return path, *checked_feedback(space.tuples, episode.loss, episode.constraints, n_constraints, "loss")
    except InvalidInputError as error:
        raise InvalidInputError(f"episode {number}: {error}") from None


def checked_bandit_episode(
    space: LayeredSpace, n_constraints: int, number: int, episode: BanditEpisode
) -> tuple[NDArray[np.int64], FloatArray, FloatArray]:
    """The episode as (path, losses, constraints), refused as by `checked_episode`."""
    try:
        _check_kind(episode, BanditEpisode, "bandit")
        path = space.path(episode.states, episode.actions)
        met = space.tuples[path]
        return path, *checked_feedback(met, episode.losses, episode.constraints, n_constraints, "losses")
    except InvalidInputError as error:
        raise InvalidInputError(f"episode {number}: {error}") from None


def _check_kind(episode: object, kind: type, feedback: Feedback) -> None:
    if not isinstance(episode, kind):
        raise InvalidInputError(
            f"this learner takes {feedback} feedback ({kind.__name__}); it was given {type(episode).__name__}"
        )


def checked_feedback(
    tuples: IntArray, loss: ArrayLike, constraints: ArrayLike, n_constraints: int, what: str
) -> tuple[FloatArray, FloatArray]:
    """Loss (n,) and constraints (I, n) at the given n tuples, within Assumption 2."""
    f, g = _array(loss, (len(tuples),), what), _array(constraints, (n_constraints, len(tuples)), "constraints")
    if within(f, g, 1 + BOUND_TOLERANCE):
        return f, g
    # NaN is picked by every max and argmax, and passes no comparison
    if not max(f.max(), -f.min()) <= 1 + BOUND_TOLERANCE:
        j = int(np.argmax(np.abs(f)))
        s, a, s_next = tuples[j]
        raise InvalidInputError(
            f"loss is {f[j]:.6g} at tuple ({s}, {a}, {s_next}); losses lie in [-1, 1] (Assumption 2)"
        )
    largest = np.maximum(g.max(axis=1), -g.min(axis=1))
    if not largest.sum() <= 1 + BOUND_TOLERANCE:
        i = int(np.argmax(largest))
        j = int(np.argmax(np.abs(g[i])))
        s, a, s_next = tuples[j]
        raise InvalidInputError(
            f"constraint {i} is {g[i, j]:.6g} at tuple ({s}, {a}, {s_next}); the largest absolute values of the "
            f"constraints must be finite and sum to at most 1 (Assumption 2), here {largest.sum():.6g}"
        )
    return f, g


def _array(values: ArrayLike, shape: tuple[int, ...], what: str) -> FloatArray:
    """`values` as a contiguous, writable float array of this shape, finite or not; an empty one fits any size 0."""
    if type(values) is np.ndarray and values.shape == shape and values.dtype == np.float64 and values.flags.carray:
        return values
    try:
        if np.iscomplexobj(values):
            raise TypeError("complex numbers")
        array = np.require(np.asarray(values, dtype=np.float64), requirements=["C", "W"])
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"{what} is no array of numbers: {error}") from error
    if array.size == 0 and 0 in shape:
        return array.reshape(shape)
    if array.shape != shape:
        raise InvalidInputError(f"{what} has shape {array.shape}; expected {shape}")
    return array
