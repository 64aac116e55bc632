"""Mixtures where the simplex method has a hard time: bases without weight, where it goes in circles or is cut off."""

import numpy as np
import pytest

from tests.conftest import FloatArray, random_mdp, random_policy
from tightrope import LayeredSpace
from tightrope.planning import dynamic_programming, hindsight
from tightrope.planning.dynamic_programming import Intervals, Mixture, best_mixture

SPACE = LayeredSpace.dense([1, 3, 3, 1], 3)
OUT_OF_REACH, ALLOWED = -6.0, 3e-9


class Circle:
    """Ten budgets of -1, 0 and 1 on a model that is all but deterministic; no policy meets them. How near can one get?

    Of 6,255 such instances, four go in circles; these are their seeds.
    """

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        mdp = random_mdp(rng, SPACE, zeros=0.95)
        g = rng.integers(-1, 2, (10, SPACE.n_tuples)).astype(np.float64)
        spare = g @ mdp.occupancy(random_policy(rng, SPACE, zeros=1.0))
        spare -= spare.min()
        self.intervals, self.alpha = Intervals.around(mdp), spare + OUT_OF_REACH
        self.D: FloatArray = SPACE.sum_over_successors(g * mdp.transitions)
        self.least_excess = float(
            (self.D @ hindsight.slackest_visits_by_highs(mdp, self.D, spare)[0] - self.alpha).max()
        )
        self.task = SPACE, self.intervals, np.zeros(SPACE.n_pairs), self.D, self.alpha, ALLOWED


@pytest.fixture(params=[709, 3419, 4115, 6254])
def circle(request: pytest.FixtureRequest) -> Circle:
    return Circle(request.param)


def test_what_goes_in_circles_is_solved_all_the_same(circle: Circle) -> None:
    assert not Mixture(*circle.task, zero=1e-4 * ALLOWED).good
    best = best_mixture(*circle.task)
    assert best.good and best.over
    assert best.excess == pytest.approx(circle.least_excess, abs=ALLOWED)
    assert best.multipliers.sum() == pytest.approx(1.0)
    assert (circle.D @ best.x - circle.alpha).max() <= circle.least_excess + ALLOWED


def test_a_truncated_simplex_run_is_accepted_only_if_accurate(circle: Circle, monkeypatch: pytest.MonkeyPatch) -> None:
    for pivots in range(1, 60):
        monkeypatch.setattr(dynamic_programming, "MAX_PIVOTS", pivots)
        best = Mixture(*circle.task, zero=1e-2 * ALLOWED)
        assert not best.good or best.excess == pytest.approx(circle.least_excess, abs=ALLOWED)
