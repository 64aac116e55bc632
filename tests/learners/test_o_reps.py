"""O-REPS and UC-O-REPS: one is the other with a point for a set, both are UCPD without budgets, and they learn."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.learners.over_pairs import OverPairs
from tests.learners.problems import Turns, problem_with
from tightrope import (
    UCPD,
    ConvergenceError,
    Episode,
    InvalidInputError,
    KnownModel,
    LayeredSpace,
    Problem,
    make,
    make_learner,
    run,
)
from tightrope.checks.worlds import WORLDS, World
from tightrope.learners.o_reps import OREPS
from tightrope.learners.uc_o_reps import UCOREPS
from tightrope.projection.projector import Projector

#: The largest mixing that changes nothing at all: λ·uniform is below half a unit in the last place of any θ here.
NO_MIXING = 1e-200


def episodes_of(at: World, learner: Any, number: int = 30) -> Iterator[Episode]:
    for t in range(1, number + 1):
        yield at.play(learner.policy, "full", t, np.random.default_rng([5, t]))


@pytest.fixture(params=["a_dense_space_without_constraints", "transitions_of_probability_zero"])
def at(request: pytest.FixtureRequest) -> World:
    return WORLDS[request.param]()


def test_uc_o_reps_is_ucpd_without_budgets_bit_for_bit() -> None:
    at = WORLDS["a_dense_space_without_constraints"]()
    ours = UCOREPS(at.space, [], episodes=30, learning_rate=0.3, radius_scale=0.2)
    ucpd = UCPD(at.space, [], episodes=30, alpha=1.0, V=0.3, mixing=NO_MIXING, radius_scale=0.2)
    for episode in episodes_of(at, ours):
        np.testing.assert_array_equal(ours.state.theta, ucpd.state.theta)
        np.testing.assert_array_equal(ours.policy.probabilities, ucpd.policy.probabilities)
        assert ours.epoch == ucpd.epoch
        ours.observe(episode)
        ucpd.observe(episode)
    assert ours.epoch > 5


def test_o_reps_is_uc_o_reps_with_a_point_for_a_set(at: World) -> None:
    known = OREPS(at.space, at.budgets, episodes=30, model=at.mdp)
    point = UCOREPS(
        at.space, at.budgets, episodes=30, confidence=KnownModel(transitions=at.mdp.transitions),
        learning_rate=known.learning_rate,
    )  # fmt: skip
    point.state = replace(point.state, theta=known.state.theta)  # they start elsewhere
    for episode in episodes_of(at, known):
        known.observe(episode)
        point.observe(episode)
        np.testing.assert_allclose(known.state.theta, point.state.theta, atol=1e-8)


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
def test_o_reps_against_a_conic_solver(at: World) -> None:
    """The published lines over pairs: q_1 of largest entropy, then η<f, q> + D(q, q_t), all within the model."""
    learner = OREPS(at.space, at.budgets, episodes=30, model=at.mdp, learning_rate=0.4)
    measures = OverPairs(at.mdp)
    q = measures.largest_entropy()
    for episode in episodes_of(at, learner, number=5):
        np.testing.assert_allclose(at.space.sum_over_successors(learner.state.theta), q, atol=2e-6)
        learner.observe(episode)
        f = at.space.sum_over_successors(np.asarray(episode.loss) * at.mdp.transitions)
        q = measures.nearest(q, 0.4 * f)


def test_the_known_measure_is_the_true_one(at: World) -> None:
    learner = OREPS(at.space, at.budgets, episodes=30, model=at.mdp)
    for episode in episodes_of(at, learner):
        np.testing.assert_allclose(learner.state.theta, at.mdp.occupancy(learner.policy), atol=1e-8)
        learner.observe(episode)
    assert learner.epoch == 1


@pytest.mark.parametrize("name", ["o-reps", "uc-o-reps"])
def test_budgets_and_constraints_are_not_looked_at(name: str) -> None:
    at = WORLDS["a_sparse_space"]()
    one = make_learner(name, at, episodes=30)
    other = make_learner(name, World(at.mdp, at.scenarios, -at.mean, at.budgets / 7), episodes=30)
    for episode in episodes_of(at, one):
        np.testing.assert_array_equal(one.policy.probabilities, other.policy.probabilities)
        one.observe(episode)
        other.observe(Episode(episode.states, episode.actions, episode.loss, -np.asarray(episode.constraints)))
        assert not one.multipliers.any()


@pytest.mark.parametrize("seed", range(3))
def test_o_reps_keeps_its_theorem(seed: int) -> None:
    """Regret against the best policy (no budgets) is at most 2L sqrt(T log(|S||A|/L)), for certain."""
    problem = problem_with(0, seed=seed, period=40)
    for T in (20, 400):
        history = run(problem, "o-reps", episodes=T, seed=seed)
        bound = 2 * 3 * np.sqrt(T * np.log(8 * 2 / 3))
        assert history["regret"][-1] <= bound
        assert history["regret"].min() > -bound


def adversarial(space: LayeredSpace) -> Problem:
    """A scenario that prefers action 0, then for longer and longer not: a leader would always be late."""
    f = space.expand_to_tuples(np.where(space.pairs[:, 1] == 0, -0.5, 0.5))
    return problem_with(0, space=space, losses=Turns([f, -f, -f], period=5))


@pytest.mark.parametrize("name", ["o-reps", "uc-o-reps", "ucpd", "ucpd-known"])
def test_regret_per_episode_falls(name: str) -> None:
    problem = adversarial(LayeredSpace.dense([1, 2, 1], 2))
    per_episode = [run(problem, name, episodes=T)["regret"][-1] / T for T in (60, 600, 6000)]
    assert per_episode[0] > 1.5 * per_episode[1] > 3 * per_episode[2] > 0


def test_a_measure_that_vanishes_is_no_trouble() -> None:
    """A learning rate so large that mass underflows: the reference stays positive and all goes on."""
    at = WORLDS["a_dense_space_without_constraints"]()
    learner = UCOREPS(at.space, [], episodes=30, learning_rate=25.0)
    for episode in episodes_of(at, learner, number=60):
        learner.observe(Episode(episode.states, episode.actions, at.scenarios[0], np.zeros((0, at.space.n_tuples))))
    assert (at.space.uniform() > 1e3 * learner.state.theta).any()
    assert np.isfinite(learner.state.theta).all()


def test_a_failed_projection_leaves_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    at = WORLDS["a_dense_space_without_constraints"]()
    learner = UCOREPS(at.space, [], episodes=30)
    twin = UCOREPS(at.space, [], episodes=30)

    def fail(*args: object) -> None:
        raise ConvergenceError("not this time")

    for episode in episodes_of(at, learner, number=8):
        with monkeypatch.context() as patch:
            patch.setattr(Projector, "solve", fail)
            with pytest.raises(ConvergenceError):
                learner.observe(episode)
        learner.observe(episode)
        twin.observe(episode)
        np.testing.assert_array_equal(learner.state.theta, twin.state.theta)
        np.testing.assert_array_equal(learner.state.counts.totals()[1], twin.state.counts.totals()[1])
        assert (learner.epoch, learner.observed) == (twin.epoch, twin.observed)


def test_wrong_parameters_are_refused() -> None:
    space = LayeredSpace.dense([1, 2, 1], 2)
    for wrong, words in (
        ({"learning_rate": 0.0}, "learning_rate is 0"),
        ({"learning_rate": np.nan}, "learning_rate is nan"),
        ({"level": 1.0}, "level is 1"),
        ({"radius_scale": -1.0}, "radius_scale is -1"),
        ({"confidence": "wide"}, "no confidence rule 'wide'"),
        ({"episodes": 0}, "episodes is 0"),
    ):
        with pytest.raises(InvalidInputError, match=words):
            UCOREPS(space, [], **{"episodes": 5} | wrong)


@pytest.mark.parametrize("rate", [1.0, 3.0])
@pytest.mark.parametrize("name", ["river-swim", "media-streaming"])
def test_weights_that_fall_for_ever_do_not_end_a_run(name: str, rate: float) -> None:
    """What 100,000 episodes do at the published rate: nothing is mixed in, and unwanted mass falls without end."""
    problem = make(name)
    learner = UCOREPS(problem.space, problem.budgets, episodes=1000, learning_rate=rate)
    run(problem, learner, episodes=1500, regret="never")
    assert learner.observed == 1500
    assert learner.state.theta.min() < 1e-100  # it did get there
