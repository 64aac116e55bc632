"""Constraints that change: what is used is chosen from episode to episode, as losses are, and follows no law.

A sequence here is a loss sequence (`problems.losses`) on scenarios of constraints, (K, I, n_tuples), laid flat. Most
move between two scenarios around a problem's mean: cheap times, (1 − swing) mean, and dear times, (1 + swing) mean.

What can be promised is less than under i.i.d. constraints, so two things are said of every sequence: its `mean`, which
is what the problem calls its own and no average of anything that comes, and its `extremes`, scenarios of which every
g^t is a mixture, or below one: who keeps the budgets under all of them keeps them in every episode.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from tightrope.arguments import number, whole
from tightrope.errors import InvalidInputError
from tightrope.model import LayeredMDP, Policy
from tightrope.problems.constraints.noise import Constraints, checked_mean, checked_rows
from tightrope.problems.losses import Adversary, Bursts, Chaser, Drifting, RandomWalk, Replay, Scenarios, Switching
from tightrope.space import FloatArray


@runtime_checkable
class Regulator(Protocol):
    """One play against one learner: `constraints(1)`, `watch`, `constraints(2)`, `watch`, … in this order.

    If it has `state()` and `restore(state)` as well, a run under it can be saved half way.
    """

    def constraints(self, episode: int) -> FloatArray:
        """g^t, (I, n_tuples); receivers never write to it, and what was handed out does not change later."""
        ...

    def watch(self, policy: Policy) -> None:
        """Learn which policy was played in the episode just asked for."""
        ...


@runtime_checkable
class ChangingConstraints(Constraints, Protocol):
    """Constraints that follow no law, under which any number of runs may be played; `mean` is the problem's own."""

    @property
    def extremes(self) -> FloatArray:
        """(K, I, n_tuples): every g^t is a mixture of these, or below one of them at every tuple."""
        ...

    def begin(self, rng: np.random.Generator) -> Regulator:
        """A fresh play for one run; all its randomness comes from `rng`."""
        ...


class Changing:
    """What has no law to draw from."""

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """Refuse: what comes next depends on the episode, and perhaps on what was played."""
        raise InvalidInputError("these constraints change and are not drawn: use problem.begin_constraints(rng)")


class Mixed(Changing):
    """Scenarios (K, I, n_tuples) that follow one another as a loss sequence has it."""

    def __init__(self, sequence: Scenarios, mean: FloatArray, largest_factor: float = 1.0) -> None:
        self.sequence, self.mean, self.largest_factor = sequence, mean, largest_factor
        self.extremes: FloatArray = sequence.scenarios.reshape(-1, *mean.shape)
        self.name = sequence.name

    def begin(self, rng: np.random.Generator) -> "MixedPlay":
        return MixedPlay(self.sequence.begin(rng), self.mean.shape)  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        return f"Mixed({len(self.mean)} constraints, largest_factor={self.largest_factor}, {self.sequence!r})"


class MixedPlay:
    """One play of `Mixed`."""

    def __init__(self, adversary: Adversary, shape: tuple[int, ...]) -> None:
        self.adversary, self._shape = adversary, shape

    def constraints(self, episode: int) -> FloatArray:
        return self.adversary.loss(episode).reshape(self._shape)

    def watch(self, policy: Policy) -> None:
        self.adversary.watch(policy)

    def state(self) -> dict[str, Any]:
        """What `restore` takes, in a play of the same constraints."""
        return {"adversary": self.adversary}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""
        self.adversary = state["adversary"]


class Chased(Changing):
    """Dear where the learner has been going, cheap where it has not.

    g^t(s,a,s') = (1 + swing (2 û(s,a) − 1)) mean(s,a,s'), with û of the losses' chaser: the share of the last `memory`
    episodes or so that passed through the pair, of the largest such share in its layer.
    """

    name = "chaser"

    def __init__(self, mean: ArrayLike, mdp: LayeredMDP | None, *, swing: float = 0.5, memory: int = 100) -> None:
        self.swing, self.memory = number(swing, "swing", 0, 1), whole(memory, "memory", at_least=1)
        self.largest_factor = 1 + self.swing
        self.mean, self.mdp = checked_mean(mean, self.largest_factor), mdp
        self.extremes: FloatArray = (self.mean + self.swing * np.abs(self.mean))[None]

    def begin(self, rng: np.random.Generator) -> "ChasedPlay":
        if self.mdp is None:
            raise InvalidInputError("constraints that chase the learner need the model: make_constraints(…, mdp=mdp)")
        still = np.zeros((1, self.mdp.space.n_tuples))
        return ChasedPlay(self, Chaser(still, self.mdp, weight=1.0, memory=self.memory).begin(rng))

    def __repr__(self) -> str:
        return f"Chased({len(self.mean)} constraints, swing={self.swing}, memory={self.memory})"


class ChasedPlay(MixedPlay):
    """One play of `Chased`."""

    def __init__(self, law: Chased, adversary: Adversary) -> None:
        super().__init__(adversary, law.mean.shape)
        self._law = law

    def constraints(self, episode: int) -> FloatArray:
        law = self._law
        g: FloatArray = (1 + law.swing * (2 * self.adversary.loss(episode) - 1)) * law.mean
        return g


def switching(mean: ArrayLike, *, swing: float = 0.5, period: int = 500) -> Mixed:
    """Cheap times and dear times in turn, each for `period` episodes."""
    return _around(mean, swing, lambda scenarios: Switching(scenarios, period=period))


def drifting(mean: ArrayLike, *, swing: float = 0.5, period: int = 500) -> Mixed:
    """From cheap to dear and back as a sinusoid, once in `period` episodes."""
    return _around(mean, swing, lambda scenarios: Drifting(scenarios, period=period))


def random_walk(mean: ArrayLike, *, swing: float = 0.5, step: float = 0.05) -> Mixed:
    """Between cheap and dear at random, a small step every episode."""
    return _around(mean, swing, lambda scenarios: RandomWalk(scenarios, step=step))


def bursts(mean: ArrayLike, *, swing: float = 0.5, rate: float = 0.01, length: int = 50) -> Mixed:
    """Cheap, broken by bursts of dear times."""
    return _around(mean, swing, lambda scenarios: Bursts(scenarios, rate=rate, length=length))


def recorded(mean: ArrayLike, *, table: ArrayLike, after: str = "cycle") -> Mixed:
    """A recorded table, (n_records, n_constraints, n_tuples), row by row, in place of the problem's own constraints."""
    return in_turn(table, lambda scenarios: Replay(scenarios, after=after))


#: The sequences: each is made of a problem's mean and options of its own.
CHANGING: dict[str, Callable[..., ChangingConstraints]] = {
    "switching": switching,
    "drifting": drifting,
    "random-walk": random_walk,
    "bursts": bursts,
    "recorded": recorded,
    Chased.name: Chased,
}


def in_turn(scenarios: ArrayLike, kind: Callable[[FloatArray], Scenarios]) -> Mixed:
    """Scenarios of one's own, (K, I, n_tuples), as a kind of loss sequence mixes them; the mean is the first."""
    rows = checked_rows(scenarios)
    return Mixed(kind(rows.reshape(len(rows), -1)), rows[0])


def _around(mean: ArrayLike, swing: float, kind: Callable[[FloatArray], Scenarios]) -> Mixed:
    swing = number(swing, "swing", 0, 1)
    own = checked_mean(mean, 1 + swing)
    both = np.clip([(1 - swing) * own, (1 + swing) * own], -1.0, 1.0)  # rounding may carry a bound past 1
    return Mixed(kind(both.reshape(2, -1)), own, largest_factor=1 + swing)
