"""A learner of the service: one thread changes it, and all other requests are answered from what it published.

Whatever is published is immutable (a status, a policy, a list that is replaced), so it is read without a lock.
"""

import asyncio
import logging
import re
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from shutil import disk_usage
from threading import Thread
from time import sleep, time
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np

from tightrope.arguments import shown
from tightrope.errors import InvalidInputError, StorageError, UnknownEpisodeError
from tightrope.learners.base import LearnerBase
from tightrope.learners.registry import learner_for
from tightrope.model import Policy
from tightrope.ops import api, served_corrections
from tightrope.ops.api import CHANGE, WITH_BODY, ApiError, endpoint
from tightrope.ops.engine import difference
from tightrope.ops.inputs import ProblemTables, Translator, digits
from tightrope.ops.learner import DurableLearner, OpenEpisode
from tightrope.ops.state import LARGEST_SUM, StopLoss
from tightrope.ops.status import Spending
from tightrope.streams import streams

log = logging.getLogger("tightrope.service")

Result = TypeVar("Result")

#: Rows of the series; when there are more, every second one is dropped.
MOST_RECORDS = 600

#: The numbers of a status that `/state` returns as they are.
COUNTS = ("event", "asked", "open", "told", "given_up", "expired", "retracted", "left_out", "epoch")

#: Seconds after which a replica checks whether it is closed, or tries to reach the database again.
CHECK_EVERY = 0.5

#: Learners in one directory: all of them learn from every episode.
MOST_LEARNERS = 10


class Opened(NamedTuple):
    """An open episode."""

    policy: Policy | None  #: None if it is not known
    time: float  #: when it was opened, in seconds since 1970; 0 if it is not known


@dataclass(frozen=True)
class NewLearner:
    """A learner to create, and the problem that it is for."""

    place: Path | str  #: a directory, or the address of a database
    problem: Any
    learner: Any


def _answer(futures: list[asyncio.Future[Any]], results: Sequence[Any]) -> None:
    """Give each request its result, unless its client has gone."""
    for future, result in zip(futures, results, strict=True):
        if future.done():
            continue
        if isinstance(result, Exception):
            future.set_exception(result)
        else:
            future.set_result(result)


class ServedLearner:
    """A durable learner, and the endpoints below /learners/{name}.

    Parameters
    ----------
    name : in the URL.
    place : the directory of the learner, or the address of its database.
    most_waiting : requests that may wait for the thread that changes the learner.
    new : the learner to create in the directory, None to open an existing one.
    options : of `DurableLearner`.
    """

    def __init__(self, name: str, place: Path | str, most_waiting: int, new: NewLearner | None, **options: Any) -> None:
        self.name, self.place, self._most_waiting, self._new, self._options = name, place, most_waiting, new, options
        self._writer = ThreadPoolExecutor(1, thread_name_prefix=f"writes {name}")
        self._rng = np.random.default_rng()
        self.learner: DurableLearner
        self.waiting = 0  #: requests
        self._queue = deque[tuple[Callable[[], Any], asyncio.Future[Any]]]()  #: calls to be committed together
        self._scheduled = False  #: the writer will look at the queue
        self.ready = self._abandoned = False
        self.disk_error = ""  #: of the last write; "" if it succeeded
        self._retry: asyncio.Task[None] | None = None
        self.opened: dict[str, Opened] = {}  #: open episodes by id
        self.history = api.Series([], [], [], [])
        self._expired = 0  #: `status.expired` when `opened` was updated
        self._recorded = -1  #: the event of the last row of the history

    async def open(self) -> None:
        """Open the learner; until then its endpoints answer "not-ready"."""
        await self.change(self._open)

    def _open(self) -> None:
        with ExitStack() as stack:
            given = {} if self._new is None else {"learner": self._new.learner, "problem": self._new.problem}
            learner = DurableLearner(self.place, progress=self._check_abandoned, **given, **self._options)
            self.learner = stack.enter_context(learner)
            if self._new is not None:
                ProblemTables.of(self._new.problem).write(learner.database)
            self.translator = Translator.of(learner)
            self.tables, self._space = self.translator.tables, self.translator.space
            self._compare_opened()
            self._publish()
            self._check_abandoned(learner.status.event)
            stack.pop_all()
        self.ready = True
        if self.learner.database.shared:
            Thread(target=self._follow, name=f"follows {self.name}", daemon=True).start()

    def _follow(self) -> None:
        """Learn what other replicas commit, until the learner is closed."""
        while self.ready:
            try:
                if self.learner.database.wait(CHECK_EVERY):
                    self._writer.submit(self._catch_up).result()
            except StorageError:  # reported by the next request
                sleep(CHECK_EVERY)
            except RuntimeError:  # the writer was shut down
                return

    def _catch_up(self) -> None:
        if self.ready:
            self._compare_opened()
            self._publish()

    async def catch_up(self) -> bool:
        """Learn what other replicas committed; return whether that is possible."""
        if not self.learner.database.shared:
            return False
        await self.change(self._catch_up)
        return True

    def _check_abandoned(self, replayed: int) -> None:
        if self._abandoned:
            raise ApiError("not-ready", f"{self.name} was closed after {replayed} events, before it was open")

    async def close(self) -> None:
        """Finish the requests that wait, and close the directory; if it is being opened, stop at the next event."""
        if not self.ready:
            self._abandoned = True
            return
        self.ready = False
        await asyncio.get_running_loop().run_in_executor(self._writer, self.learner.close)
        self._writer.shutdown()

    async def change(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Run a function in the thread that changes the learner, and return its result."""
        self._refuse_busy()
        return await self._waited_for(
            asyncio.get_running_loop().run_in_executor(self._writer, self._run, function, *arguments)
        )

    async def join(self, call: Callable[[], Result]) -> Result:
        """Run a call in the thread that changes the learner, in one transaction with the other calls that wait."""
        self._refuse_busy()
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._queue.append((call, future))
        if not self._scheduled:
            self._scheduled = True
            self._writer.submit(self._commit_queue, asyncio.get_running_loop())
        return await self._waited_for(future)

    async def _waited_for(self, result: asyncio.Future[Result]) -> Result:
        self.waiting += 1
        try:
            found = await result
        except StorageError as error:
            self.disk_error = str(error)
            raise
        finally:
            self.waiting -= 1
        self.disk_error = ""
        return found

    def _refuse_busy(self) -> None:
        if self.waiting >= self._most_waiting:
            raise ApiError("busy", f"{self.waiting} requests are waiting for {self.name}")

    def _commit_queue(self, loop: asyncio.AbstractEventLoop) -> None:
        """Run all calls that wait, and answer them after one commit."""
        self._scheduled = False
        waiting = [self._queue.popleft() for _ in range(len(self._queue))]
        try:
            results = self.learner.together([call for call, _ in waiting])
            self._publish()
        except Exception as error:
            results = [error] * len(waiting)
        loop.call_soon_threadsafe(_answer, [future for _, future in waiting], results)

    def _run(self, function: Callable[..., Result], *arguments: Any) -> Result:
        result = function(*arguments)
        self._publish()
        return result

    def _publish(self) -> None:
        """Publish the policy, the open episodes and the history after a change."""
        status = self.learner.status
        self._offered = Policy.unchecked(self._space, status.policy.probabilities)
        if status.expired != self._expired:
            self._forget_expired()
        if status.event != self._recorded:
            self._record()

    def _compare_opened(self) -> None:
        """Update the open episodes from the learner."""
        times = self.learner.opened_at()
        for id in set(self.opened) - times.keys():
            self.opened.pop(id, None)
        if new := [id for id in times if id not in self.opened]:
            known = self.learner.open_episodes(new)
            self.opened |= {id: Opened(known[id].policy if id in known else None, times[id]) for id in new}

    @property
    def oldest(self) -> float:
        """The age of the oldest open episode, in seconds; 0 if none is open."""
        times = [one.time for one in list(self.opened.values()) if one.time]
        return max(0.0, time() - min(times)) if times else 0.0

    @property
    def free_space(self) -> int | None:
        """Bytes that are free on the disk of the directory; None if that is not known."""
        try:
            return disk_usage(self.place).free
        except OSError:
            return None

    def _forget_expired(self) -> None:
        still_open = set(self.learner.open_ids())
        for id in set(self.opened) - still_open:
            log.warning("episode %s of %s was open for too long and is given up", id, self.name)
            self.opened.pop(id, None)
        self._expired = self.learner.status.expired

    async def maintain(self) -> None:
        """Give up episodes that were open for too long; after a disk error, try to write again."""
        with suppress(StorageError, ApiError):
            if self.disk_error:
                await self.change(self.learner.check_disk)
            await self.change(self.learner.expire)

    def retry_disk(self) -> None:
        """Try to write to the disk again, in the background, unless that is under way."""
        if self._retry is None or self._retry.done():
            self._retry = asyncio.create_task(self._check_disk())

    async def _check_disk(self) -> None:
        with suppress(StorageError, ApiError):
            await self.change(self.learner.check_disk)

    def _record(self) -> None:
        """Add a row to the history, in a new object; it replaces a row after as many episodes."""
        status, old = self.learner.status, self.history
        every = 2 if len(old.told) >= MOST_RECORDS else 1
        kept = slice(0, -1 if old.told[-1:] == [status.told] else None, every)
        spending, told = status.spending, max(status.told, 1)
        self.history = api.Series(
            [*old.told[kept], status.told],
            [*old.use[kept], [one.spent / told for one in spending]],
            [*old.allowed[kept], [one.allowed / told for one in spending]],
            [*old.price[kept], [one.price for one in spending]],
        )
        self._recorded = status.event

    @endpoint("POST", "/ask", "too-many-open", "refused", *CHANGE, role="act")
    async def ask(self, author: str, key: str | None = None) -> api.Asked:
        """Open an episode."""
        if key is not None and not re.fullmatch(api.KEY, key):
            raise InvalidInputError(f"the key is {shown(key)}; expected 1 to 100 visible ASCII characters, no space")
        return self._opened(await self.join(lambda: self.learner.ask(author=author or None, key=key or "")))

    @endpoint("GET", "/act", "refused", "unknown-episode", role="act")
    def act(self, state: str | None = None, number: str | None = None, episode: str | None = None) -> api.Acted:
        """Draw an action for a state."""
        found = digits(number or "")
        if (state is None) == (number is None) or (state is None and found is None):
            raise ApiError("malformed", "pass either state=… or number=…, the number in digits")
        found = self.translator.state_in_url(state) if state is not None else self.translator.state(found or 0)
        policy, space = self._policy(episode), self._space
        action = policy.sample(found, self._rng)
        return api.Acted(found, space.state_name(found), action, space.action_name(action), policy[found][action])

    @endpoint(
        "POST",
        "/episodes/{episode}/tell",
        *WITH_BODY,
        "unknown-episode",
        "conflict",
        "cannot-learn",
        *CHANGE,
        role="tell",
    )
    async def tell(self, episode: str, body: api.Tell, author: str) -> api.Answered:
        """Learn from the outcome of an episode."""

        def tell() -> Literal["learned", "already"]:
            return self.learner.tell(episode, **self.translator.outcome(body), author=author or None)

        return self._closed(episode, await self.join(tell))

    @endpoint("POST", "/episodes/{episode}/give-up", "unknown-episode", "conflict", *CHANGE, role="tell")
    async def give_up(self, episode: str) -> api.Answered:
        """Close an episode without an outcome."""
        return self._closed(episode, await self.join(lambda: self.learner.give_up(episode)))

    def _opened(self, episode: OpenEpisode) -> api.Asked:
        self.opened.setdefault(episode.id, Opened(episode.policy, time()))
        return api.Asked(episode.id)

    def _closed(self, episode: str, answer: Literal["learned", "given up", "already"]) -> api.Answered:
        self.opened.pop(episode, None)
        return api.Answered(episode, answer)

    @endpoint("GET", "/episodes", role="read")
    def episodes(self) -> api.Episodes:
        """List the open episodes."""
        found = list(self.opened.items())
        return api.Episodes([id for id, _ in found], [one.time for _, one in found])

    @endpoint("GET", "/policy", "unknown-episode", role="read")
    def policy(self, episode: str | None = None) -> api.Table:
        """Return a policy as a table."""
        return api.Table(**self._policy(episode).table())

    def _policy(self, episode: str | None) -> Policy:
        """Return the policy of an open episode; without one, the policy that `ask` returns now."""
        if episode is None:
            return self._offered
        opened = self.opened.get(episode)
        found = None if opened is None else opened.policy
        if found is None:
            unknown = "is not open" if opened is None else "is played by a policy that is not known"
            raise UnknownEpisodeError(f"episode {episode!r} {unknown}")
        return Policy.unchecked(self._space, found.probabilities)

    @endpoint("GET", "/spending", role="read")
    def spending(self) -> list[Spending]:
        """Return what was spent of each budget, in its own units."""
        return list(self.learner.status.spending)

    @endpoint("GET", "/state", role="read")
    def state(self) -> api.State:
        """Return a summary of the learner."""
        status = self.learner.status
        counts = {name: getattr(status, name) for name in COUNTS}
        return api.State(
            name=self.name,
            **counts,
            learner=self.learner.settings,
            feedback=self.learner.feedback,
            loss=self.tables.own_loss(status.loss, status.told * self._space.n_layers),
            loss_unit=self.tables.loss_unit,
            spending=self.spending(),
            trouble=status.trouble or self.disk_error,
            correcting=self.learner.correcting,
        )

    @endpoint("GET", "/series", role="read")
    def series(self) -> api.Series:
        """Return the history since the service was started."""
        return self.history

    @endpoint("GET", "/space", role="read")
    def space(self) -> api.Space:
        """Return the states, the actions and the moves."""
        space = self._space
        return api.Space(
            states=[space.state_name(state) for state in range(space.n_states)],
            actions=[space.action_name(action) for action in range(space.n_actions)],
            layers=list(space.layer_sizes),
            moves=space.tuples.tolist(),
            scenarios=len(self.tables.scenarios),
            budgets=list(self.translator.budgets.names),
        )

    @endpoint("POST", "/watch", *WITH_BODY, "too-many-open", *CHANGE, role="act")
    async def watch(self, body: api.Watch, author: str) -> api.Asked:
        """Open an episode that somebody else plays."""

        def watch() -> api.Asked:
            policy = None if body.policy is None else self.translator.policy(body.policy, "policy")
            episode = self.learner.watch(policy, author=author or None)
            self.opened[episode] = Opened(policy, time())
            return api.Asked(episode)

        return await self.change(watch)

    @endpoint("PUT", "/budgets", *WITH_BODY, *CHANGE)
    async def set_budgets(self, body: api.Budgets, author: str) -> list[Spending]:
        """Change the budgets of all episodes that are told from now on."""

        def set_budgets() -> None:
            budgets = self.translator.budgets.changed(self.learner.status.budgets, body.budgets)
            self.translator.refuse_beyond(budgets, self._space.n_layers, body.budgets)
            self.learner.set_budgets(budgets, author=author or None)

        await self.change(set_budgets)
        return self.spending()

    @endpoint("GET", "/stop-loss", role="read")
    def rules(self) -> api.Rules:
        """Return the stop-loss rules, in the units of the budgets."""
        guard, budgets = self.learner.status.guard, self.translator.budgets
        rules = {}
        for i, (name, scale) in enumerate(zip(budgets.names, budgets.scales, strict=True)):
            if guard.most[i] < LARGEST_SUM:
                most, back, horizon = float(guard.most[i] * scale), float(guard.back[i] * scale), int(guard.horizon[i])
                by = "predicted" if horizon else "spent"
                rules[name] = StopLoss(most, by, back, horizon, int(guard.window[i]))  # type: ignore[arg-type]
        return api.Rules(rules, guard.safe.tolist() if rules else None)

    @endpoint("PUT", "/stop-loss", *WITH_BODY, *CHANGE)
    async def set_rules(self, body: api.Rules, author: str) -> api.Rules:
        """Replace the stop-loss rules."""

        def set_rules() -> None:
            safe = None if body.safe_policy is None else self.translator.policy(body.safe_policy, "safe_policy")
            self.learner.stop_loss(body.rules, safe, author=author or None)

        await self.change(set_rules)
        return self.rules()

    @endpoint("GET", "/challengers", role="read")
    def challengers(self) -> list[api.Standing]:
        """Return all learners, and what each would have spent."""
        status, names = self.learner.status, self.translator.budgets.names

        def by_name(values: tuple[float, ...]) -> dict[str, float]:
            return dict(zip(names, values, strict=True))

        return [
            api.Standing(
                name=one.name,
                champion=one.name == status.champion,
                learner=dict(one.settings),
                weighed=one.weighed,
                would_have_lost=self.tables.own_loss(one.loss, one.weighed * self._space.n_layers),
                would_have_spent=by_name(one.would_have_spent),
                standard_errors=by_name(one.standard_errors),
                on_paths=one.on_paths,
                spent_on_paths=by_name(one.spent_on_paths),
                uncovered=one.uncovered,
                failed=one.failed,
            )
            for one in status.standings
        ]

    @endpoint("PUT", "/challengers/{challenger}", *WITH_BODY, "name-taken", *CHANGE)
    async def challenge(self, challenger: str, body: api.Challenger, author: str) -> list[api.Standing]:
        """Add a learner that learns without playing."""

        def challenge() -> None:
            learner, settings = self._made(body), {one.name: one.settings for one in self.learner.status.entrants}
            if challenger not in settings:
                if len(settings) >= MOST_LEARNERS:
                    raise InvalidInputError(f"there are {MOST_LEARNERS} learners already; dismiss one")
                self.learner.challenge(challenger, learner, author=author or None)
            elif words := difference(settings[challenger], learner.settings):
                raise ApiError(
                    "name-taken", f"{challenger} was made with {words}; choose another name, or dismiss it first"
                )

        await self.change(challenge)
        return self.challengers()

    def _made(self, body: api.Challenger) -> LearnerBase:
        """Return a learner as `make_learner` makes it, from what the directory contains of the problem."""

        def tell(need: str) -> Any:
            if need != "rng":
                raise InvalidInputError(f"{body.learner} needs its {need}, which only Python can pass; challenge there")
            return streams(body.seed).learner

        space, budgets = self.learner.space, self.learner.status.budgets
        return learner_for(body.learner, space, budgets, self.tables.ties(space), tell, body.episodes, body.options)

    @endpoint("DELETE", "/challengers/{challenger}", "unknown-challenger", "refused", *CHANGE)
    async def dismiss(self, challenger: str, author: str) -> list[api.Standing]:
        """Remove a challenger."""
        await self.change(lambda: self.learner.dismiss(self._known(challenger), author=author or None))
        return self.challengers()

    @endpoint("POST", "/challengers/{challenger}/promote", "unknown-challenger", "refused", *CHANGE)
    async def promote(self, challenger: str, author: str) -> list[api.Standing]:
        """Make a challenger the champion."""
        await self.change(lambda: self.learner.promote(self._known(challenger), author=author or None))
        return self.challengers()

    corrections, retract, amend, undo = (
        served_corrections.corrections,
        served_corrections.retract,
        served_corrections.amend,
        served_corrections.undo,
    )

    def _names(self) -> list[str]:
        return [one.name for one in self.learner.status.entrants]

    def _known(self, name: str) -> str:
        if name not in self._names():
            raise ApiError("unknown-challenger", f"the learners here are {', '.join(self._names())}")
        return name
