"""UCPD with the model known: Algorithm 1 where the confidence set is a point.

In every episode t:
1. θ^t = argmin over the occupancy measures θ of the model of <V f^{t-1} + Σ_i Q_i(t-1) g_i^{t-1}, θ> + α D(θ, θ̃^{t-1}),
   where θ̃^{t-1} = (1-λ) θ^{t-1} + λ uniform; θ^1 is the measure of the uniform policy.
2. Play π_t(a|s) ∝ Σ_s' θ^t(s,a,s').
3. Q_i(t) = max{Q_i(t-1) + <g_i^{t-1}, θ^t> − c_i, 0}.

This is the setting of Wei, Yu & Neely (2018), whose own method (`drift_plus_penalty`) has a Euclidean distance in place
of D. Against `ucpd` it shows what not knowing the dynamics costs.

Feedback: full information. Needs to know: the space, the budgets, the number of episodes T and the model.
"""

from dataclasses import field

from tightrope.confidence import ConfidenceRule
from tightrope.learners.ucpd import UCPD
from tightrope.model import LayeredMDP
from tightrope.ties import Ties


class UCPDKnown(UCPD):
    """UCPD that is told the dynamics: adversarial losses, budgets that hold in the long run.

    Parameters
    ----------
    space, budgets, episodes, alpha, V, mixing, charge, proportional, draws : as in `UCPD`.
    model : the true one.
    """

    name = "ucpd-known"
    needs = ("model",)

    model: LayeredMDP = field()  # known: none of what is said about confidence sets applies
    ties: Ties | None = field(init=False, default=None)
    confidence: str | ConfidenceRule = field(init=False, default="")
    level: float = field(init=False, default=0.0)
    radius_scale: float = field(init=False, default=0.0)
    renewal: float = field(init=False, default=1.0)
