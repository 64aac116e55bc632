"""What a learner is: it offers a policy, an episode is played, it observes what came of it.

`Learner` is the protocol, all that a run asks for. `LearnerBase` is what ours derive from, and anybody's may: it keeps
what a learner was made with apart from what it has learnt, so that one mechanism saves and loads them all.
"""

import inspect
import logging
from abc import ABC, abstractmethod
from copy import copy, deepcopy
from dataclasses import field
from os import PathLike
from typing import Any, ClassVar, Literal, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope.arguments import MANY, file_path, instance, shown, whole
from tightrope.errors import InvalidInputError
from tightrope.learners.episodes import BanditEpisode, Episode, checked_bandit_episode, checked_budgets, checked_episode
from tightrope.learners.parameters import PUBLISHED, Declared, carried
from tightrope.model import LayeredMDP, Policy
from tightrope.space import FloatArray, LayeredSpace
from tightrope.storage import checkpoints

__all__ = ["BanditEpisode", "Episode", "Feedback", "Learner", "LearnerBase", "require", "sums_of"]

log = logging.getLogger("tightrope")

#: What a learner is shown after an episode: whole functions, or only what was met on the way.
Feedback = Literal["full", "bandit"]

#: Whose episodes a learner can learn from: any policy's; any's, if it is told which (`BanditEpisode.policy`); its own.
LearnsFrom = Literal["any", "told", "own"]

#: Where the numbers come from that a learner runs with unless told otherwise: from its publication; from its order of
#: magnitude or its bound, where it does not print them or we could not read them; not from it, as the module says.
Constants = Literal["published", "balanced by us", "declared departure", "none"]

#: What learners are told (`needs`) is of these kinds; the rest are numbers.
TOLD: dict[str, type] = {
    "model": LayeredMDP,
    "safe_policy": Policy,
    "hindsight_policy": Policy,
    "policy": Policy,
    "rng": np.random.Generator,
}

#: What of it depends on the budgets.
FOR_BUDGETS = ("safe_policy", "safe_usage", "slack", "hindsight_policy")

#: More than what Assumption 2 and rounding allow a number beyond 1.
SLIGHT = 1e-6


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


class LearnerBase(Declared, ABC):
    """What every learner of ours has in common.

    A subclass says who it is in class attributes, and declares its parameters and what it carries as fields
    (`learners.parameters`); among the parameters is what it `needs`, by those names. Its `__post_init__` calls this
    one and sets up what it carries. Its `observe` reads the episode (`_read`), computes all that is new aside, and
    then changes itself by one call of `_learn`: an episode is learnt whole or not at all, whatever interrupts it.
    """

    name: ClassVar[str]
    reference: ClassVar[str]  #: who published it, where
    constants: ClassVar[Constants] = "none"  #: where its numbers come from
    feedback: ClassVar[Feedback] = "full"
    plans: ClassVar[bool] = True  #: whether anything depends on `episodes`
    needs: ClassVar[tuple[str, ...]] = ()  #: what it must be told beyond space and budgets (`learners.needs.NEEDS`)
    learns_from: ClassVar[LearnsFrom] = "own"  #: "any" unless it asks how likely its path was

    space: LayeredSpace = field(kw_only=False)
    budgets: Any = field(kw_only=False)  #: given as anything like an array, kept as one of floats, (I,)
    episodes: int

    policy: Policy = field(init=False)
    multipliers: FloatArray = field(init=False)
    observed: int = carried()  #: episodes so far

    def __post_init__(self) -> None:
        instance(self.space, "space", LayeredSpace)
        given = {name: (getattr(self, name), field.default) for name, field in self.parameter_fields().items()}
        self.budgets = checked_budgets(self.space, self.budgets)
        #: What it was made with, as given; a copy, so that a caller's array may change afterwards.
        self.parameters: dict[str, Any] = {
            name: _own(value, name) for name, (value, default) in given.items() if value is not default
        }
        for name in self.needs:
            self._check_told(name, getattr(self, name))
        if "episodes" in self.parameters:  # a learner that needs no plan has a default of None
            self.episodes = whole(self.episodes, "episodes", 1)
        for name, field_ in self.parameter_fields().items():
            told = getattr(self, name) is not None or field_.default is not PUBLISHED
            if "range" in field_.metadata and told:
                setattr(self, name, field_.metadata["range"].checked(name, getattr(self, name)))
        self.multipliers = np.zeros(len(self.budgets))
        self.observed = 0

    def _check_told(self, name: str, value: object) -> None:
        """Refuse what is not of the kind that it needs, or is for another space."""
        if name in TOLD and getattr(instance(value, name, TOLD[name]), "space", self.space) != self.space:
            raise InvalidInputError(f"{name} is {shown(value)}; expected one on {self.space!r}")

    def default_to(self, **published: float) -> None:
        """Give every parameter that was not given its published value."""
        for name, value in published.items():
            if getattr(self, name) is None:
                setattr(self, name, self.parameter_fields()[name].metadata["range"].checked(name, float(value)))

    @abstractmethod
    def observe(self, episode: Any) -> None:
        """Learn from the episode just played, or refuse it and stay as before."""

    def act(self, state: int | str, rng: np.random.Generator) -> int:
        """Draw an action for a state, by number or name: `policy.sample`, for the episode about to be played."""
        return self.policy.sample(state, rng)

    def _read(self, episode: Any) -> tuple[NDArray[np.int64], FloatArray, FloatArray]:
        """(path, f, g) of the episode just played, as whole functions or along the path; or a refusal."""
        check = checked_episode if self.feedback == "full" else checked_bandit_episode
        return check(self.space, len(self.budgets), self.observed + 1, episode)

    def _played(self, episode: BanditEpisode) -> Policy:
        """The policy that played the episode: its own, unless it is told of another."""
        if episode.policy is None:
            return self.policy
        self._check_told("policy", episode.policy)
        return episode.policy

    def _refuse_another(self, episode: BanditEpisode) -> None:
        """Refuse an episode that another policy than the one of now played."""
        if not np.array_equal(self._played(episode).probabilities, self.policy.probabilities):
            raise InvalidInputError(
                f"episode {self.observed + 1}: another policy played it, and {self.name} learns only from its own"
            )

    def _learn(self, **changes: Any) -> None:
        """Take over everything that an episode changes, in one step that no signal can cut in two."""
        changes["observed"] = self.observed + 1
        self.__dict__.update(changes)
        if self.observed - 1 == self.episodes and self.plans:
            log.warning(
                "%s was planned for %d episodes and goes on; its parameters stay what they are for %d",
                self.name, self.episodes, self.episodes,
            )  # fmt: skip

    def bounds(self) -> dict[str, tuple[ArrayLike, ArrayLike]]:
        """Between what every carried number or array lies, as far as parameters and the rest of the state tell.

        What is read from a checkpoint is held to it, and to being finite. Objects that are carried check themselves in
        `restore`.
        """
        return {"observed": (0, np.inf)}

    def _restored(self) -> None:
        """Bring what follows from the state (the policy, a confidence set, …) up to date with it, or refuse it."""

    @property
    def loss_weight(self) -> float:
        """By what it weighs losses where its multipliers weigh constraints; a price is multiplier / loss_weight."""
        return 1.0

    @property
    def epoch(self) -> int:
        """How many times the learner's picture of the dynamics was renewed, from 1."""
        return 1

    @property
    def settings(self) -> dict[str, float | str]:
        """Every parameter it runs with, for the record."""
        told = {"space", "budgets", *self.needs}
        values = {name: getattr(self, name) for name in self.parameter_fields() if name not in told}
        return {"learner": self.name} | {
            name: value if isinstance(value, int | float | str) else str(value) for name, value in values.items()
        }

    @classmethod
    def summary(cls) -> str:
        """The first line of its docstring."""
        return inspect.getdoc(cls).partition("\n")[0] if cls.__doc__ else ""  # type: ignore[union-attr]

    def with_budgets(self, budgets: ArrayLike) -> Self:
        """This learner with other budgets, as many: what it has learnt is kept, its prices too.

        Refused where what it was told beforehand was told for the budgets it has.
        """
        told = [name for name in self.needs if name in FOR_BUDGETS]
        if told:
            raise InvalidInputError(
                f"{self.name} was told its {told[0]} for the budgets it has; make a new one for others"
            )
        new = checked_budgets(self.space, budgets)
        if len(new) != len(self.budgets):
            raise InvalidInputError(f"there are {len(new)} budgets; {self.name} has {len(self.budgets)}")
        learner = type(self)(**(self.parameters | {"budgets": new}))
        for name in self.carried_names():
            mine, fresh = getattr(self, name), getattr(learner, name)
            if hasattr(fresh, "restore"):
                fresh.restore(mine.state())
            else:
                setattr(learner, name, copy(mine))
        learner._restored()
        return learner

    def save(self, path: str | PathLike[str]) -> None:
        """Write all that is needed to go on from here to `path`; `tightrope.load` reads it back."""
        checkpoints.save(self, file_path(path, "path"))

    def __copy__(self) -> Self:
        return deepcopy(self)  # half a copy would draw from the same generator, and work in the same arrays

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value}" for name, value in self.settings.items() if name != "learner")
        return f"{type(self).__name__}({self.space!r}, {shown}, observed={self.observed})"


def _own(value: Any, name: str) -> Any:
    """A copy of what may be changed afterwards."""
    if isinstance(value, np.ndarray) and value.size > MANY:
        raise InvalidInputError(f"{name} has {value.size} entries; at most {MANY} are taken")
    return copy(value) if isinstance(value, list | np.ndarray) else value


def sums_of(n: Any, *, least: float = 0.0) -> tuple[Any, Any]:
    """The bounds of sums of n numbers in [least, 1], which may be a little outside (Assumption 2)."""
    return least * n - SLIGHT * n, n + SLIGHT * n


def require(holds: bool, otherwise: str) -> None:
    """Refuse a parameter."""
    if not holds:
        raise InvalidInputError(otherwise)
