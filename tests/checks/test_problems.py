"""The public checks: each of them finds what it is there to find."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tightrope as tr
from tests.conftest import FloatArray
from tightrope import LayeredMDP, LayeredSpace, Policy, Problem, checks
from tightrope.problems.constraints import ScaledNoise
from tightrope.problems.constraints.changing import Mixed, switching
from tightrope.problems.losses import IID

SPACE = LayeredSpace.dense([1, 2, 1], 2)
MEAN = np.linspace(0.05, 0.4, 8)[None]


def sound() -> Problem:
    return Problem(
        name="sound",
        mdp=LayeredMDP(SPACE, [0.5, 0.5, 0.25, 0.75, 1, 1, 1, 1]),
        losses=IID(np.random.default_rng(0).uniform(-1, 1, (3, 8))),
        constraints=ScaledNoise(MEAN, spread=0.5),
        budgets=np.array([0.4]),
        constraint_names=("use",),
    )


class OwnLosses:
    """f^t by a function of the episode and of a generator, whose memory is shared by all plays."""

    name = "own"

    def __init__(self, loss: Callable[[int, np.random.Generator], FloatArray]) -> None:
        self.function = loss

    def begin(self, rng: np.random.Generator) -> "OwnLosses":
        self.rng = rng
        return self

    def loss(self, episode: int) -> FloatArray:
        return self.function(episode, self.rng)

    def watch(self, policy: Policy) -> None: ...


class OwnConstraints:
    """g^t by a function of a generator; memory may be kept in `last`."""

    def __init__(self, sample: Callable[["OwnConstraints", np.random.Generator], FloatArray]) -> None:
        self.mean = MEAN.copy()
        self.last = MEAN.copy()
        self.function = sample

    def sample(self, rng: np.random.Generator) -> FloatArray:
        return self.function(self, rng)


def reused_buffer() -> OwnLosses:
    buffer = np.zeros(8)

    def loss(episode: int, rng: np.random.Generator) -> FloatArray:
        buffer[:] = rng.uniform(-1, 1, 8)
        return buffer

    return OwnLosses(loss)


def forgets_to_begin_anew() -> OwnLosses:
    asked = [0]

    def loss(episode: int, rng: np.random.Generator) -> FloatArray:
        asked[0] += 1
        return np.full(8, np.sin(asked[0]))

    return OwnLosses(loss)


def remembers(own: OwnConstraints, rng: np.random.Generator) -> FloatArray:
    """Each draw is close to the one before; on average it is the mean."""
    noise = rng.uniform(0.5, 1.5) * MEAN
    own.last = 0.9 * own.last + 0.1 * noise
    return own.last


def writes_to_its_mean(own: OwnConstraints, rng: np.random.Generator) -> FloatArray:
    g: FloatArray = rng.uniform(0.5, 1.5) * own.mean
    own.mean *= 1.0000001
    return g


def broken(problem: Problem, **parts: Any) -> Problem:
    """A problem with parts exchanged behind its back, past the checks that it makes itself."""
    problem = replace(problem)
    for name, part in parts.items():
        object.__setattr__(problem, name, part)
    return problem


def with_transitions(values: list[float]) -> Problem:
    mdp = LayeredMDP(SPACE, [0.5, 0.5, 0.25, 0.75, 1, 1, 1, 1])
    mdp.transitions = np.array(values)
    return broken(sound(), mdp=mdp)


def losses(loss: Callable[[int, np.random.Generator], FloatArray]) -> Problem:
    return broken(sound(), losses=OwnLosses(loss))


def constraints(sample: Callable[[OwnConstraints, np.random.Generator], FloatArray]) -> Problem:
    return broken(sound(), constraints=OwnConstraints(sample))


def larger_than_it_says() -> Mixed:
    law = switching(MEAN, period=10)
    law.extremes = 0.9 * law.extremes
    return law


#: Which check must complain about what, and in which words.
BROKEN: list[tuple[Any, Callable[[], Problem], str]] = [
    (
        checks.check_names_tell_states_and_actions_apart,
        lambda: replace(sound(), state_names=("a", "b", "b", "c")),
        "two states are called 'b'",
    ),
    (
        checks.check_names_tell_states_and_actions_apart,
        lambda: replace(sound(), action_names=("", "go")),
        "action 0 has an empty name",
    ),
    (
        checks.check_transitions_are_distributions,
        lambda: with_transitions([0.5, 0.4, 0.25, 0.75, 1, 1, 1, 1]),
        "probabilities from 0 under 0 are 0.1 off one",
    ),
    (
        checks.check_transitions_are_distributions,
        lambda: with_transitions([1.5, -0.5, 0.25, 0.75, 1, 1, 1, 1]),
        "probability of 0 → 0 → 2 is -0.5",
    ),
    (
        checks.check_every_state_can_be_reached,
        lambda: with_transitions([1, 0, 1, 0, 1, 1, 1, 1]),
        "2 is reached with probability 0 by every policy",
    ),
    (
        checks.check_budgets_are_within_assumption_2,
        lambda: broken(sound(), budgets=np.array([-2.5])),
        "more than 2 steps",
    ),
    (checks.check_budgets_can_be_met, lambda: broken(sound(), budgets=np.array([0.2])), "every policy exceeds some"),
    (checks.check_units_lead_there_and_back, lambda: broken(sound(), loss_scale=-1.0), "loss_scale is -1"),
    (
        checks.check_units_lead_there_and_back,
        lambda: broken(sound(), constraint_scales=np.ones(2)),
        r"constraint_scales has shape \(2,\)",
    ),
    (
        checks.check_losses_are_within_assumption_2,
        lambda: losses(lambda t, rng: np.full(8, 1.0 if t < 90 else 1.5)),
        "loss of episode 90 is 1.5 at tuple 0",
    ),
    (
        checks.check_losses_are_within_assumption_2,
        lambda: losses(lambda t, rng: np.full(8, np.nan)),
        "loss of episode 1 is nan",
    ),
    (
        checks.check_losses_are_within_assumption_2,
        lambda: losses(lambda t, rng: np.zeros(7)),
        r"loss of episode 1 has shape \(7,\)",
    ),
    (
        checks.check_losses_are_within_assumption_2,
        lambda: losses(lambda t, rng: np.zeros(8, dtype=np.float32)),
        "of float32, not float64",
    ),
    (
        checks.check_losses_repeat_with_the_seed,
        lambda: broken(sound(), losses=forgets_to_begin_anew()),
        "differs in a second run with the same seed",
    ),
    (
        checks.check_losses_handed_out_stay_as_they_were,
        lambda: broken(sound(), losses=reused_buffer()),
        "loss of episode 1 was changed after",
    ),
    (
        checks.check_constraints_are_within_assumption_2,
        lambda: constraints(lambda own, rng: 3 * MEAN),
        "entries of draw 1 of the constraints sum to 1.2",
    ),
    (
        checks.check_constraints_are_within_assumption_2,
        lambda: constraints(lambda own, rng: MEAN[0]),
        r"has shape \(8,\), not \(1, 8\)",
    ),
    (
        checks.check_constraints_repeat_with_the_seed,
        lambda: constraints(remembers),
        "draw 1 of the constraints differs for the same seed",
    ),
    (
        checks.check_constraints_stay_between_their_extremes,
        lambda: replace(sound(), constraints=larger_than_it_says()),
        "in episode 11 a policy uses more than under any of the extremes",
    ),
    (
        checks.check_constraints_average_to_their_mean,
        lambda: constraints(lambda own, rng: rng.uniform(0.8, 1.5) * MEAN),
        "differs from that of their mean",
    ),
    (
        checks.check_constraints_are_independent_from_episode_to_episode,
        lambda: constraints(remembers),
        "successive draws have a correlation of 0.[89]",
    ),
    (
        checks.check_playing_changes_nothing,
        lambda: constraints(writes_to_its_mean),
        "the mean of the constraints changed",
    ),
]


def test_a_sound_problem_passes_and_the_names_of_the_checks_come_back() -> None:
    assert checks.check_problem(sound()) == [check.__name__ for check in checks.yield_problem_checks()]


@pytest.mark.parametrize(("check", "make", "words"), BROKEN)
def test_each_check_finds_the_fault_that_it_is_for(check: Any, make: Callable[[], Problem], words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        check(make())
    check(sound())


def test_every_check_has_found_something_and_says_what_it_promises() -> None:
    known = list(checks.yield_problem_checks())
    assert {check for check, _, _ in BROKEN} == set(known)
    assert all(check.__doc__ for check in known)
    assert len({check.__name__ for check in known}) == len(known)


def test_check_problem_says_which_check_and_which_problem() -> None:
    with pytest.raises(AssertionError) as caught:
        checks.check_problem(broken(sound(), budgets=np.array([0.2])))
    assert caught.value.__notes__ == ["(check_budgets_can_be_met of tightrope.checks, on 'sound')"]


def test_the_checks_are_public() -> None:
    assert tr.checks is checks
    assert "checks" in dir(tr)
    assert set(checks.__all__) >= {"check_problem", "yield_problem_checks"}


def test_a_problem_without_constraints_passes() -> None:
    problem = replace(
        sound(),
        constraints=ScaledNoise(np.empty((0, 8))),
        budgets=np.empty(0),
        constraint_names=(),
        constraint_scales=np.empty(0),
    )
    checks.check_problem(problem)
