"""Off-policy evaluation: the expected loss and uses of a policy, with intervals, from a log of other policies.

**By the model.** P̂ are the frequencies of the log and ĉ(s,a) its mean costs. The true model lies in the KL balls of
`confidence.rules` with probability 1 − δ/2, and the least and the largest cost of the policy over all models in them
bound the error of the dynamics. The error from noise in the costs is bounded by an empirical Bernstein inequality,

    √(2 V log(6/δ)) + 3 R m log(6/δ) + R Σ_few w_g,    V = Σ_g w_g² s_g² / N_g,    m = max_g w_g / N_g,

over groups g of visits with the same mean: w_g is the largest share of an episode that the policy can spend there under
any model of the set, N_g the number of visits in the log, s_g² the variance there and R the range of costs; a group
with fewer than 5 visits may have any mean. If costs never vary within a group, there is no noise. These intervals are
valid for any number of episodes, and wide.

**By importance.** If the log has the probability b of every action, Σ_k c_k Π_{j<=k} π(a_j|s_j) / b_j of an episode has
the expected cost of the policy as its expectation under any model. The interval is Student's at half the error
probability, to allow for skewed weights. It is asymptotically valid, narrow if the policy is close to the one that was
played, and not given if few episodes have all the weight.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightrope.arguments import instance
from tightrope.arguments import number as checked_number
from tightrope.arguments import unknown as unknown_name
from tightrope.confidence import frequencies
from tightrope.confidence.rules import KLRadius
from tightrope.confidence.sets import Bounds, bounds_of, most_paid
from tightrope.errors import InvalidInputError
from tightrope.model import LayeredMDP, Policy, inner
from tightrope.problems.layout import Indices
from tightrope.problems.logs.log import OVER, Log, read_log
from tightrope.space import FloatArray, LayeredSpace
from tightrope.ties import Ties

#: The largest probability, per episode, of pairs that the log does not have; beyond it, a policy is not evaluated.
MOST_UNKNOWN = 0.05

#: A group with fewer visits may have any mean.
FEW = 5

#: The least effective number of episodes for importance weighting.
LEAST_EPISODES = 20


@dataclass(frozen=True)
class Estimate:
    """The expected loss or use of an episode, with an interval."""

    value: float
    low: float
    high: float

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    def __str__(self) -> str:
        return f"{self.value:.4g} ({self.low:.4g} to {self.high:.4g})"


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Estimates of the loss and the uses of a policy per episode, in the units of the log; it prints as a table."""

    level: float  # probability of each interval
    episodes: int
    unknown: float  # probability that an episode of the policy reaches a pair that the log does not have
    model: dict[str, Estimate]  # of "loss" and the budgets
    importance: dict[str, Estimate] | None  # None without probabilities, or if `effective` is too small
    effective: float | None  # effective number of episodes of the importance weights
    why: str  # why `importance` is None

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self, units: Mapping[str, str] | None = None) -> list[str]:
        """Return the lines of the table; `units` are those of "loss" and the budgets."""
        lines = [f"{self.episodes} episodes; values per episode; intervals have probability {self.level:g}", ""]
        rows = [
            (f"{name}, {units[name]}" if units and units.get(name) else name, by, str(found[name]))
            for name in self.model
            for by, found in (("by the model", self.model), ("by importance", self.importance or {}))
            if name in found
        ]
        width = max(len(row[0]) for row in rows)
        lines += [f"{name:<{width}}  {by:<13}  {estimate}" for name, by, estimate in rows]
        if self.why:
            lines.append(self.why)
        if self.unknown > 0:
            lines.append(f"The policy takes actions that the log does not have in {self.unknown:.1%} of episodes.")
        return lines


def evaluate(
    policy: Policy | Any,
    log: Any,
    *,
    by_step: bool = False,
    level: float = 0.95,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    budgets: tuple[str, ...] = (),
) -> Evaluation:
    """Estimate the loss and the uses of a policy from a log of other policies.

    Parameters
    ----------
    policy : a policy on the space of a problem with named states; or a learner, whose policy is taken.
    log : a `Log`, or anything that `read_log` accepts, with `budgets`.
    by_step : estimate every step separately; otherwise a state and an action are pooled over steps.
    level : the probability of each interval.
    bounds : the least and the largest possible value of a step, for "loss" and the budgets; by default the recorded
        ones.
    budgets : the names of the budgets, if `log` is not a `Log`.

    Returns
    -------
    Evaluation : an estimate and an interval of the loss and of each use, per episode.

    Raises
    ------
    InvalidInputError : if the policy takes actions that the log does not have in more than 5 % of its episodes.

    Examples
    --------
    >>> import tightrope as tr
    >>> log = {"episode": [1, 2, 3, 4], "state": ["a"] * 4, "action": ["go", "stay", "go", "stay"],
    ...        "next_state": ["b", "a", "b", "a"], "loss": [1, 3, 1, 3], "hours": [1, 0, 1, 0]}
    >>> problem = tr.Problem.from_log(log, budgets={"hours": 1})
    >>> uniform = tr.Policy.uniform(problem.space)
    >>> evaluate(uniform, log, budgets=("hours",)).model["loss"].value
    2.0
    """
    played = instance(getattr(policy, "policy", policy), "policy", Policy)
    level = checked_number(level, "level", 0.5, 1 - 1e-9)
    recorded = read_log(log, budgets=budgets)
    for name in bounds or ():
        if name not in ("loss", *recorded.budgets):
            raise unknown_name("bounds are for", name, ("loss", *recorded.budgets))
    data = _Data(played, recorded, by_step, dict(bounds or {}))
    unknown = data.unknown()
    if unknown > MOST_UNKNOWN:
        raise InvalidInputError(
            f"the policy takes actions that the log does not have in {unknown:.0%} of its episodes, such as "
            f"{data.untried()}; at most {MOST_UNKNOWN:.0%} are allowed. Record episodes with these actions, or "
            "evaluate a policy without them"
        )
    weighted, effective, why = _by_importance(data, 1 - level)
    return Evaluation(
        level=level,
        episodes=recorded.n_episodes,
        unknown=unknown,
        model=_by_model(data, 1 - level),
        importance=weighted,
        effective=effective,
        why=why,
    )


class _Data:
    """The log in the space of a policy: paths, costs, counts."""

    def __init__(self, policy: Policy, log: Log, by_step: bool, bounds: dict[str, tuple[float, float]]) -> None:
        self.policy, self.log, self.space = policy, log, policy.space
        space = self.space
        self.paths = np.array(log.paths(space))  # (n_episodes, n_layers)
        begins = int(space.n_layers > log.n_steps)
        self.names = ("loss", *log.budgets)
        rows = np.array([log.loss, *log.uses])
        self.costs = np.zeros((len(self.names), *self.paths.shape))  # waiting costs nothing
        self.costs[:, log.episode, log.step + begins] = rows
        self.behaviour = np.ones(self.paths.shape)
        if log.probability is not None:
            self.behaviour[log.episode, log.step + begins] = log.probability
        self.ranges = [self._range(name, row, bounds.get(name)) for name, row in zip(self.names, rows, strict=True)]
        self.ties, self.group = (None, np.arange(space.n_pairs)) if by_step else _pooled(space)
        M = np.bincount(self.paths.ravel(), minlength=space.n_tuples).astype(np.int64)
        N = space.sum_over_successors(M.astype(np.float64)).astype(np.int64)
        self.visits = np.bincount(self.group, N)[self.group].astype(np.int64)  # the visits of each group
        self.N, self.M = (N, M) if self.ties is None else self.ties.pooled(N, M)
        P = frequencies(space, self.N, self.M)
        unseen = space.expand_to_tuples(self.N == 0)
        self.model = LayeredMDP(space, np.where(unseen, LayeredMDP.even(space).transitions, P))
        self.mean, self.variance = self._moments()

    def _idle(self) -> NDArray[np.bool_]:
        """Return (n_pairs,) whether a pair has no choice: before a random start, and while waiting."""
        space, log = self.space, self.log
        # a state of the log may have the name of the waiting state
        waits = [_base(space.state_name(s)) == OVER and OVER not in log.state for s in range(space.n_states)]
        waits[0] |= space.n_layers > log.n_steps  # a random start
        idle: NDArray[np.bool_] = np.array(waits)[space.pairs[:, 0]]
        return idle

    def _range(self, name: str, values: FloatArray, given: tuple[float, float] | None) -> tuple[float, float]:
        if given is None:
            return float(values.min()), float(values.max())
        low, high = given
        for row in np.flatnonzero(~((low <= values) & (values <= high)))[:1].tolist():
            raise InvalidInputError(
                f"{self.log.place[row]}: {name} is {values[row]:g}, outside the bounds {low:g} to {high:g}"
            )
        return low, high

    def _moments(self) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance of the costs at each pair, (n_costs, n_pairs), pooled over its group."""
        group = self.group[self.space.pair_of_tuple[self.paths]].ravel()
        n = np.maximum(np.bincount(group, minlength=self.space.n_pairs), 1)
        means, variances = [], []
        for cost in self.costs.reshape(len(self.names), -1):
            mean = np.bincount(group, cost, minlength=self.space.n_pairs) / n
            square = np.bincount(group, (cost - mean[group]) ** 2, minlength=self.space.n_pairs)
            means.append(mean[self.group])
            variances.append((square / np.maximum(n - 1, 1))[self.group])
        return np.array(means), np.array(variances)

    @property
    def lacking(self) -> NDArray[np.bool_]:
        """(n_pairs,) whether the log has no visit to the group of a pair."""
        lacking: NDArray[np.bool_] = (self.visits == 0) & ~self._idle()
        return lacking

    def unknown(self) -> float:
        """Return the probability that an episode of the policy reaches a pair without visits in the log."""
        space, lacking = self.space, self.lacking
        V = np.zeros(space.n_states)  # the probability from each state
        P = self.model.transitions
        for layer in range(space.n_layers - 1, -1, -1):
            for state in space.states_of(layer):
                first, end = space.csr.state_ptr[state : state + 2].tolist()
                for i in range(first, end):
                    pi = self.policy.probabilities[i]
                    if pi > 0:
                        a, b = space.csr.pair_ptr[i : i + 2].tolist()
                        value = 1.0 if lacking[i] else float(P[a:b] @ V[space.csr.successor[a:b]])
                        V[state] += pi * value
        return float(V[0])

    def untried(self) -> str:
        """Return the names of the most frequent action of the policy without visits in the log."""
        met = self.space.sum_over_successors(self.model.occupancy(self.policy)) * self.lacking
        s, a = self.space.pairs[int(np.argmax(met))].tolist()
        return f"{self.space.action_name(a)!r} in {self.space.state_name(s)!r}"

    def shares(self, bounds: Bounds) -> FloatArray:
        """Return the largest expected time in each group per episode, (n_groups,), over all models of the set."""
        theta = self.space.sum_over_successors(self.model.occupancy(self.policy))
        shares = np.zeros(self.space.n_pairs)
        possible = np.bincount(self.group, self.policy.probabilities, minlength=self.space.n_pairs) > 0
        idle = np.bincount(self.group, self._idle(), minlength=self.space.n_pairs) > 0
        for g in np.flatnonzero(possible & ~idle).tolist():
            here = (self.group == g).astype(np.float64)
            most, _ = most_paid(self.space, bounds, self.policy, self.space.expand_to_tuples(here))
            shares[g] = max(most, float(theta[self.group == g].sum()))
        return shares


def _base(name: str) -> str:
    """Return the name of a state without its step."""
    head, separator, step = name.rpartition(", step ")
    return head if separator and step.isdigit() else name


def _pooled(space: LayeredSpace) -> tuple[Ties | None, Indices]:
    """Return the ties of pairs with equal names at all steps, and the group of each pair, (n_pairs,)."""
    bases = [_base(space.state_name(s)) for s in range(space.n_states)]
    groups: dict[tuple[str, int], int] = {}
    group = np.array([groups.setdefault((bases[s], a), len(groups)) for s, a in space.pairs.tolist()])
    outcomes: dict[tuple[int, str], int] = {}
    alone = space.successors_per_pair[space.pair_of_tuple] == 1
    outcome = [
        len(space.tuples) + j
        if alone[j]
        else outcomes.setdefault((int(group[space.pair_of_tuple[j]]), bases[s]), len(outcomes))
        for j, s in enumerate(space.tuples[:, 2].tolist())
    ]
    try:
        return Ties(space, outcome), group
    except InvalidInputError as error:
        raise InvalidInputError(f"steps cannot be pooled: {error}; evaluate with by_step=True") from error


def _by_model(data: _Data, delta: float) -> dict[str, Estimate]:
    space, policy = data.space, data.policy
    chosen = (policy.probabilities > 0) & (space.successors_per_pair > 1)
    law = np.arange(space.n_pairs) if data.ties is None else data.ties.law
    laws = max(1, len(np.unique(law[chosen])))
    known = KLRadius(level=delta / 2, laws=laws)(space, data.N, data.M)
    bounds = bounds_of(known, space)
    theta = data.model.occupancy(policy)
    shares = data.shares(bounds)
    counted = np.bincount(data.group, minlength=space.n_pairs) > 0
    visits = np.zeros(space.n_pairs)
    visits[data.group] = data.visits
    seen = counted & (visits > 0)
    often, seldom = seen & (visits >= FEW), seen & (visits < FEW)
    found = {}
    for k, name in enumerate(data.names):
        least, most = data.ranges[k]
        mean, variance = data.mean[k], np.zeros(space.n_pairs)
        variance[data.group] = data.variance[k]
        log_term = float(np.log(6 / delta))
        V = float((shares[often] ** 2 * variance[often] / visits[often]).sum())
        m = float((shares[often] / visits[often]).max(initial=0.0))
        noise = np.sqrt(2 * V * log_term) + (most - least) * (3 * m * log_term + float(shares[seldom].sum()))
        noise = noise if variance[seen].any() else 0.0
        cost_low = space.expand_to_tuples(np.where(data.lacking, min(least, 0.0), mean))
        cost_high = space.expand_to_tuples(np.where(data.lacking, max(most, 0.0), mean))
        high, _ = most_paid(space, bounds, policy, cost_high)
        low, _ = most_paid(space, bounds, policy, -cost_low)
        value = float(inner(space.expand_to_tuples(mean), theta))
        found[name] = Estimate(value, min(-low - noise, value), max(high + noise, value))
    return found


def _by_importance(data: _Data, delta: float) -> tuple[dict[str, Estimate] | None, float | None, str]:
    if data.log.probability is None:
        return None, None, ""
    ratio = data.policy.probabilities[data.space.pair_of_tuple[data.paths]] / data.behaviour
    weights = np.cumprod(ratio, axis=1)
    last = weights[:, -1]
    effective = float(last.sum() ** 2 / (last**2).sum()) if last.any() else 0.0
    if effective < LEAST_EPISODES:
        return (
            None,
            effective,
            (
                f"No estimate by importance: the effective number of episodes is {effective:.1f}, and at least "
                f"{LEAST_EPISODES} are needed."
            ),
        )
    n = len(last)
    found = {}
    for k, name in enumerate(data.names):
        worth = (weights * data.costs[k]).sum(axis=1)
        half = student_quantile(1 - delta / 4, n - 1) * float(worth.std(ddof=1) / np.sqrt(n))
        value = float(worth.mean())
        found[name] = Estimate(value, value - half, value + half)
    return found, effective, ""


def student_quantile(p: float, freedom: int) -> float:
    """Return the p-quantile, 1/2 <= p <= 1, of Student's t with `freedom` >= 1 degrees of freedom.

    References
    ----------
    Abramowitz & Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4.
    """
    if p == 1.0:
        return math.inf
    t = NormalDist().inv_cdf(p)  # start below the solution: the tails of t are heavier
    while True:  # the distribution is concave here, so Newton's steps increase and stay below the solution
        inside, density = _student(t, freedom)
        step = (2 * p - 1 - inside) / (2 * density)
        if step <= 1e-15 * t:
            return t
        t += step


def _student(t: float, freedom: int) -> tuple[float, float]:
    """Return P(|T| <= t) and the density at t."""
    angle = math.atan(t / math.sqrt(freedom))
    sine, cosine = math.sin(angle), math.cos(angle)
    if freedom % 2:
        k = np.arange(1, freedom // 2)
        sums = float(np.append(1.0, np.cumprod(cosine**2 * 2 * k / (2 * k + 1))).sum()) if freedom > 1 else 0.0
        inside = (2 / math.pi) * (angle + sine * cosine * sums)
    else:
        k = np.arange(1, freedom // 2)
        inside = sine * float(np.append(1.0, np.cumprod(cosine**2 * (2 * k - 1) / (2 * k))).sum())
    scale = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - math.log(freedom * math.pi) / 2
    return inside, math.exp(scale - (freedom + 1) / 2 * math.log1p(t * t / freedom))
