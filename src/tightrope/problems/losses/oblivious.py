"""Loss sequences that are fixed before the first episode, by rule or by lot.

A problem supplies K loss *scenarios*, an array (K, n_tuples) with entries in [-1, 1]; the sequences here mix them with
weights w^t: f^t = Σ_k w_k^t f_k, w^t ≥ 0, Σ_k w_k^t = 1. None of them looks at the learner, none remembers more than
its last step. A play that draws keeps what it needs to go on in plain attributes.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from tightrope import core
from tightrope.arguments import LARGEST, choice, number, whole
from tightrope.arguments.arrays import floats
from tightrope.arithmetic import combine, cosine
from tightrope.errors import InvalidInputError
from tightrope.model import Policy
from tightrope.space import FloatArray


class Scenarios(ABC):
    """A loss sequence made of scenarios, (K, n_tuples) in [-1, 1]; its options are its other attributes."""

    name: ClassVar[str]

    def __init__(self, scenarios: ArrayLike) -> None:
        self.scenarios = checked_scenarios(scenarios, "scenario")

    def __repr__(self) -> str:
        options = {name: value for name, value in vars(self).items() if isinstance(value, int | float | str)}
        shown = "".join(f", {name}={value}" for name, value in options.items())
        return f"{type(self).__name__}({len(self.scenarios)} scenarios{shown})"

    def mixed(self, weights: FloatArray) -> FloatArray:
        """Σ_k w_k f_k, for weights that sum to one up to rounding."""
        f: FloatArray = core.weigh(weights[0], self.scenarios[0], weights[1:], self.scenarios[1:], 1.0)
        return np.clip(f, -1.0, 1.0, out=f)


class Play:
    """One play of a sequence: its attributes are all that it needs to go on, but for the `losses` that it plays."""

    def state(self) -> dict[str, Any]:
        """What `restore` takes, in a play of the same sequence."""
        return {name: value for name, value in vars(self).items() if name != "losses"}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""
        self.__dict__.update(state)


class Blind:
    """An adversary that does not look at the learner."""

    def watch(self, policy: Policy) -> None:
        """Look away."""
        return


class Oblivious(Blind, Scenarios):
    """A sequence by rule: having nothing to draw or to remember, it is its own adversary."""

    def begin(self, rng: np.random.Generator) -> Self:
        """This very sequence."""
        return self

    def state(self) -> dict[str, Any]:
        """Nothing: the number of the episode is all that it needs."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """It is there already."""

    @abstractmethod
    def loss(self, episode: int) -> FloatArray:
        """f^t, (n_tuples,); episodes count from 1."""


class Fixed(Oblivious):
    """The first scenario, for ever."""

    name = "fixed"

    def loss(self, episode: int) -> FloatArray:
        f: FloatArray = self.scenarios[0]
        return f


class Switching(Oblivious):
    """One scenario after another, each for `period` episodes, and round again.

    `phases`: how many scenarios take turns, the first ones; None: all of them.
    """

    name = "switching"

    def __init__(self, scenarios: ArrayLike, *, period: int = 500, phases: int | None = None) -> None:
        super().__init__(scenarios)
        K = len(self.scenarios)
        self.period = whole(period, "period", at_least=1)
        self.phases = K if phases is None else whole(phases, "phases", at_least=1)
        if self.phases > K:
            raise InvalidInputError(f"phases is {self.phases}; the problem has {K} scenarios to switch between")

    def loss(self, episode: int) -> FloatArray:
        f: FloatArray = self.scenarios[(episode - 1) // self.period % self.phases]
        return f


class Drifting(Oblivious):
    """Weights that move as sinusoids, once round in `period` episodes.

    f^t = Σ_k w_k^t f_k with w_k^t = (1 + cos 2π((t−1)/period − k/K)) / K.

    Cosines spaced evenly around the circle sum to zero, so the weights sum to one. With two scenarios each is
    met in full, with K its weight moves between 0 and 2/K.
    """

    name = "drifting"

    def __init__(self, scenarios: ArrayLike, *, period: int = 500) -> None:
        super().__init__(scenarios)
        self.period = whole(period, "period", at_least=1)

    def weights(self, episode: int) -> FloatArray:
        """w^t, (K,)."""
        K = len(self.scenarios)
        if K == 1:  # one cosine does not sum to zero
            return np.ones(1)
        turns = (episode - 1) % self.period / self.period - np.arange(K) / K
        w: FloatArray = (1 + cosine(turns)) / K
        return w

    def loss(self, episode: int) -> FloatArray:
        return self.mixed(self.weights(episode))


class Waves(Oblivious):
    """Every tuple swings through the scenarios as a sinusoid, with a period and a phase of its own.

    f^t(j) = Σ_k w_k f_k(j) with w_k = (1 + sin 2π(x − k/K)) / K at x = (t−1) / period_j + phase_j.

    With two scenarios this is their mean plus sin(2πx) times half their difference: ±sin for losses 1 and −1.
    `period`, in episodes, need not be whole; it and `phase`, in turns, are numbers or arrays (n_tuples,).
    """

    name = "waves"

    def __init__(
        self, scenarios: ArrayLike, *, period: float | ArrayLike = 100.0, phase: float | ArrayLike = 0.0
    ) -> None:
        super().__init__(scenarios)
        K, n = self.scenarios.shape
        self.period = _of_tuples(period, "period", n, 1.0, LARGEST)
        self.phase = _of_tuples(phase, "phase", n, -1.0, 1.0)
        # Σ_k sin 2π(x − k/K) f_k = sin 2πx Σ_k cos(2πk/K) f_k − cos 2πx Σ_k sin(2πk/K) f_k; one scenario stands still
        turns = np.arange(K) / K
        self._mean = combine(np.full(K, 1 / K), self.scenarios)
        self._sine = combine(cosine(turns) / K if K > 1 else np.zeros(1), self.scenarios)
        self._cosine = combine(-cosine(turns - 0.25) / K if K > 1 else np.zeros(1), self.scenarios)

    def turns(self, episode: int) -> FloatArray:
        """(n_tuples,) x as above, or (1,) if it is the same for all; whole turns are left out of the first part."""
        x: FloatArray = np.atleast_1d(np.fmod(episode - 1, self.period) / self.period + self.phase)
        return x

    def loss(self, episode: int) -> FloatArray:
        x = self.turns(episode)
        f: FloatArray = self._mean + cosine(x - 0.25) * self._sine + cosine(x) * self._cosine
        return np.clip(f, -1.0, 1.0, out=f)


class SquareWaves(Waves):
    """Every tuple jumps from scenario to scenario, with a period and a phase of its own.

    f^t(j) = f_k(j) with k = ⌊K (x mod 1)⌋ at x = (t−1) / period_j + phase_j: each scenario for a K-th of the period.
    """

    name = "square-waves"

    def loss(self, episode: int) -> FloatArray:
        K, n = self.scenarios.shape
        x = self.turns(episode)
        k = np.minimum((K * (x - np.floor(x))).astype(np.int64), K - 1)  # x just below 0 is rounded up to a whole turn
        f: FloatArray = self.scenarios[np.broadcast_to(k, n), np.arange(n)]
        return f


class Replay(Oblivious):
    """A recorded table, one row an episode; after the last row it starts again, or holds that row.

    The table is (n_records, n_tuples), as the learner meets it, in [-1, 1]; without one, the scenarios themselves are
    the records. `after`: "cycle" or "hold".
    """

    name = "replay"

    def __init__(self, scenarios: ArrayLike, *, table: ArrayLike | None = None, after: str = "cycle") -> None:
        super().__init__(scenarios)
        if table is not None:
            self.scenarios = checked_scenarios(table, "record", n_tuples=self.scenarios.shape[1])
        self.after = choice(after, "after", ("cycle", "hold"))

    def loss(self, episode: int) -> FloatArray:
        n = len(self.scenarios)
        f: FloatArray = self.scenarios[(episode - 1) % n if self.after == "cycle" else min(episode, n) - 1]
        return f


class IID(Scenarios):
    """A scenario drawn anew for every episode, each with equal chances."""

    name = "iid"

    def begin(self, rng: np.random.Generator) -> "IIDPlay":
        return IIDPlay(self, rng)


class IIDPlay(Play, Blind):
    """One play of `IID`."""

    def __init__(self, losses: IID, rng: np.random.Generator) -> None:
        self.losses, self.rng = losses, rng

    def loss(self, episode: int) -> FloatArray:
        f: FloatArray = self.losses.scenarios[self.rng.integers(len(self.losses.scenarios))]
        return f


class RandomWalk(Scenarios):
    """Weights that wander: w_k = x_k², x a point on the unit sphere that takes a small random step every episode.

    x^{t+1} = (x^t + step · N(0, 1)^K) / ‖·‖. In the long run x is anywhere on the sphere with equal chances; from the
    first scenario it gets there in about 1 / step² episodes.
    """

    name = "random-walk"

    def __init__(self, scenarios: ArrayLike, *, step: float = 0.05) -> None:
        super().__init__(scenarios)
        self.step = number(step, "step", 0, 1)

    def begin(self, rng: np.random.Generator) -> "RandomWalkPlay":
        return RandomWalkPlay(self, rng)


class RandomWalkPlay(Play, Blind):
    """One play of `RandomWalk`."""

    def __init__(self, losses: RandomWalk, rng: np.random.Generator) -> None:
        self.losses, self.rng = losses, rng
        self.x = np.eye(1, len(losses.scenarios))[0]

    def loss(self, episode: int) -> FloatArray:
        if episode > 1:
            x = self.x + self.losses.step * self.rng.standard_normal(len(self.x))
            self.x = x / np.sqrt((x * x).sum())
        return self.losses.mixed(self.x * self.x)


class Bursts(Scenarios):
    """The first scenario, broken by sudden bursts of one of the others.

    When it is quiet a burst begins with probability `rate`: a scenario drawn among the others, for `length` episodes.
    """

    name = "bursts"

    def __init__(self, scenarios: ArrayLike, *, rate: float = 0.01, length: int = 50) -> None:
        super().__init__(scenarios)
        self.rate = number(rate, "rate", 0, 1)
        self.length = whole(length, "length", at_least=1)

    def begin(self, rng: np.random.Generator) -> "BurstsPlay":
        return BurstsPlay(self, rng)


class BurstsPlay(Play, Blind):
    """One play of `Bursts`."""

    def __init__(self, losses: Bursts, rng: np.random.Generator) -> None:
        self.losses, self.rng = losses, rng
        self.scenario = self.left = 0

    def loss(self, episode: int) -> FloatArray:
        K = len(self.losses.scenarios)
        if self.left == 0:
            self.scenario = 0
            if K > 1 and self.rng.random() < self.losses.rate:
                self.scenario, self.left = int(self.rng.integers(1, K)), self.losses.length
        self.left = max(0, self.left - 1)
        f: FloatArray = self.losses.scenarios[self.scenario]
        return f


def _of_tuples(value: object, name: str, n_tuples: int, low: float, high: float) -> float | FloatArray:
    """A number from `low` to `high`, or an array (n_tuples,) of such numbers."""
    if not isinstance(value, list | tuple | np.ndarray):
        return number(value, name, low, high)
    array = floats(value, name, (n_tuples,)).copy()
    bad = ~((array >= low) & (array <= high))
    if bad.any():
        j = int(np.argmax(bad))
        raise InvalidInputError(f"{name}[{j}] is {array[j]}; it must be a number from {low:g} to {high:g}")
    return array


def checked_scenarios(scenarios: ArrayLike, what: str, n_tuples: int | None = None) -> FloatArray:
    """A copy of `scenarios`, (K, n_tuples), every entry in [-1, 1]."""
    table = floats(scenarios, f"{what}s", (f"n_{what}s", "n_tuples" if n_tuples is None else n_tuples)).copy()
    if table.size == 0:
        raise InvalidInputError(f"{what}s has shape {table.shape}; at least one is needed")
    bad = ~(np.abs(table) <= 1)
    if bad.any():
        k, j = np.unravel_index(int(np.argmax(bad)), table.shape)
        raise InvalidInputError(f"the loss of {what} {k} is {table[k, j]} at tuple {j}; it must be in [-1, 1]")
    return table
