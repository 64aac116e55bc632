"""Operating a durable learner: other budgets, a stop-loss, challengers, and episodes that somebody else plays."""

import json
from collections.abc import Mapping
from dataclasses import asdict

from numpy.typing import ArrayLike

from tightrope.arguments import instance, shown, text, unknown
from tightrope.errors import InvalidInputError
from tightrope.learners.base import LearnerBase
from tightrope.learners.episodes import checked_budgets
from tightrope.model import Policy
from tightrope.ops.arrays import bytes_of
from tightrope.ops.directory import Directory, in_turn
from tightrope.ops.guard import LARGEST, StopLoss
from tightrope.ops.state import checkpoint_of

#: Characters of a name, and names that stand for something else in an address.
LONGEST, DOTS = 100, (".", "..")


class Operations:
    """What is done to a directory beside asking and telling; each is an event of its journal."""

    _in: Directory

    @in_turn
    def watch(self, policy: Policy | None = None) -> str:
        """The id of an episode that somebody else plays, with his own policy: shadow mode.

        All learners learn from it, and what each would have spent is estimated by importance; without the policy, it is
        what was met on the path that is shown.
        """
        self._in.refuse_more()
        for name, one in self._in.state.learning.items():
            needed = {"any": False, "told": policy is None, "own": True}[one.learner.learns_from]
            if needed:
                raise InvalidInputError(
                    f"{name} cannot learn from what others play"
                    + (" unless it is told their policy" if one.learner.learns_from == "told" else "")
                )
        return self._in.hand_out(None if policy is None else self._own(policy, "policy")).id

    @in_turn
    def set_budgets(self, budgets: ArrayLike | Mapping[str, float]) -> None:
        """Other budgets for all that is told from now on; what was learnt is kept.

        By name, in own units, those that change; or all of them (I,), as the learner meets them.
        """
        if isinstance(budgets, Mapping):
            budgets = self._in.units.changed(self._in.state.learner.budgets, budgets)
        self._in.change("budgets", bytes_of(checked_budgets(self._in.state.form.space, budgets)))

    @in_turn
    def stop_loss(self, rules: Mapping[str, StopLoss], safe_policy: Policy | None = None) -> None:
        """From now on hand out the safe policy whenever a rule says so, by the name of its budget, in place of others.

        Without rules nothing stops.
        """
        names, scales, learner = self._in.units.names, self._in.units.scales, self._in.state.learner
        if learner.learns_from == "own":
            raise InvalidInputError(f"{learner.name} cannot learn from what the safe policy plays")
        for name, rule in instance(rules, "rules", Mapping).items():  # type: ignore[type-abstract]
            if name not in names:
                raise unknown("there is no budget", name, names)
            instance(rule, f"the rule of {name}", StopLoss).within(LARGEST * scales[names.index(name)], name)
        if safe_policy is None and rules:
            raise InvalidInputError("safe_policy is missing: what is played when a rule says so")
        safe = learner.policy if safe_policy is None else self._own(safe_policy, "safe_policy")  # or never played
        told = {
            "rules": {names.index(name): asdict(rule) for name, rule in rules.items()},
            "safe": safe.probabilities.tolist(),
            "scales": scales,
        }
        self._in.change("stop-loss", json.dumps(told).encode())

    @in_turn
    def challenge(self, name: str, learner: LearnerBase) -> None:
        """Another learner that learns from the same episodes, and is shown with what it would have spent.

        From an episode that it cannot learn from on it is shown as failed, and learns no more; the others do.
        """
        state = self._in.state
        if not text(name, "name").isprintable() or "/" in name or not 1 <= len(name) <= LONGEST or name in DOTS:
            raise InvalidInputError(f"name is {shown(name)}; expected up to {LONGEST} characters, no /, no dots alone")
        if name in state.entrants:
            raise InvalidInputError(f"name is {shown(name)}; expected one that no learner here has")
        if state.learner.learns_from == "own":
            raise InvalidInputError(f"{state.champion} cannot learn from what a challenger would play")
        body = checkpoint_of(state.checked(checked(learner)))
        self._in.read(body)  # what cannot be read again is not begun
        self._in.change("challenge", name.encode() + b"\0" + body)

    @in_turn
    def promote(self, name: str) -> None:
        """From now on hand out the policy of this learner; who was the champion becomes a challenger."""
        if self._named(name) == self._in.state.champion:
            return
        if words := self._in.state.entrants[name].failed:
            raise InvalidInputError(f"{name} has failed, {words}; dismiss it")
        self._in.change("promote", name.encode())

    @in_turn
    def dismiss(self, name: str) -> None:
        """Forget a challenger."""
        if self._named(name) == self._in.state.champion:
            raise InvalidInputError(f"{name} is the champion; promote another one first")
        self._in.change("dismiss", name.encode())

    def _named(self, name: str) -> str:
        if not isinstance(name, str) or name not in self._in.state.entrants:
            raise unknown("there is no learner here called", name, self._in.state.entrants)
        return name

    def _own(self, policy: Policy, name: str) -> Policy:
        space = self._in.state.form.space
        if instance(policy, name, Policy).space != space:
            raise InvalidInputError(f"{name} is for {policy.space!r}; the learner has {space!r}")
        return Policy(space, policy.probabilities)  # its numbers may have been changed since it was made


def checked(learner: LearnerBase) -> LearnerBase:
    """What can be saved; nothing else can be kept."""
    return instance(learner, "learner", LearnerBase)  # type: ignore[type-abstract]
