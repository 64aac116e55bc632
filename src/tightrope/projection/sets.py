"""Confidence sets, handed over to the solver of the core: `hand_over` knows the sets that are written in C++.

A set that is not answers the pair's question in Python (`confidence.OwnSet`), and `reference.py` solves for it.
"""

from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from tightrope import core
from tightrope.confidence import Box, ConfidenceSet, KLBall, L1Ball
from tightrope.errors import InvalidInputError


@singledispatch
def hand_over(confidence: ConfidenceSet, solver: core.Solver, free: NDArray[np.bool_]) -> None:
    """Make the solver project on this set from now on; `free` are the pairs that may have any conditional."""
    raise InvalidInputError(
        f"{type(confidence).__name__} does not answer the pair's question; give it a method pair_question(i, log_w) "
        "as tightrope.confidence.OwnSet describes"
    )


@hand_over.register
def _(confidence: L1Ball, solver: core.Solver, free: NDArray[np.bool_]) -> None:
    solver.set_l1(confidence.center, confidence.radius, free)


@hand_over.register
def _(confidence: Box, solver: core.Solver, free: NDArray[np.bool_]) -> None:
    bounds, ball = (confidence.lower, confidence.upper), confidence.ball
    if ball is None:
        solver.set_box(*bounds, free)
    else:
        solver.set_cut_box(*bounds, ball.center, ball.radius, free)


@hand_over.register
def _(confidence: KLBall, solver: core.Solver, free: NDArray[np.bool_]) -> None:
    solver.set_kl(confidence.center, confidence.radius, free)
