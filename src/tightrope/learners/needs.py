"""What a learner may have to be told beyond the space and the budgets, and how a problem answers.

The less a learner needs the better, so each declares it (`LearnerBase.needs`) and `make_learner` hands over exactly
that. Most of it no real system could offer; it is what a publication assumes, or makes a point of reference.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from tightrope.arithmetic import dot
from tightrope.errors import ConvergenceError
from tightrope.model import LayeredMDP, Policy
from tightrope.planning.abstraction import class_transitions, classes_of
from tightrope.planning.hindsight import slater_slack, solve_cmdp
from tightrope.space import FloatArray
from tightrope.streams import streams

#: Regret per episode at which a policy counts as the best in hindsight.
TOLERANCE = 1e-7

#: How often `hindsight_policy` may be rehearsed against an adversary that answers to the policy.
REHEARSALS = 8


class Constraints(Protocol):
    """The law of the constraints, as far as a learner may be told."""

    @property
    def mean(self) -> FloatArray:
        """(I, n_tuples)."""


class Problem(Protocol):
    """What `make_learner` reads of a problem (`tightrope.problems.base.Problem` has it all)."""

    @property
    def mdp(self) -> LayeredMDP: ...
    @property
    def budgets(self) -> FloatArray: ...
    @property
    def constraints(self) -> Constraints: ...
    @property
    def losses(self) -> Any: ...


class Need(NamedTuple):
    """One thing to know."""

    meaning: str
    answer: Callable[[Problem, int, int], Any]  # problem, number of episodes, root seed of the run


#: The share of what an episode can use by which the most slack is given up where no policy is found to have it.
ROUNDING = 1e-9


def most_slack_policy(mdp: LayeredMDP, constraints: FloatArray, budgets: FloatArray) -> Policy:
    """The policy with the largest min_i c_i − <g_i, θ>, be that below zero; of these, one of the least total use."""
    if len(budgets) == 0:
        return Policy.uniform(mdp.space)
    slack, total = slater_slack(mdp, constraints, budgets), constraints.sum(axis=0)
    try:
        return solve_cmdp(mdp, total, constraints, budgets - slack).policy
    except ConvergenceError:  # feasible but for rounding
        room = ROUNDING * mdp.space.n_layers * float(np.abs(constraints).max())
        return solve_cmdp(mdp, total, constraints, budgets - slack + room).policy


def _extremes(problem: Problem) -> FloatArray:
    """(K, I, n_tuples) what the constraints can be in expectation: one mean, unless they change."""
    g: FloatArray = getattr(problem.constraints, "extremes", problem.constraints.mean[None])
    return g


def _whatever_comes(problem: Problem) -> tuple[FloatArray, FloatArray]:
    """Constraints and budgets of who keeps the budgets under all extremes."""
    g = _extremes(problem)
    return g.reshape(-1, g.shape[2]), np.tile(problem.budgets, len(g))


def safe_policy(problem: Problem) -> Policy:
    """The policy that leaves all budgets the most slack at once."""
    return most_slack_policy(problem.mdp, *_whatever_comes(problem))


def safe_usage(problem: Problem) -> FloatArray:
    """(I,) what the safe policy spends of each budget, in expectation."""
    used: FloatArray = dot(_extremes(problem), problem.mdp.occupancy(safe_policy(problem))).max(axis=0)
    return used


def slack(problem: Problem) -> float:
    """What the safe policy leaves of every budget, at the least; inf without budgets."""
    return slater_slack(problem.mdp, *_whatever_comes(problem))


def expected_uses(problem: Problem) -> FloatArray:
    """(I, n_pairs) what each pair uses of each budget."""
    return problem.mdp.space.sum_over_successors(problem.constraints.mean * problem.mdp.transitions)


def classes(problem: Problem) -> NDArray[np.int64]:
    """(n_states,) states that the budgets cannot tell apart (`planning.abstraction`)."""
    return classes_of(problem.mdp, expected_uses(problem))


def hindsight_policy(problem: Problem, episodes: int, seed: int) -> Policy:
    """The best fixed policy within the budgets for the losses that the run with this seed will see.

    The adversary is rehearsed with the stream it will play from, against the answer of the rehearsal before. One that
    ignores the policy is known after the first; one that answers to it is rehearsed until the policy is the best
    against the losses it provokes, and if none ever is, the one that came nearest is returned.
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
    """(I, n_tuples) the average of g^1, …, g^T in the run with this seed, if the policy is played."""
    law: Any = problem.constraints  # one that changes
    regulator, total = law.begin(streams(seed).constraints), np.zeros(law.mean.shape)
    for t in range(1, episodes + 1):
        total += regulator.constraints(t)
        regulator.watch(policy)
    return total / episodes


#: Everything a learner may ask for: the name it is given by, and how a problem answers.
NEEDS: dict[str, Need] = {
    "model": Need("the true model", lambda problem, episodes, seed: problem.mdp),
    "constraint_means": Need("the means of the constraints", lambda problem, episodes, seed: problem.constraints.mean),
    "safe_policy": Need("a policy within the budgets", lambda problem, episodes, seed: safe_policy(problem)),
    "safe_usage": Need("what the safe policy spends", lambda problem, episodes, seed: safe_usage(problem)),
    "slack": Need("what a policy can leave of every budget", lambda problem, episodes, seed: slack(problem)),
    "expected_uses": Need("what each pair uses", lambda problem, episodes, seed: expected_uses(problem)),
    "classes": Need("which states budgets cannot tell apart", lambda problem, episodes, seed: classes(problem)),
    "class_transitions": Need(
        "the law between those classes",
        lambda problem, episodes, seed: class_transitions(problem.mdp, classes(problem)),
    ),
    "hindsight_policy": Need("the best fixed policy for the losses to come", hindsight_policy),
    "rng": Need("random numbers of its own", lambda problem, episodes, seed: streams(seed).learner),
}
