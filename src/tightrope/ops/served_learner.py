"""One learner of the service: written by a thread of its own, read by everybody without waiting for it."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from msgspec.structs import asdict

from tightrope.errors import StorageError, UnknownEpisodeError
from tightrope.model import Policy
from tightrope.ops.api import Acted, Answered, Asked, Called, Series, Space, Spent, State, Table, Tell
from tightrope.ops.inputs import Reader
from tightrope.ops.learner import DurableLearner
from tightrope.ops.refusals import Refusal
from tightrope.ops.rehearsal import rehearse
from tightrope.ops.status import BudgetUnits
from tightrope.ops.tables import Tables

Result = TypeVar("Result")

#: Opens a learner, and tells how many events were learnt again on the way.
Opener = Callable[[Callable[[int], None]], DurableLearner]

#: So many records of how it went are kept; when there are more, every second one goes.
MOST_RECORDS = 600


class Keeper:
    """Opens the learner, hands what changes it to one thread, and answers all else from what that one published.

    Whatever is published does not change any more (a status, a policy, a number in a list), so it is read as it is.
    """

    def __init__(self, name: str, folder: Path, open_learner: Opener, most_waiting: int) -> None:
        self.name, self.folder, self._open_learner, self._most_waiting = name, folder, open_learner, most_waiting
        self._writer = ThreadPoolExecutor(1, thread_name_prefix=f"writes {name}")
        self._rng = np.random.default_rng()
        self.waiting = 0
        self.ready = self._abandoned = False
        self.out_of_order = ""  #: what the disk said when it was last written to; "" if that went well
        self._looking: asyncio.Task[None] | None = None
        self.open: dict[str, Policy | None] = {}  #: episodes, and what they are played with; None: nobody knows
        self.series = Series([], [], [], [])
        self._recorded = -1  #: the event after which the last entry of the series was made

    async def begin(self) -> None:
        """Open the learner; until then, nothing of it is answered."""
        await self.write(self._begin)

    def _begin(self) -> None:
        with ExitStack() as stack:
            self.learner = stack.enter_context(self._open_learner(self._go_on))
            facts, space = self.learner.facts, self.learner.space
            self.tables = Tables.read(self.folder, space.n_tuples, facts["problem"])
            self._space = space.named(facts["states"], facts["actions"])
            self.reader = Reader(self._space, self.learner.feedback, BudgetUnits.read(facts["units"]), self.tables)
            known = {id_: episode.policy for id_, episode in self.learner.open_episodes().items()}
            self.open = dict.fromkeys(self.learner.open_ids()) | known
            self._record()
            for one in self.learner.status.entrants:
                self._go_on(self.learner.status.event)
                rehearse(self.learner.fingerprint(one.name), self.learner.feedback)
            self._go_on(self.learner.status.event)
            stack.pop_all()
        self.ready = True

    def _go_on(self, learnt: int) -> None:
        """Whoever learns the journal again has nothing to lose."""
        if self._abandoned:
            raise Refusal("not-ready", f"{self.name} is let go of after {learnt} events, before it was open")

    async def end(self) -> None:
        """Do what waits, then let go of the directory; one that is being opened is let go of at the next event."""
        if not self.ready:
            self._abandoned = True
            return
        self.ready = False
        await asyncio.get_running_loop().run_in_executor(self._writer, self.learner.close)
        self._writer.shutdown()

    async def write(self, change: Callable[..., Result], *arguments: Any) -> Result:
        """What `change` answers, once it was its turn; it is the only one then."""
        if self.waiting >= self._most_waiting:
            raise Refusal("busy", f"{self.waiting} requests wait for {self.name} already")
        self.waiting += 1
        try:
            result = await asyncio.get_running_loop().run_in_executor(self._writer, self._do, change, *arguments)
        except StorageError as error:
            self.out_of_order = str(error)
            raise
        finally:
            self.waiting -= 1
        self.out_of_order = ""
        return result

    def _do(self, change: Callable[..., Result], *arguments: Any) -> Result:
        result = change(*arguments)
        if self.learner.status.event != self._recorded:
            self._record()
        return result

    def look_again(self) -> None:
        """After the disk failed: try it, once at a time, and let nobody wait for that."""
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())

    async def _look(self) -> None:
        with suppress(StorageError, Refusal):
            await self.write(self.learner.check_disk)

    async def ask(self) -> Asked:
        """An episode to be played."""
        return await self.write(self._ask)

    def _ask(self) -> Asked:
        episode = self.learner.ask()
        self.open[episode.id] = episode.policy
        return Asked(episode.id)

    async def tell(self, episode: str, told: Tell) -> Answered:
        """Learn from it; what was told is on disk before it is answered."""
        return await self.write(self._tell, episode, told)

    def _tell(self, episode: str, told: Tell) -> Answered:
        answer = self.learner.tell(episode, **self.reader.read(told))
        self.open.pop(episode, None)
        return Answered(episode, answer)

    async def give_up(self, episode: str) -> Answered:
        """Nobody will tell of it."""
        return await self.write(self._give_up, episode)

    def _give_up(self, episode: str) -> Answered:
        answer = self.learner.give_up(episode)
        self.open.pop(episode, None)
        return Answered(episode, answer)

    def policy(self, episode: str | None) -> Policy:
        """What an open episode is played with; without one, what would be handed out now."""
        found = self.learner.policy if episode is None else self.open.get(episode)
        if found is None:
            nobody = episode in self.open
            words = "is played by somebody else, nobody knows how" if nobody else "is not open here; ask for one"
            raise UnknownEpisodeError(f"episode {episode!r} {words}")
        return Policy.unchecked(self._space, found.probabilities)

    def act(self, called: Called, episode: str | None) -> Acted:
        """Draw an action for a state."""
        policy, space, state = self.policy(episode), self._space, self.reader.state(called)
        action = policy.sample(state, self._rng)
        return Acted(state, space.state_name(state), action, space.action_name(action), policy[state][action])

    def table(self, episode: str | None) -> Table:
        """A whole policy."""
        return Table(**self.policy(episode).table())

    def spending(self) -> list[Spent]:
        """Every budget."""
        return [Spent(**(asdict(one) | {"share": finite(one.share)})) for one in self.learner.status.spending]

    def state(self) -> State:
        """All in short."""
        status = self.learner.status
        return State(
            name=self.name,
            event=status.event,
            learner=self.learner.settings,
            feedback=self.learner.feedback,
            asked=status.asked,
            open=status.open,
            told=status.told,
            given_up=status.given_up,
            epoch=status.epoch,
            loss=self.tables.lost(status.loss, status.told * self.learner.space.n_layers),
            loss_unit=self.tables.loss_unit,
            spending=self.spending(),
            trouble=status.trouble or self.out_of_order,
        )

    def space(self) -> Space:
        """What there is to be told of."""
        space = self._space
        return Space(
            states=[space.state_name(state) for state in range(space.n_states)],
            actions=[space.action_name(action) for action in range(space.n_actions)],
            layers=list(space.layer_sizes),
            moves=space.tuples.tolist(),
            scenarios=len(self.tables.scenarios),
            budgets=list(self.reader.budgets.names),
        )

    def _record(self) -> None:
        """One more entry of how it went, in place of one after as many episodes.

        A new object, for others may be reading the old one.
        """
        status, old = self.learner.status, self.series
        every = 2 if len(old.told) >= MOST_RECORDS else 1
        kept = slice(0, -1 if old.told[-1:] == [status.told] else None, every)
        spending, told = status.spending, max(status.told, 1)
        self.series = Series(
            [*old.told[kept], status.told],
            [*old.use[kept], [one.spent / told for one in spending]],
            [*old.allowed[kept], [one.allowed / told for one in spending]],
            [*old.price[kept], [one.price for one in spending]],
        )
        self._recorded = status.event


def finite(value: float) -> float | None:
    """None where there is no number, as JSON knows none."""
    return float(value) if np.isfinite(value) else None
