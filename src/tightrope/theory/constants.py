"""The constants of the theorem that depend on the problem: Slater's slack ε, B, σ̄ and ϑ̄.

Let q(η) = min_θ <f, θ> + Σ_i η_i (<g_i, θ> − c_i), η >= 0, be the dual function of a loss f, and q* its maximum,
attained on the multipliers V*. The theorem asks for B >= ‖η*‖₂ of all of them, and for σ̄ > 0 and ϑ̄ with

    q* − q(η) >= σ̄ dist(η, V*)   wherever   dist(η, V*) >= ϑ̄.

If some policy θ_s leaves ε > 0 of every budget, and `gap` is what it loses at most to the best policy within the
budgets, <f, θ_s> − q* <= gap (at most 2L, whatever the loss), these hold (docs/theory.md has the proof):

    B = gap / ε,   σ̄ = ε / 2,   ϑ̄ = 2 B + 2 gap / ε.
"""

import math
from dataclasses import dataclass
from typing import Self

from tightrope.arguments import EXTREME, instance, number
from tightrope.errors import InfeasibleError
from tightrope.planning.hindsight import slater_slack, tolerance
from tightrope.problems.base import Problem


@dataclass(frozen=True, kw_only=True)
class Constants:
    """What the theorem's bounds ask of a problem, beside its size."""

    slack: float  # ε: what some policy leaves of every budget
    B: float  # no multiplier has a larger norm
    sigma: float  # σ̄: how steeply the dual function falls,
    vartheta: float  # ϑ̄: from this distance from the multipliers on

    @classmethod
    def from_slack(cls, slack: float, gap: float) -> Self:
        """The constants of losses on which the policy that leaves `slack` > 0 is at most `gap` behind the best."""
        slack, gap = number(slack, "slack", 1 / EXTREME, math.inf), number(gap, "gap", -EXTREME, EXTREME)
        B = gap / slack
        return cls(slack=slack, B=B, sigma=slack / 2, vartheta=2 * B + 2 * gap / slack)

    def largest_level(self, n_layers: int) -> float:
        """1/(4 + 8L/σ̄): the theorem holds for levels ζ up to this."""
        return 1 / (4 + 8 * n_layers / self.sigma)


def constants(problem: Problem) -> Constants:
    """ε, B, σ̄ and ϑ̄ of a problem, whatever its losses; refused where no policy leaves something of every budget."""
    slack = slater_slack(instance(problem, "problem", Problem).mdp, problem.constraints.mean, problem.budgets)
    if slack <= tolerance(problem.space):
        raise InfeasibleError(
            f"no policy leaves something of every budget of {problem.name!r} (slack {slack:.3g}), so its multipliers "
            f"have no bound: 'tightrope check' says which budgets to raise"
        )
    return Constants.from_slack(slack, gap=2.0 * problem.space.n_layers)
