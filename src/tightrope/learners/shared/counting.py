"""Learners that count visits, since dynamics are unknown; averages of costs over visits; mirror learners.

A mirror learner moves an occupancy measure by entropic mirror steps inside a confidence set,

    θ ← argmin over θ' in Δ of <cost, θ'> + D(θ', reference),

where Δ are the measures whose conditionals lie in the confidence set of the epoch (`projection`). An epoch ends when
the visits of some pair have doubled, or grown by another share, and a new set is made from all counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope.arguments import shown
from tightrope.arithmetic import log
from tightrope.confidence import Counts
from tightrope.errors import InvalidInputError
from tightrope.learners.base import LearnerBase, LearnsFrom, Seen, require
from tightrope.learners.parts import MirrorStep, WarmStart, positive
from tightrope.model import Policy, flat
from tightrope.planning.dynamic_programming import Intervals
from tightrope.space import FloatArray, LayeredSpace
from tightrope.storage.state import State, measure, numbers, part, state
from tightrope.ties import Ties


@state
class CountingState(State):
    """Visits of pairs and tuples, in epochs."""

    counts: Counts = part()


@state
class MirrorState(CountingState):
    """Counts, the occupancy measure, and the warm start of the next mirror step."""

    theta: FloatArray = measure()
    solver: WarmStart = part(written_as="_projector")


C = TypeVar("C", bound=CountingState)


def stepped(mirror_step: MirrorStep, state: MirrorState, path: NDArray[np.int64], cost: FloatArray) -> MirrorState:
    """Return the state after this path (L,) is counted, and after a mirror step from θ with this cost (n_tuples,)."""
    counts = state.counts.counted(path)
    theta, solver = mirror_step(state.solver, counts, positive(mirror_step.space, state.theta), cost)
    return MirrorState(observed=state.observed + 1, counts=counts, theta=theta, solver=solver)


class Logged(Protocol):
    """Recorded episodes, such as `tightrope.read_log` returns."""

    def paths(self, space: LayeredSpace) -> Sequence[NDArray[np.int64]]:
        """Return the tuples of each episode."""
        ...


class CountingLearner(LearnerBase[C]):
    """A learner whose state has counts of pairs and tuples; tied pairs share their counts.

    No publication has ties; `make_learner(…, ties=True)` makes a learner use them.
    """

    ties_by_default: ClassVar[bool] = False
    learns_from: ClassVar[LearnsFrom] = "any"

    ties: Ties | None = None

    def learn_from(self, log: Logged) -> None:
        """Count the recorded episodes of a log. Any policies may have played them.

        Only the counts of the dynamics change: losses and constraints of the log are not read, the policy stays, and
        no episode counts as observed. Call it before the first episode.

        Raises `InvalidInputError` for a learner that averages costs over its visits or knows the dynamics, after the
        first episode, and for an episode that cannot happen in the space. The learner is then as before.
        """
        if self.feedback != "full" or "model" in self.needs:
            reason = "knows the dynamics" if "model" in self.needs else "averages costs over its own visits"
            raise InvalidInputError(f"{self.name} {reason}, and cannot learn from a log; ucpd-practical can")
        if self.observed:
            raise InvalidInputError(f"{self.name} has observed {self.observed} episodes; a log comes before the first")
        if not hasattr(log, "paths"):
            raise InvalidInputError(f"log is {shown(log)}; expected a Log: tr.read_log(FILE, budgets=[…])")
        counts = self.state.counts
        for path in log.paths(self.space):
            counts = counts.counted(path)
        if counts.n.any():
            counts = counts.next_epoch()  # the confidence set is that of the counts before the epoch
        warm = replace(self.state, counts=counts)
        self.offered(warm)  # before the state is replaced: an error leaves the learner unchanged
        self.state = warm


# --------------------------------------------------------------------------------------------- averages
#
# Averages of stochastic costs and of transitions over visits, with their confidence radii, from bandit feedback.
#
# The publications have costs in [0, 1] that depend on the pair (s,a); here losses and constraints lie in [-1, 1] and
# may depend on the successor. So f and g enter as (f + 1)/2 and (g + 1)/2, budgets as (c + L)/2, and the average over
# the visits of a pair estimates its mean Σ_s' P(s'|s,a) (f(s,a,s') + 1)/2. Multipliers are the same in both units; the
# slack of a policy is halved. A pair belongs to one step of an episode, so the published SAH is
# n_pairs and S²AH is n_tuples.
#
# Radii take a third of δ each for losses, constraints and transitions: 6/δ = 2 · 3/δ.


class Estimates(NamedTuple):
    """Averages over the visits of each pair, and transition counts summed over tied pairs."""

    visits: NDArray[np.int64]  # (n_pairs,)
    N: NDArray[np.int64]  # (n_pairs,) of all that share its law
    M: NDArray[np.int64]  # (n_tuples,)
    costs: FloatArray  # (1 + I, n_pairs) averages: of the loss, then of each constraint; 0 without visits


@state
class AveragesState(CountingState):
    """Visits, and sums of the costs met at each pair."""

    cost_sum: FloatArray = numbers(least=-1e-3)  #: (1 + I, n_pairs) of the loss, then of each constraint; 0 or more


A = TypeVar("A", bound=AveragesState)


@state
class PricedState(AveragesState):
    """Averages, and the policy and the prices of the next episode."""

    policy: Policy = part()
    multipliers: FloatArray = numbers(least=0)  #: (I,) λ


def estimates(counts: Counts, cost_sum: FloatArray) -> Estimates:
    """Return the averages of these sums (1 + I, n_pairs)."""
    visits, _ = counts.totals()
    return Estimates(visits, *counts.laws_so_far, cost_sum / np.maximum(1, visits))


def no_sums(space: LayeredSpace, n_budgets: int, ties: Ties | None) -> dict[str, Any]:
    """Return the counts and sums before the first episode, by field of `AveragesState`."""
    return {"counts": Counts(space, ties), "cost_sum": np.zeros((1 + n_budgets, space.n_pairs))}


def uniform_start(learner: CountingLearner[Any]) -> dict[str, Any]:
    """Return the fields of a `PricedState` before the first episode: the uniform policy, and no prices."""
    n = len(learner.budgets)
    sums = no_sums(learner.space, n, learner.ties)
    return sums | {"policy": Policy.uniform(learner.space), "multipliers": np.zeros(n)}


def averaged(state: A, seen: Seen, space: LayeredSpace) -> A:
    """Return the state with one more episode in its counts and sums; a new epoch may begin."""
    cost_sum = state.cost_sum.copy()
    cost_sum[:, space.pair_of_tuple[seen.path]] += (np.vstack([seen.loss, seen.constraints]) + 1) / 2
    return replace(state, observed=state.observed + 1, counts=state.counts.counted(seen.path), cost_sum=cost_sum)


class AveragingLearner(CountingLearner[AveragesState]):
    """A learner that plans anew in every episode, from averages over its own visits; `offer` is the plan."""

    feedback = "bandit"

    def initial(self) -> AveragesState:
        return AveragesState(**no_sums(self.space, len(self.budgets), self.ties))

    def step(self, state: AveragesState, seen: Seen) -> AveragesState:
        """Return the next state: count the visits, and add up the costs."""
        return averaged(state, seen, self.space)


def budgets_of_shares(budgets: FloatArray, space: LayeredSpace) -> FloatArray:
    """Return (I,) α, the budgets for constraints in [0, 1]."""
    alpha: FloatArray = (budgets + space.n_layers) / 2
    return alpha


@dataclass(frozen=True, slots=True)
class Radii:
    """Confidence radii of averages and frequencies, valid for all of K episodes with probability 1 − δ."""

    space: LayeredSpace
    n_budgets: int
    episodes: int  #: K
    level: float  #: δ
    scale: float  #: multiplies every radius

    def of_costs(self, visits: NDArray[np.int64]) -> FloatArray:
        """Return β^c(s,a) = √(2 log(6 SAH max(1, I) K / δ) / max(1, n)) (Hoeffding), times the scale."""
        log_term = log(6 * self.space.n_pairs * max(1, self.n_budgets) * self.episodes / self.level)
        radius: FloatArray = self.scale * np.sqrt(2 * log_term / np.maximum(1, visits))
        return radius

    def box(self, estimates: Estimates) -> Intervals:
        """Return P̂ ± β^p with log(6 S²AH K / δ) (empirical Bernstein), β^p times the scale."""
        log_term = log(6 * self.space.n_tuples * self.episodes / self.level)
        return Intervals.of_counts(self.space, estimates.N, estimates.M, log_term, self.scale)


def largest_multiplier(space: LayeredSpace, slack: float) -> float:
    """Return ρ = L / γ >= Σ_i λ*_i, γ = slack / 2 for constraints in [0, 1]; 0 without budgets."""
    require(slack > 0, f"slack is {slack:.6g}; a policy strictly within the budgets is needed (Slater's condition)")
    return 2 * space.n_layers / slack


def safe_slack(usage: ArrayLike, budgets: FloatArray) -> tuple[float, FloatArray]:
    """Return γ, the least slack of a policy with this usage for constraints in [0, 1], and the usage (I,)."""
    used = flat(usage, len(budgets), "safe_usage")
    gamma = float(np.min((budgets - used) / 2, initial=np.inf))
    require(gamma > 0, f"the safe policy uses {used} of the budgets {budgets}; less is needed of each")
    return gamma, used
