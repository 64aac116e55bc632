"""What docs/explanation/theory.md states, held against random instances and whole runs."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.conftest import FloatArray, mdps, random_policy, rngs
from tests.trajectories import sampled
from tests.twins import divergence, mixed
from tightrope import UCPD, Episode, LayeredMDP, LayeredSpace, Problem, make, make_learner, project, run
from tightrope.confidence import CONFIDENCE_RULES, ConfidenceSet
from tightrope.core import believe
from tightrope.streams import streams

ANYTIME = ("kl", "kl-l1", "kl-box", "kl-l1-box")


@given(mdps(), rngs(), st.sampled_from(ANYTIME))
def test_the_believed_model_lies_in_the_confidence_set(mdp: LayeredMDP, rng: np.random.Generator, name: str) -> None:
    """Lemma A: counts and the conditionals of any θ of the set, mixed, stay in it."""
    space = mdp.space
    N = rng.integers(0, 200, space.n_pairs) * rng.integers(0, 2, space.n_pairs)
    rows = [mdp.transitions[a:b] for a, b in pairwise(space.csr.pair_ptr)]
    M = np.concatenate([rng.multinomial(n, row / row.sum()) for n, row in zip(N, rows, strict=True)])
    confidence_set = CONFIDENCE_RULES[name](level=0.1)(space, N, M)
    reference, cost = rng.uniform(0.1, 1, space.n_tuples), rng.uniform(-3, 3, space.n_tuples)
    theta = project(space, reference, cost, confidence_set).theta
    P = believe(space.native, N, M, theta)
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
        policy, P = learner.policy, believe(space.native, *learner.state.counts.laws, learner.state.theta)
        played = mdp.occupancy(policy)
        unknown += float(np.abs(LayeredMDP(space, P).occupancy(policy) - played).sum())
        over += g @ played - c
        learner.observe(Episode(*sampled(space, played, for_environment), f, g))
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


def test_the_inequality_of_one_step_holds_with_the_played_charge() -> None:
    """Lemma C in every episode, for measures of the model; with it the two sums, the second up to every episode."""
    problem, T, kappa = make("machine-cycle", losses="switching"), 60, 1.0
    space, mdp, c, L = problem.space, problem.mdp, problem.budgets, problem.space.n_layers
    learner = UCPD(space, c, episodes=T, confidence="kl", charge="played", proportional=kappa)
    rng, log, total = np.random.default_rng(6), np.log(T * space.n_states**2 * space.n_actions), 0.0
    other = mdp.occupancy(random_policy(rng, space))
    nearest = np.inf
    for t in range(1, T + 1):
        f, g = problem.losses.begin(rng).loss(t), problem.constraints.sample(rng)
        theta, Q = learner.state.theta, learner.multipliers
        P = believe(space.native, *learner.state.counts.laws, theta)
        believed = LayeredMDP(space, P).occupancy(learner.policy)
        reference = mixed(space, theta, 1 / T)
        learner.observe(Episode(*sampled(space, mdp.occupancy(learner.policy), rng), f, g))
        assert learner.confidence_set.violation(space, mdp.transitions) <= 0  # or nothing is claimed
        new, e = learner.state.theta, g @ believed - c
        w, delta = Q + kappa * np.sqrt(T) * np.maximum(e, 0), np.abs(believed - new).sum()
        np.testing.assert_allclose(learner.multipliers, np.maximum(Q + e, 0), atol=1e-9)
        left = learner.V * f @ (new - other) + (learner.multipliers @ learner.multipliers - Q @ Q) / 2
        right = w @ (g @ other - c) + np.linalg.norm(Q) * delta + kappa * np.sqrt(T) / 4 * delta**2 + 2 * L**2
        gained = divergence(other, reference) - divergence(other, new)
        right += learner.alpha * (gained - divergence(new, reference))
        assert left <= right + 1e-6
        nearest = min(nearest, (right - left) / L**2)
        for a in (1.0, learner.V, 10 * learner.V):
            moved = a * np.abs(new - theta).sum() - learner.alpha * divergence(new, reference)
            assert moved <= a**2 * L / (2 * learner.alpha) + 2 * L * a / T
        total += gained
        assert total <= L * log + L
    assert nearest < 3, nearest


def test_the_published_charge_does_not_see_what_is_spent() -> None:
    """Where θ believes to be within budget, Q stays small while true uses add up."""
    problem = make("media-streaming", losses="fixed")
    published = UCPD(problem.space, problem.budgets, episodes=400)
    violation, _ = spent(problem, published, 400)
    assert violation[-1] > 20 * np.linalg.norm(published.multipliers)
    played = UCPD(problem.space, problem.budgets, episodes=400, charge="played")
    violation, _ = spent(problem, played, 400)
    assert violation[-1] < 2 * np.linalg.norm(played.multipliers)


@pytest.mark.parametrize("name", ["media-streaming", "machine-cycle"])
def test_what_practical_believes_when_it_renews_its_sets(name: str) -> None:
    """P̃ of the old conditionals is in the new set too: not proved, looked at."""
    problem = make(name)
    learner: Any = make_learner("ucpd-practical-0.2", problem, episodes=100)
    step = learner._price_step.mirror_step
    looked, renew = 0, step.rule

    def renewed(space: LayeredSpace, N: NDArray[np.int64], M: NDArray[np.int64]) -> ConfidenceSet:
        nonlocal looked
        new: ConfidenceSet = renew(space, N, M)
        P = believe(space.native, N, M, learner.state.theta)
        assert new.violation(problem.space, P) <= 1e-6
        looked += 1
        return new

    step.rule = renewed
    run(problem, learner, episodes=100, regret="never", records=1)
    assert looked > 20
