"""Confidence sets, laid out in lanes for the kernels: `lay_out` makes of each the NamedTuple that is its kind there.

A set of one's own is a class as `confidence.ConfidenceSet` asks for, a NamedTuple of arrays by slot and by pair, and

    @lay_out.register
    def _(confidence: MySet, space: LayeredSpace, lanes: Lanes) -> MyData: ...

    @implement(pair_question, MyData)
    def answer_for_my_sets(data, lanes, work): ...

with `implement` and `pair_question` of `kernels/kinds.py`.
"""

from functools import singledispatch
from typing import Any

import numpy as np

from tightrope.confidence import Box, ConfidenceSet, KLBall, L1Ball
from tightrope.errors import InvalidInputError
from tightrope.model import ROUNDING
from tightrope.projection.kernels.box import BoxData
from tightrope.projection.kernels.kl import KLData
from tightrope.projection.kernels.l1 import L1Data
from tightrope.projection.kernels.placement import LANES
from tightrope.projection.lanes import Lanes
from tightrope.space import LayeredSpace

#: A ball smaller than this is a point: the thresholds that clip to it would be lost in rounding.
SMALLEST_RADIUS = 1e-14

#: The same for KL balls, whose radius is about the square of a distance; and the smallest probability with a logarithm.
SMALLEST_KL, SMALLEST_CENTER = 1e-18, 1e-290


@singledispatch
def lay_out(confidence: ConfidenceSet, space: LayeredSpace, lanes: Lanes) -> Any:
    """The set as a NamedTuple of arrays by slot and by pair, whose type has a kernel for the pair's question."""
    kind = type(confidence).__name__
    raise InvalidInputError(f"{kind} is not laid out for the projection; register how with tightrope.projection.sets")


@lay_out.register
def _(confidence: L1Ball, space: LayeredSpace, lanes: Lanes) -> L1Data:
    totals = space.sum_over_successors(confidence.center)
    unnormalised = (np.abs(totals - 1) > ROUNDING) & (confidence.radius < 2)
    center = confidence.center
    if unnormalised.any():
        center = center / space.expand_to_tuples(np.where(unnormalised, totals, 1.0))
    radius = confidence.radius[lanes.pair]
    radius = np.where(radius < 2, np.where(radius < SMALLEST_RADIUS, 0.0, radius), np.inf)
    return L1Data(lanes.to_slots(center), radius)


@lay_out.register
def _(confidence: Box, space: LayeredSpace, lanes: Lanes) -> BoxData:
    lower, upper = lanes.to_slots(confidence.lower), lanes.to_slots(confidence.upper)
    if confidence.ball is None:
        return BoxData(lower, upper, center=lower, radius=np.full(len(lanes.origin), np.inf))
    return BoxData(lower, upper, *lay_out(confidence.ball, space, lanes))


@lay_out.register
def _(confidence: KLBall, space: LayeredSpace, lanes: Lanes) -> KLData:
    free = confidence.free(space)
    center = np.where(confidence.center < SMALLEST_CENTER, 0.0, confidence.center)
    center = center / space.expand_to_tuples(np.where(free, 1.0, space.sum_over_successors(center)))
    center = lanes.to_slots(center)
    radius = np.where(free, np.inf, np.where(confidence.radius < SMALLEST_KL, 0.0, confidence.radius))[lanes.pair]
    rows = int(np.max(np.diff(lanes.chunk_slot) // np.diff(lanes.chunk_pair)))
    return KLData(
        center,
        inverse=np.divide(1.0, center, where=center > 0, out=np.zeros_like(center)),
        radius=radius,
        kappa=np.ones_like(center),
        mean=np.zeros_like(radius),
        sigma=np.zeros_like(radius),
        table=np.zeros(5 * LANES * rows),
        scratch=np.zeros(16 * LANES),
    )
