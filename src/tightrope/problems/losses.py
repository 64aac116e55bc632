"""Loss sequences: what an adversary charges from episode to episode.

A problem supplies K loss *scenarios*, an array (K, n_tuples) with entries in [-1, 1]; the sequences here mix
them with weights w^t: f^t = Σ_k w_k^t f_k, w^t ≥ 0, Σ_k w_k^t = 1. They are oblivious: w^t is fixed before
the first episode. An adaptive adversary remembers in `watch` what was played, and answers with it in `loss`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from tightrope.errors import InvalidInputError
from tightrope.model import Policy
from tightrope.problems.options import check_options, unknown, whole
from tightrope.space import FloatArray


class Adversary(Protocol):
    """One play against one learner: `loss(1)`, `watch`, `loss(2)`, `watch`, … in this order."""

    def loss(self, episode: int) -> FloatArray:
        """f^t, (n_tuples,) in [-1, 1]; receivers never write to it."""
        ...

    def watch(self, policy: Policy) -> None:
        """Learn which policy was played in the episode just asked for."""
        ...


@runtime_checkable
class Losses(Protocol):
    """A loss sequence that any number of runs may be played against."""

    @property
    def name(self) -> str: ...

    def begin(self, rng: np.random.Generator) -> Adversary:
        """A fresh play for one run; all its randomness comes from `rng`."""
        ...


class Oblivious(ABC):
    """A mixture of scenarios fixed in advance; having nothing to remember, it is its own adversary."""

    name: ClassVar[str]

    def __init__(self, scenarios: ArrayLike) -> None:
        table = np.array(scenarios, dtype=np.float64, order="C")
        if table.ndim != 2 or table.size == 0:
            raise InvalidInputError(f"scenarios has shape {table.shape}; expected (n_scenarios, n_tuples)")
        bad = ~(np.abs(table) <= 1)
        if bad.any():
            k, j = np.unravel_index(int(np.argmax(bad)), table.shape)
            raise InvalidInputError(f"the loss of scenario {k} is {table[k, j]} at tuple {j}; it must be in [-1, 1]")
        self.scenarios = table

    def begin(self, rng: np.random.Generator) -> Self:
        """This very sequence: it draws nothing and keeps nothing."""
        return self

    @abstractmethod
    def loss(self, episode: int) -> FloatArray:
        """f^t, (n_tuples,); episodes count from 1."""

    def watch(self, policy: Policy) -> None:
        """Look away."""
        return

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.scenarios)} scenarios)"


class Fixed(Oblivious):
    """The first scenario, for ever."""

    name = "fixed"

    def loss(self, episode: int) -> FloatArray:
        f: FloatArray = self.scenarios[0]
        return f


class Periodic(Oblivious):
    """A mixture that repeats itself, at a pace of `period` episodes."""

    def __init__(self, scenarios: ArrayLike, *, period: int = 500) -> None:
        super().__init__(scenarios)
        self.period = whole(period, "period", at_least=1)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.scenarios)} scenarios, period={self.period})"


class Switching(Periodic):
    """One scenario after another, each for `period` episodes, and round again."""

    name = "switching"

    def loss(self, episode: int) -> FloatArray:
        f: FloatArray = self.scenarios[(episode - 1) // self.period % len(self.scenarios)]
        return f


class Drifting(Periodic):
    """Weights that move as sinusoids, once round in `period` episodes.

    f^t = Σ_k w_k^t f_k with w_k^t = (1 + cos 2π((t−1)/period − k/K)) / K.

    Cosines spaced evenly around the circle sum to zero, so the weights sum to one. With two scenarios each is
    met in full, with K its weight moves between 0 and 2/K.
    """

    name = "drifting"

    def weights(self, episode: int) -> FloatArray:
        """w^t, (K,)."""
        K = len(self.scenarios)
        if K == 1:  # one cosine does not sum to zero
            return np.ones(1)
        turns = (episode - 1) % self.period / self.period - np.arange(K) / K
        w: FloatArray = (1 + np.cos(2 * np.pi * turns)) / K
        return w

    def loss(self, episode: int) -> FloatArray:
        # not a BLAS product: these bits do not depend on the number of its threads
        mixed: FloatArray = np.einsum("k,kj->j", self.weights(episode), self.scenarios)
        return np.clip(mixed, -1.0, 1.0, out=mixed)  # the weights sum to one up to rounding only


#: What `losses=` understands: each is made of a problem's scenarios and options of its own.
LOSSES: dict[str, Callable[..., Losses]] = {kind.name: kind for kind in (Fixed, Switching, Drifting)}

#: A name, a name with options ({"name": "switching", "period": 100}), or a sequence of one's own.
LossChoice = str | Mapping[str, Any] | Losses


def make_losses(choice: LossChoice, scenarios: ArrayLike) -> Losses:
    """The loss sequence that `choice` asks for, on a problem's scenarios (K, n_tuples)."""
    if isinstance(choice, str):
        choice = {"name": choice}
    if not isinstance(choice, Mapping):
        if isinstance(choice, Losses) and not isinstance(choice, type):
            return choice
        raise InvalidInputError(
            f"losses is {choice!r}; expected a name ({', '.join(sorted(LOSSES))}), "
            "a table with a name and options, or an object with a name and a method begin(rng)"
        )
    options = dict(choice)
    name = options.pop("name", None)
    if not isinstance(name, str) or name not in LOSSES:
        raise unknown("there is no loss sequence", name, LOSSES)
    check_options(f"the loss sequence {name!r}", LOSSES[name], options)
    return LOSSES[name](scenarios, **options)
