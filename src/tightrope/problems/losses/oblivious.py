"""Oblivious loss sequences: they are fixed before the first episode, or drawn independently of the learner.

A problem supplies K loss *scenarios*, an array (K, n_tuples) with entries in [-1, 1]; the sequences here mix them with
weights w^t: f^t = Σ_k w_k^t f_k, w^t ≥ 0, Σ_k w_k^t = 1. None of them stores more than its last step. An adversary that
draws keeps its state in plain attributes.
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
    """A loss sequence from scenarios, (K, n_tuples) in [-1, 1]; its options are its other attributes."""

    name: ClassVar[str]

    def __init__(self, scenarios: ArrayLike) -> None:
        self.scenarios = checked_scenarios(scenarios, "scenario")

    def __repr__(self) -> str:
        options = {name: value for name, value in vars(self).items() if isinstance(value, int | float | str)}
        shown = "".join(f", {name}={value}" for name, value in options.items())
        return f"{type(self).__name__}({len(self.scenarios)} scenarios{shown})"

    def mixed(self, weights: FloatArray) -> FloatArray:
        """Return Σ_k w_k f_k, (n_tuples,), for weights (K,) that sum to one up to rounding."""
        f: FloatArray = core.weigh(weights[0], self.scenarios[0], weights[1:], self.scenarios[1:], 1.0)
        return np.clip(f, -1.0, 1.0, out=f)


class Play:
    """The adversary of one run; its state is all of its attributes except the sequence `losses`."""

    def state(self) -> dict[str, Any]:
        """Return the state that `restore` accepts."""
        return {name: value for name, value in vars(self).items() if name != "losses"}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a state that `state` returned."""
        self.__dict__.update(state)


class Blind:
    """An adversary that ignores the policies played."""

    def watch(self, policy: Policy) -> None:
        """Do nothing: the policies have no effect on the losses."""
        return


class Oblivious(Blind, Scenarios):
    """A deterministic sequence; as it has no state, it is its own adversary."""

    def begin(self, rng: np.random.Generator) -> Self:
        """Return this sequence, which has no state."""
        return self

    def state(self) -> dict[str, Any]:
        """Return an empty state: the loss depends on the number of the episode only."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Do nothing: there is no state."""

    @abstractmethod
    def loss(self, episode: int) -> FloatArray:
        """Return f^t, (n_tuples,); episodes count from 1."""


class Fixed(Oblivious):
    """The first scenario in every episode."""

    name = "fixed"

    def loss(self, episode: int) -> FloatArray:
        f: FloatArray = self.scenarios[0]
        return f


class Switching(Oblivious):
    """The scenarios in turn, each for `period` episodes, in a cycle.

    `phases`: use only this many scenarios, from the first; None: all of them.
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
    """Weights that follow sinusoids of `period` episodes.

    f^t = Σ_k w_k^t f_k with w_k^t = (1 + cos 2π((t−1)/period − k/K)) / K.

    Evenly spaced cosines sum to zero, so the weights sum to one. Each weight moves between 0 and 2/K: with two
    scenarios, each occurs alone once in a period.
    """

    name = "drifting"

    def __init__(self, scenarios: ArrayLike, *, period: int = 500) -> None:
        super().__init__(scenarios)
        self.period = whole(period, "period", at_least=1)

    def weights(self, episode: int) -> FloatArray:
        """Return the weights w^t, (K,)."""
        K = len(self.scenarios)
        if K == 1:  # for K = 1 the cosines do not sum to zero
            return np.ones(1)
        turns = (episode - 1) % self.period / self.period - np.arange(K) / K
        w: FloatArray = (1 + cosine(turns)) / K
        return w

    def loss(self, episode: int) -> FloatArray:
        return self.mixed(self.weights(episode))


class Waves(Oblivious):
    """Sinusoids through the scenarios, with one period and phase per tuple.

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
        # Σ_k sin 2π(x − k/K) f_k = sin 2πx Σ_k cos(2πk/K) f_k − cos 2πx Σ_k sin(2πk/K) f_k
        turns = np.arange(K) / K
        self._mean = combine(np.full(K, 1 / K), self.scenarios)
        self._sine = combine(cosine(turns) / K if K > 1 else np.zeros(1), self.scenarios)
        self._cosine = combine(-cosine(turns - 0.25) / K if K > 1 else np.zeros(1), self.scenarios)

    def loss(self, episode: int) -> FloatArray:
        x = _turns(episode, self.period, self.phase)
        f: FloatArray = self._mean + cosine(x - 0.25) * self._sine + cosine(x) * self._cosine
        return np.clip(f, -1.0, 1.0, out=f)


class SquareWaves(Oblivious):
    """Jumps from scenario to scenario, with one period and phase per tuple.

    f^t(j) = f_k(j) with k = ⌊K (x mod 1)⌋ at x = (t−1) / period_j + phase_j: each scenario for a K-th of the period.
    `period` and `phase` are those of `Waves`.
    """

    name = "square-waves"

    def __init__(
        self, scenarios: ArrayLike, *, period: float | ArrayLike = 100.0, phase: float | ArrayLike = 0.0
    ) -> None:
        super().__init__(scenarios)
        n = self.scenarios.shape[1]
        self.period = _of_tuples(period, "period", n, 1.0, LARGEST)
        self.phase = _of_tuples(phase, "phase", n, -1.0, 1.0)

    def loss(self, episode: int) -> FloatArray:
        K, n = self.scenarios.shape
        x = _turns(episode, self.period, self.phase)
        k = np.minimum((K * (x - np.floor(x))).astype(np.int64), K - 1)  # x just below 0 is rounded up to a whole turn
        f: FloatArray = self.scenarios[np.broadcast_to(k, n), np.arange(n)]
        return f


class Replay(Oblivious):
    """A recorded table, one row per episode.

    The table, (n_records, n_tuples), has entries in [-1, 1]; without one, the scenarios are the records. After the last
    row, `after="cycle"` starts again, and `after="hold"` repeats that row.
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
    """A scenario drawn independently for every episode, with equal probabilities."""

    name = "iid"

    def begin(self, rng: np.random.Generator) -> "IIDPlay":
        return IIDPlay(self, rng)


class IIDPlay(Play, Blind):
    """The adversary of one run under `IID`."""

    def __init__(self, losses: IID, rng: np.random.Generator) -> None:
        self.losses, self.rng = losses, rng

    def loss(self, episode: int) -> FloatArray:
        f: FloatArray = self.losses.scenarios[self.rng.integers(len(self.losses.scenarios))]
        return f


class RandomWalk(Scenarios):
    """Random weights w_k = x_k², where x is a point on the unit sphere that takes a small random step every episode.

    x^{t+1} = (x^t + step · N(0, 1)^K) / ‖·‖. It begins at the first scenario, and is close to uniformly distributed on
    the sphere after about 1 / step² episodes.
    """

    name = "random-walk"

    def __init__(self, scenarios: ArrayLike, *, step: float = 0.05) -> None:
        super().__init__(scenarios)
        self.step = number(step, "step", 0, 1)

    def begin(self, rng: np.random.Generator) -> "RandomWalkPlay":
        return RandomWalkPlay(self, rng)


class RandomWalkPlay(Play, Blind):
    """The adversary of one run under `RandomWalk`."""

    def __init__(self, losses: RandomWalk, rng: np.random.Generator) -> None:
        self.losses, self.rng = losses, rng
        self.x = np.eye(1, len(losses.scenarios))[0]

    def loss(self, episode: int) -> FloatArray:
        if episode > 1:
            x = self.x + self.losses.step * self.rng.standard_normal(len(self.x))
            self.x = x / np.sqrt((x * x).sum())
        return self.losses.mixed(self.x * self.x)


class Bursts(Scenarios):
    """The first scenario, interrupted by bursts of another one.

    Outside a burst, one begins with probability `rate` in each episode: a random other scenario for `length` episodes.
    """

    name = "bursts"

    def __init__(self, scenarios: ArrayLike, *, rate: float = 0.01, length: int = 50) -> None:
        super().__init__(scenarios)
        self.rate = number(rate, "rate", 0, 1)
        self.length = whole(length, "length", at_least=1)

    def begin(self, rng: np.random.Generator) -> "BurstsPlay":
        return BurstsPlay(self, rng)


class BurstsPlay(Play, Blind):
    """The adversary of one run under `Bursts`."""

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
    """Return a number from `low` to `high`, or an array (n_tuples,) of such numbers, after checking it."""
    if not isinstance(value, list | tuple | np.ndarray):
        return number(value, name, low, high)
    array = floats(value, name, (n_tuples,)).copy()
    bad = ~((array >= low) & (array <= high))
    if bad.any():
        j = int(np.argmax(bad))
        raise InvalidInputError(f"{name}[{j}] is {array[j]}; it must be a number from {low:g} to {high:g}")
    return array


def _turns(episode: int, period: float | FloatArray, phase: float | FloatArray) -> FloatArray:
    """Return x, (n_tuples,), or (1,) if it is the same for all tuples; whole periods are removed."""
    x: FloatArray = np.atleast_1d(np.fmod(episode - 1, period) / period + phase)
    return x


def checked_scenarios(scenarios: ArrayLike, what: str, n_tuples: int | None = None) -> FloatArray:
    """Return a copy of `scenarios`, (K, n_tuples), after checking that every entry lies in [-1, 1]."""
    table = floats(scenarios, f"{what}s", (f"n_{what}s", "n_tuples" if n_tuples is None else n_tuples)).copy()
    if table.size == 0:
        raise InvalidInputError(f"{what}s has shape {table.shape}; at least one is needed")
    bad = ~(np.abs(table) <= 1)
    if bad.any():
        k, j = np.unravel_index(int(np.argmax(bad)), table.shape)
        raise InvalidInputError(f"the loss of {what} {k} is {table[k, j]} at tuple {j}; it must be in [-1, 1]")
    return table
