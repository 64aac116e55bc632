"""Bounds of losses and constraints: against their definition, for every kind of float."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tightrope.core import within

ANY = st.floats() | st.sampled_from([0.0, -0.0, 1.0, -1.0, np.nextafter(1.0, 2.0), 5e-324, np.inf, -np.inf, np.nan])


@given(arrays(np.float64, st.integers(0, 40), elements=ANY))
def test_a_loss_is_within_its_largest_magnitude_and_no_less(values: np.ndarray) -> None:
    largest, none = np.abs(values).max(initial=0.0), np.empty((0, len(values)))
    assert within(values, none, largest) == (not np.isnan(largest))
    assert not within(values, none, np.nextafter(largest, -1.0))


@given(
    arrays(np.float64, 7, elements=st.floats(-1, 1) | ANY),
    st.integers(0, 3).flatmap(lambda n: arrays(np.float64, (n, 7), elements=st.floats(-1 / 3, 1 / 3) | ANY)),
)
def test_within_is_assumption_2(f: np.ndarray, g: np.ndarray) -> None:
    with np.errstate(invalid="ignore"):
        holds = np.abs(f).max() <= 1 and sum(np.abs(row).max() for row in g) <= 1
    assert within(f, g, 1.0) == holds
