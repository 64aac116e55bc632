"""The bootstrap over seeds against a plain one, fitted powers against numpy.polyfit."""

import numpy as np
import pytest

from tightrope.lab.tables import RESAMPLES, band, power

EPISODES = np.geomspace(1, 10_000, 30)


def plain_means(values: np.ndarray) -> np.ndarray:
    """Seed by seed, as a book would tell it."""
    n_seeds = len(values)
    counts = np.random.default_rng(0).multinomial(n_seeds, [1 / n_seeds] * n_seeds, RESAMPLES)
    means = []
    for drawn in counts:
        chosen = [values[k] for k in range(n_seeds) for _ in range(drawn[k])]
        assert len(chosen) == n_seeds
        means.append(np.mean(chosen, axis=0))
    return np.array(means)


def test_band_is_the_plain_bootstrap() -> None:
    values = np.random.default_rng(1).normal(5, 2, (6, 4)).cumsum(axis=1)
    mean, low, high = band(values)
    np.testing.assert_allclose(mean, values.mean(axis=0))
    np.testing.assert_allclose([low, high], np.quantile(plain_means(values), [0.025, 0.975], axis=0))
    assert (low < mean).all() and (mean < high).all()


def test_band_covers_the_true_mean_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(2)
    _, low, high = band(rng.normal(0, 1, (30, 2000)))  # 2000 studies of 30 seeds each, all with mean 0
    assert 0.91 < np.mean((low <= 0) & (high >= 0)) < 0.96


def test_one_seed_has_no_band() -> None:
    mean, low, high = band(np.array([[1.0, 2.0]]))
    assert mean.tolist() == [1, 2] and np.isnan([low, high]).all()


def test_seeds_without_a_record_are_left_out_of_the_mean() -> None:
    mean, low, high = band(np.array([[1.0, 4.0, np.nan], [3.0, np.nan, np.nan]]))
    np.testing.assert_array_equal(mean, [2, 4, np.nan])
    np.testing.assert_array_equal([low, high], [[1, np.nan, np.nan], [3, np.nan, np.nan]])


def test_power_is_polyfit_over_the_last_decade() -> None:
    values = 3 * EPISODES**0.7 * np.random.default_rng(3).uniform(0.9, 1.1, (5, 30))
    fitted = power(EPISODES, values)
    assert fitted is not None
    late = EPISODES >= 1000
    exponent, level = np.polyfit(np.log(EPISODES[late]), np.log(values.mean(axis=0)[late]), 1)
    assert fitted.exponent == pytest.approx(exponent) and fitted.factor == pytest.approx(np.exp(level))
    assert fitted.first == EPISODES[late][0]
    slopes = [np.polyfit(np.log(EPISODES[late]), np.log(means[late]), 1)[0] for means in plain_means(values)]
    assert [fitted.low, fitted.high] == pytest.approx(np.quantile(slopes, [0.025, 0.975]).tolist())


def test_power_of_an_exact_power() -> None:
    fitted = power(EPISODES, np.array([2 * np.sqrt(EPISODES)]))
    assert fitted is not None and fitted.exponent == pytest.approx(0.5) and fitted.factor == pytest.approx(2)
    assert np.isnan(fitted.low)  # of a single seed


@pytest.mark.parametrize("values", [-EPISODES, np.full(30, np.nan), np.where(EPISODES > 9000, 0, EPISODES)])
def test_no_power_is_fitted_to_means_that_are_not_positive(values: np.ndarray) -> None:
    assert power(EPISODES, np.array([values])) is None


def test_no_power_of_two_records() -> None:
    assert power(np.array([1.0, 900.0, 1000.0]), np.array([[1.0, 2.0, 3.0]])) is None
