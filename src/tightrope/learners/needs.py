"""The knowledge that a learner may need beyond the space and the budgets, and its computation from a problem.

Each learner declares its needs (`LearnerBase.needs`), and `make_learner` passes exactly these. Most of them are unknown
in a real system; a publication assumes them, or they make a reference learner.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from tightrope.arithmetic import dot
from tightrope.errors import ConvergenceError
from tightrope.model import LayeredMDP, Policy
from tightrope.planning.dynamic_programming import class_transitions, classes_of
from tightrope.planning.hindsight import slater_slack, solve_cmdp
from tightrope.space import FloatArray
from tightrope.streams import streams

#: Regret per episode at which a policy counts as the best in hindsight.
TOLERANCE = 1e-7

#: The most rehearsals of `hindsight_policy` against an adaptive adversary.
REHEARSALS = 8


class Constraints(Protocol):
    """The distribution of the constraints, as far as `make_learner` needs it."""

    @property
    def mean(self) -> FloatArray:
        """(I, n_tuples) the mean."""


class Problem(Protocol):
    """The attributes of a problem that `make_learner` reads (see `tightrope.problems.base.Problem`)."""

    @property
    def mdp(self) -> LayeredMDP: ...
    @property
    def budgets(self) -> FloatArray: ...
    @property
    def constraints(self) -> Constraints: ...
    @property
    def losses(self) -> Any: ...


class Need(NamedTuple):
    """Something that a learner may need to know."""

    meaning: str
    answer: Callable[[Problem, int, int], Any]  # problem, number of episodes, root seed of the run


#: The slack given up, as a share of the largest use of an episode, if the solver finds no policy with the most slack.
ROUNDING = 1e-9


def most_slack_policy(mdp: LayeredMDP, constraints: FloatArray, budgets: FloatArray) -> Policy:
    """Return the policy with the largest min_i c_i − <g_i, θ> (perhaps negative), and among those the least total use.

    Parameters
    ----------
    constraints, budgets : g (I, n_tuples) and c (I,).
    """
    if len(budgets) == 0:
        return Policy.uniform(mdp.space)
    slack, total = slater_slack(mdp, constraints, budgets), constraints.sum(axis=0)
    try:
        return solve_cmdp(mdp, total, constraints, budgets - slack).policy
    except ConvergenceError:  # feasible up to rounding
        room = ROUNDING * mdp.space.n_layers * float(np.abs(constraints).max())
        return solve_cmdp(mdp, total, constraints, budgets - slack + room).policy


def _extremes(problem: Problem) -> FloatArray:
    """Return the extremes of the constraints, (K, I, n_tuples): the mean alone, unless they change."""
    g: FloatArray = getattr(problem.constraints, "extremes", problem.constraints.mean[None])
    return g


def _worst_case(problem: Problem) -> tuple[FloatArray, FloatArray]:
    """Return constraints and budgets that a policy within the budgets under all extremes has to meet."""
    g = _extremes(problem)
    return g.reshape(-1, g.shape[2]), np.tile(problem.budgets, len(g))


def safe_policy(problem: Problem) -> Policy:
    """Return the policy with the most slack to all budgets at once."""
    return most_slack_policy(problem.mdp, *_worst_case(problem))


def safe_usage(problem: Problem) -> FloatArray:
    """Return the expected use of each budget under the safe policy, (I,)."""
    used: FloatArray = dot(_extremes(problem), problem.mdp.occupancy(safe_policy(problem))).max(axis=0)
    return used


def slack(problem: Problem) -> float:
    """Return the least slack of the safe policy to any budget; inf without budgets."""
    return slater_slack(problem.mdp, *_worst_case(problem))


def expected_uses(problem: Problem) -> FloatArray:
    """Return the expected use of each budget at each pair, (I, n_pairs)."""
    return problem.mdp.space.sum_over_successors(problem.constraints.mean * problem.mdp.transitions)


def classes(problem: Problem) -> NDArray[np.int64]:
    """Return the class of each state, (n_states,): the constraints do not distinguish states of one class."""
    return classes_of(problem.mdp, expected_uses(problem))


def hindsight_policy(problem: Problem, episodes: int, seed: int) -> Policy:
    """Return the best fixed policy within the budgets for the losses of the run with this seed.

    The losses are rehearsed with the random stream of the run, against the best policy of the rehearsal before. For an
    oblivious adversary one rehearsal is exact. For an adaptive one, rehearsals are repeated until the policy is the
    best against the losses that it causes; if none is, the one with the least regret is returned.
    """
    mdp, g = problem.mdp, problem.constraints.mean
    policy = best = safe_policy(problem)  # within the budgets, so no regret is below zero
    least_regret = np.inf
    for _ in range(REHEARSALS):
        adversary, total = problem.losses.begin(streams(seed).adversary), np.zeros(mdp.space.n_tuples)
        for t in range(1, episodes + 1):
            total += adversary.loss(t)
            adversary.watch(policy)
        if hasattr(problem.constraints, "extremes"):
            g = _average_constraints(problem, policy, episodes, seed)
        answer = solve_cmdp(mdp, total, g, problem.budgets)
        regret = dot(total, mdp.occupancy(policy)) - answer.value
        if regret < least_regret:
            best, least_regret = policy, regret
        if regret <= TOLERANCE * episodes:
            break
        policy = answer.policy
    return best


def _average_constraints(problem: Problem, policy: Policy, episodes: int, seed: int) -> FloatArray:
    """Return the average of g^1, …, g^T, (I, n_tuples), in the run with this seed under a policy."""
    law: Any = problem.constraints  # constraints that change
    regulator, total = law.begin(streams(seed).constraints), np.zeros(law.mean.shape)
    for t in range(1, episodes + 1):
        total += regulator.constraints(t)
        regulator.watch(policy)
    return total / episodes


#: Everything that a learner may need, by the name of the parameter.
NEEDS: dict[str, Need] = {
    "model": Need("the true model", lambda problem, episodes, seed: problem.mdp),
    "constraint_means": Need("the means of the constraints", lambda problem, episodes, seed: problem.constraints.mean),
    "safe_policy": Need("a policy within the budgets", lambda problem, episodes, seed: safe_policy(problem)),
    "safe_usage": Need("the uses of the safe policy", lambda problem, episodes, seed: safe_usage(problem)),
    "slack": Need("the most slack to all budgets", lambda problem, episodes, seed: slack(problem)),
    "expected_uses": Need("the expected uses of each pair", lambda problem, episodes, seed: expected_uses(problem)),
    "classes": Need("classes of states with equal uses", lambda problem, episodes, seed: classes(problem)),
    "class_transitions": Need(
        "the transition probabilities between those classes",
        lambda problem, episodes, seed: class_transitions(problem.mdp, classes(problem)),
    ),
    "hindsight_policy": Need("the best fixed policy for the losses to come", hindsight_policy),
    "rng": Need("random numbers of its own", lambda problem, episodes, seed: streams(seed).learner),
}
