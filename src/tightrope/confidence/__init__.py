"""What the learner knows of the dynamics: counts, epochs, and confidence sets around the counted frequencies.

A confidence set contains the plausible transition distributions of every pair (s,a); `OwnSet` describes how to write
one of your own. A confidence rule makes a set from counts, once per epoch.
"""

from tightrope.confidence.counts import Counts, frequencies
from tightrope.confidence.rules import (
    CONFIDENCE_RULES,
    RULE_TYPES,
    BernsteinBox,
    ConfidenceRule,
    KnownModel,
    PaperRadius,
)
from tightrope.confidence.sets import Box, ConfidenceSet, KLBall, L1Ball, OwnSet

__all__ = [
    "CONFIDENCE_RULES",
    "RULE_TYPES",
    "BernsteinBox",
    "Box",
    "ConfidenceRule",
    "ConfidenceSet",
    "Counts",
    "KLBall",
    "KnownModel",
    "L1Ball",
    "OwnSet",
    "PaperRadius",
    "frequencies",
]
