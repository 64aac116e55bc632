"""What a directory stands for: learners, accounts and rules, and how an event changes them.

Whoever learns now and whoever replays the journal calls the same `apply` with the same numbers, so both have the same
bits.
"""

import io
import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tightrope.errors import ConvergenceError, InvalidInputError, StorageError
from tightrope.learners.base import LearnerBase
from tightrope.model import Policy
from tightrope.ops.account import Account
from tightrope.ops.arrays import bytes_of, decoded, digest_of
from tightrope.ops.guard import Guard, StopLoss
from tightrope.ops.journal import Event
from tightrope.ops.records import Form, Told
from tightrope.ops.shadow import Shadow
from tightrope.space import FloatArray
from tightrope.storage import checkpoints

#: Reads an array that the journal keeps, by its digest.
Kept = Callable[[bytes], FloatArray]

#: Reads a learner from the bytes of a checkpoint.
Reader = Callable[[bytes], LearnerBase]

#: In place of the digest of a policy that nobody knows.
UNKNOWN = b""


#: What a champion may raise that cannot learn from an episode; anything else is a bug.
CANNOT_LEARN = (InvalidInputError, ConvergenceError, ArithmeticError)


class Entrant:
    """A learner of the directory, and what it would have spent."""

    def __init__(self, learner: LearnerBase) -> None:
        self.learner = learner
        self.settings = learner.settings  # no episode changes them
        self.ours = type(learner).__module__.startswith("tightrope.")  #: others may write to what they are shown
        self.shadow = Shadow(len(learner.budgets))
        self.failed = ""  #: why it could not learn from an episode, and learns no more; "" while it does

    def state(self) -> dict[str, Any]:
        """What is saved beside the learner."""
        return {"shadow": self.shadow, "failed": self.failed}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what was saved."""
        self.shadow, self.failed = state["shadow"], state["failed"]


class State:
    """All that is replayed. The champion's policy is handed out; all learn from what is told.

    What the champion cannot learn from is refused. A challenger that cannot has failed: it stays as it is, to be looked
    at and dismissed, and the others go on.
    """

    def __init__(self, learner: LearnerBase) -> None:
        self.champion = learner.name
        self.entrants = {learner.name: Entrant(learner)}
        self.form = Form(learner.space, len(learner.budgets), learner.feedback)
        self.account = Account(len(learner.budgets))
        self.guard = Guard(learner.space.n_pairs, len(learner.budgets))
        self.whole = True  #: False while some learners have learnt an episode and some have not

    @property
    def learner(self) -> LearnerBase:
        """The champion's."""
        return self.entrants[self.champion].learner

    @property
    def policy(self) -> Policy:
        """What is to be played now."""
        return Policy.unchecked(self.form.space, self.guard.safe) if self.guard.stops else self.learner.policy

    @property
    def learning(self) -> dict[str, Entrant]:
        """Those that have not failed, the champion first."""
        others = {name: one for name, one in self.entrants.items() if not one.failed and name != self.champion}
        return {self.champion: self.entrants[self.champion]} | others

    def apply(self, event: Event, kept: Kept, read: Reader, told: Told | None = None) -> list[str]:
        """Take over what an event says; returns the challengers that fail by it. What is told may be known already."""
        match event.kind:
            case "tell":
                return self._tell(event, kept, told or self._told(event, kept))
            case "budgets":
                others = {name: one.learner.with_budgets(decoded(event.body)) for name, one in self.learning.items()}
                for name, learner in others.items():
                    self.entrants[name].learner = learner
                self.guard = self.guard.judged(self.account, self.learner.budgets)
            case "challenge":
                called, _, checkpoint = event.body.partition(b"\0")
                self.entrants[called.decode()] = Entrant(self.checked(read(checkpoint)))
            case "promote":
                self.champion = event.body.decode()
                self.guard = self.guard.judged(self.account, self.learner.budgets)
            case "failed":
                called, _, words = event.body.partition(b"\0")
                self.entrants[called.decode()].failed = words.decode()
            case "dismiss":
                del self.entrants[event.body.decode()]
            case "stop-loss":
                self._rule(json.loads(event.body))
            case _:
                raise StorageError(f"event {event.seq} is a {event.kind!r}, which this version does not know")
        return []

    def _told(self, event: Event, kept: Kept) -> Told:
        """What an event tells, from its bytes."""
        return self.form.decode(event.body, *(kept(part) for part in (event.loss, event.constraints) if part))

    def _tell(self, event: Event, kept: Kept, told: Told) -> list[str]:
        form, budgets = self.form, self.learner.budgets
        failed: list[str] = []
        account, costs = self.account.after(form.steps(told), told.loss, told.constraints, budgets)
        played = kept(event.policy) if event.policy else None
        learning = self.learning if len(self.entrants) > 1 else self.entrants
        for name, entrant in learning.items():
            learner, pair_of = entrant.learner, form.space.pair_of_tuple
            shadow = entrant.shadow.after(costs, told.path, pair_of, learner.policy.probabilities, played)
            try:
                if played is None and learner.learns_from == "told":
                    raise InvalidInputError("nobody knows which policy played it")
                shown = told if entrant.ours else told.copy()
                learner.observe(form.episode(shown, costs, learner.feedback, played))
            except Exception as error:
                if name == self.champion or isinstance(error, MemoryError):
                    raise
                entrant.failed = f"it could not learn from episode {event.episode}: {error}"
                failed.append(name)
            else:
                entrant.shadow, self.whole = shadow, False
        self.account = account
        if self.guard.has_rules:
            use = np.add.accumulate(costs[1:], axis=1)[:, -1]  # step by step
            by_safe = event.policy == digest_of(bytes_of(self.guard.safe))
            self.guard = self.guard.after(account, use, budgets, by_safe=by_safe)
        self.whole = True
        return failed

    def _rule(self, told: dict[str, Any]) -> None:
        rules = {int(i): StopLoss(**rule) for i, rule in told["rules"].items()}
        safe, scales = np.array(told["safe"]), np.array(told["scales"])
        self.guard = self.guard.ruled(safe, rules, scales, self.account, self.learner.budgets)

    def checked(self, learner: LearnerBase) -> LearnerBase:
        """A learner that can learn from what is told here, whoever plays."""
        if learner.space != self.form.space or len(learner.budgets) != self.form.n_constraints:
            raise InvalidInputError(f"{learner.name} is for another space or other budgets than {self.champion}")
        if learner.feedback == "full" and self.form.feedback == "bandit":
            raise InvalidInputError(f"{learner.name} needs full feedback, and only paths are told here")
        if learner.learns_from == "own":
            raise InvalidInputError(f"{learner.name} learns from its own policy only, and others are played here")
        return learner

    def state(self) -> dict[str, Any]:
        """What is saved beside the first learner."""
        first, *_ = self.entrants.values()
        return {
            "account": self.account,
            "guard": self.guard,
            "first": first,
            "champion": self.champion,
            "feedback": str(self.form.feedback),
            "names": json.dumps(list(self.entrants)),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what was saved; the other learners are read by whoever reads files."""
        [first] = self.entrants.values()
        self.account, self.guard = state["account"], state["guard"]  # `first` has restored itself
        self.champion = state["champion"]
        self.form = self.form._replace(feedback=state["feedback"])  # who was first may be gone
        self.entrants = {json.loads(state["names"])[0]: first}
        self.names: list[str] = json.loads(state["names"])


def checkpoint_of(learner: LearnerBase, beside: Any = None) -> bytes:
    """A learner as bytes, and what is saved beside it."""
    buffer = io.BytesIO()
    checkpoints.write(learner, buffer, beside)
    return buffer.getvalue()
