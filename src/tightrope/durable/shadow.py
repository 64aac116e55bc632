"""What a learner would have spent, had its own policy been played: from paths that somebody else's policy played.

Where it is known which policy μ played, by importance, step by step:

    Σ_k ρ_k x_k,    ρ_k = Π_{h <= k} π(a_h|s_h) / μ(a_h|s_h),

x_k the loss or the use of step k: its mean is what π costs, whatever the dynamics, wherever μ may do all that π does.
For the policy that was played it is what was met. Where μ is not known, what was met on the played path is all there
is, and it is summed apart. Weights beyond LARGEST count as LARGEST: what μ hardly ever does was done all the same, the
estimate says nothing any more, and its standard error shows that.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightrope.durable.kernels import weigh
from tightrope.errors import InvalidInputError
from tightrope.model import Policy
from tightrope.space import FloatArray

#: Of a weight; its square, summed over all episodes of a life, has room in a float.
LARGEST = 1e100


class Shadow:
    """Sums over episodes of the loss and of each constraint. It does not change: one more episode makes a new one."""

    def __init__(self, n_constraints: int) -> None:
        self.weighed = 0  #: episodes by importance
        self.met = 0  #: episodes from the played path
        self.by_importance = np.zeros(1 + n_constraints)  #: Σ of the estimates: of the loss, then of each constraint
        self.squares = np.zeros(1 + n_constraints)  #: Σ of their squares
        self.by_path = np.zeros(1 + n_constraints)  #: Σ of what was met

    def after(self, costs: FloatArray, pairs: NDArray[np.int64], own: Policy, played: Policy | None) -> "Shadow":
        """These sums and one more episode: costs (1 + I, L) at the pairs (L,) of its path."""
        shadow, changes = object.__new__(Shadow), dict[str, Any]()
        if played is None:
            changes["met"], changes["by_path"] = self.met + 1, self.by_path + costs.sum(axis=1)
        else:
            estimate = np.empty(len(costs))
            weigh(pairs, own.probabilities, played.probabilities, LARGEST, costs, estimate)
            changes["weighed"] = self.weighed + 1
            changes["by_importance"], changes["squares"] = self.by_importance + estimate, self.squares + estimate**2
        shadow.__dict__ = self.__dict__ | changes
        return shadow

    def standard_error(self) -> FloatArray:
        """(1 + I,) of the sums by importance."""
        n = max(self.weighed, 1)
        variance: FloatArray = np.maximum(self.squares - self.by_importance**2 / n, 0.0) * (n / max(n - 1, 1))
        return np.sqrt(variance)

    def state(self) -> dict[str, Any]:
        """All of it."""
        return dict(vars(self))

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state` gave."""
        numbers = np.hstack([state["by_importance"], state["squares"], state["by_path"]])
        if min(state["weighed"], state["met"]) < 0 or not np.isfinite(numbers).all():
            raise InvalidInputError("what it would have spent is of no episodes")
        vars(self).update(state)
