"""ucpd-practical with the model known: its steps where the confidence set is a point.

What a policy uses is known but for the noise of the constraints, so nothing is optimistic, and the step aims at the
budgets themselves. Against `ucpd-practical` it shows what not knowing the dynamics costs.

Feedback: full information. Needs to know: the space, the budgets and the model.
"""

from dataclasses import field

from tightrope.confidence import ConfidenceRule
from tightrope.learners.parameters import NOT_NEGATIVE, parameter
from tightrope.learners.ucpd_practical import UCPDPractical
from tightrope.model import LayeredMDP
from tightrope.ties import Ties


class UCPDPracticalKnown(UCPDPractical):
    """ucpd-practical with known dynamics: budgets held, no horizon, no units.

    Parameters
    ----------
    space, budgets, first_rate, repayment, least_share, block : as in `UCPDPractical`.
    prudence : the same, 0 by default.
    model : the true one.
    """

    name = "ucpd-practical-known"
    needs = ("model",)
    ties_by_default = False

    model: LayeredMDP = field()  # known: none of what is said about confidence sets applies
    ties: Ties | None = field(init=False, default=None)
    confidence: str | ConfidenceRule = field(init=False, default="")
    level: float = field(init=False, default=0.0)
    radius_scale: float = field(init=False, default=0.0)
    renewal: float = field(init=False, default=1.0)
    optimism: float = field(init=False, default=0.0)
    prudence: float = parameter(NOT_NEGATIVE, default=0.0)
