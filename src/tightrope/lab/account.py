"""What was played, accounted for exactly: expectations under the true model, never sampled returns."""

import numpy as np

from tightrope.lab.kernels import play
from tightrope.model import Policy
from tightrope.problems.base import Problem
from tightrope.space import FloatArray, IntArray


class Account:
    """What the policies played so far cost, in exact expectation under the true model."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        space = problem.space
        self.loss = 0.0  #: Σ <f^τ, θ̄^τ>
        self.total_loss = np.zeros(space.n_tuples)  #: Σ f^τ
        self.over = np.zeros(len(problem.budgets))  #: Σ (g^τ(θ̄^τ) − c)
        self.strong_violation = 0.0  #: Σ ‖[g(θ̄^τ) − c]_+‖₂, g the mean; g^τ where there is none
        self._mean = np.ascontiguousarray(problem.constraints.mean, dtype=np.float64)
        #: Σ g^τ; (0, 0) where constraints are drawn, and the mean is what counts
        self.total_constraints = np.zeros(self._mean.shape if problem.changing else (0, 0))

    def play(self, policy: Policy, f: FloatArray, g: FloatArray, uniforms: FloatArray) -> tuple[IntArray, ...]:
        """Sample one episode and account for its policy; returns states, actions and the tuple of each step."""
        space, mdp, problem = self.problem.space, self.problem.mdp, self.problem
        L = space.n_layers
        states, actions, steps = np.empty(L + 1, np.int64), np.empty(L, np.int64), np.empty(L, np.int64)
        d, theta = np.empty(space.n_states), np.empty(space.n_tuples)  # not kept: the learner needs the memory next
        expected = g if problem.changing else self._mean
        loss, strong_violation = play(
            space.csr, policy.probabilities, mdp.transitions, uniforms, f, g, expected, problem.budgets,
            states, actions, steps, d, theta, self.total_loss, self.over,
        )  # fmt: skip
        if problem.changing:
            self.total_constraints += g
        self.loss += loss
        self.strong_violation += strong_violation
        return states, actions, steps


def norm(values: FloatArray) -> float:
    """Euclidean norm."""
    return float(np.sqrt(values @ values))
