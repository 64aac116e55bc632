"""The subproblem with linear inequalities: its answer is that of the plain one for a cost with prices in it.

    argmin over θ of <cost, θ> + D(θ, reference)   subject to   <A_i, θ> <= b_i,   i = 1..m

For prices y >= 0 let θ(y) be the answer of the plain subproblem with cost + Σ_i y_i A_i, and F(y) its dual value. Then

    φ(y) = F(y) + <b, y>

is convex and smooth, with gradient b − A θ(y): at its minimum over y >= 0, θ(y) is the answer and y its multipliers.
Newton's method finds it. Second derivatives are −A ∂θ/∂y, one solve for each inequality with the factor of the plain
dual's own Hessian (`core/sensitivity.hpp`). The potentials go along to first order with every step in y, which makes
it a step of Newton's method in β and y together; then the plain solver puts β right.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tightrope import core
from tightrope.arithmetic import combine, products
from tightrope.confidence import ConfidenceSet
from tightrope.errors import ConvergenceError, InvalidInputError
from tightrope.projection.infeasibility import explain, impossible
from tightrope.projection.projector import Projector, primal_value
from tightrope.space import FloatArray, LayeredSpace

#: Steps tried before giving up; ordinary instances take two to six.
MAX_STEPS = 120
#: After so many steps, and again as many, it is asked whether the inequalities can be met at all.
DOUBTFUL = 8
#: How far a price may move in a step, in units of cost: as potentials may (MAX_MOVE of `core/newton.hpp`), lest weights
#: leave the range of numbers. Where φ does not fall, less.
REACH, SMALLEST_REACH = 20.0, 1e-9
#: Share of the promised decrease of φ that a step has to bring; and what of φ is rounding.
ARMIJO, ROUNDING = 1e-4, 1e-12
#: Added to second derivatives: rows may be equal, or the same for all θ.
SINGULAR = 1e-10


class Answer(NamedTuple):
    """The plain answer at prices y."""

    y: FloatArray
    phi: float
    slack: FloatArray  #: b − A θ(y), the gradient of φ
    theta: FloatArray
    beta: FloatArray
    flow_residual: float

    @property
    def residual(self) -> float:
        """max_i |min(y_i, slack_i)|: 0 where every inequality is met, and those with a price are with equality."""
        return float(np.abs(np.minimum(self.y, self.slack)).max())


class InequalityProjector:
    """Solves the subproblem with m inequalities again and again, each time from where the last answer was."""

    def __init__(self, space: LayeredSpace, m: int, tolerance: float = 1e-9) -> None:
        self.space = space
        self.tolerance = tolerance  #: on the flow residual, and on inequalities whose largest coefficient is 1
        self.plain = Projector(space, max(tolerance / 10, 1e-15))  # its errors are seen in the slack
        self.prices = np.zeros(
            m
        )  #: y of the last answer, in units of the rows' largest coefficients; the next starts here
        self.multipliers = np.zeros(m)  #: y of the last answer, for the rows as they were given
        self.iterations = 0  #: Newton steps of the last solve, those for prices and all in β that these took
        self.dual_value = np.nan  #: φ at the last answer
        self.flow_residual = np.nan
        self.excess = np.nan  #: the most by which an inequality is exceeded, in units of its largest coefficient

    def state(self) -> dict[str, FloatArray]:
        """Return copies of all that the next solve starts from.

        With them restored, the next answer is the same to the last bit.
        """
        return self.plain.state() | {"prices": self.prices.copy()}

    def restore(self, state: dict[str, FloatArray]) -> None:
        """Go on from what `state` gave."""
        if not (np.isfinite(state["prices"]).all() and (state["prices"] >= 0).all()):
            raise InvalidInputError("the projector's prices are not finite, or below 0")
        self.plain.restore({name: values for name, values in state.items() if name != "prices"})
        self.prices = np.array(state["prices"])

    def solve(
        self,
        reference: FloatArray,
        cost: FloatArray,
        confidence: ConfidenceSet,
        A: FloatArray,
        b: FloatArray,
        theta: FloatArray,
    ) -> None:
        """Write the answer into `theta`, or raise. Takes checked arrays, A (m, n_tuples) and b (m,).

        `InfeasibleError` if no measure meets the inequalities. After an error the next solve starts cold.
        """
        size = np.abs(A).max(axis=1)
        size[size == 0] = 1.0
        rows, limits, self.iterations = np.ascontiguousarray(A / size[:, None]), b / size, 0

        def at(y: FloatArray) -> Answer:
            answer = np.empty(self.space.n_tuples)
            self.plain.solve(reference, cost + combine(y, rows), confidence, answer)
            self.iterations += self.plain.iterations
            phi = self.plain.dual_value + core.dot(limits, y)
            beta, residual = self.plain.potentials.copy(), self.plain.flow_residual
            return Answer(y, phi, limits - products(rows, answer[None])[:, 0], answer, beta, residual)

        def sensitivities(here: Answer) -> tuple[FloatArray, FloatArray]:
            self.plain.potentials[:] = here.beta
            dbeta, dtheta = self.plain.sensitivities(reference, cost + combine(here.y, rows), rows, here.theta)
            return -products(rows, dtheta), dbeta

        def doomed(y: FloatArray) -> bool:
            return impossible(self.space, confidence, A, b, y / size)

        warm, self.prices = self.prices, np.zeros(len(b))
        try:
            here = self._search(at, sensitivities, doomed, warm)
        except ConvergenceError:  # prices of other rows: out of the range of numbers
            here = None
        if warm.any() and (here is None or here.residual > self.tolerance):
            self.plain.forget()
            here = self._search(at, sensitivities, doomed, self.prices)
        if here is None or here.residual > self.tolerance:
            self.plain.forget()
            off = np.inf if here is None else here.residual
            raise explain(self.space, confidence, A, b) or ConvergenceError(
                f"the projection stopped where inequalities are off by {off:.3g}, above its tolerance of "
                f"{self.tolerance:.3g}, after {self.iterations} Newton steps; no answer is returned (where next to "
                "nothing meets them, leave more room in b)"
            )
        theta[:] = here.theta
        self.excess = max(0.0, -float(here.slack.min()))
        self.prices, self.multipliers = here.y, here.y / size
        self.dual_value, self.flow_residual = here.phi, here.flow_residual

    def _search(
        self,
        at: Callable[[FloatArray], Answer],
        sensitivities: Callable[[Answer], tuple[FloatArray, FloatArray]],
        doomed: Callable[[FloatArray], bool],
        y: FloatArray,
    ) -> Answer:
        """Newton's method from y on: the answer, or where it stopped."""
        here, reach, steps = at(y), REACH, 0
        second: tuple[FloatArray, FloatArray] | None = None
        while here.residual > self.tolerance and steps < MAX_STEPS and reach > SMALLEST_REACH:
            steps += 1
            second = second or sensitivities(here)
            there = self._step(at, here, *second, reach)
            reach = 0.25 * reach if there is None else min(4 * reach, REACH)
            here, second = (here, second) if there is None else (there, None)
            if steps % DOUBTFUL == 0 and doomed(here.y):
                break
        self.iterations += steps
        return here

    def duality_gap(self, reference: FloatArray, cost: FloatArray, theta: FloatArray) -> float:
        """Primal minus dual value of the last answer."""
        return primal_value(self.space, reference, cost, theta) + self.dual_value

    def _step(
        self, at: Callable[[FloatArray], Answer], here: Answer, S: FloatArray, dbeta: FloatArray, reach: float
    ) -> Answer | None:
        """The answer at the minimum over y >= 0 of the model of φ, or None if φ does not fall as it promises.

        The model has |slack| / reach for more curvature, which keeps steps within reach where φ has none, and goes
        away as fast as the slack does.
        """
        model = (S + S.T) / 2 + np.diag(SINGULAR * (np.diag(S) + SINGULAR) + np.abs(here.slack) / reach)
        y = core.least_prices(model, products(model, here.y[None])[:, 0] - here.slack)
        self.plain.potentials[:] = here.beta + combine(y - here.y, dbeta)
        try:
            there = at(y)
        except ConvergenceError:  # weights out of the range of numbers
            return None
        promised = core.dot(here.slack, y - here.y)
        level = there.phi <= here.phi + ROUNDING * (1 + abs(here.phi)) and there.residual <= 0.5 * here.residual
        return there if level or there.phi <= here.phi + ARMIJO * promised else None
