"""Why inequalities cannot be met by any measure of a confidence set, and by how much they cannot.

For prices y >= 0, Σ y = 1, every measure θ of the set exceeds some inequality by at least

    e(y) = min over θ of <Σ_i y_i A_i, θ> − <b, y>,

which dynamic programming knows. The largest e(y) is the least that some inequality is exceeded by, whatever is done
(duality of linear programs); it is found by cutting planes, one for every θ that was the best for some y.
"""

import numpy as np

from tightrope import core
from tightrope.arithmetic import combine, products
from tightrope.confidence import ConfidenceSet
from tightrope.confidence.sets import bounds_of, known, least_possible
from tightrope.errors import InfeasibleError
from tightrope.linear_program import LinearProgram
from tightrope.space import FloatArray, IntArray, LayeredSpace

#: Excess below this share of what an inequality can differ by is rounding.
ROUNDING = 1e-12
#: Cutting planes before the best bound so far has to do.
MAX_CUTS = 200


def explain(
    space: LayeredSpace, confidence: ConfidenceSet, A: FloatArray, b: FloatArray, names: IntArray
) -> InfeasibleError | None:
    """The error that names the inequalities that cannot be met, and what is missing; None if they can, or who knows.

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
    """max over prices of e(y), to rounding or as far as MAX_CUTS go; and the prices, which sum to 1."""
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
    """e(y), and a θ that attains it."""
    least, theta = least_possible(space, bounds_of(confidence, space), combine(y, A))
    return least - core.dot(b, y), theta


def _sizes(space: LayeredSpace, A: FloatArray) -> FloatArray:
    """What <A_i, θ> can be at the most, roughly; 1 for rows of zeros."""
    size: FloatArray = space.n_layers * np.abs(A).max(axis=1)
    return np.where(size > 0, size, 1.0)


def _listed(indices: IntArray) -> str:
    *some, last = (str(i) for i in indices)
    return f"{', '.join(some)} and {last}" if some else last
