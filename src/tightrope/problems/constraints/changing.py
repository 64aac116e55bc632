"""Constraints that change from episode to episode without being drawn from one distribution, as losses do.

A sequence here applies a loss sequence (`problems.losses`) to scenarios of constraints, (K, I, n_tuples), flattened.
Most alternate between two scenarios around a problem's mean: low costs, (1 − swing) mean, and high costs,
(1 + swing) mean.

The guarantees are weaker than under i.i.d. constraints. So each sequence has a `mean`, the nominal constraint of the
problem, which need not be the average over the episodes, and `extremes`: scenarios such that every g^t is a mixture of
them or lies below one of them. A policy within the budgets under all extremes is within them in every episode.
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
    """The constraints of one run; called as `constraints(1)`, `watch`, `constraints(2)`, `watch`, and so on.

    A run can be checkpointed if this also has `state()` and `restore(state)`.
    """

    def constraints(self, episode: int) -> FloatArray:
        """Return g^t, (I, n_tuples); neither side writes to the array afterwards."""
        ...

    def watch(self, policy: Policy) -> None:
        """Record the policy that was played in the last episode."""
        ...


@runtime_checkable
class ChangingConstraints(Constraints, Protocol):
    """Constraints that change in time, for any number of runs. `mean` is the nominal constraint."""

    @property
    def extremes(self) -> FloatArray:
        """(K, I, n_tuples) scenarios; every g^t is a mixture of them, or below one of them at every tuple."""
        ...

    def begin(self, rng: np.random.Generator) -> Regulator:
        """Return the constraints of one run, drawn with `rng` only."""
        ...


class Changing:
    """Base class of constraints that cannot be sampled independently of the episode."""

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """Raise InvalidInputError: the next constraints depend on the episode, and perhaps on the policies played."""
        raise InvalidInputError("these constraints change in time; use problem.begin_constraints(rng), not sample(rng)")


class Mixed(Changing):
    """Scenarios (K, I, n_tuples) that are mixed over time by a loss sequence."""

    def __init__(self, sequence: Scenarios, mean: FloatArray, largest_factor: float = 1.0) -> None:
        self.sequence, self.mean, self.largest_factor = sequence, mean, largest_factor
        self.extremes: FloatArray = sequence.scenarios.reshape(-1, *mean.shape)
        self.name = sequence.name

    def begin(self, rng: np.random.Generator) -> "MixedPlay":
        return MixedPlay(self.sequence.begin(rng), self.of_loss)  # type: ignore[attr-defined]

    def of_loss(self, loss: FloatArray) -> FloatArray:
        """Return the constraints (I, n_tuples) that a loss of the sequence stands for."""
        return loss.reshape(self.mean.shape)

    def __repr__(self) -> str:
        return f"Mixed({len(self.mean)} constraints, largest_factor={self.largest_factor}, {self.sequence!r})"


class MixedPlay:
    """The constraints of one run: a function of the losses of an adversary."""

    def __init__(self, adversary: Adversary, of_loss: Callable[[FloatArray], FloatArray]) -> None:
        self.adversary, self._of_loss = adversary, of_loss

    def constraints(self, episode: int) -> FloatArray:
        return self._of_loss(self.adversary.loss(episode))

    def watch(self, policy: Policy) -> None:
        self.adversary.watch(policy)

    def state(self) -> dict[str, Any]:
        """Return the state that `restore` accepts."""
        return {"adversary": self.adversary}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a state that `state` returned."""
        self.adversary = state["adversary"]


class Chased(Changing):
    """Higher costs at pairs that the learner visited lately, lower costs elsewhere.

    g^t(s,a,s') = (1 + swing (2 û(s,a) − 1)) mean(s,a,s'). As in the loss sequence "chaser", û is the exponential
    average of the probability of visiting the pair, over about `memory` episodes, divided by the largest in the layer.
    """

    name = "chaser"

    def __init__(self, mean: ArrayLike, mdp: LayeredMDP | None, *, swing: float = 0.5, memory: int = 100) -> None:
        self.swing, self.memory = number(swing, "swing", 0, 1), whole(memory, "memory", at_least=1)
        self.largest_factor = 1 + self.swing
        self.mean, self.mdp = checked_mean(mean, self.largest_factor), mdp
        self.extremes: FloatArray = (self.mean + self.swing * np.abs(self.mean))[None]

    def begin(self, rng: np.random.Generator) -> MixedPlay:
        if self.mdp is None:
            raise InvalidInputError("the constraints 'chaser' need the model: use make_constraints(…, mdp=mdp)")
        still = np.zeros((1, self.mdp.space.n_tuples))
        return MixedPlay(Chaser(still, self.mdp, weight=1.0, memory=self.memory).begin(rng), self.of_loss)

    def of_loss(self, loss: FloatArray) -> FloatArray:
        """Return the constraints (I, n_tuples) that follow from û (n_tuples,), a loss of "chaser"."""
        g: FloatArray = (1 + self.swing * (2 * loss - 1)) * self.mean
        return g

    def __repr__(self) -> str:
        return f"Chased({len(self.mean)} constraints, swing={self.swing}, memory={self.memory})"


def switching(mean: ArrayLike, *, swing: float = 0.5, period: int = 500) -> Mixed:
    """Low and high costs in turn, each for `period` episodes."""
    return _around(mean, swing, lambda scenarios: Switching(scenarios, period=period))


def drifting(mean: ArrayLike, *, swing: float = 0.5, period: int = 500) -> Mixed:
    """From low to high costs and back along a sinusoid of `period` episodes."""
    return _around(mean, swing, lambda scenarios: Drifting(scenarios, period=period))


def random_walk(mean: ArrayLike, *, swing: float = 0.5, step: float = 0.05) -> Mixed:
    """A random walk between low and high costs, with a small step every episode."""
    return _around(mean, swing, lambda scenarios: RandomWalk(scenarios, step=step))


def bursts(mean: ArrayLike, *, swing: float = 0.5, rate: float = 0.01, length: int = 50) -> Mixed:
    """Low costs, interrupted by bursts of high costs."""
    return _around(mean, swing, lambda scenarios: Bursts(scenarios, rate=rate, length=length))


def recorded(mean: ArrayLike, *, table: ArrayLike, after: str = "cycle") -> Mixed:
    """A recorded table, (n_records, I, n_tuples), row by row, instead of the problem's own constraints."""
    return in_turn(table, lambda scenarios: Replay(scenarios, after=after))


#: The sequences: each is called with a problem's mean and its options.
CHANGING: dict[str, Callable[..., ChangingConstraints]] = {
    "switching": switching,
    "drifting": drifting,
    "random-walk": random_walk,
    "bursts": bursts,
    "recorded": recorded,
    Chased.name: Chased,
}


def in_turn(scenarios: ArrayLike, kind: Callable[[FloatArray], Scenarios]) -> Mixed:
    """Return constraints that mix scenarios (K, I, n_tuples) as a loss sequence mixes losses; the first is the mean."""
    rows = checked_rows(scenarios)
    return Mixed(kind(rows.reshape(len(rows), -1)), rows[0])


def _around(mean: ArrayLike, swing: float, kind: Callable[[FloatArray], Scenarios]) -> Mixed:
    swing = number(swing, "swing", 0, 1)
    own = checked_mean(mean, 1 + swing)
    both = np.clip([(1 - swing) * own, (1 + swing) * own], -1.0, 1.0)  # rounding may carry a bound past 1
    return Mixed(kind(both.reshape(2, -1)), own, largest_factor=1 + swing)
