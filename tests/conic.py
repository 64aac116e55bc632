"""The subproblem as it is written, for a conic solver: what all kinds of confidence sets have in common."""

from typing import NamedTuple

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from tests.conftest import FloatArray, pair_of_tuple
from tightrope import LayeredSpace


class Measures(NamedTuple):
    """The occupancy measures of a space: θ, which sums to one on every layer and conserves flow."""

    theta: cp.Variable
    by_pair: sp.csr_matrix  #: (n_pairs, n_tuples) sums over successors
    held: list[cp.Constraint]

    def nearest(self, reference: FloatArray, cost: FloatArray, **tolerances: float) -> tuple[str, FloatArray]:
        """Clarabel's status, and its argmin of <cost, θ> + D(θ, reference)."""
        objective = cost @ self.theta + cp.sum(cp.kl_div(self.theta, reference))
        problem = cp.Problem(cp.Minimize(objective), self.held)
        problem.solve(solver=cp.CLARABEL, **tolerances)
        return problem.status, self.theta.value


def measures(space: LayeredSpace) -> Measures:
    """Without the compressed rows of the space."""
    n = space.n_tuples
    layer = np.repeat(np.arange(space.n_layers + 1), space.layer_sizes)[space.tuples[:, 0]]
    by_pair = sp.csr_matrix((np.ones(n), (pair_of_tuple(space), np.arange(n))))
    by_layer = sp.csr_matrix((np.ones(n), (layer, np.arange(n))))
    leaving = sp.csr_matrix((np.ones(n), (space.tuples[:, 0], np.arange(n))), (space.n_states, n))
    entering = sp.csr_matrix((np.ones(n), (space.tuples[:, 2], np.arange(n))), (space.n_states, n))
    theta = cp.Variable(n, nonneg=True)
    held = [by_layer @ theta == 1]
    if space.n_states > 2:
        held.append((entering - leaving)[1:-1] @ theta == 0)
    return Measures(theta, by_pair, held)
