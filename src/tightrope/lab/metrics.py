"""The metrics of runs, from exact accounts: expectations under the true model, not sampled returns.

`COLUMNS` lists the metrics. `Account` adds up losses and uses. `Comparators` computes the least loss of a fixed policy
within the budgets. For constraints that are drawn, "within the budgets" refers to their mean. For constraints that
change there are two comparators:

    hindsight         within the budgets on average: Σ_τ <g^τ, θ> ≤ t c over the t episodes so far. In general no
                      learner approaches it within the budgets (Mannor, Tsitsiklis, Yu 2009; `mannor-game`)
    hindsight_always  within the budgets in every episode: <g, θ> ≤ c for every extreme g

If no policy is within the budgets, the value is NaN.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Literal, NamedTuple

import numpy as np

from tightrope import core
from tightrope.errors import InfeasibleError
from tightrope.model import Policy
from tightrope.planning.hindsight import HindsightLP
from tightrope.problems.base import Problem
from tightrope.problems.constraints import ChangingConstraints
from tightrope.space import FloatArray, IntArray


class Account:
    """The expected losses and uses of the policies played so far, exact under the true model."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        space = problem.space
        self.loss = 0.0  #: Σ <f^τ, θ̄^τ>
        self.total_loss = np.zeros(space.n_tuples)  #: Σ f^τ
        self.over = np.zeros(len(problem.budgets))  #: Σ (g^τ(θ̄^τ) − c)
        self.strong_violation = 0.0  #: Σ ‖[g(θ̄^τ) − c]_+‖₂, g the mean; g^τ where there is none
        mean = np.ascontiguousarray(problem.constraints.mean, dtype=np.float64)
        #: Σ g^τ; of shape (0, 0) where constraints are drawn, since their mean is used
        self.total_constraints = np.zeros(mean.shape if problem.changing else (0, 0))
        self._mean = None if problem.changing else mean

    def play(self, policy: Policy, f: FloatArray, g: FloatArray, uniforms: FloatArray) -> tuple[IntArray, ...]:
        """Sample one episode and account for its policy; return states, actions and the tuple of each step."""
        problem = self.problem
        states, actions, steps, loss, strong_violation = core.play(
            problem.space.native, policy.probabilities, problem.mdp.transitions, uniforms, f, g,
            g if self._mean is None else self._mean, problem.budgets, self.total_loss, self.over,
        )  # fmt: skip
        if self._mean is None:
            self.total_constraints += g
        self.loss += loss
        self.strong_violation += strong_violation
        return states, actions, steps


class Comparators:
    """The best fixed policies of one problem.

    Raises InfeasibleError where constraints follow a law under which no policy can meet the budgets.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._mean: HindsightLP | None = None
        self._always: HindsightLP | None = None
        law = problem.constraints
        if not isinstance(law, ChangingConstraints):
            try:
                self._mean = HindsightLP(problem.mdp, law.mean, problem.budgets)
            except InfeasibleError:
                problem.check_budgets()  # says so in the problem's own units
                raise
            return
        K, _, n = law.extremes.shape
        with suppress(InfeasibleError):
            self._always = HindsightLP(problem.mdp, law.extremes.reshape(-1, n), np.tile(problem.budgets, K))

    def least(self, account: Account, episodes: int) -> float:
        """Return the least total loss of a fixed policy within the budgets on average over the episodes so far."""
        if self._mean is not None:
            return self._mean.solve(account.total_loss).value
        average, problem = account.total_constraints / episodes, self.problem
        try:
            return HindsightLP(problem.mdp, average, problem.budgets).solve(account.total_loss).value
        except InfeasibleError:
            return np.nan

    def least_always(self, account: Account) -> float:
        """Return the least total loss of a fixed policy within the budgets in every episode."""
        return np.nan if self._always is None else self._always.solve(account.total_loss).value


def norm(values: FloatArray) -> float:
    """Return the Euclidean norm of an array."""
    return float(np.sqrt((values * values).sum()))


class Moment(NamedTuple):
    """A recorded episode of a run, from which metrics are computed."""

    episode: int
    account: Account  #: the sums over all episodes so far
    multipliers: FloatArray  #: (I,) of the learner, while the episode was played
    epoch: int  #: of the learner, while the episode was played


class Column(NamedTuple):
    """A metric: its column in histories, tables and files."""

    heading: str
    meaning: str
    value: Callable[[Moment], float] | None = None  #: None: computed by the hindsight LP
    unit: Literal["", "loss", "regret", "violation"] = ""  #: how it is converted to the problem's own units
    shown: bool = False  #: in the tables that are printed
    optional: bool = True  #: missing in histories of earlier versions; new metrics are


#: The metrics, in the order of their columns. A new one needs only an entry here.
COLUMNS = {
    "episode": Column("episodes", "number of episodes so far", lambda at: at.episode, optional=False),
    "loss": Column("loss", "of the policies played, in expectation", lambda at: at.account.loss, "loss", True, False),
    "hindsight": Column(
        "LP value", "least loss of a fixed policy within the budgets, in hindsight", None, "loss", True, False
    ),
    "regret": Column("regret", "loss − LP value", None, "regret", True, False),
    "violation": Column(
        "violation", "the paper's: episodes below budget offset others",
        lambda at: norm(np.maximum(at.account.over, 0.0)), "violation", True, False,
    ),
    "strong_violation": Column(
        "strong violation", "the excess of each episode, without offsets",
        lambda at: at.account.strong_violation, "violation", True, False,
    ),
    "multiplier_norm": Column(
        "multiplier norm", "of the learner's prices of the budgets", lambda at: norm(at.multipliers), optional=False
    ),
    "epoch": Column(
        "epoch", "number of updates of the learner's confidence set, plus one", lambda at: at.epoch, optional=False
    ),
}  # fmt: skip

#: More columns where constraints change (`lab.metrics`).
ALWAYS = {
    "hindsight_always": Column(
        "LP value, always", "least loss of a fixed policy within the budgets in every episode", unit="loss"
    ),
    "regret_always": Column("regret, always", "loss − that", unit="regret"),
}

#: Columns of integers.
WHOLE = ("episode", "epoch")
