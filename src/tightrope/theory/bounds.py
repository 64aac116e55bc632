"""The theorem in numbers: constants of a problem, and bounds on what `ucpd` as published does in T episodes.

Constants. Let q(η) = min_θ <f, θ> + Σ_i η_i (<g_i, θ> − c_i), η >= 0, be the dual function of a loss f, and q* its
maximum, attained on the multipliers V*. The theorem asks for B >= ‖η*‖₂ of all of them, and for σ̄ > 0 and ϑ̄ with

    q* − q(η) >= σ̄ dist(η, V*)   wherever   dist(η, V*) >= ϑ̄.

If some policy θ_s leaves slack ε > 0 in every budget, and its loss exceeds that of the best policy within the budgets
by at most `gap`, <f, θ_s> − q* <= gap (which is at most 2L for any loss), these hold (docs/explanation/theory.md has
the proof):

    B = gap / ε,   σ̄ = ε / 2,   ϑ̄ = 2 B + 2 gap / ε.

Bounds. The letters are the paper's, the constants those of docs/explanation/errata.md, the derivation is in
docs/explanation/theory.md. The losses may be any that do not depend on the learner; for those that do, no
bound on the regret is known where constraints are noisy. All bounds except that of the epochs are of the order √T (and
logarithms). Most are vacuous unless T is large; `trivial` is the bound that always holds.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from tightrope.arguments import EXTREME, instance, number
from tightrope.errors import InfeasibleError, InvalidInputError
from tightrope.learners.parameters import PUBLISHED
from tightrope.learners.ucpd import UCPD
from tightrope.planning.hindsight import slater_slack, tolerance
from tightrope.problems.base import Problem
from tightrope.problems.constraints import Deterministic
from tightrope.problems.losses.adaptive import Adaptive
from tightrope.space import LayeredSpace


@dataclass(frozen=True, kw_only=True)
class Constants:
    """The constants of a problem that the bounds depend on, besides its size."""

    slack: float  # ε: the slack of some policy in every budget
    B: float  # no multiplier has a larger norm
    sigma: float  # σ̄: slope of the dual function,
    vartheta: float  # ϑ̄: at this distance from the multipliers and beyond

    @classmethod
    def from_slack(cls, slack: float, gap: float) -> Self:
        """Return the constants, if the loss of the policy with `slack` > 0 exceeds the best by at most `gap`."""
        slack, gap = number(slack, "slack", 1 / EXTREME, math.inf), number(gap, "gap", -EXTREME, EXTREME)
        B = gap / slack
        return cls(slack=slack, B=B, sigma=slack / 2, vartheta=2 * B + 2 * gap / slack)

    def largest_level(self, n_layers: int) -> float:
        """1/(4 + 8L/σ̄), the largest level ζ of the theorem."""
        return 1 / (4 + 8 * n_layers / self.sigma)


def constants(problem: Problem) -> Constants:
    """ε, B, σ̄ and ϑ̄ of a problem for any losses; raises InfeasibleError if no policy leaves slack in every budget."""
    slack = slater_slack(instance(problem, "problem", Problem).mdp, problem.constraints.mean, problem.budgets)
    if slack <= tolerance(problem.space):
        raise InfeasibleError(
            f"no policy leaves slack in every budget of {problem.name!r} (slack {slack:.3g}), so its multipliers "
            f"have no bound: 'tightrope check' says which budgets to raise"
        )
    return Constants.from_slack(slack, gap=2.0 * problem.space.n_layers)


class Bound(NamedTuple):
    """A bound, exceeded with probability `failure` at most."""

    value: float
    failure: float
    trivial: float  #: holds always


def bounds(
    problem: Problem,
    *,
    episodes: int,
    level: float = UCPD.level,
    alpha: float = PUBLISHED,
    V: float = PUBLISHED,
    mixing: float = PUBLISHED,
    known: Constants | None = None,
) -> dict[str, Bound]:
    """Return bounds, by the names of the measured quantities in the last record of a history of `measure`.

    epoch            ℓ(T)
    model_error      Σ ‖θ^t − θ̄^t‖₁
    multiplier_peak  max ‖Q(t)‖₂, t <= T + 1
    movement         Σ ‖θ^{t+1} − θ^t‖₁
    regret           Σ <f^t, θ̄^t − θ̄*>
    violation        ‖[Σ (g^t(θ̄^t) − c)]_+‖₂

    Parameters
    ----------
    level, alpha, V, mixing : ζ, α, V and λ of the learner; the theorem's unless given.
    known : constants of the problem, if better ones are known than those derived from its slack.
    """
    if instance(problem, "problem", Problem).changing:
        raise InvalidInputError("the theorem needs constraints that are drawn independently from one law; these change")
    space, budgets = problem.space, problem.budgets
    learner = UCPD(space, budgets, episodes=episodes, level=level, alpha=alpha, V=V, mixing=mixing)
    alpha, V, lam, zeta = learner.alpha, learner.V, learner.mixing, learner.level
    T, L = learner.episodes, space.n_layers
    R = L + float(np.abs(budgets).sum())  # |<g, θ> − c| is nowhere more
    E = float(np.log(np.diff(space.tuples_before)).sum())  # D(θ, θ̃) <= E + L log(1/λ)
    far = E + L * math.log(1 / lam)
    noisy = not isinstance(problem.constraints, Deterministic)

    epochs = 1 + space.n_pairs * math.log2(1 + 2 * T / space.n_pairs)
    error = model_error(space, T, zeta)
    C = 2 * V * L + V**2 * L / alpha + 4 * L * lam * V + 2 * alpha * lam * E + R**2
    peak = 0.0
    if len(budgets):
        known = constants(problem) if known is None else instance(known, "known", Constants)
        falls = [(known.slack, L), (known.sigma, L + known.vartheta * R + known.sigma * (known.B + known.vartheta))]
        peak = min(multiplier_peak(T, R, sigma, C + 2 * V * a, 2 * alpha * far, zeta, noisy) for sigma, a in falls)
    movement = math.inf
    if lam < 1:
        steps = 2 * L * (V + peak) / ((1 - lam) ** 2 * alpha) + (4 * lam * L + math.sqrt(8 * lam * L * E)) / (1 - lam)
        movement = 2 * L * (epochs - 1) + T * steps
    primal = (R**2 * T / 2 + alpha * (far + (T - 1) * lam * E)) / V + 2 * lam * L * T + L * T * V / (2 * alpha)
    luck = 0.0  # Σ <Q(t), g^t(θ̄*) − c> / V
    if noisy and isinstance(problem.losses, Adaptive):
        luck = math.inf
    elif noisy:
        luck = R * peak / V * math.sqrt(2 * T * math.log(1 / zeta))
    drift = 2 * zeta if noisy else zeta  # the sets, and the lemma on drifts
    most = 2.0 * L * T
    return {
        "epoch": Bound(epochs, 0.0, T),
        "model_error": Bound(error, 2 * zeta, most),
        "multiplier_peak": Bound(peak, drift, R * T),
        "movement": Bound(movement, drift, most),
        "regret": Bound(error + primal + luck, 4 * zeta if noisy else 2 * zeta, most),
        "violation": Bound(error + peak + movement, zeta + drift, R * T),
    }


def model_error(space: LayeredSpace, T: int, zeta: float) -> float:
    """Return the bound on Σ ‖θ^t − θ̄^t‖₁: 2ε(s,a) for each visit, in its layer and all later ones, plus a martingale.

    A pair with one successor contributes nothing.
    """
    L = space.n_layers
    pairs = np.bincount(space.layer_of_pair, space.successors_per_pair > 1, minlength=L)
    counts = np.where(pairs > 0, L - np.arange(L), 0)
    log = math.log((T + 1) * space.n_states * space.n_actions / zeta)
    radii = 2 * (math.sqrt(2) + 1) * np.sqrt(2 * T * pairs * np.array(space.layer_sizes[1:]) * log)
    return float(counts @ radii + counts.sum() * math.sqrt(2 * T * math.log(1 / zeta)))


def multiplier_peak(T: int, R: float, sigma: float, C: float, start: float, zeta: float, noisy: bool) -> float:
    """Return ω, the bound on ‖Q‖₂.

    In a window of √T episodes that starts with ‖Q‖₂ >= ψ, the expectation of ‖Q‖₂ falls by σ/2 per episode, because
    there the dual function is at most a − σ‖η‖₂. C bounds the increase of ‖Q‖₂² per episode, 2Va included, and `start`
    the increase once per window.
    """
    tau = math.ceil(math.sqrt(T))
    psi = (tau * R**2 + C) / sigma + start / (sigma * tau) + tau * sigma / 2
    if not noisy:
        return psi + tau * R
    rho, kappa = R, sigma / 2
    likely = math.log(1 + 8 * rho**2 / kappa**2 * math.exp(kappa / (4 * rho))) + math.log(T / zeta)
    return psi + tau * 4 * rho**2 / kappa * likely + tau * R
