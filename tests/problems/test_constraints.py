"""Constraint functions: their law, their bound in every draw, and what is refused."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import rngs
from tightrope.errors import InvalidInputError
from tightrope.problems.constraints import Deterministic, ScaledNoise

MEAN = np.array([[0.0, 0.2, -0.4], [0.3, 0.1, 0.0]])


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
    constraints = ScaledNoise(mean, spread)
    for _ in range(20):
        xi = constraints.sample(rng) / mean
        assert np.ptp(xi, axis=1).max() < 1e-12
        assert (np.abs(xi - 1) <= spread + 1e-12).all()


def test_noise_has_the_moments_of_the_uniform_and_no_correlation(rng: np.random.Generator) -> None:
    constraints = ScaledNoise([[0.4], [0.3]], 0.4)
    xi = np.array([constraints.sample(rng)[:, 0] / [0.4, 0.3] for _ in range(20_000)])
    np.testing.assert_allclose(xi.mean(axis=0), 1, atol=0.01)
    np.testing.assert_allclose(xi.var(axis=0), 0.4**2 / 3, rtol=0.05)
    assert abs(np.corrcoef(xi.T)[0, 1]) < 0.03  # over constraints
    assert abs(np.corrcoef(xi[:-1, 0], xi[1:, 0])[0, 1]) < 0.03  # over episodes


def test_the_sum_of_bounds_holds_in_every_draw_when_it_is_tight(rng: np.random.Generator) -> None:
    constraints = ScaledNoise([[0.3, -0.1], [0.0, -0.2]], 1.0)
    for _ in range(5000):
        assert np.abs(constraints.sample(rng)).max(axis=1).sum() <= 1


def test_the_same_seed_gives_the_same_bits() -> None:
    draws = [
        np.array([constraints.sample(rng) for _ in range(50)]).tobytes()
        for constraints, rng in ((ScaledNoise(MEAN, 0.2), np.random.default_rng(5)) for _ in range(2))
    ]
    assert draws[0] == draws[1]


def test_no_constraint_at_all_is_allowed(rng: np.random.Generator) -> None:
    assert ScaledNoise(np.empty((0, 4)), 0.5).sample(rng).shape == (0, 4)
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
        ([[0.5, 0.0], [0.0, -0.5]], 0.2, "can reach 1.2 in sum .* divide the means and the budgets by 1.2"),
        ([[0.1]], -0.1, "spread is -0.1"),
        ([[0.1]], 1.1, "spread is 1.1; it must be a number from 0 to 1"),
        ([[0.1]], np.nan, "spread is nan"),
        ([[0.1]], "wide", "spread is 'wide'"),
    ],
)
def test_what_is_refused(mean: Any, spread: Any, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        ScaledNoise(mean, spread)


def test_without_noise_the_bound_is_on_the_mean_alone() -> None:
    Deterministic([[0.5, 0.0], [0.0, -0.5]])
    with pytest.raises(InvalidInputError, match=r"can reach 1\.1"):
        Deterministic([[0.5, 0.0], [0.0, -0.6]])
