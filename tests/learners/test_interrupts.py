"""An interrupt at any moment leaves a learner with the whole of an episode, or with none of it."""

from contextlib import suppress
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from tests.tracing import interrupted_after
from tightrope import make_learner
from tightrope.checks.worlds import drive, ordinary_world
from tightrope.learners import LEARNERS, LearnerBase

#: Of the moments of an episode every so many-th is tried, and each of the last ones.
STRIDE = 7


def state_of(learner: LearnerBase) -> list[Any]:
    """All that it has learnt: its state, where solvers begin included, what it plays, and what that costs."""
    parts: list[Any] = [learner.policy.probabilities.tobytes(), learner.multipliers.tobytes(), learner.epoch]
    for field in fields(learner.state):
        value = getattr(learner.state, field.name)
        if isinstance(value, np.random.Generator):
            parts.append(value.bit_generator.state)
        else:
            inner = value.state().values() if hasattr(value, "state") else [getattr(value, "probabilities", value)]
            parts += [np.asarray(part).tobytes() for part in inner]
    return parts


@pytest.mark.parametrize("name", LEARNERS)
def test_an_episode_is_learnt_whole_or_not_at_all(name: str) -> None:
    at = ordinary_world()

    def after_three() -> LearnerBase:
        learner = make_learner(name, at, episodes=12)
        drive(at, learner, last=3)
        return learner

    learner = after_three()
    none = state_of(learner)
    episode = at.play(learner.policy, learner.feedback, 4, np.random.default_rng([9, 4]))
    with interrupted_after(0) as count:
        learner.observe(episode)
    whole, moments = state_of(learner), count[0]
    assert none != whole
    assert moments > 50

    learner = after_three()
    offset = 1 + sorted(LEARNERS).index(name) % STRIDE
    for moment in [*range(offset, moments - 20, STRIDE), *range(moments - 20, moments + 1)]:
        with suppress(KeyboardInterrupt), interrupted_after(moment):
            learner.observe(episode)
        now = state_of(learner)
        assert now in (none, whole), f"half an episode after an interrupt at moment {moment} of {moments}"
        if now == whole:
            learner = after_three()
