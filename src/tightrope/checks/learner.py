"""The contract of a learner as small named checks, for `tightrope.checks`.

Each plays a few episodes on a small world and raises an AssertionError with the promise and what happened instead.
A learner without `save` skips the checks of saving.
"""

import copy
import gc
import inspect
import itertools
import json
import math
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tightrope.arguments import function
from tightrope.checks.problems import passed
from tightrope.checks.worlds import (
    EPISODES,
    Checks,
    LearnerCheck,
    World,
    arrays,
    drive,
    new,
    now,
    ordinary_world,
    same,
)
from tightrope.errors import InvalidInputError
from tightrope.learners import BanditEpisode, Episode, Maker, load, make_learner
from tightrope.learners.base import Learner
from tightrope.model import Policy
from tightrope.space import FloatArray


def check_learner(learner: str | Maker) -> list[str]:
    """Run every check on a learner.

    Parameters
    ----------
    learner : the name of a learner, or a function make(problem, *, episodes, seed) that returns a new one.

    Returns
    -------
    list : the names of the checks, all passed.

    Raises
    ------
    AssertionError : by the first check that fails, with the promise and what happened instead.
    """
    if isinstance(learner, type):
        words = "make(problem, *, episodes, seed) that returns a new one"
        raise InvalidInputError(f"learner is the class {learner.__name__}; expected a name, or a function {words}")
    make: Maker = partial(make_learner, learner) if isinstance(learner, str) else function(learner, "learner")
    return passed(yield_learner_checks(saving=hasattr(new(make)[1], "save")), make)


def yield_learner_checks(*, saving: bool = True) -> Iterator[LearnerCheck]:
    """Yield the checks of a learner, each a function of its maker; the checks of saving are included if `saving`."""
    yield from checks
    if saving:
        yield from saving_checks


# --------------------------------------------------------------------------------------------- behaviour

checks = Checks()


@checks
def check_it_says_what_feedback_it_takes(make: Maker) -> None:
    _, learner = new(make)
    assert learner.feedback in ("full", "bandit"), f"feedback is {learner.feedback!r}; it is 'full' or 'bandit'"


@checks
def check_it_is_made_for_the_space_and_the_budgets(make: Maker) -> None:
    at, learner = new(make)
    assert learner.space == at.space, "its space is not the one that it was given"
    assert np.array_equal(learner.budgets, at.budgets), f"its budgets are {learner.budgets}, given were {at.budgets}"


@checks
def check_it_has_budgets_of_its_own(make: Maker) -> None:
    at = ordinary_world()
    given = at.budgets.copy()
    _, learner = new(make, replace(at, budgets=given))
    given[:] = 0.0
    assert np.array_equal(learner.budgets, at.budgets), "its budgets changed when the caller's array did"


@checks
def check_the_policy_is_a_distribution_at_every_state(make: Maker) -> None:
    at, learner = new(make)

    def look(t: int) -> None:
        assert learner.policy.space == at.space, f"episode {t}: the policy belongs to another space"
        _is_policy(at, learner.policy.probabilities, f"in episode {t}")

    drive(at, learner, between=look)
    look(EPISODES + 1)


@checks
def check_looking_at_the_policy_changes_nothing(make: Maker) -> None:
    at, learner = new(make)
    _, twin = new(make)

    def look(t: int) -> None:
        one, two = learner.policy.probabilities.copy(), learner.policy.probabilities
        assert np.array_equal(one, two), f"episode {t}: the policy differs when it is read again"

    same(drive(at, learner, between=look), drive(at, twin), "reading the policy changes nothing")


@checks
def check_a_policy_handed_out_stays_as_it_was(make: Maker) -> None:
    at, learner = new(make)
    handed_out: list[tuple[Policy, FloatArray]] = []

    def keep(t: int) -> None:
        handed_out.append((learner.policy, learner.policy.probabilities.copy()))

    drive(at, learner, between=keep)
    for t, (policy, then) in enumerate(handed_out, 1):
        assert np.array_equal(policy.probabilities, then), f"the policy of episode {t} was changed later"


@checks
def check_multipliers_are_finite_and_not_negative(make: Maker) -> None:
    at, learner = new(make)
    for k, (_, Q, _) in enumerate(drive(at, learner)):
        assert Q.shape == at.budgets.shape, f"after {k} episodes multipliers has shape {Q.shape}, not one per budget"
        assert np.isfinite(Q).all() and (Q >= 0).all(), f"after {k} episodes the multipliers are {Q}"


@checks
def check_the_epoch_counts_up_from_one(make: Maker) -> None:
    at, learner = new(make)
    epochs = [epoch for _, _, epoch in drive(at, learner)]
    assert epochs[0] == 1, f"the first epoch is {epochs[0]}, not 1"
    assert all(b - a in (0, 1) for a, b in itertools.pairwise(epochs)), f"the epochs are {epochs}"


@checks
def check_settings_are_plain_and_stay(make: Maker) -> None:
    at, learner = new(make)
    before = dict(learner.settings)
    assert before, "settings is empty; it should contain the learner's name and parameters"
    for name, value in before.items():
        plain = isinstance(value, str) or (isinstance(value, int | float) and math.isfinite(value))
        assert isinstance(name, str) and plain, f"the setting {name!r} is {value!r}; expected a finite number or a text"
    json.dumps(before)
    drive(at, learner)
    assert learner.settings == before, f"the settings changed from {before} to {learner.settings}"


@checks
def check_observing_does_not_change_its_inputs(make: Maker) -> None:
    at, learner = new(make)

    for t in range(1, EPISODES + 1):
        episode = at.play(learner.policy, learner.feedback, t, np.random.default_rng([9, t]))
        before = {name: array.copy() for name, array in arrays(episode).items()}
        for array in arrays(episode).values():
            array.flags.writeable = False
        try:
            learner.observe(episode)
        except (TypeError, ValueError) as error:
            raise AssertionError(f"episode {t}: it does not accept read-only arrays: {error}") from error
        for name, array in arrays(episode).items():
            assert np.array_equal(array, before[name]), f"episode {t}: observing changed the caller's {name}"


@checks
def check_it_keeps_nothing_of_its_inputs(make: Maker) -> None:
    at, learner = new(make)
    _, twin = new(make)

    def spoil(episode: Any) -> None:
        for array in arrays(episode).values():
            array[...] = 0

    same(
        drive(at, learner, after=spoil),
        drive(at, twin),
        "the learner does not depend on changes to the arrays of an episode after observe",
    )


@checks
def check_lists_will_do(make: Maker) -> None:
    at, learner = new(make)
    _, twin = new(make)
    for t in range(1, EPISODES + 1):
        episode = at.play(learner.policy, learner.feedback, t, np.random.default_rng([9, t]))
        learner.observe(replace(episode, **{name: array.tolist() for name, array in arrays(episode).items()}))
        twin.observe(episode)
        same([now(learner)], [now(twin)], "an episode of lists gives the same result as one of arrays")


@checks
def check_the_same_seed_gives_the_same_bits(make: Maker) -> None:
    at, one = new(make, seed=3)
    _, other = new(make, seed=3)
    same(drive(at, one), drive(at, other), "the same seed gives the same bits")


@checks
def check_learners_do_not_share_anything(make: Maker) -> None:
    at, one = new(make)
    _, other = new(make, seed=1)
    _, alone = new(make)

    def meanwhile(t: int) -> None:
        other.observe(at.play(other.policy, other.feedback, t, np.random.default_rng([8, t])))

    same(drive(at, one, between=meanwhile), drive(at, alone), "learners do not affect each other")


@checks
def check_a_copy_goes_on_the_same_and_alone(make: Maker) -> None:
    at, learner = new(make)
    drive(at, learner, last=EPISODES // 2)
    twin = copy.deepcopy(learner)  # like the copy for a worker, this calls `__reduce_ex__` and `__getstate__`
    first, last = EPISODES // 2 + 1, EPISODES
    trace = drive(at, learner, first, last)
    same(drive(at, twin, first, last), trace, "a copy by copy.deepcopy continues like the learner, and shares nothing")


@checks
def check_acting_is_drawing_from_the_policy(make: Maker) -> None:
    at, learner = new(make)
    if not hasattr(learner, "act"):  # a learner need not have it
        return
    _, twin = new(make)

    def act(t: int) -> None:
        for state in range(at.space.n_states - 1):
            drawn = learner.act(state, np.random.default_rng([t, state]))
            expected = learner.policy.sample(state, np.random.default_rng([t, state]))
            assert drawn == expected, f"episode {t}, state {state}: act returned {drawn}; its policy draws {expected}"

    same(drive(at, learner, between=act), drive(at, twin), "acting changes nothing")


@checks
def check_global_randomness_is_left_alone(make: Maker) -> None:
    before = np.random.get_state()  # noqa: NPY002
    at, learner = new(make)
    drive(at, learner)
    same_state = all(map(np.array_equal, before, np.random.get_state()))  # noqa: NPY002
    assert same_state, "it drew from numpy's global generator; randomness comes from the seed"


@checks
def check_it_goes_on_beyond_the_last_episode(make: Maker) -> None:
    at, learner = new(make, episodes=3)
    drive(at, learner)


@checks
def check_one_episode_is_enough(make: Maker) -> None:
    at, learner = new(make, episodes=1)
    drive(at, learner, last=1)


@checks
def check_extreme_losses_are_fine(make: Maker) -> None:
    at = ordinary_world()
    n_tuples = at.space.n_tuples
    for scenarios in (np.ones((2, n_tuples)), -np.ones((2, n_tuples)), np.zeros((2, n_tuples))):
        flat_world, learner = new(make, replace(at, scenarios=scenarios))
        for k, (policy, _, _) in enumerate(drive(flat_world, learner)):
            _is_policy(at, policy, f"after {k} episodes with a loss of {scenarios[0, 0]:g} everywhere")


@checks
def check_its_memory_is_bounded(make: Maker) -> None:
    at, learner = new(make, episodes=80)
    drive(at, learner, last=40)
    then = _size(learner)
    drive(at, learner, first=41, last=80)
    now = _size(learner)
    assert now <= 1.02 * then + 512, f"it held {then} bytes after 40 episodes and {now} after 80"


@checks.on_every_world
def check_it_works_on(at: World, make: Maker) -> None:
    _, learner = new(make, at)
    for k, (policy, Q, _) in enumerate(drive(at, learner)):
        _is_policy(at, policy, f"after {k} episodes")
        assert np.isfinite(Q).all(), f"after {k} episodes the multipliers are {Q}"


def _is_policy(at: World, probabilities: FloatArray, when: str) -> None:
    try:
        Policy(at.space, probabilities)
    except InvalidInputError as error:
        raise AssertionError(f"{when} the policy is invalid: {error}") from error


def _size(thing: object) -> int:
    """Return the bytes of the arrays reachable from `thing`, plus 8 for each other object; code is left out."""
    total, seen, todo = 0, set(), [thing]
    while todo:
        one = todo.pop()
        if id(one) in seen or isinstance(one, type) or inspect.isroutine(one) or inspect.ismodule(one):
            continue
        seen.add(id(one))
        total += one.nbytes if isinstance(one, np.ndarray) else 8
        todo += gc.get_referents(one)
    return total


# --------------------------------------------------------------------------------------------- saving

saving_checks = Checks()


@saving_checks
def check_saved_in_mid_run_it_goes_on_the_same(make: Maker) -> None:
    for saved_after in (0, 1, EPISODES // 2, EPISODES):
        at, learner = new(make)
        drive(at, learner, last=saved_after)
        again = _copy(learner)
        first, last = saved_after + 1, saved_after + EPISODES
        promise = f"saved after {saved_after} episodes and loaded, it continues like the original"
        same(drive(at, again, first, last), drive(at, learner, first, last), promise)
        assert again.settings == learner.settings, f"{promise}; the settings differ"


@saving_checks
def check_saving_changes_nothing(make: Maker) -> None:
    at, learner = new(make)
    _, twin = new(make)

    def save(t: int) -> None:
        _copy(learner)

    same(drive(at, learner, between=save), drive(at, twin), "saving changes nothing")


@saving_checks
def check_a_loaded_one_shares_nothing(make: Maker) -> None:
    at, learner = new(make)
    drive(at, learner, last=4)
    again, third = _copy(learner), _copy(learner)
    promise = "a loaded learner shares nothing with the one it was saved from"
    trace = drive(at, learner, first=5)
    same(drive(at, again, first=5), trace, promise)
    same(drive(at, third, first=5), trace, promise)


@saving_checks
def check_saving_over_a_file_replaces_it(make: Maker) -> None:
    at, learner = new(make)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "learner")
        _save(learner, path)
        drive(at, learner, last=4)
        _save(learner, path)
        assert [file.name for file in Path(folder).iterdir()] == ["learner"], "saving left other files behind"
        again = load(path, type(learner))
    same([now(again)], [now(learner)], "saving over a file replaces it")


@saving_checks.on_every_world
def check_saved_it_goes_on_the_same_on(at: World, make: Maker) -> None:
    _, learner = new(make, at)
    drive(at, learner)
    again = _copy(learner)
    first, last = EPISODES + 1, EPISODES + 3
    same(drive(at, again, first, last), drive(at, learner, first, last), "saved and loaded, it continues the same")


def _copy(learner: Learner) -> Learner:
    """Save the learner to a file and load it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "learner")
        _save(learner, path)
        return load(path, type(learner))


def _save(learner: Any, path: Path) -> None:
    learner.save(path)


# --------------------------------------------------------------------------------------------- refusals
#
# A learner refuses invalid episodes, and its state does not change when it does.


def _refuses(make: Maker, promise: str, *damages: Callable[[World, Any], Any]) -> None:
    """Check that each damaged episode raises a ValueError with a message and leaves the learner unchanged."""
    at, learner = new(make)
    _, twin = new(make)

    def offer_damaged(t: int) -> None:
        for damage in damages:
            episode = at.play(learner.policy, learner.feedback, t, np.random.default_rng([9, t]))
            damaged = damage(at, episode)
            try:
                learner.observe(damaged)
            except ValueError as error:
                assert str(error), f"{promise}, with a message"
            except Exception as error:
                raise AssertionError(f"{promise}, with a ValueError; it raised {error!r}") from error
            else:
                raise AssertionError(f"{promise}; it accepted {damaged}")

    same(drive(at, learner, between=offer_damaged), drive(at, twin), f"{promise}, and the learner does not change")


def _loss_name(episode: Any) -> str:
    return "losses" if isinstance(episode, BanditEpisode) else "loss"


def _with_loss(value: float) -> Callable[[World, Any], Any]:
    def damage(at: World, episode: Any) -> Any:
        name = _loss_name(episode)
        loss = getattr(episode, name).copy()
        loss[-1] = value
        return replace(episode, **{name: loss})

    return damage


def _with_constraint(value: float) -> Callable[[World, Any], Any]:
    def damage(at: World, episode: Any) -> Any:
        constraints = episode.constraints.copy()
        constraints[-1, 0] = value
        return replace(episode, constraints=constraints)

    return damage


def _of_the_other_kind(at: World, episode: Any) -> Any:
    L, n_tuples, n_constraints = at.space.n_layers, at.space.n_tuples, len(at.budgets)
    if isinstance(episode, BanditEpisode):
        return Episode(episode.states, episode.actions, np.zeros(n_tuples), np.zeros((n_constraints, n_tuples)))
    return BanditEpisode(episode.states, episode.actions, np.zeros(L), np.zeros((n_constraints, L)))


@checks
def check_it_refuses_feedback_of_the_other_kind(make: Maker) -> None:
    _refuses(make, "feedback of the other kind is refused", _of_the_other_kind)


@checks
def check_it_refuses_what_is_no_episode(make: Maker) -> None:
    _refuses(make, "an object that is not an episode is refused", lambda at, episode: None, lambda at, episode: "text")


@checks
def check_it_refuses_losses_of_the_wrong_shape(make: Maker) -> None:
    _refuses(
        make,
        "a loss of the wrong shape is refused",
        lambda at, episode: replace(episode, **{_loss_name(episode): getattr(episode, _loss_name(episode))[:-1]}),
        lambda at, episode: replace(episode, **{_loss_name(episode): getattr(episode, _loss_name(episode))[None]}),
        lambda at, episode: replace(episode, **{_loss_name(episode): 0.5}),
    )


@checks
def check_it_refuses_constraints_of_the_wrong_shape(make: Maker) -> None:
    _refuses(
        make,
        "constraints of the wrong shape are refused",
        lambda at, episode: replace(episode, constraints=episode.constraints[:1]),
        lambda at, episode: replace(episode, constraints=episode.constraints.T),
        lambda at, episode: replace(episode, constraints=episode.constraints[0]),
    )


@checks
def check_it_refuses_trajectories_of_the_wrong_length(make: Maker) -> None:
    _refuses(
        make,
        "a trajectory of the wrong length is refused",
        lambda at, episode: replace(episode, states=episode.states[:-1]),
        lambda at, episode: replace(episode, actions=episode.actions[1:]),
        lambda at, episode: replace(episode, states=[], actions=[]),
    )


@checks
def check_it_refuses_trajectories_that_cannot_happen(make: Maker) -> None:
    def elsewhere(at: World, episode: Any) -> Any:
        return replace(episode, states=episode.states[::-1].copy())

    def with_another_action(at: World, episode: Any) -> Any:
        return replace(episode, actions=np.full(at.space.n_layers, at.space.n_actions))

    def outside(at: World, episode: Any) -> Any:
        return replace(episode, states=episode.states + at.space.n_states)

    _refuses(make, "a trajectory that cannot happen is refused", elsewhere, with_another_action, outside)


@checks
def check_it_refuses_losses_that_are_not_finite(make: Maker) -> None:
    _refuses(make, "a loss that is not finite is refused", *map(_with_loss, (math.nan, math.inf, -math.inf)))


@checks
def check_it_refuses_losses_beyond_their_bounds(make: Maker) -> None:
    _refuses(make, "a loss outside [-1, 1] is refused", *map(_with_loss, (1.001, -1.001, 1e300)))


@checks
def check_it_refuses_constraints_that_are_not_finite(make: Maker) -> None:
    _refuses(
        make, "a constraint that is not finite is refused", *map(_with_constraint, (math.nan, math.inf, -math.inf))
    )


@checks
def check_it_refuses_constraints_beyond_their_bounds(make: Maker) -> None:
    _refuses(make, "constraints beyond Assumption 2 are refused", *map(_with_constraint, (1.001, -1.001, 1e300)))
