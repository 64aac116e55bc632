"""Memory of a run in bytes per tuple: models of millions of tuples must fit."""

import sys

import pytest

from benchmarks.memory import bytes_per_tuple


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is read from /proc")
@pytest.mark.parametrize(("learner", "most"), [("ucpd", 125), ("ucpd-practical", 215)])
def test_a_run_stays_within_so_many_bytes_per_tuple(learner: str, most: float) -> None:
    assert 50 < bytes_per_tuple("early", 20, learner) <= most
