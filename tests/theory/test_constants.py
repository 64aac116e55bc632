"""The constants that follow from Slater's slack, by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest

import tightrope as tr
from tightrope.errors import InfeasibleError
from tightrope.learners.ucpd import UCPD
from tightrope.problems.constraints import Deterministic
from tightrope.space import LayeredSpace
from tightrope.theory import Constants


def test_constants_by_hand() -> None:
    """media-streaming: 10 steps, and whoever takes no fast step leaves all 5 of the budget."""
    assert tr.theory.constants(tr.make("media-streaming")) == Constants(slack=5.0, B=4.0, sigma=2.5, vartheta=16.0)


def test_the_default_level_is_admissible_from_a_slope_of_a_twelfth_of_the_steps() -> None:
    level = UCPD(LayeredSpace.dense([1, 1], 2), budgets=[0.5], episodes=4).level
    for L in (1, 10, 21):
        at = Constants(slack=1.0, B=1.0, sigma=L / 12, vartheta=1.0)
        assert at.largest_level(L) == pytest.approx(level)
        assert replace(at, sigma=L / 12.01).largest_level(L) < level


def test_without_constraints_there_is_nothing_to_bound() -> None:
    bound = tr.make("random")
    none, nothing = Deterministic(np.empty((0, bound.space.n_tuples))), np.empty(0)
    free = replace(bound, constraints=none, budgets=nothing, constraint_names=(), constraint_scales=nothing)
    assert tr.theory.constants(free) == Constants(slack=math.inf, B=0.0, sigma=math.inf, vartheta=0.0)
    assert tr.theory.constants(free).largest_level(3) == 0.25


def test_without_slack_there_are_none() -> None:
    problem = tr.make("media-streaming")
    for budget in (0.0, -1.0):
        with pytest.raises(InfeasibleError, match="tightrope check"):
            tr.theory.constants(replace(problem, budgets=np.array([budget])))
