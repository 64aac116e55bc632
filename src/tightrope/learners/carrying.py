"""The old dialect, for learners that are not converted yet: state spread over attributes (`carried`, `_learn`)."""

from abc import abstractmethod
from copy import copy, deepcopy
from dataclasses import field
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope.arguments import file_path
from tightrope.errors import InvalidInputError
from tightrope.learners.base import Configured, LearnerBase, log
from tightrope.learners.episodes import BanditEpisode
from tightrope.learners.parameters import carried
from tightrope.model import Policy
from tightrope.space import FloatArray
from tightrope.storage import checkpoints

#: More than what Assumption 2 and rounding allow a number beyond 1.
SLIGHT = 1e-6


class CarryingLearner(Configured):
    """What every learner of the old dialect has in common."""

    policy: Policy = field(init=False)
    multipliers: FloatArray = field(init=False)
    observed: int = carried()  #: episodes so far

    def __post_init__(self) -> None:
        super().__post_init__()
        self.multipliers = np.zeros(len(self.budgets))
        self.observed = 0

    @abstractmethod
    def observe(self, episode: Any) -> None:
        """Learn from the episode just played, or refuse it and stay as before."""

    def _read(self, episode: Any, number: int = 0) -> tuple[NDArray[np.int64], FloatArray, FloatArray]:
        return super()._read(episode, self.observed + 1)

    def act(self, state: int | str, rng: np.random.Generator) -> int:
        return self.policy.sample(state, rng)

    def _played(self, episode: BanditEpisode) -> Policy:
        """The policy that played the episode: its own, unless it is told of another."""
        if episode.policy is None:
            return self.policy
        self._check_need("policy", episode.policy)
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

    def with_budgets(self, budgets: ArrayLike) -> Self:
        learner = type(self)(**self._parameters_with(budgets))
        for name in self.carried_names():
            mine, fresh = getattr(self, name), getattr(learner, name)
            if hasattr(fresh, "restore"):
                fresh.restore(mine.state())
            else:
                setattr(learner, name, copy(mine))
        learner._restored()
        return learner

    def save(self, path: str | PathLike[str]) -> None:
        checkpoints.save(self, file_path(path, "path"))  # type: ignore[arg-type]

    def __copy__(self) -> Self:
        return deepcopy(self)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value}" for name, value in self.settings.items() if name != "learner")
        return f"{type(self).__name__}({self.space!r}, {shown}, observed={self.observed})"


LearnerBase.register(CarryingLearner)


def sums_of(n: Any, *, least: float = 0.0) -> tuple[Any, Any]:
    """The bounds of sums of n numbers in [least, 1], which may be a little outside (Assumption 2)."""
    return least * n - SLIGHT * n, n + SLIGHT * n
