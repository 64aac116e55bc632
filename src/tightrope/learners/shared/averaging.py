"""What learners of stochastic costs have in common: visits counted, costs averaged, with bandit feedback.

The publications have costs in [0, 1] that depend on the pair (s,a), here losses and constraints lie in [-1, 1] and may
depend on where the step leads. So f and g enter as (f + 1)/2 and (g + 1)/2, budgets as (c + L)/2, and what is averaged
over the visits of a pair is an estimate of its mean Σ_s' P(s'|s,a) (f(s,a,s') + 1)/2. Multipliers are the same in both
units; the slack of a policy is half of what it is outside. A pair belongs to one step of an episode, so the published
SAH is n_pairs and S²AH is n_tuples.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tightrope.confidence import Counts
from tightrope.learners.base import Seen
from tightrope.learners.shared.counting import CountingState
from tightrope.space import FloatArray, LayeredSpace
from tightrope.storage.state import numbers, state
from tightrope.ties import Ties


class Estimates(NamedTuple):
    """What is known of each pair after its visits, and of its law after those of all pairs that are tied to it."""

    visits: NDArray[np.int64]  # (n_pairs,)
    N: NDArray[np.int64]  # (n_pairs,) of all that share its law
    M: NDArray[np.int64]  # (n_tuples,)
    costs: FloatArray  # (1 + I, n_pairs) averages: of the loss, then of each constraint; 0 without visits


@state
class AveragesState(CountingState):
    """Visits, and sums of the costs met at each pair."""

    cost_sum: FloatArray = numbers(least=-1e-3)  #: (1 + I, n_pairs) of the loss, then of each constraint; 0 or more


def estimates(counts: Counts, cost_sum: FloatArray) -> Estimates:
    """Return the averages of these sums (1 + I, n_pairs)."""
    visits, _ = counts.totals()
    return Estimates(visits, *counts.laws_so_far, cost_sum / np.maximum(1, visits))


def no_sums(space: LayeredSpace, n_budgets: int, ties: Ties | None) -> dict[str, Any]:
    """Return the counts and sums before the first episode, by field of `AveragesState`."""
    return {"counts": Counts(space, ties), "cost_sum": np.zeros((1 + n_budgets, space.n_pairs))}


def sums_after(state: AveragesState, seen: Seen, space: LayeredSpace) -> tuple[Counts, FloatArray]:
    """Return counts and cost_sum with one more episode; a new epoch begins where one ends."""
    cost_sum = state.cost_sum.copy()
    cost_sum[:, space.pair_of_tuple[seen.path]] += (np.vstack([seen.loss, seen.constraints]) + 1) / 2
    return state.counts.counted(seen.path), cost_sum


def budgets_of_shares(budgets: FloatArray, space: LayeredSpace) -> FloatArray:
    """Return (I,) α, the budgets for constraints in [0, 1]."""
    alpha: FloatArray = (budgets + space.n_layers) / 2
    return alpha
