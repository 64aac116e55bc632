"""Losses by name: what an adversary charges from episode to episode, on the scenarios that a problem supplies.

`oblivious.py` holds the sequences that are fixed in advance, `adaptive.py` those that answer what was played.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from tightrope.arguments import named
from tightrope.model import LayeredMDP, Policy
from tightrope.problems.losses.adaptive import Adaptive, Chaser, LowerBound
from tightrope.problems.losses.oblivious import (
    IID,
    Bursts,
    Drifting,
    Fixed,
    Oblivious,
    RandomWalk,
    Replay,
    Scenarios,
    SquareWaves,
    Switching,
    Waves,
)
from tightrope.space import FloatArray

__all__ = [
    "IID",
    "LOSSES",
    "Adaptive",
    "Adversary",
    "Bursts",
    "Chaser",
    "Drifting",
    "Fixed",
    "LossChoice",
    "Losses",
    "LowerBound",
    "Oblivious",
    "RandomWalk",
    "Replay",
    "Scenarios",
    "SquareWaves",
    "Switching",
    "Waves",
    "make_losses",
]


@runtime_checkable
class Adversary(Protocol):
    """One play against one learner: `loss(1)`, `watch`, `loss(2)`, `watch`, … in this order.

    If it has `state()` and `restore(state)` as well (`oblivious.Play`), a run against it can be saved half way.
    """

    def loss(self, episode: int) -> FloatArray:
        """f^t, (n_tuples,) in [-1, 1]; receivers never write to it, and what was handed out does not change later."""
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


#: What `losses=` understands: each is made of a problem's scenarios (and its model, if adaptive) and its own options.
LOSSES: dict[str, Callable[..., Losses]] = {
    kind.name: kind
    for kind in (
        Fixed,
        IID,
        Switching,
        Drifting,
        Waves,
        SquareWaves,
        RandomWalk,
        Bursts,
        Replay,
        Chaser,
        LowerBound,
    )
}

#: A name, a name with options ({"name": "switching", "period": 100}), or a sequence of one's own.
LossChoice = str | Mapping[str, Any] | Losses


def make_losses(choice: LossChoice, scenarios: ArrayLike, mdp: LayeredMDP) -> Losses:
    """The loss sequence that `choice` asks for, on a problem's scenarios (K, n_tuples) and its model."""
    if isinstance(choice, Losses) and not isinstance(choice, type):
        return choice
    own = "an object with a name and a method begin(rng)"
    kind, options = named(choice, "losses", LOSSES, "loss sequence", own)
    adaptive = isinstance(kind, type) and issubclass(kind, Adaptive)
    return kind(scenarios, mdp, **options) if adaptive else kind(scenarios, **options)
