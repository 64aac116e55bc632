"""Warm-up: a copy of a learner learns two made-up episodes, so that kernels are compiled before a client waits."""

from contextlib import suppress
from dataclasses import replace

import numpy as np

from tightrope.learners.base import Feedback
from tightrope.learners.registry import load
from tightrope.ops.state import State, apply
from tightrope.ops.store import ZEROS, EpisodeRow, bytes_of, digest_of, floats_of
from tightrope.space import LayeredSpace

#: Learners have multipliers only from the second episode on.
EPISODES = 2


def warm_up(checkpoint: bytes, feedback: Feedback) -> None:
    """Let a copy of a learner learn. An error is ignored here; it is reported when the learner is told an episode."""
    with suppress(Exception):
        learn(checkpoint, feedback)


def learn(checkpoint: bytes, feedback: Feedback) -> State:
    """Return the state of a copy after it learned in the way of `DurableLearner.tell`, without a journal."""
    state = State.new(load(checkpoint))
    state = replace(state, format=state.format._replace(feedback=feedback))
    space, n_constraints = state.format.space, state.format.n_constraints
    n = space.n_tuples if feedback == "full" else space.n_layers
    uses = np.full((n_constraints, n), 1 / max(n_constraints, 1))
    for number in range(1, EPISODES + 1):
        policy = bytes_of(state.policy.probabilities)
        episode = EpisodeRow(number, "", digest_of(policy), "open", ZEROS)
        outcome = (*some_path(space), np.linspace(-1.0, 1.0, n), uses)
        event, arrays = state.format.event(number, episode, outcome, {})
        arrays[episode.policy] = policy
        state = apply(state, event, lambda digest, found=arrays: floats_of(found[digest]), load)  # type: ignore[misc]
    return state


def some_path(space: LayeredSpace) -> tuple[list[int], list[int]]:
    """Return the states and the actions of a path through all layers."""
    moves = {state: (action, successor) for state, action, successor in space.tuples.tolist()}
    states, actions = [0], list[int]()
    while states[-1] in moves:
        action, successor = moves[states[-1]]
        actions.append(action)
        states.append(successor)
    return states, actions
