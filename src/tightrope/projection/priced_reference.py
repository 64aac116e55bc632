"""The subproblem with priced rows in plain NumPy: what `core/priced.hpp` computes, one thing after the other.

    min over θ of <cost, θ> + D(θ, reference) + Σ_i most_i [<A_i, θ> − b_i]_+

For prices y let θ(y) be the answer of the plain subproblem with cost + Σ_i y_i A_i, and F(y) its dual value. Then

    φ(y) = F(y) + <b, y>

is convex and smooth, with gradient b − A θ(y): at its minimum over 0 <= y <= most, θ(y) is the answer. Newton's method
finds it. Second derivatives are −A ∂θ/∂y, one solve for each row with the Hessian of the plain dual. The potentials go
along to first order with every step in y; then the plain solver (`reference.py`) puts β right.

The core is tested against this module. It also solves for confidence sets that the core does not know.
"""

from typing import NamedTuple

import numpy as np

from tightrope import core
from tightrope.arithmetic import combine, products
from tightrope.confidence import ConfidenceSet
from tightrope.errors import ConvergenceError
from tightrope.projection import reference as plain
from tightrope.space import FloatArray, LayeredSpace

MAX_STEPS = 120
#: How far a price may move in a step, in units of cost; where φ does not fall, less.
REACH, SMALLEST_REACH = 20.0, 1e-9
#: Share of the promised decrease of φ that a step has to bring; and what of φ is rounding.
ARMIJO, ROUNDING = 1e-4, 1e-12
#: Added to second derivatives: rows may be equal, or the same for all θ.
SINGULAR = 1e-10


class Solution(NamedTuple):
    """The answer of the subproblem with priced rows."""

    theta: FloatArray  #: (n_tuples,)
    potentials: FloatArray  #: (n_states,) β
    prices: FloatArray  #: (m,) y
    dual_value: float  #: φ
    flow_residual: float
    missed: float  #: the most by which a row's optimality condition is missed, in units of its largest coefficient
    iterations: int  #: Newton steps, those for prices and all in β that these took


class Answer(NamedTuple):
    """The plain answer at prices y; all in units of the rows' largest coefficients."""

    y: FloatArray
    phi: float
    slack: FloatArray  #: b − A θ(y), the gradient of φ
    missed: float  #: max_i |y_i − the y_i − slack_i that is cut to 0 .. most_i|
    plain: plain.Solution


def solve(
    space: LayeredSpace,
    reference: FloatArray,
    cost: FloatArray,
    confidence: ConfidenceSet,
    A: FloatArray,
    b: FloatArray,
    most: FloatArray,
    tolerance: float = 1e-9,
    start: tuple[FloatArray, FloatArray] | None = None,
) -> Solution:
    """Minimise φ over the prices, from the potentials and prices `start` or from 0; `missed` says how far it came.

    Raises `ConvergenceError` if the plain solver does.
    """
    size = np.abs(A).max(axis=1, initial=0.0)
    empty = size == 0
    size[empty] = 1.0
    rows, limits = A / size[:, None], b / size
    highest = np.where(empty & np.isfinite(most), 0.0, most * size)  # a row of zeros has no price
    steps = 0

    def at(y: FloatArray, beta: FloatArray) -> Answer:
        nonlocal steps
        found = plain.solve(space, reference, cost + combine(y, rows), confidence, tolerance / 10, beta)
        steps += found.iterations
        slack = limits - products(rows, found.theta[None])[:, 0]
        missed = float(np.max(np.abs(y - np.clip(y - slack, 0.0, highest)), initial=0.0))
        return Answer(y, found.dual_value + core.dot(limits, y), slack, missed, found)

    def search(y: FloatArray, beta: FloatArray) -> Answer:
        nonlocal steps
        here, reach, tried = at(y, beta), REACH, 0
        while here.missed > tolerance and tried < MAX_STEPS and reach > SMALLEST_REACH:
            tried, steps = tried + 1, steps + 1
            prices, dbeta = _step(space, reference, cost, confidence, rows, highest, here, reach)
            try:
                there = at(prices, here.plain.potentials + combine(prices - here.y, dbeta))
            except ConvergenceError:  # weights out of the range of numbers
                there = None
            accepted = there is not None and _low_enough(there, here)
            reach = min(4 * reach, REACH) if accepted else reach / 4
            here = there if there is not None and accepted else here
        return here

    beta, y = (np.zeros(space.n_states), np.zeros(len(b))) if start is None else start
    try:
        here = search(np.clip(y * size, 0.0, np.where(empty, 0.0, highest)), beta)
    except ConvergenceError:
        here = None
    if here is None or here.missed > tolerance:
        here = search(np.zeros(len(b)), np.zeros(space.n_states))
    found = here.plain
    return Solution(found.theta, found.potentials, here.y / size, here.phi, found.flow_residual, here.missed, steps)


def _step(
    space: LayeredSpace,
    reference: FloatArray,
    cost: FloatArray,
    confidence: ConfidenceSet,
    rows: FloatArray,
    highest: FloatArray,
    here: Answer,
    reach: float,
) -> tuple[FloatArray, FloatArray]:
    """The minimum of the model of φ over the prices within reach, and how β moves with each price."""
    at = plain.dual(space, reference, cost + combine(here.y, rows), confidence, here.plain.potentials)
    dbeta, dtheta = plain.sensitivities(space, at, rows)
    S = -products(rows, dtheta)
    model = (S + S.T) / 2 + np.diag(SINGULAR * (np.maximum(np.diag(S), 0.0) + SINGULAR))
    low = np.maximum(here.y - reach, 0.0)
    width = np.minimum(here.y + reach, highest) - low
    away = core.least_prices(model, products(model, (here.y - low)[None])[:, 0] - here.slack, width)
    return low + away, dbeta


def _low_enough(there: Answer, here: Answer) -> bool:
    promised = core.dot(here.slack, there.y - here.y)
    level = there.phi <= here.phi + ROUNDING * (1 + abs(here.phi)) and there.missed <= 0.5 * here.missed
    return level or there.phi <= here.phi + ARMIJO * promised
