"""Episodes that never were, learnt by a copy: what has to be compiled is, before anybody waits for an answer."""

from contextlib import suppress
from dataclasses import replace

import numpy as np

from tightrope.learners.base import Feedback
from tightrope.learners.registry import load
from tightrope.ops.state import State, apply
from tightrope.ops.store import ZEROS, EpisodeRow, bytes_of, digest_of, floats_of
from tightrope.space import LayeredSpace

#: In the second one there are multipliers.
EPISODES = 2


def rehearse(checkpoint: bytes, feedback: Feedback) -> None:
    """Have a copy of a learner learn as it will be told. If it cannot, that is said when it is told."""
    with suppress(Exception):
        learn(checkpoint, feedback)


def learn(checkpoint: bytes, feedback: Feedback) -> State:
    """The copy, after it learnt by the very way of a tell, but for the journal."""
    state = State.new(load(checkpoint))
    state = replace(state, format=state.format._replace(feedback=feedback))
    space, n_budgets = state.format.space, state.format.n_constraints
    n = space.n_tuples if feedback == "full" else space.n_layers
    uses = np.full((n_budgets, n), 1 / max(n_budgets, 1))
    for number in range(1, EPISODES + 1):
        policy = bytes_of(state.policy.probabilities)
        episode = EpisodeRow(number, "", digest_of(policy), "open", ZEROS)
        event, arrays = state.format.event(number, episode, *any_path(space), np.linspace(-1.0, 1.0, n), uses)
        arrays[episode.policy] = policy
        state = apply(state, event, lambda digest, found=arrays: floats_of(found[digest]), load)  # type: ignore[misc]
    return state


def any_path(space: LayeredSpace) -> tuple[list[int], list[int]]:
    """The states and the actions of some way through all layers."""
    moves = {state: (action, successor) for state, action, successor in space.tuples.tolist()}
    states, actions = [0], list[int]()
    while states[-1] in moves:
        action, successor = moves[states[-1]]
        actions.append(action)
        states.append(successor)
    return states, actions
