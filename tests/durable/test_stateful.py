"""Random sequences of calls and crashes, compared with plain learners in memory (hypothesis)."""

import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, precondition, rule

from fuzz.durable import OPERATIONS, OPTIONS, number_of, operate, sight_of
from fuzz.twin import CORRECTIONS, Twin, somebody, story
from tests.durable.conftest import MEMORY
from tightrope import DurableLearner, InvalidInputError, Policy
from tightrope.errors import ConflictError, TooManyOpenError


class Calls(RuleBasedStateMachine):
    """A directory and its twin."""

    opened = Bundle("opened")
    settled = Bundle("settled")

    @initialize(name=st.sampled_from(["ucpd-practical", "ucpd-bandit", "uob-reps"]))
    def begin(self, name: str) -> None:
        self.place = Path(tempfile.mkdtemp(dir=MEMORY if MEMORY.is_dir() else None))
        self.twin, self.lives = Twin(name), 0
        self.learner = DurableLearner(self.place / "0", Twin(name).champion.learner, **OPTIONS)

    def parts(self, id: str, policy: Policy) -> dict[str, Any]:
        return story(policy, self.learner.feedback, number_of(id))

    @rule(target=opened)
    def ask(self) -> Any:
        if len(self.twin.given) == OPTIONS["most_open"]:
            with pytest.raises(TooManyOpenError):
                self.learner.ask()
            return ("", None)
        episode = self.learner.ask()
        self.twin.do("ask", 0)
        assert number_of(episode.id) == self.twin.asked
        return episode.id, episode.policy

    @rule(target=opened, number=st.integers(0, 9))
    def watch(self, number: int) -> Any:
        if len(self.twin.given) == OPTIONS["most_open"]:
            return ("", None)
        id = operate(self.learner, "watch", number)
        self.twin.do("watch", number)
        return id, self.twin.given[number_of(id)] or somebody(0)

    @rule(target=settled, handed=consumes(opened))
    def tell(self, handed: tuple[str, Policy]) -> Any:
        id, policy = handed
        if id and self.twin.refuses(number_of(id)):
            with pytest.raises(ConflictError, match="is not known"):
                self.learner.tell(id, **self.parts(id, policy))
            return self.give_up(handed)
        if id:
            assert self.learner.tell(id, **self.parts(id, policy)) == "learned"
            self.twin.do("tell", number_of(id))
        return id, policy, "told"

    @rule(target=settled, handed=consumes(opened))
    def give_up(self, handed: tuple[str, Policy]) -> Any:
        id, policy = handed
        if id:
            assert self.learner.give_up(id) == "given up"
            self.twin.do("give_up", number_of(id))
        return id, policy, "given up"

    @rule(handed=settled)
    def again(self, handed: tuple[str, Policy, str]) -> None:
        id, policy, fate = handed
        if not id or number_of(id) <= self.twin.asked - OPTIONS["remember"]:
            return
        if fate == "told":
            assert self.learner.tell(id, **self.parts(id, policy)) == "already"
            other = self.parts(id, policy)
            with pytest.raises(ConflictError):
                self.learner.tell(id, **(other | {"loss": other["loss"] / 2}))
        else:
            assert self.learner.give_up(id) == "already"
            with pytest.raises(ConflictError):
                self.learner.tell(id, **self.parts(id, policy))

    @rule(handed=opened)
    def nonsense(self, handed: tuple[str, Policy]) -> None:
        id, policy = handed
        if id:
            with pytest.raises(InvalidInputError):
                self.learner.tell(id, **(self.parts(id, policy) | {"loss": [2.0]}))

    @rule(what=st.sampled_from(OPERATIONS), number=st.integers(0, 9))
    def operate(self, what: str, number: int) -> None:
        if self.twin.can(what, number):
            operate(self.learner, what, number)
            self.twin.do(what, number)

    @rule(what=st.sampled_from(CORRECTIONS), number=st.integers(0, 9))
    def correct(self, what: str, number: int) -> None:
        if self.twin.can(what, number):
            operate(self.learner, what, number)
            self.twin.do(what, number)
        else:
            with pytest.raises(InvalidInputError):
                operate(self.learner, what, number)

    @rule()
    def snapshot(self) -> None:
        self.learner.snapshot()

    @precondition(lambda self: hasattr(self, "learner"))
    @rule(gently=st.booleans())
    def reopen(self, gently: bool) -> None:
        """Close the directory, or copy it as a killed process leaves it, and open it."""
        before, self.lives = self.learner.directory, self.lives + 1
        now = self.place / str(self.lives)
        if gently:
            self.learner.close()
            before.rename(now)
        else:
            shutil.copytree(before, now)
            self.learner.close()
        self.learner = DurableLearner(now, **OPTIONS)

    @invariant()
    def same(self) -> None:
        if hasattr(self, "learner"):
            assert sight_of(self.learner) == self.twin.sight()

    def teardown(self) -> None:
        if hasattr(self, "learner"):
            self.learner.close()
            shutil.rmtree(self.place)


TestCalls = Calls.TestCase
TestCalls.settings = settings(max_examples=15, stateful_step_count=25, deadline=None, derandomize=True)
