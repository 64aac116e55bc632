"""The preset of 0.2 with the model known; `ucpd-practical-known` replaces it.

Nothing is believed but the model, so what is charged (line 2 of `ucpd_practical_0_2`) is what the policy uses, and
there is no need for prudence.

Feedback: full information. Needs to know: the space, the budgets and the model.
"""

from dataclasses import field

from tightrope.confidence import ConfidenceRule
from tightrope.learners.parameters import NOT_NEGATIVE, parameter
from tightrope.learners.ucpd_practical_0_2 import UCPDPractical02
from tightrope.model import LayeredMDP
from tightrope.ties import Ties


class UCPDPracticalKnown02(UCPDPractical02):
    """The practical preset of 0.2 with known dynamics, kept for one version.

    Parameters
    ----------
    space, budgets, first_rate, change_rate, correction, integral, largest_tilt, block : as in `UCPDPractical02`.
    prudence : the same, 0 unless told otherwise.
    model : the true one.
    """

    name = "ucpd-practical-known-0.2"
    needs = ("model",)
    ties_by_default = False

    model: LayeredMDP = field()  # known: none of what is said about confidence sets applies
    ties: Ties | None = field(init=False, default=None)
    confidence: str | ConfidenceRule = field(init=False, default="")
    level: float = field(init=False, default=0.0)
    radius_scale: float = field(init=False, default=0.0)
    renewal: float = field(init=False, default=1.0)
    prudence: float = parameter(NOT_NEGATIVE, default=0.0)
