"""What a learner is: it offers a policy, an episode is played, it observes the episode.

`Learner` is the protocol, all that a run asks for. `LearnerBase` is the base of ours, and may be that of yours. Such a
learner is a configuration that never changes, and a state that is a value (`storage.state`):

    initial() -> state              the state before the first episode
    step(state, seen) -> state      one episode of the algorithm; never writes to its arguments
    offer(state) -> Offer           the policy for the next episode, and the prices of the budgets

`observe` reads the episode and replaces the state in one assignment, so that an episode is learnt whole or not at all.
Saving, loading and copying follow from the fields of the state, once for all learners.
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

#: What a learner is shown after an episode: the whole loss and constraint functions, or their values along the path.
Feedback = Literal["full", "bandit"]

#: Which episodes a learner can learn from: any policy's; any policy's, if the policy is given
#: (`BanditEpisode.policy`); those of its own policy.
LearnsFrom = Literal["any", "told", "own"]

#: Where the default parameters of a learner come from: its publication; the publication's order of magnitude or bound,
#: where it does not print them or we could not read them; not the publication, as the module explains.
Constants = Literal["published", "balanced by us", "declared departure", "none"]

#: The types of what learners need to know (`needs`); the rest are numbers.
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
        """The number of the epoch, from 1: how often the confidence set was renewed, plus one."""

    @property
    def settings(self) -> dict[str, float | str]:
        """Every parameter and its value, for the record."""


class Seen(NamedTuple):
    """An episode as a step reads it: checked, with its path as tuples."""

    path: NDArray[np.int64]  #: (L,) the tuple of each step
    loss: FloatArray  #: (n_tuples,) f; (L,) along the path with bandit feedback
    constraints: FloatArray  #: (I, n_tuples) g; (I, L) along the path with bandit feedback
    policy: Policy  #: the policy that played it


class Offer(NamedTuple):
    """What a learner shows of its state."""

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
    """A learner whose state is a value: see the head of this module.

    A subclass says who it is in class attributes, declares its parameters as fields (`learners.parameters`), among them
    what it `needs` to know, by those names, and implements `configure`, `initial`, `step` and `offer`. It overrides
    nothing else. Every subclass is a dataclass with keyword-only fields.
    """

    name: ClassVar[str]
    reference: ClassVar[str]  #: the publication
    constants: ClassVar[Constants] = "none"  #: where its default parameters come from
    feedback: ClassVar[Feedback] = "full"
    plans: ClassVar[bool] = True  #: whether anything depends on `episodes`
    needs: ClassVar[tuple[str, ...]] = ()  #: what it must know beyond space and budgets (`learners.needs.NEEDS`)
    learns_from: ClassVar[LearnsFrom] = "own"
    _init_by_hand: ClassVar[bool] = False

    space: LayeredSpace = field(kw_only=False)
    budgets: Any = field(kw_only=False)  #: anything like an array; kept as an array of floats, (I,)
    episodes: int
    state: S = field(init=False)

    @final
    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._init_by_hand |= "__init__" in vars(cls)  # a class that derives from it inherits that one
        dataclass(kw_only=True, eq=False, repr=False, init=not cls._init_by_hand)(cls)

    @final
    def __post_init__(self) -> None:
        self._check_parameters()
        self.loss_weight = 1.0  #: of losses, where the multipliers are those of constraints: a price is their quotient
        self.configure()
        self.state = self.initial()
        self._offered = (self.state, self.offer(self.state))

    @abstractmethod
    def configure(self) -> None:
        """Check the parameters beyond their ranges, and set up everything that follows from them alone."""

    @abstractmethod
    def initial(self) -> S:
        """Return the state before the first episode."""

    @abstractmethod
    def step(self, state: S, seen: Seen) -> S:
        """Return the state after one more episode; `state` stays as it is."""

    @abstractmethod
    def offer(self, state: S) -> Offer:
        """Return the policy for the next episode, the prices and the epoch: a function of the state alone."""

    def observe(self, episode: Any) -> None:
        """Learn from the episode just played.

        Raises `InvalidInputError` if the episode cannot have happened or breaks Assumption 2; the learner is then as
        before.
        """
        path, f, g = self._read(episode, self.state.observed + 1)
        played = getattr(episode, "policy", None)
        if played is None:
            played = self.policy
        else:
            self._check_need("policy", played)
            if self.learns_from == "own" and not np.array_equal(played.probabilities, self.policy.probabilities):
                raise InvalidInputError(
                    f"episode {self.observed + 1}: another policy played it, and {self.name} learns only from its own"
                )
        state = self.step(self.state, Seen(path, f, g, played))
        self.offered(state)  # before the state is replaced: an error leaves the learner as it was
        self.state = state
        if self.plans and state.observed - 1 == self.episodes:
            log.warning(
                "%s was planned for %d episodes and goes on; its parameters stay what they are for %d",
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
        """Episodes so far."""
        return self.state.observed

    if not TYPE_CHECKING:  # type checkers are to see learner.state.theta

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
        """Return this learner with other budgets, as many; its state stays, prices included.

        Raises `InvalidInputError` where something that it needs to know depends on the budgets.
        """
        learner = type(self)(**self._parameters_with(budgets))
        learner.offered(self.state)  # an error is raised here, not when somebody asks for the policy
        learner.state = self.state
        return learner

    @final
    def save(self, path: str | PathLike[str]) -> None:
        """Write the learner to `path`; `tightrope.load` reads it back, and it continues to the same bits."""
        checkpoints.save(self, file_path(path, "path"))

    def __copy__(self) -> Self:
        return deepcopy(self)  # not even the workspace of a solver is shared

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
        """Check the parameters, and keep them as they were given."""
        instance(self.space, "space", LayeredSpace)
        given = {name: (getattr(self, name), each.default) for name, each in self.parameter_fields().items()}
        self.budgets = checked_budgets(self.space, self.budgets)
        #: The parameters as given; copies, so that a caller's array may change afterwards.
        self.parameters: dict[str, Any] = {
            name: _own(value, name) for name, (value, default) in given.items() if value is not default
        }
        for name in self.needs:
            self._check_need(name, getattr(self, name))
        self.reported: dict[str, float | str] = {}  #: settings that are no parameters, but follow from them
        self.unreported: set[str] = set()  #: parameters that change nothing
        ties = getattr(self, "ties", None)
        if ties is not None and instance(ties, "ties", Ties).space != self.space:
            raise InvalidInputError(f"ties is {ties!r} on {ties.space!r}; expected some on {self.space!r}")
        if "episodes" in self.parameters:  # a learner that needs no plan has a default of None
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
        """Every parameter and its value, for the record."""
        left_out = {"space", "budgets", *self.needs}
        if not isinstance(getattr(self, "confidence", ""), str):  # a rule of the user's own has them in itself
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
        """Return its parameters with other budgets, as many; refused where what it needs depends on the budgets."""
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
    """Return a copy of what may be changed afterwards."""
    if isinstance(value, np.ndarray) and value.size > MANY:
        raise InvalidInputError(f"{name} has {value.size} entries; at most {MANY} are taken")
    return copy(value) if isinstance(value, list | np.ndarray) else value


def require(holds: bool, otherwise: str) -> None:
    """Raise `InvalidInputError` with this message unless the condition holds."""
    if not holds:
        raise InvalidInputError(otherwise)
