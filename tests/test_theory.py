"""What docs/theory.md states, held against random instances and whole runs."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import mdps, rngs
from tightrope import UCPD, Episode, LayeredMDP, make
from tightrope.confidence import CONFIDENCE_RULES
from tightrope.learners.kernels.played import believe
from tightrope.problems.base import Problem
from tightrope.projection.projector import project
from tightrope.space import FloatArray
from tightrope.streams import streams

ANYTIME = ("kl", "kl-l1", "kl-box", "kl-l1-box")


@given(mdps(), rngs(), st.sampled_from(ANYTIME))
def test_what_is_believed_lies_in_the_set(mdp: LayeredMDP, rng: np.random.Generator, name: str) -> None:
    """Lemma A: counts and the conditionals of any θ of the set, mixed, stay in it."""
    space = mdp.space
    N = rng.integers(0, 200, space.n_pairs) * rng.integers(0, 2, space.n_pairs)
    rows = [mdp.transitions[a:b] for a, b in pairwise(space.csr.pair_ptr)]
    M = np.concatenate([rng.multinomial(n, row / row.sum()) for n, row in zip(N, rows, strict=True)])
    confidence_set = CONFIDENCE_RULES[name](level=0.1)(space, N, M)
    reference, cost = rng.uniform(0.1, 1, space.n_tuples), rng.uniform(-3, 3, space.n_tuples)
    theta = project(space, reference, cost, confidence_set).theta
    P = np.empty(space.n_tuples)
    believe(space.csr.pair_ptr, N, M, theta, P)
    np.testing.assert_allclose(space.sum_over_successors(P), 1, atol=1e-12)
    assert confidence_set.violation(space, P) <= 1e-7


def spent(problem: Problem, learner: UCPD, episodes: int) -> tuple[FloatArray, FloatArray]:
    """Violation, and ‖Q‖ plus what was not known, Σ ‖θ̂ − θ̄‖₁, after every episode."""
    space, mdp, c = problem.space, problem.mdp, problem.budgets
    for_environment, for_constraints, for_adversary, _ = streams(2)
    adversary = problem.losses.begin(for_adversary)
    over, unknown = np.zeros(len(c)), 0.0
    left, right = [], []
    for t in range(1, episodes + 1):
        f, g = adversary.loss(t), problem.constraints.sample(for_constraints)
        policy, P = learner.policy, np.empty(space.n_tuples)
        believe(space.csr.pair_ptr, *learner.counts.laws, learner.theta, P)
        played = mdp.occupancy(policy)
        unknown += float(np.abs(LayeredMDP(space, P).occupancy(policy) - played).sum())
        over += g @ played - c
        states, actions = [0], []
        for _ in range(space.n_layers):
            at = np.flatnonzero(space.tuples[:, 0] == states[-1])
            j = for_environment.choice(at, p=played[at] / played[at].sum())
            actions.append(int(space.tuples[j, 1]))
            states.append(int(space.tuples[j, 2]))
        learner.observe(Episode(states, actions, f, g))
        adversary.watch(policy)
        left.append(float(np.linalg.norm(np.maximum(over, 0))))
        right.append(float(np.linalg.norm(learner.multipliers)) + unknown)
    return np.array(left), np.array(right)


@pytest.mark.parametrize("name", ["media-streaming", "river-swim", "machine-cycle"])
def test_violation_is_at_most_the_multipliers_and_what_is_not_known(name: str) -> None:
    """Lemma B, after every episode, exactly."""
    problem = make(name, losses="switching")
    learner = UCPD(problem.space, problem.budgets, episodes=150, confidence="kl", charge="played", proportional=1.0)
    violation, bound = spent(problem, learner, 150)
    assert (violation <= bound + 1e-9).all()
    assert violation.max() > 0.02 * bound.max()  # it is about something


def test_the_published_charge_does_not_see_what_is_spent() -> None:
    """Where θ believes to be within budget, Q stays small while true uses add up."""
    problem = make("media-streaming", losses="fixed")
    published = UCPD(problem.space, problem.budgets, episodes=400)
    violation, _ = spent(problem, published, 400)
    assert violation[-1] > 20 * np.linalg.norm(published.multipliers)
    played = UCPD(problem.space, problem.budgets, episodes=400, charge="played")
    violation, _ = spent(problem, played, 400)
    assert violation[-1] < 2 * np.linalg.norm(played.multipliers)
