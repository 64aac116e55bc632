"""The shape of the learner classes: shallow, nothing overridden, nothing that changes outside of the state."""

from dataclasses import FrozenInstanceError, fields
from types import FunctionType
from typing import Any

import numpy as np
import pytest

from tightrope import Policy, make_learner
from tightrope.checks.worlds import drive, ordinary_world
from tightrope.learners import LEARNERS
from tightrope.learners.fixed import Uniform
from tightrope.storage.state import State

WORLD = ordinary_world()


def ancestors(kind: type) -> list[type]:
    """The classes of this package that `kind` derives from."""
    return [base for base in kind.__mro__[1:] if base.__module__.startswith("tightrope")]


def overridden(kind: type) -> list[str]:
    """The methods and properties of a class that an ancestor has too, and not as an abstract method."""
    methods = {name for name, value in vars(kind).items() if isinstance(value, FunctionType | property | classmethod)}
    ours = {name for name in methods if not name.startswith("__")}  # dataclasses make the others
    return [
        f"{kind.__name__}.{name} overrides {base.__name__}.{name}"
        for base in ancestors(kind)
        for name in sorted(ours & vars(base).keys())
        if not getattr(vars(base)[name], "__isabstractmethod__", False)
    ]


@pytest.mark.parametrize("name", LEARNERS)
def test_no_class_has_more_than_three_ancestors_or_overrides_a_concrete_method(name: str) -> None:
    state = type(make_learner(name, WORLD, episodes=12).state)
    for kind in (LEARNERS[name], *ancestors(LEARNERS[name]), state, *ancestors(state)):
        assert len(ancestors(kind)) <= 3
        assert overridden(kind) == []


def test_an_override_is_found() -> None:
    class Loud(Uniform):
        def observe(self, episode: Any) -> None:
            super().observe(episode)

        def configure(self) -> None:
            super().configure()

    found = ["Loud.configure overrides Uniform.configure", "Loud.observe overrides LearnerBase.observe"]
    assert sorted(overridden(Loud)) == found
    assert len(ancestors(Loud)) == 3


@pytest.mark.parametrize("name", LEARNERS)
def test_an_episode_replaces_the_state_without_changing_the_old_one(name: str) -> None:
    learner = make_learner(name, WORLD, episodes=12)
    drive(WORLD, learner, last=3)
    before, copies = learner.state, [_bytes(value) for value in _values(learner.state)]
    drive(WORLD, learner, first=4, last=8)
    assert (before.observed, learner.observed) == (3, 8)
    assert [_bytes(value) for value in _values(before)] == copies
    with pytest.raises(FrozenInstanceError):
        before.observed = 4


@pytest.mark.parametrize("name", LEARNERS)
def test_a_learner_continues_from_an_earlier_state(name: str) -> None:
    """Bit for bit, also if it was elsewhere in between."""
    learner = make_learner(name, WORLD, episodes=12)
    drive(WORLD, learner, last=4)
    before = learner.state
    once = drive(WORLD, learner, first=5, last=8)
    learner.state = before
    again = drive(WORLD, learner, first=5, last=8)
    for (p, Q, epoch), (p_, Q_, epoch_) in zip(once, again, strict=True):
        assert (p.tobytes(), Q.tobytes(), epoch) == (p_.tobytes(), Q_.tobytes(), epoch_)


def _values(state: State) -> list[Any]:
    return [getattr(state, field.name) for field in fields(state)]


def _bytes(value: Any) -> Any:
    """Return what can be compared later, when the value may have changed."""
    if isinstance(value, np.random.Generator):
        return str(value.bit_generator.state)
    if isinstance(value, Policy):
        return value.probabilities.tobytes()
    if hasattr(value, "state"):
        return {name: np.asarray(part).tobytes() for name, part in value.state().items()}
    return np.asarray(value).tobytes()
