"""Steps of O-REPS as they are printed, over measures q(s,a) of the pairs of a known model, for a conic solver."""

import cvxpy as cp
import numpy as np

from tests.conftest import FloatArray
from tests.learners.test_euclidean import flow
from tightrope import LayeredMDP


class OverPairs:
    """The occupancy measures of a model."""

    def __init__(self, mdp: LayeredMDP) -> None:
        A, b = flow(mdp)
        self.q = cp.Variable(mdp.space.n_pairs, nonneg=True)
        self.held = [A @ self.q == b]

    def largest_entropy(self) -> FloatArray:
        return self._least(-cp.sum(cp.entr(self.q)))

    def nearest(self, reference: FloatArray, cost: FloatArray) -> FloatArray:
        """argmin <cost, q> + D(q, reference)."""
        return self._least(cost @ self.q + cp.sum(cp.kl_div(self.q, reference)))

    def _least(self, objective: cp.Expression) -> FloatArray:
        problem = cp.Problem(cp.Minimize(objective), self.held)
        problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
        return np.array(self.q.value)
