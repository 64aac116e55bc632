"""Constraints that change: the values of each sequence, by hand; and that every problem takes them."""

from typing import Any

import numpy as np
import pytest

from tests.conftest import FloatArray
from tests.problems.suite import make_or_skip
from tightrope import InvalidInputError, LayeredMDP, LayeredSpace, Policy, checks
from tightrope.problems.constraints import CHANGING, ChangingConstraints, Draws, largest_factor, make_constraints

MEAN = np.array([[0.2, 0.4, -0.1, 0.0], [0.1, 0.0, 0.0, 0.2]])
CHEAP, DEAR = 0.5 * MEAN, 1.5 * MEAN

#: What each needs beyond its defaults.
TABLE = np.stack([MEAN, -MEAN, 0 * MEAN])
NEEDED: dict[str, dict[str, Any]] = {"recorded": {"table": TABLE}}


def made(name: str, mean: FloatArray = MEAN, mdp: LayeredMDP | None = None, **options: Any) -> ChangingConstraints:
    law = make_constraints({"name": name, **NEEDED.get(name, {}), **options}, mean, mdp)
    assert isinstance(law, ChangingConstraints)
    return law


def played(law: ChangingConstraints, episodes: int, seed: int = 0) -> FloatArray:
    play = law.begin(np.random.default_rng(seed))
    return np.array([play.constraints(t) for t in range(1, episodes + 1)])


def test_switching_is_cheap_first_and_dear_then() -> None:
    expected = np.array([CHEAP, CHEAP, DEAR, DEAR, CHEAP])
    np.testing.assert_allclose(played(made("switching", period=2), 5), expected)
    np.testing.assert_allclose(played(made("switching", period=1, swing=0.25), 2), [0.75 * MEAN, 1.25 * MEAN])


def test_drifting_goes_to_and_fro_and_averages_to_the_mean() -> None:
    g = played(made("drifting", period=8), 8)
    np.testing.assert_allclose(g[0], CHEAP)
    np.testing.assert_allclose(g[2], MEAN, atol=1e-15)  # a quarter of the way round
    np.testing.assert_allclose(g[4], DEAR)
    np.testing.assert_allclose(g.mean(axis=0), MEAN, atol=1e-15)


@pytest.mark.parametrize("name", ["random-walk", "bursts"])
def test_what_is_drawn_lies_between_cheap_and_dear_and_moves(name: str) -> None:
    options: dict[str, Any] = {"step": 0.3} if name == "random-walk" else {"rate": 0.2, "length": 3}
    g = played(made(name, **options), 200)
    factor = g[:, :1, :1] / MEAN[0, 0]
    np.testing.assert_allclose(g, factor * MEAN, atol=1e-15)  # one number for all that is used in an episode
    assert factor[0] == pytest.approx(0.5)
    assert 0.5 - 1e-12 <= factor.min() < 0.6
    assert 1.4 < factor.max() <= 1.5 + 1e-12
    np.testing.assert_array_equal(g, played(made(name, **options), 200))
    assert (g != played(made(name, **options), 200, seed=1)).any()


def test_recorded_rows_come_in_their_order() -> None:
    np.testing.assert_array_equal(played(made("recorded"), 5), TABLE[[0, 1, 2, 0, 1]])
    held = made("recorded", after="hold")
    np.testing.assert_array_equal(played(held, 5), TABLE[[0, 1, 2, 2, 2]])
    np.testing.assert_array_equal(held.mean, TABLE[0])
    np.testing.assert_array_equal(held.extremes, TABLE)


def test_the_chaser_makes_dear_where_the_learner_goes() -> None:
    """Two actions in each of two states; the policy takes the first, then mixes. û by hand, memory of 4 episodes."""
    space = LayeredSpace.dense([1, 1, 1], 2)
    mdp = LayeredMDP(space, np.ones(4))
    play = made("chaser", mdp=mdp, memory=4, swing=0.5).begin(np.random.default_rng(0))
    first, mixed = Policy(space, np.array([1.0, 0, 1, 0])), Policy(space, np.array([0.25, 0.75, 1, 0]))
    np.testing.assert_allclose(play.constraints(1), CHEAP)  # no pair was visited yet
    play.watch(first)
    np.testing.assert_allclose(play.constraints(2), MEAN * [1.5, 0.5, 1.5, 0.5])
    play.watch(mixed)
    # u: 1/4, then 1/4 + (1/4 − 1/4)/4 = 1/4 for the first action, 3/16 for the second: û = 1 and 3/4
    np.testing.assert_allclose(play.constraints(3), MEAN * [1.5, 1.25, 1.5, 0.5])


@pytest.mark.parametrize("name", ["machine-cycle", "edge-cloud"])
@pytest.mark.parametrize("noise", sorted(set(CHANGING) - {"recorded"}))
def test_problems_can_be_played_under_every_sequence(name: str, noise: str) -> None:
    problem, quiet = make_or_skip(name, noise=noise), make_or_skip(name, noise="none")
    assert problem.changing
    assert not quiet.changing
    assert largest_factor(noise) == 1.5
    checks.check_constraints_are_within_assumption_2(problem)
    checks.check_constraints_repeat_with_the_seed(problem)
    checks.check_constraints_stay_between_their_extremes(problem)
    checks.check_playing_changes_nothing(problem)
    np.testing.assert_allclose(problem.use_in_units(problem.budgets), quiet.use_in_units(quiet.budgets))
    np.testing.assert_allclose(
        problem.use_in_units(problem.constraints.mean.T), quiet.use_in_units(quiet.constraints.mean.T), atol=1e-12
    )


def test_a_law_is_played_by_its_draws() -> None:
    problem = make_or_skip("edge-cloud")
    one, other = np.random.default_rng(3), np.random.default_rng(3)
    play = problem.begin_constraints(one)
    assert isinstance(play, Draws)
    for t in (1, 2, 3):
        np.testing.assert_array_equal(play.constraints(t), problem.constraints.sample(other))
        play.watch(Policy.uniform(problem.space))


@pytest.mark.parametrize(
    ("choice", "mean", "words"),
    [
        ({"name": "switching", "swing": 1.5}, MEAN, "swing is 1.5"),
        (
            {"name": "switching", "swing": 0.5},
            1.2 * MEAN,
            r"noise included, sum to 1.08",
        ),
        ({"name": "drifting", "step": 0.5}, MEAN, "the noise 'drifting' has no option 'step'"),
        (
            {"name": "recorded", "table": [3 * MEAN]},
            MEAN,
            "record 0 of the constraints: the largest .* sum to 1.8",
        ),
        ({"name": "recorded", "table": np.empty((0, 2, 4))}, MEAN, "the table of constraints has no records"),
        ({"name": "chaser", "memory": 0}, MEAN, "memory is 0"),
        ("waves", MEAN, "there is no noise 'waves'"),
    ],
)
def test_what_cannot_be_is_refused(choice: Any, mean: FloatArray, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        make_constraints(choice, mean)


def test_what_changes_is_not_drawn() -> None:
    with pytest.raises(InvalidInputError, match=r"change in time; use problem.begin_constraints\(rng\)"):
        made("switching").sample(np.random.default_rng(0))
    with pytest.raises(InvalidInputError, match="need the model"):
        made("chaser").begin(np.random.default_rng(0))
