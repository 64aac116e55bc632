"""Loss sequences by name: the losses f^t of all episodes, made from the scenarios of a problem.

`oblivious.py` has the sequences that are fixed in advance, `adaptive.py` those that depend on the policies played.
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
    """The losses of one run; called as `loss(1)`, `watch`, `loss(2)`, `watch`, and so on.

    A run can be checkpointed if this also has `state()` and `restore(state)` (see `oblivious.Play`).
    """

    def loss(self, episode: int) -> FloatArray:
        """Return f^t, (n_tuples,) in [-1, 1]; neither side writes to the array afterwards."""
        ...

    def watch(self, policy: Policy) -> None:
        """Record the policy that was played in the last episode."""
        ...


@runtime_checkable
class Losses(Protocol):
    """A loss sequence, which any number of runs can share."""

    @property
    def name(self) -> str: ...

    def begin(self, rng: np.random.Generator) -> Adversary:
        """Return the adversary of one run, which draws with `rng` only."""
        ...


#: Every name that `losses=` accepts: each is called with a problem's scenarios, its model if adaptive, and its options.
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

#: A name, a name with options ({"name": "switching", "period": 100}), or an object with the methods of `Losses`.
LossChoice = str | Mapping[str, Any] | Losses


def make_losses(choice: LossChoice, scenarios: ArrayLike, mdp: LayeredMDP) -> Losses:
    """Return a loss sequence on the scenarios of a problem.

    Parameters
    ----------
    choice : a name in `LOSSES`, a mapping with a name and options, or a loss sequence, which is returned as given.
    scenarios : (K, n_tuples) with entries in [-1, 1].
    mdp : the true model, for adaptive sequences.

    Raises
    ------
    InvalidInputError : if the name or an option is unknown, or a loss lies outside [-1, 1].
    """
    if isinstance(choice, Losses) and not isinstance(choice, type):
        return choice
    own = "an object with a name and a method begin(rng)"
    kind, options = named(choice, "losses", LOSSES, "loss sequence", own)
    adaptive = isinstance(kind, type) and issubclass(kind, Adaptive)
    return kind(scenarios, mdp, **options) if adaptive else kind(scenarios, **options)
