"""AlwaysSafe against explicit LPs over a whole run, classes worked out by hand, and that no budget is exceeded."""

from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from tests.conftest import FloatArray
from tests.learners.averages import averages, radii
from tests.learners.problems import Turns
from tests.learners.test_optimistic import episodes_of
from tightrope import LayeredMDP, LayeredSpace, Policy, Problem, make_learner, run
from tightrope.planning.dynamic_programming import Intervals, OptimisticPlan, class_transitions, classes_of
from tightrope.problems.constraints import Deterministic

SPACE = LayeredSpace.dense([1, 3, 3, 1], 2)


def factored() -> Problem:
    """States 1, 2 | 3 and 4, 5 | 6 in classes: a class leads to each with a known law, the rest is the model's secret.

    Action 0 uses 0.9 in the first class of a layer, 0.5 in the second, action 1 nothing; it is worth it in some states.
    """
    rng = np.random.default_rng(5)
    first_of = {(0, 0): 0.7, (0, 1): 0.4, (1, 0): 0.3, (1, 1): 0.8, (2, 0): 0.5, (2, 1): 0.6}  # by class and action
    kind = {0: 0, 1: 1, 2: 1, 3: 2}
    P, use = [], []
    for s, a, s_next in SPACE.tuples.tolist():
        if s >= 4:
            P.append(1.0)
        elif s_next in (3, 6):
            P.append(1 - first_of[kind[s], a])
        else:
            share = np.random.default_rng([s, a]).uniform(0.1, 0.9)
            P.append(first_of[kind[s], a] * (share if s_next in (1, 4) else 1 - share))
        use.append((1 - a) * (0.5 if s in (3, 6) else 0.9))
    return Problem(
        name="factored",
        mdp=LayeredMDP(SPACE, P),
        losses=Turns([rng.uniform(-1, 1, SPACE.n_tuples)]),
        constraints=Deterministic([use]),
        budgets=np.array([1.0]),
        constraint_names=("use",),
    )


def test_the_classes_by_hand() -> None:
    problem = factored()
    uses = np.array([[0.9, 0.0, 0.9, 0.0, 0.9, 0.0, 0.5, 0.0, 0.9, 0.0, 0.9, 0.0, 0.5, 0.0]])
    classes = classes_of(problem.mdp, uses)
    groups = [sorted(np.flatnonzero(classes == c).tolist()) for c in set(classes.tolist())]
    assert sorted(groups) == [[0], [1, 2], [3], [4, 5], [6], [7]]
    likely = class_transitions(problem.mdp, classes)
    assert likely[:6] == pytest.approx([0.7, 0.7, 0.3, 0.4, 0.4, 0.6])  # from 0, by action 0 and 1, to 1, 2, 3
    assert likely[-6:].tolist() == [1.0] * 6
    assert len(set(classes_of(problem.mdp, uses * [1, 1, 1, 1, 0.5, 1, 1, 1, 1, 1, 1, 1, 1, 1]).tolist())) == 7


class Models:
    """Measures q(s,a,s') of all models of the set: equations and inequalities over q, written out."""

    def __init__(self, box: tuple[FloatArray, FloatArray], likely: FloatArray, classes: list[int]) -> None:
        tuples = [tuple(row) for row in SPACE.tuples.tolist()]
        equal, total, below = [], [], []
        for s in range(SPACE.n_states - 1):
            row = [float(t[0] == s) - float(t[2] == s) for t in tuples]
            equal.append(row)
            total.append(float(s == 0))
        for j, (s, a, s_next) in enumerate(tuples):
            same = [float(t[:2] == (s, a)) for t in tuples]
            here = [float(t == (s, a, s_next)) for t in tuples]
            below.append([h - box[1][j] * w for h, w in zip(here, same, strict=True)])
            below.append([box[0][j] * w - h for h, w in zip(here, same, strict=True)])
            in_class = [w * float(classes[t[2]] == classes[s_next]) for w, t in zip(same, tuples, strict=True)]
            equal.append([h - likely[j] * w for h, w in zip(in_class, same, strict=True)])
            total.append(0.0)
        self.equal, self.total, self.below = np.array(equal), np.array(total), np.array(below)

    def least(self, cost: FloatArray, pi: FloatArray | None = None) -> float:
        """The least <cost, q>, of one policy if it is given."""
        equal, total = self.equal, self.total
        if pi is not None:
            state, pair = SPACE.tuples[:, 0], SPACE.pair_of_tuple
            fixed = np.array([(pair == i) - pi[i] * (state == SPACE.pairs[i, 0]) for i in range(SPACE.n_pairs)])
            equal, total = np.vstack([equal, fixed]), np.append(total, np.zeros(len(fixed)))
        answer = linprog(cost, self.below, np.zeros(len(self.below)), equal, total)
        assert answer.fun is not None
        return float(answer.fun)


def test_a_whole_run_of_always_safe() -> None:
    """Every policy is within the budget under all models, and no other is better at its price."""
    problem, K, scale = factored(), 900, 0.3
    learner: Any = make_learner("always-safe", problem, episodes=K, radius_scale=scale)
    classes, use = learner._class.tolist(), (problem.constraints.mean[0] + 1) / 2
    likely, alpha = class_transitions(problem.mdp, learner._class), (1.0 + 3) / 2
    plays = episodes_of(problem, Policy.uniform(SPACE), K)
    spent: list[float] = []
    for k, play in enumerate(plays):
        epoch, before = learner.epoch, learner.policy.probabilities
        learner.observe(play)
        if learner.epoch == epoch:
            np.testing.assert_array_equal(learner.policy.probabilities, before)
            continue
        N, M, sums = averages(problem, plays[: k + 1])
        (beta_c, beta_p), n = radii(problem, N, M, K, scale), np.maximum(N, 1)
        seen, P = SPACE.expand_to_tuples(N > 0), M / SPACE.expand_to_tuples(n)
        low, high = np.where(seen, np.maximum(P - beta_p, 0), 0), np.where(seen, np.minimum(P + beta_p, 1), 1)
        models, pi = Models((low, high), likely, classes), learner.policy.probabilities
        priced = SPACE.expand_to_tuples(sums[0] / n - beta_c) + learner.multipliers[0] * use
        most = -models.least(-use, pi)
        assert most <= alpha + 1e-6
        assert models.least(priced, pi) == pytest.approx(models.least(priced), abs=1e-6)
        spent += [most] * bool(learner.multipliers[0] > 0)
    assert len(spent) > 5 and max(spent) > alpha - 0.001


def test_the_second_half_of_a_step_by_hand() -> None:
    """From 0 to the class {1, 2} with 0.7: P(1) from 0.35 to 0.49 is 0.5 to 0.7 of that, P(2) from 0 to 1 is free."""
    learner: Any = make_learner("always-safe", factored(), episodes=10)
    low, high = np.zeros(SPACE.n_tuples), np.ones(SPACE.n_tuples)
    low[0], high[0] = 0.35, 0.49
    models = learner._halves.intervals(Intervals(low, high, np.zeros(SPACE.n_pairs)), learner._likely)
    at = learner._halves._second[:2]
    assert models.lower[at] == pytest.approx([0.5, 0.0])
    assert models.upper[at] == pytest.approx([0.7, 1.0])


def test_the_abstract_policy_by_hand() -> None:
    """q of {1, 2}: 0.2 + 0.1 of action 0, 0.1 + 0.4 of action 1; of {3}: 0.2, 0; of {4, 5}: none; of {6}: 0.3, 0.7."""
    learner: Any = make_learner("always-safe", factored(), episodes=10)
    x = np.array([0.6, 0.4, 0.2, 0.1, 0.1, 0.4, 0.2, 0.0, 0.0, 0.0, 0.0, 0.0, 0.3, 0.7])
    visits = learner._halves.costs(x)
    plan = OptimisticPlan(value=0, visits=visits, policy=learner.policy, multipliers=np.zeros(1), excess=0)
    expected = [0.6, 0.4, 0.375, 0.625, 0.375, 0.625, 1.0, 0.0, 0.5, 0.5, 0.5, 0.5, 0.3, 0.7]
    assert learner._abstract(plan).probabilities.tolist() == pytest.approx(expected)


def test_no_budget_is_ever_exceeded_and_states_of_a_class_are_told_apart_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem, T = factored(), 1500
    ground = run(problem, make_learner("always-safe", problem, episodes=T, radius_scale=0.1), episodes=T)
    monkeypatch.setattr("tightrope.learners.always_safe.TIGHTENINGS", 0)
    learner = make_learner("always-safe", problem, episodes=T, radius_scale=0.1)
    abstract = run(problem, learner, episodes=T)
    assert learner.policy[1] == learner.policy[2] and learner.policy[4] == learner.policy[5]
    for history in (ground, abstract):
        assert history["strong_violation"][-1] <= 1e-9 * T
    assert ground["regret"][-1] < 0.7 * abstract["regret"][-1]
