"""The protocol of a learner, and the base class of the learners here.

A run needs only `Learner`: it reads the policy, plays an episode with it, and calls `observe`.

`LearnerBase` implements this protocol for a learner with a configuration, which does not change, and a state, which is
a value (`storage.state`). A subclass defines how the state changes:

    initial() -> state              the state before the first episode
    step(state, seen) -> state      one episode of the algorithm; it does not write to its arguments
    offer(state) -> Offer           the policy for the next episode, the prices of the budgets, the epoch

`observe` checks the episode and replaces the state in one assignment, so that an error leaves the learner unchanged.
Saving, loading and copying use the fields of the state, for all learners in the same way.
"""

import inspect
import logging
from abc import ABC, abstractmethod
from copy import copy, deepcopy
from dataclasses import Field, dataclass, field, fields
from os import PathLike
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    Literal,
    NamedTuple,
    Protocol,
    Self,
    TypeVar,
    dataclass_transform,
    final,
    runtime_checkable,
)

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope.arguments import MANY, file_path, instance, shown, whole
from tightrope.errors import InvalidInputError
from tightrope.learners.episodes import BanditEpisode, Episode, checked_bandit_episode, checked_budgets, checked_episode
from tightrope.learners.parameters import PUBLISHED, parameter
from tightrope.model import LayeredMDP, Policy
from tightrope.space import FloatArray, LayeredSpace
from tightrope.storage import checkpoints
from tightrope.storage.state import State, limits_of
from tightrope.ties import Ties

__all__ = [
    "BanditEpisode", "Episode", "Feedback", "Learner", "LearnerBase", "Offer", "Seen", "State", "require",
]  # fmt: skip

log = logging.getLogger("tightrope")

#: What a learner observes of an episode: the whole loss and constraint functions, or their values along the path.
Feedback = Literal["full", "bandit"]

#: The episodes that a learner can learn from: "any": of any policy; "told": of any policy, if it is given
#: (`BanditEpisode.policy`); "own": of its own policy.
LearnsFrom = Literal["any", "told", "own"]

#: The source of the default parameters: the publication states them; we balanced the terms of its bound; or they depart
#: from the publication, as the module explains.
Constants = Literal["published", "balanced by us", "declared departure", "none"]

#: The types of needs (`LearnerBase.needs`); all others are numbers.
TYPES_OF_NEEDS: dict[str, type] = {
    "model": LayeredMDP,
    "safe_policy": Policy,
    "hindsight_policy": Policy,
    "policy": Policy,
    "rng": np.random.Generator,
}

#: The needs that depend on the budgets.
NEEDS_OF_BUDGETS = ("safe_policy", "safe_usage", "slack", "hindsight_policy")


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
        """The policy for the next episode."""

    def observe(self, episode: Any) -> None:
        """Learn from the episode just played; an invalid episode is refused and changes nothing."""

    @property
    def multipliers(self) -> FloatArray:
        """(I,) the current price of each budget; zeros for a learner without prices."""

    @property
    def epoch(self) -> int:
        """The number of the epoch, from 1; it increases when the confidence set is updated."""

    @property
    def settings(self) -> dict[str, float | str]:
        """Every parameter and its value."""


class Seen(NamedTuple):
    """An episode as a step reads it: checked, with its path as tuples."""

    path: NDArray[np.int64]  #: (L,) the tuple of each step
    loss: FloatArray  #: (n_tuples,) f; (L,) along the path with bandit feedback
    constraints: FloatArray  #: (I, n_tuples) g; (I, L) along the path with bandit feedback
    policy: Policy  #: the policy that played it


class Offer(NamedTuple):
    """The policy and the prices that follow from a state."""

    policy: Policy  #: for the next episode
    multipliers: FloatArray  #: (I,) the price of each budget
    epoch: int = 1


if TYPE_CHECKING:
    import typing_extensions

    S = typing_extensions.TypeVar("S", bound=State, default=Any)
else:  # typing has no defaults before Python 3.13
    S = TypeVar("S", bound=State)


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(parameter, field))
@dataclass(kw_only=True, eq=False, repr=False)
class LearnerBase(ABC, Generic[S]):
    """A learner with a configuration and a state that is a value.

    A subclass sets the class attributes below, declares its parameters as fields (`learners.parameters`), among them
    what it `needs` to know, by those names, and implements `configure`, `initial`, `step` and `offer`. It overrides
    nothing else. Every subclass is a dataclass with keyword-only fields.

    Example
    -------
    A learner that plays each action in proportion to exp(−rate · losses met with it):

    >>> import numpy as np
    >>> import tightrope as tr
    >>> from tightrope.learners.base import LearnerBase, Offer, Seen, State
    >>> from tightrope.learners.parameters import POSITIVE, parameter
    >>> from tightrope.space import FloatArray
    >>> from tightrope.storage.state import numbers, state
    >>>
    >>> @state
    ... class HedgeState(State):
    ...     losses: FloatArray = numbers()  # (n_pairs,) sum of the losses met at each pair
    >>>
    >>> class Hedge(LearnerBase[HedgeState]):
    ...     name = "hedge"
    ...     reference = "none"
    ...     feedback = "bandit"
    ...     rate: float = parameter(POSITIVE, default=0.1)
    ...
    ...     def configure(self) -> None:
    ...         self.start = np.ones(self.space.n_pairs)
    ...
    ...     def initial(self) -> HedgeState:
    ...         return HedgeState(losses=np.zeros(self.space.n_pairs))
    ...
    ...     def step(self, state: HedgeState, seen: Seen) -> HedgeState:
    ...         losses = state.losses.copy()
    ...         losses[self.space.pair_of_tuple[seen.path]] += seen.loss
    ...         return HedgeState(observed=state.observed + 1, losses=losses)
    ...
    ...     def offer(self, state: HedgeState) -> Offer:
    ...         weights = self.start * np.exp(-self.rate * state.losses)
    ...         sums = np.bincount(self.space.pairs[:, 0], weights)[self.space.pairs[:, 0]]
    ...         return Offer(tr.Policy(self.space, weights / sums), np.zeros(len(self.budgets)))
    >>>
    >>> learner = Hedge(tr.LayeredSpace.dense(layer_sizes=[1, 1], n_actions=2), [], episodes=10)
    >>> before = learner.state
    >>> learner.observe(tr.BanditEpisode([0, 1], [1], [-1.0], np.zeros((0, 1))))
    >>> learner.policy.probabilities.round(3)
    array([0.475, 0.525])
    >>> learner.state = before
    >>> learner.policy.probabilities
    array([0.5, 0.5])
    """

    name: ClassVar[str]
    reference: ClassVar[str]  #: the publication
    constants: ClassVar[Constants] = "none"  #: where its default parameters come from
    feedback: ClassVar[Feedback] = "full"
    plans: ClassVar[bool] = True  #: whether the parameters depend on `episodes`
    needs: ClassVar[tuple[str, ...]] = ()  #: knowledge beyond space and budgets (keys of `learners.needs.NEEDS`)
    learns_from: ClassVar[LearnsFrom] = "own"
    _init_by_hand: ClassVar[bool] = False

    space: LayeredSpace = field(kw_only=False)
    budgets: Any = field(kw_only=False)  #: anything like an array; kept as an array of floats, (I,)
    episodes: int
    state: S = field(init=False)

    @final
    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._init_by_hand |= "__init__" in vars(cls)  # subclasses of that class inherit its __init__
        dataclass(kw_only=True, eq=False, repr=False, init=not cls._init_by_hand)(cls)

    @final
    def __post_init__(self) -> None:
        self._check_parameters()
        self.loss_weight = 1.0  #: the weight of the losses; a price is a multiplier divided by it
        self.configure()
        self.state = self.initial()
        self._offered = (self.state, self.offer(self.state))

    @abstractmethod
    def configure(self) -> None:
        """Check the parameters beyond their ranges, and set the attributes that depend on them."""

    @abstractmethod
    def initial(self) -> S:
        """Return the state before the first episode."""

    @abstractmethod
    def step(self, state: S, seen: Seen) -> S:
        """Return the state after one more episode, without writing to `state` or `seen`."""

    @abstractmethod
    def offer(self, state: S) -> Offer:
        """Return the policy for the next episode, the prices and the epoch; they follow from the state alone."""

    def observe(self, episode: Any) -> None:
        """Learn from the episode just played.

        Parameters
        ----------
        episode : an `Episode`, or a `BanditEpisode` if `feedback` is "bandit".

        Raises
        ------
        InvalidInputError : the episode is impossible in the space, breaks Assumption 2, or was played by another policy
            than the learner can learn from.
        ConvergenceError : a solver missed its tolerance.

        After an error the learner is unchanged.
        """
        path, f, g = self._read(episode, self.state.observed + 1)
        played = getattr(episode, "policy", None)
        if played is None:
            played = self.policy
        else:
            self._check_need("policy", played)
            if self.learns_from == "own" and not np.array_equal(played.probabilities, self.policy.probabilities):
                raise InvalidInputError(
                    f"episode {self.observed + 1}: it was played by another policy, and {self.name} learns only from "
                    "its own"
                )
        state = self.step(self.state, Seen(path, f, g, played))
        self.offered(state)  # before the state is replaced: an error leaves the learner unchanged
        self.state = state
        if self.plans and state.observed - 1 == self.episodes:
            log.warning(
                "%s was planned for %d episodes and continues with its parameters for %d",
                self.name, self.episodes, self.episodes,
            )  # fmt: skip

    @final
    def offered(self, state: S) -> Offer:
        """Return `offer(state)`; the last one is kept."""
        kept, offer = self._offered
        if kept is not state:
            offer = self.offer(state)
            self._offered = (state, offer)
        return offer

    @final
    @property
    def policy(self) -> Policy:
        """The policy for the next episode."""
        return self.offered(self.state).policy

    @final
    @property
    def multipliers(self) -> FloatArray:
        """(I,) the current price of each budget; zeros for a learner without prices."""
        return self.offered(self.state).multipliers

    @final
    @property
    def epoch(self) -> int:
        """The number of the epoch, from 1."""
        return self.offered(self.state).epoch

    @final
    @property
    def observed(self) -> int:
        """The number of episodes so far."""
        return self.state.observed

    if not TYPE_CHECKING:  # so that type checkers require learner.state.theta

        def __getattr__(self, name: str) -> Any:
            """Look an attribute up in the state, so that `learner.theta` is `learner.state.theta`."""
            state = self.__dict__.get("state")
            if state is None or name not in limits_of(state):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            return getattr(state, name)

    @final
    def act(self, state: int | str, rng: np.random.Generator) -> int:
        """Draw an action for a state, given by number or name, from the policy."""
        return self.policy.sample(state, rng)

    @final
    def with_budgets(self, budgets: ArrayLike) -> Self:
        """Return a copy of this learner, in the same state, with other budgets (I,).

        Raises
        ------
        InvalidInputError : if one of its needs depends on the budgets.
        """
        learner = type(self)(**self._parameters_with(budgets))
        learner.offered(self.state)  # an error is raised here, not when the policy is read
        learner.state = self.state
        return learner

    @final
    def save(self, path: str | PathLike[str]) -> None:
        """Write the learner to `path`; `tightrope.load` reads it, and it continues with the same bits."""
        checkpoints.save(self, file_path(path, "path"))

    def __copy__(self) -> Self:
        return deepcopy(self)  # copies do not share even the workspace of a solver

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value}" for name, value in self.settings.items() if name != "learner")
        return f"{type(self).__name__}({self.space!r}, {shown}, observed={self.observed})"

    @final
    @classmethod
    def parameter_fields(cls) -> "dict[str, Field[Any]]":
        """Return the fields of its parameters, in the order of its signature."""
        return {each.name: each for each in fields(cls) if each.init}

    @final
    def _check_parameters(self) -> None:
        """Check the parameters, and keep copies of the given ones."""
        instance(self.space, "space", LayeredSpace)
        given = {name: (getattr(self, name), each.default) for name, each in self.parameter_fields().items()}
        self.budgets = checked_budgets(self.space, self.budgets)
        #: The parameters as given; copies, so that a caller's array may change afterwards.
        self.parameters: dict[str, Any] = {
            name: _own(value, name) for name, (value, default) in given.items() if value is not default
        }
        for name in self.needs:
            self._check_need(name, getattr(self, name))
        self.reported: dict[str, float | str] = {}  #: settings that are not parameters
        self.unreported: set[str] = set()  #: parameters that have no effect
        ties = getattr(self, "ties", None)
        if ties is not None and instance(ties, "ties", Ties).space != self.space:
            raise InvalidInputError(f"ties is {ties!r} on {ties.space!r}; expected some on {self.space!r}")
        if "episodes" in self.parameters:  # learners that do not plan ahead have None
            self.episodes = whole(self.episodes, "episodes", 1)
        for name, each in self.parameter_fields().items():
            has_value = getattr(self, name) is not None or each.default is not PUBLISHED
            if "range" in each.metadata and has_value:
                setattr(self, name, each.metadata["range"].checked(name, getattr(self, name)))

    @final
    def _check_need(self, name: str, value: object) -> None:
        """Refuse a value of the wrong type, or for another space."""
        if name in TYPES_OF_NEEDS:
            value = instance(value, name, TYPES_OF_NEEDS[name])
            if getattr(value, "space", self.space) != self.space:
                raise InvalidInputError(f"{name} is {shown(value)}; expected one on {self.space!r}")

    @final
    def default_to(self, **published: float) -> None:
        """Give every parameter that was not given its published value."""
        for name, value in published.items():
            if getattr(self, name) is None:
                setattr(self, name, self.parameter_fields()[name].metadata["range"].checked(name, float(value)))

    @final
    def _read(self, episode: Any, number: int) -> tuple[NDArray[np.int64], FloatArray, FloatArray]:
        """Return (path, f, g) of episode `number`, or raise `InvalidInputError`."""
        check = checked_episode if self.feedback == "full" else checked_bandit_episode
        return check(self.space, len(self.budgets), number, episode)

    @final
    @property
    def settings(self) -> dict[str, float | str]:
        """Every parameter and its value."""
        left_out = {"space", "budgets", *self.needs}
        if not isinstance(getattr(self, "confidence", ""), str):  # a user's own rule has its own parameters
            left_out |= {"level", "radius_scale"}
        left_out |= self.unreported
        values = {name: getattr(self, name) for name in self.parameter_fields() if name not in left_out}
        values |= self.reported
        return {"learner": self.name} | {
            name: value if isinstance(value, int | float | str) else str(value or "none")
            for name, value in values.items()
        }

    @final
    @classmethod
    def summary(cls) -> str:
        """Return the first line of its docstring."""
        return inspect.getdoc(cls).partition("\n")[0] if cls.__doc__ else ""  # type: ignore[union-attr]

    @final
    def _parameters_with(self, budgets: ArrayLike) -> dict[str, Any]:
        """Return its parameters with other budgets (I,), or raise if one of its needs depends on the budgets."""
        dependent = [name for name in self.needs if name in NEEDS_OF_BUDGETS]
        if dependent:
            raise InvalidInputError(
                f"{self.name} was given its {dependent[0]} for the budgets it has; make a new learner for others"
            )
        new = checked_budgets(self.space, budgets)
        if len(new) != len(self.budgets):
            raise InvalidInputError(f"there are {len(new)} budgets; {self.name} has {len(self.budgets)}")
        return self.parameters | {"budgets": new}


def _own(value: Any, name: str) -> Any:
    """Return a copy of a value that its owner may change later."""
    if isinstance(value, np.ndarray) and value.size > MANY:
        raise InvalidInputError(f"{name} has {value.size} entries; at most {MANY} are taken")
    return copy(value) if isinstance(value, list | np.ndarray) else value


def require(holds: bool, otherwise: str) -> None:
    """Raise `InvalidInputError` with this message unless the condition holds."""
    if not holds:
        raise InvalidInputError(otherwise)
