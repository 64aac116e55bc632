"""The subproblem with priced rows; its mathematics are in `core/priced.hpp`, and in NumPy in `priced_reference.py`.

    argmin over θ of <cost, θ> + D(θ, reference) + Σ_i most_i [<A_i, θ> − b_i]_+

A row with infinite `most` is the inequality <A_i, θ> <= b_i. With finite `most` every row has a price between 0 and
most_i, there always is an answer, and what a row is exceeded by is traded against the rest at that price.
"""

import numpy as np

from tightrope.arithmetic import products
from tightrope.confidence import ConfidenceSet
from tightrope.errors import ConvergenceError, InvalidInputError
from tightrope.projection import priced_reference as in_numpy
from tightrope.projection.infeasibility import explain
from tightrope.projection.projector import GAP_TOLERANCE, Projector, primal_value
from tightrope.space import FloatArray, LayeredSpace

#: Steps in prices after which it is asked whether the inequalities can be met at all; and before giving up.
SOON, LATE = 30, 300
#: The share of `most` down to which it is lowered where weights leave the range of numbers; then all prices are 0.
SMALLEST_SHARE = 1 / 100


class PricedProjector:
    """Solves the subproblem with m priced rows again and again, each time from where the last answer was."""

    def __init__(self, space: LayeredSpace, m: int, tolerance: float = 1e-9) -> None:
        self.space = space
        self.tolerance = tolerance  #: on the flow residual, and on rows in units of their largest coefficients
        self.plain = Projector(space, tolerance)  #: whose potentials, thresholds and factor the solve starts from
        self.multipliers = np.zeros(m)  #: (m,) the prices y of the last answer; the next solve starts here
        self.iterations = 0  #: Newton steps of the last solve
        self.dual_value = np.nan  #: φ at the last answer
        self.flow_residual = np.nan
        self.share = 1.0  #: of `most` that prices were held to; less only where weights left the range of numbers
        self.excess = np.nan  #: the most by which a row is exceeded, in units of its largest coefficient

    def state(self) -> dict[str, FloatArray]:
        """Return copies of all that the next solve starts from.

        With them restored, the next answer is the same to the last bit.
        """
        return self.plain.state() | {"prices": self.multipliers.copy()}

    def restore(self, state: dict[str, FloatArray]) -> None:
        """Go on from what `state` gave."""
        if not (np.isfinite(state["prices"]).all() and (state["prices"] >= 0).all()):
            raise InvalidInputError("the projector's prices are not finite, or below 0")
        self.plain.restore({name: values for name, values in state.items() if name != "prices"})
        self.multipliers = np.array(state["prices"])

    def forget(self) -> None:
        """Start cold next time."""
        self.plain.forget()
        self.multipliers = np.zeros_like(self.multipliers)

    def solve(
        self,
        reference: FloatArray,
        cost: FloatArray,
        confidence: ConfidenceSet,
        A: FloatArray,
        b: FloatArray,
        most: FloatArray,
        theta: FloatArray,
    ) -> None:
        """Write the answer into `theta`, or raise. Takes checked arrays, A (m, n_tuples), b (m,) and most (m,) >= 0.

        Rows of zeros have the price 0. Where prices up to `most` take weights out of the range of numbers, and no
        `most` is infinite, prices are held to a `share` of it. Raises `InfeasibleError` if no measure meets the rows
        whose `most` is infinite. After an error `theta` is NaN and the next solve starts cold.
        """
        y, self.multipliers, hard = self.multipliers.copy(), np.zeros_like(self.multipliers), np.isinf(most)
        given = reference, cost, confidence, A, b
        wrong = self._attempt(*given, most, SOON if hard.any() else LATE, y, theta)
        if wrong is not None and hard.any():
            impossible = explain(self.space, confidence, A[hard], b[hard], np.flatnonzero(hard))
            if impossible is not None:
                raise impossible
            y[:] = 0.0
            wrong = self._attempt(*given, most, LATE, y, theta)
        self.share = 1.0
        while wrong is not None and not hard.any() and self.share > 0:
            self.share = self.share / 4 if self.share > SMALLEST_SHARE else 0.0
            y[:] = 0.0
            wrong = self._attempt(*given, self.share * most, LATE, y, theta)
        if wrong is not None:
            raise ConvergenceError(wrong)
        size = np.abs(A).max(axis=1, initial=0.0)
        over = products(A, theta[None]).ravel() - b
        self.excess = float(np.max(over / np.where(size > 0, size, 1.0), initial=0.0))
        self.multipliers = y

    def duality_gap(
        self,
        reference: FloatArray,
        cost: FloatArray,
        A: FloatArray,
        b: FloatArray,
        most: FloatArray,
        theta: FloatArray,
    ) -> float:
        """Primal minus dual value of the last answer, without the excess of rows that are inequalities, or of zeros."""
        over = products(A, theta[None]).ravel() - b
        charged = np.isfinite(most) & A.any(axis=1)
        paid = float(np.sum(np.where(charged, most, 0.0) * np.maximum(over, 0.0)))
        return primal_value(self.space, reference, cost, theta) + paid + self.dual_value

    def _attempt(
        self,
        reference: FloatArray,
        cost: FloatArray,
        confidence: ConfidenceSet,
        A: FloatArray,
        b: FloatArray,
        most: FloatArray,
        patience: int,
        y: FloatArray,
        theta: FloatArray,
    ) -> str | None:
        """Write θ and y; or return what is wrong, and start cold next time."""
        missed, far = self._search(reference, cost, confidence, A, b, most, patience, y, theta)
        wrong = None
        if not (self.flow_residual <= self.tolerance and missed <= self.tolerance):
            wrong = (
                f"the projection stopped at a flow residual of {self.flow_residual:.3g} and inequalities that are off "
                f"by {missed:.3g}, above its tolerance of {self.tolerance:.3g}, after {self.iterations} Newton steps; "
                "no answer is returned (where next to nothing meets the inequalities, leave more room in b)"
            )
        elif far:  # numbers so far apart that some had to be cut off
            gap = self.duality_gap(reference, cost, A, b, most, theta)
            if not abs(gap) <= GAP_TOLERANCE * (1 + abs(self.dual_value)):
                wrong = (
                    f"the projection's costs and references are too far apart for floating point: its duality gap is "
                    f"{gap:.3g}; no answer is returned (scale the cost down, or the reference up)"
                )
        if wrong is not None:
            self.plain.forget()
            theta[:] = np.nan
        return wrong

    def _search(
        self,
        reference: FloatArray,
        cost: FloatArray,
        confidence: ConfidenceSet,
        A: FloatArray,
        b: FloatArray,
        most: FloatArray,
        patience: int,
        y: FloatArray,
        theta: FloatArray,
    ) -> tuple[float, bool]:
        """Write θ and y; return by how much rows miss their conditions, and whether numbers were far apart."""
        native, own = self.plain.solver_for(confidence)
        if own is None:
            self.dual_value, self.flow_residual, missed, self.iterations, far = native.solve_priced(
                reference, cost, A, b, most, self.tolerance, patience, y, theta
            )
            return missed, far
        theta[:] = np.nan
        try:
            found = in_numpy.solve(
                self.space, reference, cost, own, A, b, most, self.tolerance, (self.plain.potentials, y)
            )
        except Exception:
            self.plain.forget()
            raise
        theta[:], y[:], self.plain.potentials[:] = found.theta, found.prices, found.potentials
        self.dual_value, self.flow_residual, self.iterations = found.dual_value, found.flow_residual, found.iterations
        return found.missed, True
