"""Checks that a learner refuses invalid episodes, and that its state does not change when it does."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from tightrope.checks.learners.play import Checks, World, drive, new, same
from tightrope.learners import BanditEpisode, Episode, Maker

checks = Checks()


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
