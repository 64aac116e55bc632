"""Bootstrap intervals of means over seeds, and fitted powers of T. The same input gives the same interval."""

from typing import NamedTuple

import numpy as np

from tightrope.space import FloatArray

#: How many times the seeds are resampled, and the share of the means inside the band.
RESAMPLES, LEVEL = 1000, 0.95

#: The description of the band.
SPREAD = f"{100 * LEVEL:.0f} % bootstrap interval of the mean over seeds"

#: A power of T is fitted to the last factor of ten in episodes, and to this many records at least.
DECADE, FEWEST = 10.0, 3


class Band(NamedTuple):
    """A mean over seeds and the interval around it, (n,) each; the interval is NaN with fewer than two seeds."""

    mean: FloatArray
    low: FloatArray
    high: FloatArray


class Power(NamedTuple):
    """factor · t^exponent, fitted to the mean from episode `first` on; [low, high] is the interval of the exponent."""

    exponent: float
    low: float
    high: float
    factor: float
    first: float


def band(values: FloatArray) -> Band:
    """Mean over seeds of (n_seeds, n) values, and its interval; NaN marks values that a seed does not have."""
    mean, resampled = _mean(values), _resampled(values)
    low, high = np.nanquantile(np.where(np.isnan(mean), 0.0, resampled), _tails(), axis=0)
    unknown = np.isfinite(values).sum(axis=0) < 2
    return Band(mean, np.where(unknown, np.nan, low), np.where(unknown, np.nan, high))


def power(episodes: FloatArray, values: FloatArray) -> Power | None:
    """Fit a power of t to the mean of (n_seeds, n) values, by least squares in the logarithms.

    Returns None where the mean is not positive, or there are too few records.
    """
    mean = _mean(values)
    known = np.isfinite(mean)
    if not known.any():
        return None
    used = known & (episodes >= episodes[known][-1] / DECADE)
    if used.sum() < FEWEST or (mean[used] <= 0).any():
        return None
    x = np.log(episodes[used])
    centred = x - x.mean()
    slope = centred / (centred @ centred)
    exponent = float(slope @ np.log(mean[used]))
    factor = float(np.exp(np.log(mean[used]).mean() - exponent * x.mean()))
    low = high = np.nan
    resampled = _resampled(values[:, used])
    if len(values) > 1 and (resampled > 0).all():
        low, high = np.quantile(np.log(resampled) @ slope, _tails())
    return Power(exponent, float(low), float(high), factor, float(episodes[used][0]))


def _tails() -> list[float]:
    return [(1 - LEVEL) / 2, (1 + LEVEL) / 2]


def _mean(values: FloatArray) -> FloatArray:
    """(n,) the mean over the seeds that have a value."""
    known = np.isfinite(values)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(known, values, 0.0).sum(axis=0) / known.sum(axis=0))


def _resampled(values: FloatArray) -> FloatArray:
    """(RESAMPLES, n) means over seeds drawn with replacement; NaN where none of them has a value."""
    n_seeds, known = len(values), np.isfinite(values)
    drawn = np.random.default_rng(0).multinomial(n_seeds, np.full(n_seeds, 1 / n_seeds), RESAMPLES).astype(np.float64)
    with np.errstate(invalid="ignore"):
        return np.asarray(drawn @ np.where(known, values, 0.0) / (drawn @ known))
