"""What a learner would have spent, had its own policy been played: from paths that somebody else's policy played.

Where it is known which policy μ played, by importance, step by step:

    Σ_k ρ_k x_k,    ρ_k = Π_{h <= k} π(a_h|s_h) / μ(a_h|s_h),

x_k the loss or the use of step k: its mean is what π costs, whatever the dynamics, if μ may do all that π may. If not,
as with a safe policy in place of π, nothing can be said, and the episode is left out. For the policy that was played it
is what was met. Where μ is not known, what was met on the played path is all there is, and it is summed apart. Weights
beyond LARGEST count as LARGEST: what μ hardly ever does was done all the same, the estimate says nothing any more, and
its standard error shows that.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from tightrope.errors import InvalidInputError
from tightrope.ops.kernels import covers, weigh
from tightrope.space import FloatArray, IntArray

#: Of a weight; its square, summed over all episodes of a life, has room in a float.
LARGEST = 1e100


class Shadow:
    """Sums over episodes of the loss and of each constraint. It does not change: one more episode makes a new one."""

    def __init__(self, n_constraints: int) -> None:
        self.weighed = 0  #: episodes by importance
        self.met = 0  #: episodes from the played path
        self.uncovered = 0  #: episodes whose policy may not do all that π may
        #: (3, 1 + I) Σ of the estimates, of their squares, and of what was met: of the loss, then of each constraint
        self.sums = np.zeros((3, 1 + n_constraints))
        self.sums.setflags(write=False)  # others may look at it

    def after(
        self, costs: FloatArray, path: IntArray, pair_of: IntArray, own: FloatArray, played: FloatArray | None
    ) -> "Shadow":
        """These sums and one more episode: costs (1 + I, L) on its path (L,); of tuples their pairs, of these π, μ."""
        shadow = object.__new__(Shadow)
        vars(shadow).update(vars(self), sums=self.sums.copy())
        if played is None:
            shadow.met += 1
            shadow.sums[2] += costs.sum(axis=1)
        elif not covers(played, own):
            shadow.uncovered += 1
        else:
            shadow.weighed += 1
            weigh(path, pair_of, own, played, LARGEST, costs, shadow.sums)
        shadow.sums.setflags(write=False)
        return shadow

    @property
    def by_importance(self) -> FloatArray:
        """(1 + I,) Σ of the estimates."""
        estimates: FloatArray = self.sums[0]
        return estimates

    @property
    def by_path(self) -> FloatArray:
        """(1 + I,) Σ of what was met."""
        met: FloatArray = self.sums[2]
        return met

    def standard_error(self) -> FloatArray:
        """(1 + I,) of the sums by importance."""
        n = max(self.weighed, 1)
        variance: FloatArray = np.maximum(self.sums[1] - self.by_importance**2 / n, 0.0) * (n / max(n - 1, 1))
        return np.sqrt(variance)

    def state(self) -> dict[str, Any]:
        """All of it."""
        return dict(vars(self))

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state` gave."""
        if min(state["weighed"], state["met"], state["uncovered"]) < 0 or not np.isfinite(state["sums"]).all():
            raise InvalidInputError("what it would have spent is of no episodes")
        vars(self).update(state)
        self.sums.setflags(write=False)
