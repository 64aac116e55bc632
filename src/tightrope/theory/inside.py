"""Bounds on what `ucpd-inside` does in T episodes; docs/explanation/theory.md, section 7, has the proofs.

All hold for any losses, those that depend on all that happened included. Nothing but the numbers here depends on T.
"""

import math
from collections.abc import Callable

import numpy as np

from tightrope.arguments import instance, number, whole
from tightrope.errors import InvalidInputError
from tightrope.learners.parameters import NOT_NEGATIVE, PROBABILITY
from tightrope.learners.ucpd_inside import UCPDInside, range_of_D, tightened_by
from tightrope.planning.hindsight import slater_slack, tolerance
from tightrope.problems.base import Problem
from tightrope.problems.constraints import Deterministic
from tightrope.space import FloatArray, LayeredSpace
from tightrope.theory.bounds import Bound
from tightrope.ties import Ties

#: Sums over episodes are bounded by that of the first of each stretch, which is longer than the last by this factor.
STRETCH = 1.01
#: Σ 1/(t + 1)² over all t >= 1.
MIXED = math.pi**2 / 6 - 1


def bounds_inside(
    problem: Problem,
    *,
    episodes: int,
    level: float = UCPDInside.level,
    tightening: float = UCPDInside.tightening,
    variation: float | None = None,
    ties: bool = False,
) -> dict[str, Bound]:
    """Bounds on what `ucpd-inside` does with its default sets.

    By the names that their measured counterparts have in a history of `measure`:

    model_error       Σ ‖θ^t − θ̄^t‖₁
    optimism          Σ Σ_i <g_i − g̲_i^t, θ^t>; a history does not have it
    choice            Σ <f^t, θ^t − θ̄*>; a history does not have it
    regret            Σ <f^t, θ̄^t − θ̄*>
    strong_violation  Σ ‖[g(θ̄^t) − c]_+‖₂
    violation         ‖[Σ (g^t(θ̄^t) − c)]_+‖₂

    Parameters
    ----------
    level, tightening : ζ and κ of the learner.
    variation : Σ W_t of the losses up to episode T − 1, if it is known; else all that losses in [−1, 1] can have.
    ties : whether the learner is told the ties of the problem.

    Raises `InvalidInputError` for constraints that follow no law. Where no policy meets the budgets, the bound on the
    regret is infinite (there is no policy to compare with), and those on violation grow in proportion to T, as every
    policy exceeds some budget. With κ > 0 the bound on the regret is infinite as well where no policy leaves slack in
    every budget.
    """
    if instance(problem, "problem", Problem).changing:
        raise InvalidInputError("the theorem needs constraints that are drawn independently from one law; these change")
    T, zeta = whole(episodes, "episodes", 1), PROBABILITY.checked("level", level)
    kappa = NOT_NEGATIVE.checked("tightening", tightening)
    space, c, L = problem.space, problem.budgets, problem.space.n_layers
    most = L + float(np.abs(c).sum())  # ‖g(θ) − c‖₁ of any measure
    noisy = not isinstance(problem.constraints, Deterministic)
    slack = slater_slack(problem.mdp, problem.constraints.mean, c)
    V = max(0.0, L + 4.0 * L * (T - 2)) if variation is None else number(variation, "variation", 0.0, math.inf)

    error = model_error_inside(space, T, zeta, problem.ties if ties else None)
    optimism = optimism_inside(space, len(c), T, zeta, noisy)
    choice = choice_inside(space, T, V, kappa if len(c) else 0.0, slack) if slack >= -tolerance(space) else math.inf
    short = math.sqrt(len(c)) * max(-slack, 0.0)  # what right-hand sides may be raised by, in the 2-norm
    strong = error + optimism + (most if len(c) else 0.0) + short * T
    luck = 2 * L * math.sqrt(2 * T * math.log(2 / zeta)) if noisy else 0.0
    spare = _total(lambda s: np.minimum(tightened_by(kappa, s), max(slack, 0.0)), 2, T, least=True)
    if len(c) == 0:
        strong = luck = 0.0
    return {
        "model_error": Bound(error, 2 * zeta, 2.0 * L * T),
        "optimism": Bound(optimism, zeta, L * (1.0 + len(c)) * T),
        "choice": Bound(choice, 2 * zeta, 2.0 * L * T),
        "regret": Bound(error + choice, 3 * zeta, 2.0 * L * T),
        "strong_violation": Bound(strong, 3 * zeta, most * T),
        "violation": Bound(max(0.0, strong + luck - spare), 4 * zeta if noisy else 3 * zeta, most * T),
    }


def model_error_inside(space: LayeredSpace, T: int, zeta: float, ties: Ties | None = None) -> float:
    """M: Σ_t ‖θ^t − θ̄^t‖₁. An error at a pair counts in its own layer and in all that follow."""
    L, layer, d = space.n_layers, space.layer_of_pair, space.successors_per_pair
    unsure = d > 1
    law = np.arange(space.n_pairs) if ties is None else ties.law
    laws = max(1, len(np.unique(law[unsure])))
    visited_in = np.array([len(np.unique(layer[law == one])) for one in range(law.max() + 1)])[law]  # layers of its law
    remaining = L - layer
    total, tied = 0.0, unsure & (visited_in > 1)
    for k in range(L):
        here = unsure & ~tied & (layer == k)
        total += (L - k) * (1 + math.sqrt(2)) * math.sqrt(8 * T * float(log_ratio(d[here], T, laws, zeta).sum()))
    if tied.any():
        first = np.array([int(np.flatnonzero(law == one)[0]) for one in np.unique(law[tied])])  # earliest pair
        w, m = remaining[first], visited_in[first]
        squares = float((w**2 * 8 * log_ratio(d[first], T * int(m.max()), laws, zeta)).sum())
        visits = T * len(np.unique(layer[tied]))
        total += 6 * float((w * m).sum()) + 2 * math.sqrt(3 * squares * visits)
    C = float(sum(L - k for k in np.unique(layer[unsure])))
    return total + C * math.sqrt(2 * T * math.log(1 / zeta))


def log_ratio(d: FloatArray, N: int, laws: int, zeta: float) -> FloatArray:
    """Λ (n,): N r is at most this after N draws from one of `laws` laws with d (n,) outcomes each (Stirling)."""
    h = d / 2
    gamma = np.array([math.lgamma(each) for each in h])
    found: FloatArray = (
        math.log(laws / zeta) + (h - 0.5) * np.log(N + h) + math.log(2 * math.pi) / 2 - gamma + 1 / (12 * (N + h))
    )
    return found


def optimism_inside(space: LayeredSpace, n_budgets: int, T: int, zeta: float, noisy: bool) -> float:
    """O: Σ_{t >= 2} Σ_i <g_i − g̲_i^t, θ^t>."""
    if n_budgets == 0:
        return 0.0
    I, log_inverse = n_budgets, math.log(2 * n_budgets * space.n_tuples / zeta)  # noqa: E741

    def a_step(s: FloatArray) -> FloatArray:
        V = s / I if noisy else np.full_like(s, 1 / (4 * I))
        return np.minimum(1.0 + I, 4 * I * deviation(V, log_inverse) / s)

    return space.n_layers * _total(a_step, 1, T - 1)


def deviation(V: FloatArray, log_inverse: float) -> FloatArray:
    """min_k (log((k + 1)(k + 2)/δ) + ψ(λ_k) V)/λ_k for every V (n,), as `core.lower_means` has it."""
    k = np.arange(100)
    lam = 0.8 * 2.0 ** (-k / 2)
    psi = -np.log1p(-lam) - lam
    found: FloatArray = ((log_inverse + np.log((k + 1) * (k + 2)) + np.multiply.outer(V, psi)) / lam).min(axis=-1)
    return found


def choice_inside(space: LayeredSpace, T: int, V: float, kappa: float = 0.0, slack: float = 0.0) -> float:
    """Σ_t <f^t, θ^t − θ̄*>: that of mirror descent, and what aiming below the budgets costs if some policy has slack."""
    L, R = space.n_layers, range_of_D(space)
    root = math.sqrt(4 * L + V)
    if kappa == 0:
        return math.sqrt(R) * (root + math.sqrt(V)) + 4 * L * (1 + MIXED)
    if slack <= 0:
        return math.inf
    last = float(tightened_by(kappa, float(T)))
    if T == 1 or last > slack:  # there is no room before T
        return 2.0 * L * T
    start, E = first_within(kappa, slack), R - L * math.log(2)
    w = float(tightened_by(kappa, start + 1.0)) / slack
    moved = E + L * math.log(2 * (start + 1) ** 2) + w * (E + 2 * L * math.log(T) + L * math.log(slack / last))
    aimed = 2 * L / slack * _total(lambda s: tightened_by(kappa, s), start + 1, T)
    return 2.0 * L * start + aimed + moved / math.sqrt(R) * root + math.sqrt(R * V) + 4 * L * (3 + MIXED)


def first_within(kappa: float, slack: float) -> int:
    """t_0: the least t >= 1 with δ_{t+1} <= ε."""

    def within(t: int) -> bool:
        return float(tightened_by(kappa, t + 1.0)) <= slack

    low, high = 0, 1  # not within, or before the first; and the next to try
    while not within(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if within(middle) else (middle, high)
    return high


def met_from(problem: Problem, *, tightening: float, level: float = UCPDInside.level, ties: bool = False) -> float:
    """Return the least power of two T such that T and all later ones up to 2^50 end within every budget; or infinity.

    With probability at least 1 − 4ζ for each T.
    """

    def met(power: int) -> bool:
        found = bounds_inside(problem, episodes=2**power, level=level, tightening=tightening, ties=ties)
        return found["violation"].value == 0

    power = 50
    if not met(power):
        return math.inf
    while power > 0 and met(power - 1):
        power -= 1
    return 2.0**power


def _total(value: Callable[[FloatArray], FloatArray], first: int, last: int, *, least: bool = False) -> float:
    """The sum of a falling function over first, …, last, or a little more; with `least` a little less."""
    edges = [first]
    while edges[-1] <= last:
        edges.append(min(last + 1, max(edges[-1] + 1, int(edges[-1] * STRETCH))))
    if len(edges) == 1:
        return 0.0
    starts, ends = np.array(edges[:-1], dtype=float), np.array(edges[1:], dtype=float)
    return float((ends - starts) @ value(ends - 1 if least else starts))
