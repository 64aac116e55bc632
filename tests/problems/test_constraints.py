"""Constraint functions: their law, their bound in every draw, and what is refused."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import FloatArray, rngs
from tightrope import InvalidInputError
from tightrope.problems.constraints import (
    NOISES,
    Bernoulli,
    BetaNoise,
    Constraints,
    CorrelatedNoise,
    Deterministic,
    Replay,
    ScaledNoise,
    largest_factor,
    make_constraints,
)

MEAN = np.array([[0.0, 0.2, -0.4], [0.3, 0.1, 0.0]])

#: Each law with options that leave room for it around MEAN / 2.
CHOICES: dict[str, dict[str, Any]] = {
    "none": {},
    "scaled": {"spread": 1.0},
    "correlated": {"spread": 0.7, "correlation": 0.5},
    "beta": {"height": 2.8, "concentration": 0.5},
    "bernoulli": {"height": 2.5},
    "replay": {"table": [MEAN / 2 + 0.05, MEAN / 2 - 0.05, MEAN / 2]},
}


def draws(constraints: Constraints, n: int, seed: int = 11) -> FloatArray:
    rng = np.random.default_rng(seed)
    return np.array([constraints.sample(rng) for _ in range(n)])


def test_deterministic_is_the_mean_and_draws_nothing() -> None:
    rng = np.random.default_rng(1)
    constraints = Deterministic(MEAN)
    np.testing.assert_array_equal(constraints.sample(rng), MEAN)
    assert rng.random() == np.random.default_rng(1).random()


@given(rngs(), st.integers(1, 4), st.floats(0, 1))
def test_a_draw_scales_each_constraint_by_one_number_within_the_spread(
    rng: np.random.Generator, n_constraints: int, spread: float
) -> None:
    mean = rng.uniform(0.1, 1, size=(n_constraints, 5)) / (2 * n_constraints)
    constraints = ScaledNoise(mean, spread=spread)
    for _ in range(20):
        xi = constraints.sample(rng) / mean
        assert np.ptp(xi, axis=1).max() < 1e-12
        assert (np.abs(xi - 1) <= spread + 1e-12).all()


def test_noise_has_the_moments_of_the_uniform_and_no_correlation(rng: np.random.Generator) -> None:
    constraints = ScaledNoise([[0.4], [0.3]], spread=0.4)
    xi = np.array([constraints.sample(rng)[:, 0] / [0.4, 0.3] for _ in range(20_000)])
    np.testing.assert_allclose(xi.mean(axis=0), 1, atol=0.01)
    np.testing.assert_allclose(xi.var(axis=0), 0.4**2 / 3, rtol=0.05)
    assert abs(np.corrcoef(xi.T)[0, 1]) < 0.03  # over constraints
    assert abs(np.corrcoef(xi[:-1, 0], xi[1:, 0])[0, 1]) < 0.03  # over episodes


def test_the_sum_of_bounds_holds_in_every_draw_when_it_is_tight(rng: np.random.Generator) -> None:
    constraints = ScaledNoise([[0.3, -0.1], [0.0, -0.2]], spread=1.0)
    for _ in range(5000):
        assert np.abs(constraints.sample(rng)).max(axis=1).sum() <= 1


def test_the_same_seed_gives_the_same_bits() -> None:
    draws = [
        np.array([constraints.sample(rng) for _ in range(50)]).tobytes()
        for constraints, rng in ((ScaledNoise(MEAN, spread=0.2), np.random.default_rng(5)) for _ in range(2))
    ]
    assert draws[0] == draws[1]


def test_no_constraint_at_all_is_allowed(rng: np.random.Generator) -> None:
    assert ScaledNoise(np.empty((0, 4)), spread=0.5).sample(rng).shape == (0, 4)
    assert Deterministic(np.empty((0, 4))).sample(rng).shape == (0, 4)


def test_the_mean_is_copied() -> None:
    mean = MEAN.copy()
    constraints = Deterministic(mean)
    mean[:] = 9.0
    np.testing.assert_array_equal(constraints.mean, MEAN)


@pytest.mark.parametrize(
    ("mean", "spread", "words"),
    [
        ([0.1, 0.2], 0.1, r"shape \(2,\)"),
        (np.empty((2, 0)), 0.1, r"shape \(2, 0\)"),
        ([[0.1, np.nan]], 0.1, "constraint 0 is nan at tuple 1"),
        ([[0.1], [np.inf]], 0.1, "constraint 1 is inf at tuple 0"),
        ([[0.5, 0.0], [0.0, -0.5]], 0.2, "noise included, sum to 1.2; .* divide the means and the budgets by 1.2"),
        ([[0.1]], -0.1, "spread is -0.1"),
        ([[0.1]], 1.1, "spread is 1.1; it must be a number from 0 to 1"),
        ([[0.1]], np.nan, "spread is nan"),
        ([[0.1]], "wide", "spread is 'wide'"),
    ],
)
def test_what_is_refused(mean: Any, spread: Any, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        ScaledNoise(mean, spread=spread)


def test_without_noise_the_bound_is_on_the_mean_alone() -> None:
    Deterministic([[0.5, 0.0], [0.0, -0.5]])
    with pytest.raises(InvalidInputError, match=r"noise included, sum to 1\.1"):
        Deterministic([[0.5, 0.0], [0.0, -0.6]])


# ------------------------------------------------------------------------------- every law, by name


def test_rounding_at_the_bound_is_forgiven_and_nothing_more() -> None:
    Deterministic([[0.5, 0.0], [0.0, -0.5 - 1e-10]])
    with pytest.raises(InvalidInputError, match="noise included, sum to 1"):
        Deterministic([[0.5, 0.0], [0.0, -0.5 - 1e-7]])


def test_there_is_an_example_of_every_law() -> None:
    assert set(CHOICES) == set(NOISES)


@pytest.mark.parametrize("name", sorted(NOISES))
def test_every_law_keeps_its_mean_and_its_bound(name: str) -> None:
    constraints = make_constraints({"name": name, **CHOICES[name]}, MEAN / 2)
    np.testing.assert_allclose(constraints.mean, MEAN / 2, atol=1e-15)
    shown = draws(constraints, 20_000)
    np.testing.assert_allclose(shown.mean(axis=0), MEAN / 2, atol=0.01)
    assert np.abs(shown).max(axis=2).sum(axis=1).max() <= 1
    factor = largest_factor({"name": name, **CHOICES[name]})
    if name != "replay":
        assert (np.abs(shown).max(axis=(0, 2)) <= factor * np.abs(MEAN / 2).max(axis=1) + 1e-12).all()
        assert (np.abs(shown).max(axis=(0, 2)) >= 0.9 * factor * np.abs(MEAN / 2).max(axis=1)).all()


@pytest.mark.parametrize("name", sorted(NOISES))
def test_every_law_repeats_with_the_seed_and_is_independent_over_episodes(name: str) -> None:
    constraints = make_constraints({"name": name, **CHOICES[name]}, MEAN / 2)
    assert draws(constraints, 50).tobytes() == draws(constraints, 50).tobytes()
    g = draws(constraints, 5000)[:, 0, 1]
    if name != "none":
        assert abs(np.corrcoef(g[:-1], g[1:])[0, 1]) < 0.05


@pytest.mark.parametrize("name", sorted(NOISES))
def test_every_law_says_what_it_is(name: str) -> None:
    constraints = make_constraints({"name": name, **CHOICES[name]}, MEAN / 2)
    shown = "".join(f", {option}={value}" for option, value in CHOICES[name].items() if option != "table")
    assert repr(constraints) == f"{type(constraints).__name__}(2 constraints{shown})"
    assert (NOISES[name].__doc__ or "").strip().partition("\n")[0].endswith((".", "."))


@given(rngs(), st.floats(1, 5), st.integers(1, 3))
def test_bernoulli_is_all_or_nothing_with_the_sign_of_the_mean(
    rng: np.random.Generator, height: float, n_constraints: int
) -> None:
    mean = rng.uniform(-1, 1, size=(n_constraints, 6)) / (n_constraints * height)
    constraints = Bernoulli(mean, height=height)
    top = height * np.abs(mean).max(axis=1, keepdims=True)
    for g in draws(constraints, 30):
        assert (np.isclose(g, 0) | np.isclose(g, np.sign(mean) * top)).all()


def test_bernoulli_has_the_variance_of_its_coins_and_none_in_common() -> None:
    mean = np.array([[0.1, 0.2, 0.4]])
    g = draws(Bernoulli(mean, height=2.0), 20_000)[:, 0]
    np.testing.assert_allclose(g.var(axis=0), mean[0] * (0.8 - mean[0]), rtol=0.05)
    assert abs(np.corrcoef(g[:, 0], g[:, 1])[0, 1]) < 0.03


def test_bernoulli_on_a_constraint_that_is_zero_everywhere() -> None:
    assert not draws(Bernoulli([[0.0, 0.0], [0.2, 0.0]]), 20)[:, 0].any()


def test_beta_has_the_moments_of_the_beta() -> None:
    """Var Beta(a, b) = ab / ((a+b)² (a+b+1)), with a = 1, b = 2 at the defaults: 1/18; times 3²."""
    xi = draws(BetaNoise([[0.3], [0.02]]), 20_000)[:, :, 0] / [0.3, 0.02]
    np.testing.assert_allclose(xi.mean(axis=0), 1, atol=0.02)
    np.testing.assert_allclose(xi.var(axis=0), 0.5, rtol=0.05)
    assert abs(np.corrcoef(xi[:, 0], xi[:, 1])[0, 1]) < 0.03
    assert np.median(xi) < 0.95  # skewed


@pytest.mark.parametrize("correlation", [0.0, 0.4, 1.0])
def test_correlation_is_what_was_asked_for(correlation: float) -> None:
    constraints = CorrelatedNoise([[0.2], [0.3], [0.1]], spread=0.5, correlation=correlation)
    xi = draws(constraints, 20_000)[:, :, 0] / [0.2, 0.3, 0.1]
    for i, j in ((0, 1), (0, 2), (1, 2)):
        assert np.corrcoef(xi[:, i], xi[:, j])[0, 1] == pytest.approx(correlation, abs=0.03)
    np.testing.assert_allclose(xi.var(axis=0), 0.5**2 / 3, rtol=0.05)


def test_replay_draws_every_row_alike() -> None:
    table = np.array([[[0.1, 0.9]], [[-0.3, 0.2]], [[0.0, 0.1]]])
    constraints = Replay(table)
    np.testing.assert_allclose(constraints.mean, table.mean(axis=0))
    shown = draws(constraints, 6000)
    rows = (shown[:, None] == table).all(axis=(2, 3)).argmax(axis=1)
    np.testing.assert_allclose(np.bincount(rows) / 6000, 1 / 3, atol=0.03)


def test_a_law_of_ones_own_is_taken_as_it_is() -> None:
    own = ScaledNoise(MEAN / 2, spread=0.5)
    assert make_constraints(own, np.zeros((1, 1))) is own
    assert largest_factor(own) == 1.0


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ("beto", "no noise 'beto'; did you mean 'beta'"),
        ({"spread": 1}, "no noise None"),
        ({"name": "none", "spread": 1}, "the noise 'none' has no option 'spread'"),
        ("replay", "the noise 'replay' needs the option 'table'"),
        ({"name": "replay", "table": MEAN}, r"table of constraints has shape \(2, 3\)"),
        (
            {"name": "replay", "table": [MEAN, 2 * MEAN]},
            "record 1 of the constraints: the largest .* sum to 1.4",
        ),
        ({"name": "correlated", "correlation": -0.5}, "correlation is -0.5"),
        ({"name": "beta", "height": 1}, "height is 1; it must be a number from 1.1"),
        ({"name": "beta", "concentration": 0}, "concentration is 0"),
        ({"name": "bernoulli", "height": 0.5}, "height is 0.5; it must be a number from 1"),
        ({"name": "bernoulli", "height": 3}, "noise included, sum to 2.1"),
        (3, "noise is 3; expected a name"),
        (ScaledNoise, "expected a name"),
    ],
)
def test_wrong_choices_are_refused_in_words(choice: Any, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        make_constraints(choice, MEAN)
