"""Check whether the theorem's assumptions hold for a problem, and with which constants."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tightrope.arguments import whole
from tightrope.errors import InfeasibleError
from tightrope.learners import learner_called
from tightrope.learners.parameters import PROBABILITY
from tightrope.learners.ucpd import UCPD
from tightrope.model import inner
from tightrope.planning.hindsight import HindsightLP, Slack, most_slack, tolerance
from tightrope.problems import problem_or_named
from tightrope.problems.base import Problem
from tightrope.problems.constraints import ChangingConstraints, Deterministic
from tightrope.space import FloatArray
from tightrope.streams import streams
from tightrope.theory.bounds import Bound, Constants, bounds
from tightrope.theory.budgets import Conflict, Curve, budget_curve, conflict, frontier, least_use
from tightrope.theory.inside import bounds_inside
from tightrope.theory.runs import Windows, windows
from tightrope.units import BOUND_TOLERANCE


@dataclass(frozen=True, eq=False)
class Multipliers:
    """Multipliers of the LP over each window, in the learner's units."""

    values: FloatArray  # (n_windows, I) one for each window; with one constraint, the largest
    gap: float  # the largest excess loss of the policy with the most slack over the best policy of a window


@dataclass(frozen=True, kw_only=True, eq=False)
class Check:
    """The requirements of the theorem for one problem; in the learner's units, except for the curves."""

    problem: Problem
    episodes: int  # T
    level: float  # ζ
    seed: int
    slack: Slack  # Slater's slack: its value, a policy that attains it, and weights that prove it
    least: FloatArray  # (I,) the least use of each budget by any policy
    conflict: Conflict | None  # budgets that exclude each other
    windows: Windows
    largest_constraints: float  # max over draws of Σ_i max |g_i^t|
    multipliers: Multipliers | None  # None where Slater's condition fails, as all below
    constants: Constants | None  # for any losses
    constants_here: Constants | None  # for the windows of this run
    constants_exact: Constants | None  # the same, exactly; only with one constraint
    bounds: dict[str, dict[str, Bound]]  # after T episodes: of each learner that has some, by term
    curves: tuple[Curve, ...]  # of every budget for which the other budgets can be met

    @property
    def sequences(self) -> str:
        """Losses and, unless they are constant, constraints."""
        noise, losses = self.problem.noise, f"{self.problem.losses.name} losses"
        return losses if noise == Deterministic.name else f"{losses}, {noise} constraints"

    @property
    def feasible(self) -> bool:
        """Whether some policy meets all budgets (Assumption 1)."""
        return self.conflict is None

    @property
    def bounded(self) -> bool:
        """Assumption 2, as far as this run shows it."""
        most, L = 1 + BOUND_TOLERANCE, self.problem.space.n_layers
        total = float(np.abs(self.problem.budgets).sum())
        return self.windows.largest <= most and self.largest_constraints <= most and total <= L + BOUND_TOLERANCE

    @property
    def slater(self) -> bool:
        """Assumption 3: multipliers are bounded if and only if some policy leaves slack in every budget."""
        return self.constants is not None

    @property
    def drawn(self) -> bool:
        """Whether constraints are drawn independently from one law, as the theorem requires."""
        return not self.problem.changing

    @property
    def holds(self) -> bool:
        """Whether all assumptions hold; T and ζ are the user's choice."""
        return self.feasible and self.bounded and self.slater and self.drawn

    @property
    def least_episodes(self) -> int:
        """|S||A|: the least T of the theorem."""
        return self.problem.space.n_states * self.problem.space.n_actions

    @property
    def largest_level(self) -> float | None:
        """The largest ζ of the theorem."""
        return None if self.constants is None else self.constants.largest_level(self.problem.space.n_layers)

    def __repr__(self) -> str:
        from tightrope.theory.page import page

        return "\n".join(page(self))


def check(
    problem: Problem | str,
    *,
    episodes: int = 20_000,
    seed: int = 0,
    level: float = UCPD.level,
    learner: str = "ucpd",
    points: int = 9,
    progress: Callable[[int], None] | None = None,
) -> Check:
    """Check all requirements of the theorem for a problem.

    Parameters
    ----------
    problem : a problem, or the name of one.
    episodes, level : the T and ζ that you intend to use.
    seed : losses and constraints are those of a run with this seed.
    learner : the learner of that run, where losses depend on the policies played.
    points : the number of budgets at which each curve is computed.
    progress : called from time to time with the number of episodes played, if a run is needed.

    Returns
    -------
    A check, which prints as a page.
    """
    problem = problem_or_named(problem)
    T, seed, level = whole(episodes, "episodes", 1), whole(seed, "seed", 0), PROBABILITY.checked("level", level)
    mdp, g, c, L = problem.mdp, problem.constraints.mean, problem.budgets, problem.space.n_layers
    learner = learner_called(learner).name
    slack = most_slack(mdp, g, c)
    seen = windows(problem, episodes=T, seed=seed, learner=learner, progress=progress)
    solved = general = here = exact = None
    if slack.slack > tolerance(problem.space):
        general = Constants.from_slack(slack.slack, gap=2.0 * L)
        solved, exact = _multipliers(problem, slack, seen)
        here = Constants.from_slack(slack.slack, gap=solved.gap)
    return Check(
        problem=problem,
        episodes=T,
        level=level,
        seed=seed,
        slack=slack,
        least=least_use(problem),
        conflict=conflict(problem),
        windows=seen,
        largest_constraints=_largest_constraints(problem, T, seed),
        multipliers=solved,
        constants=general,
        constants_here=here,
        constants_exact=exact,
        bounds=_bounds(problem, T, level, general),
        curves=tuple(_curves(problem, seen.average, points)),
    )


def _bounds(problem: Problem, T: int, level: float, known: Constants | None) -> dict[str, dict[str, Bound]]:
    """The bounds of `ucpd`, if Slater's condition holds, and of `ucpd-inside`; none where constraints change."""
    if problem.changing:
        return {}
    found = {"ucpd-inside": bounds_inside(problem, episodes=T, level=level)}
    if known is not None:
        found = {"ucpd": bounds(problem, episodes=T, level=level, known=known)} | found
    return found


def _multipliers(problem: Problem, slack: Slack, seen: Windows) -> tuple[Multipliers, Constants | None]:
    """The multipliers of every window and, with one constraint, the exact constants."""
    mdp, g, c = problem.mdp, problem.constraints.mean, problem.budgets
    safe = mdp.occupancy(slack.policy)
    if len(c) == 1:
        # prices beyond B + ϑ̄ = 10 L/ε are not needed
        most = 10 * problem.space.n_layers / slack.slack
        fronts = [frontier(mdp, f, g[0], most) for f in seen.losses]
        values = np.array([[front.multipliers(c[0])[1]] for front in fronts])
        best = np.array([front.dual(price, c[0]) for front, [price] in zip(fronts, values, strict=True)])
        sigma = slack.slack / 2
        vartheta = max(front.vartheta(c[0], sigma) for front in fronts)
        exact = Constants(slack=slack.slack, B=float(values.max()), sigma=sigma, vartheta=vartheta)
    else:
        lp = HindsightLP(mdp, g, c)
        solutions = [lp.solve(f) for f in seen.losses]
        values = np.array([solution.multipliers for solution in solutions])
        best, exact = np.array([solution.value for solution in solutions]), None
    behind = np.array([float(inner(f, safe)) for f in seen.losses]) - best
    return Multipliers(values, gap=max(0.0, float(behind.max()))), exact


def _largest_constraints(problem: Problem, episodes: int, seed: int) -> float:
    """max over the draws of a run, or over the extremes of changing constraints, of Σ_i max |g_i^t|."""
    law = problem.constraints
    if isinstance(law, ChangingConstraints):
        return float(np.abs(law.extremes).max(axis=2, initial=0.0).sum(axis=1).max(initial=0.0))
    rng, before, largest = streams(seed).constraints, None, 0.0
    for _ in range(episodes):
        g = law.sample(rng)
        if g is not before:
            largest = max(largest, float(np.abs(g).max(axis=1, initial=0.0).sum()))
        before = g
    return largest


def _curves(problem: Problem, loss: FloatArray, points: int) -> list[Curve]:
    curves = []
    for i in range(len(problem.budgets)):
        try:
            curves.append(budget_curve(problem, loss, i, points))
        except InfeasibleError:  # the other budgets cannot be met together
            continue
    return curves
