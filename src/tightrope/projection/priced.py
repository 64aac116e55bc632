"""The subproblem with priced rows; its mathematics are in `core/priced.hpp`, and in NumPy in `reference.py`.

    argmin over θ of <cost, θ> + D(θ, reference) + Σ_i most_i [<A_i, θ> − b_i]_+

A row with infinite `most` is the inequality <A_i, θ> <= b_i. With finite `most` every row has a price between 0 and
most_i, and a solution always exists: exceeding a row costs that price.

Whether inequalities can be met by any measure of a confidence set is a question of its own (`explain`). For prices
y >= 0 with Σ y = 1, every measure θ of the set exceeds some inequality by at least

    e(y) = min over θ of <Σ_i y_i A_i, θ> − <b, y>,

which dynamic programming computes. By duality of linear programs, the largest e(y) is the smallest excess that any
measure attains; cutting planes find it, one for each θ that minimised for some y.
"""

import numpy as np

from tightrope import core
from tightrope.arithmetic import combine, products
from tightrope.confidence import ConfidenceSet
from tightrope.confidence.sets import bounds_of, known, least_possible
from tightrope.errors import ConvergenceError, InfeasibleError, InvalidInputError
from tightrope.linear_program import LinearProgram
from tightrope.projection import reference as in_numpy
from tightrope.projection.projector import GAP_TOLERANCE, Projector, primal_value
from tightrope.space import FloatArray, IntArray, LayeredSpace

#: Steps in prices before the solver checks whether the inequalities can be met at all, and before it gives up.
SOON, LATE = 30, 300
#: The smallest share of `most` that is tried when weights overflow; below it all prices are 0.
SMALLEST_SHARE = 1 / 100


class PricedProjector:
    """Solves subproblems with m priced rows on one space, each from the solution of the last one."""

    def __init__(self, space: LayeredSpace, m: int, tolerance: float = 1e-9) -> None:
        self.space = space
        self.tolerance = tolerance  #: on the flow residual, and on rows in units of their largest coefficients
        self.plain = Projector(space, tolerance)  #: the solver without rows; its warm start is a part of ours
        self.multipliers = np.zeros(m)  #: (m,) the prices y of the last answer; the next solve starts here
        self.iterations = 0  #: Newton steps of the last solve
        self.dual_value = np.nan  #: φ at the last answer
        self.flow_residual = np.nan
        self.share = 1.0  #: the share of `most` that bounded the prices; below 1 only after an overflow of the weights
        self.excess = np.nan  #: the most by which a row is exceeded, in units of its largest coefficient

    def state(self) -> dict[str, FloatArray]:
        """Return copies of the warm start of the next solve.

        Once they are restored, the next solution has the same bits.
        """
        return self.plain.state() | {"prices": self.multipliers.copy()}

    def restore(self, state: dict[str, FloatArray]) -> None:
        """Continue from a warm start that `state` returned."""
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

        Rows of zeros have the price 0. If prices up to `most` make weights overflow, and no `most` is infinite, prices
        are limited to a `share` of it. Raises `InfeasibleError` if no measure meets the rows whose `most` is infinite.
        After an error `theta` is NaN and the next solve starts cold.
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
        """Return primal minus dual value of the last solution.

        The excess of inequalities and of zero rows is not counted.
        """
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
        """Write θ and y and return None, or return an error message and start cold next time."""
        missed, far = self._search(reference, cost, confidence, A, b, most, patience, y, theta)
        wrong = None
        if not (self.flow_residual <= self.tolerance and missed <= self.tolerance):
            wrong = (
                f"the projection stopped at a flow residual of {self.flow_residual:.3g} and inequalities that are off "
                f"by {missed:.3g}, above its tolerance of {self.tolerance:.3g}, after {self.iterations} Newton steps; "
                "no answer is returned (where next to nothing meets the inequalities, leave more room in b)"
            )
        elif far:  # weights spanned more than floating point does
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
        """Write θ and y.

        Return the largest violation of the rows' optimality conditions, and whether weights were cut off.
        """
        native, own = self.plain.solver_for(confidence)
        if own is None:
            self.dual_value, self.flow_residual, missed, self.iterations, far = native.solve_priced(
                reference, cost, A, b, most, self.tolerance, patience, y, theta
            )
            return missed, far
        theta[:] = np.nan
        try:
            found = in_numpy.solve_priced(
                self.space, reference, cost, own, A, b, most, self.tolerance, (self.plain.potentials, y)
            )
        except Exception:
            self.plain.forget()
            raise
        theta[:], y[:], self.plain.potentials[:] = found.theta, found.prices, found.potentials
        self.dual_value, self.flow_residual, self.iterations = found.dual_value, found.flow_residual, found.iterations
        return found.missed, True


#: An excess below this share of the range of an inequality is rounding.
ROUNDING = 1e-12
#: The most cutting planes; the best bound found so far is then used.
MAX_CUTS = 200


def explain(
    space: LayeredSpace, confidence: ConfidenceSet, A: FloatArray, b: FloatArray, names: IntArray
) -> InfeasibleError | None:
    """Return an error that names the inequalities that cannot be met, or None if they can or it is unknown.

    `names` (m,) are the numbers of the inequalities in messages.
    """
    if not known(confidence) or len(b) == 0:
        return None
    least = [_excess(space, confidence, A, b, y)[0] for y in np.eye(len(b))]
    over = np.array(least) / _sizes(space, A)
    if over.max() > ROUNDING:
        i = int(over.argmax())
        return InfeasibleError(
            f"inequality {names[i]} cannot be met: <A[{names[i]}], θ> is {b[i] + least[i]:.6g} at the least, and "
            f"b[{names[i]}] is "
            f"{b[i]:.6g}, {least[i]:.3g} less"
        )
    excess, y = least_excess(space, confidence, A, b)
    if excess <= ROUNDING * core.dot(y, _sizes(space, A)):
        return None
    return InfeasibleError(
        f"inequalities {_listed(names[np.flatnonzero(y > ROUNDING)])} cannot be met together: every measure exceeds "
        f"one of them by {excess:.3g} or more"
    )


def least_excess(
    space: LayeredSpace, confidence: ConfidenceSet, A: FloatArray, b: FloatArray
) -> tuple[float, FloatArray]:
    """Return the maximum of e(y), up to rounding or as far as MAX_CUTS lead, and the prices (m,) that attain it."""
    m = len(b)
    y, best = np.full(m, 1 / m), (-np.inf, np.zeros(m))
    # the variables are y and z, a bound on e(y); each cut says that z <= <cut, y>
    master = LinearProgram(np.append(np.zeros(m), -1.0), np.append(np.zeros(m), -np.inf))
    columns, row = np.arange(m + 1), np.zeros(m + 1, dtype=np.int64)
    master.add_rows(row[:-1], columns[:-1], np.ones(m), np.ones(1), np.ones(1))
    for _ in range(MAX_CUTS):
        excess, theta = _excess(space, confidence, A, b, y)
        best = max(best, (excess, y), key=lambda pair: pair[0])
        cut = products(A, theta[None])[:, 0] - b
        master.add_rows(row, columns, np.append(-cut, 1.0), np.full(1, -np.inf), np.zeros(1))
        answer = master.solve()
        if answer is None or answer.x[-1] - best[0] <= ROUNDING * core.dot(best[1], _sizes(space, A)):
            break
        y = np.maximum(answer.x[:-1], 0.0)
        y /= y.sum()
    return best


def _excess(
    space: LayeredSpace, confidence: ConfidenceSet, A: FloatArray, b: FloatArray, y: FloatArray
) -> tuple[float, FloatArray]:
    """Return e(y), and a θ that attains it."""
    least, theta = least_possible(space, bounds_of(confidence, space), combine(y, A))
    return least - core.dot(b, y), theta


def _sizes(space: LayeredSpace, A: FloatArray) -> FloatArray:
    """Return an upper bound of |<A_i, θ>| for each row (m,); 1 for rows of zeros."""
    size: FloatArray = space.n_layers * np.abs(A).max(axis=1)
    return np.where(size > 0, size, 1.0)


def _listed(indices: IntArray) -> str:
    *some, last = (str(i) for i in indices)
    return f"{', '.join(some)} and {last}" if some else last
