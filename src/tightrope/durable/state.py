"""What a directory stands for: a learner and its account, and how an event changes them.

Whoever learns now and whoever replays the journal calls the same `apply` with the same bytes, so both have the same
bits.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tightrope.durable.account import Account
from tightrope.durable.journal import Event
from tightrope.durable.records import REAL, Form
from tightrope.errors import StorageError
from tightrope.learners.base import LearnerBase
from tightrope.model import Policy
from tightrope.space import FloatArray

#: Reads the probabilities of a policy that was handed out, by their digest.
Policies = Callable[[bytes], bytes]


class State:
    """A learner and its account."""

    def __init__(self, learner: LearnerBase) -> None:
        self.learner = learner
        self.form = Form(learner.space, len(learner.budgets), learner.feedback)
        self.account = Account(len(learner.budgets))

    def apply(self, event: Event, policies: Policies) -> None:
        """Take over what an event says."""
        match event.kind:
            case "tell":
                self._tell(event, policies)
            case "budgets":
                self.learner = self.learner.with_budgets(decoded_budgets(event.body))
            case _:
                raise StorageError(f"event {event.seq} is a {event.kind!r}, which this version does not know")

    def _tell(self, event: Event, policies: Policies) -> None:
        told, learner = self.form.decode(event.body), self.learner
        played = learner.policy
        if learner.learns_from != "any" and event.policy is not None:
            played = policy_of(learner, policies(event.policy))
        learner.observe(self.form.episode(told, learner.feedback, played))
        self.account = self.account.after(*self.form.met(told), learner.budgets)

    def state(self) -> dict[str, Any]:
        """What is saved beside the learner."""
        return {"account": self.account}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what was saved."""
        self.account = state["account"]


def policy_of(learner: LearnerBase, probabilities: bytes) -> Policy:
    """The policy with these probabilities."""
    return Policy.unchecked(learner.space, np.frombuffer(bytearray(probabilities), REAL))


def encoded_budgets(budgets: FloatArray) -> bytes:
    """As the journal keeps them."""
    return budgets.astype(REAL, copy=False).tobytes()


def decoded_budgets(body: bytes) -> FloatArray:
    """The other way round."""
    return np.frombuffer(bytearray(body), REAL)
