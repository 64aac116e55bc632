"""Episodes that never were, learnt by a copy: what has to be compiled is, before anybody waits for an answer."""

from contextlib import suppress

import numpy as np

from tightrope.learners.base import Feedback
from tightrope.learners.registry import load
from tightrope.ops.journal import Event
from tightrope.ops.state import State
from tightrope.space import LayeredSpace

#: In the second one there are multipliers.
EPISODES = 2


def rehearse(checkpoint: bytes, feedback: Feedback) -> None:
    """Have a copy of a learner learn as it will be told. If it cannot, that is said when it is told."""
    with suppress(Exception):
        learn(checkpoint, feedback)


def learn(checkpoint: bytes, feedback: Feedback) -> State:
    """The copy, after it learnt by the very way of a tell, but for the journal."""
    state = State(load(checkpoint))
    state.form = form = state.form._replace(feedback=feedback)
    space, n_budgets = form.space, form.n_constraints
    n = space.n_tuples if feedback == "full" else space.n_layers
    uses = np.full((n_budgets, n), 1 / max(n_budgets, 1))
    for number in range(1, EPISODES + 1):
        told = form.shaped(number, *any_path(space), np.linspace(-1.0, 1.0, n), uses)
        form.refuse_beyond(number, told)
        kept = {b"policy": state.policy.probabilities}
        state.apply(Event(number, "tell", number, b"policy", None, None, b""), kept.__getitem__, load, told)
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
