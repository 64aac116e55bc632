"""The journal of a durable learner: what it learned and how it was configured, in rows with digests.

    events      what the learner learned and how it was configured, in order; the digest of a row covers the row and
                the digest of the row before it
    episodes    every episode that was opened, and its fate
    arrays      policies, losses and constraints by digest; many rows refer to the same array
    snapshots   the files that hold the state after an event (`tightrope.ops.snapshots`)
    facts       what the journal was created with, as JSON

An episode is marked as told in its row when the next snapshot is recorded; until then its event says so.

Each method of `Journal` that writes is one transaction, and its result is on disk when it returns, unless several are
made one by `Journal.transaction`. Where the rows are stored is behind `tightrope.ops.database`.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np

from tightrope.errors import InvalidInputError, StorageError
from tightrope.ops.database import DIGEST, REMEDY, Database, Head
from tightrope.ops.database import digest_of_row as digest_of_row
from tightrope.space import FloatArray

#: Episodes, each with its outcome if that was told after event ?.
EPISODES = """
SELECT episodes.*, since.loss, since.constraints, since.body FROM episodes LEFT JOIN (
    SELECT * FROM events WHERE kind = 'tell' AND seq > ?
) AS since ON since.episode = number
"""

#: The arrays that an open episode or an event refers to.
REFERENCED = "SELECT policy FROM episodes WHERE fate = 'open'" + "".join(
    f" UNION SELECT {column} FROM events WHERE {column} IS NOT NULL" for column in ("policy", "loss", "constraints")
)

#: Events that are deleted when they are old, and the episodes that events are about.
NO_CORRECTION = "kind NOT IN ('retract', 'amend')"
TOLD = "SELECT episode FROM events WHERE episode IS NOT NULL"

#: The columns of `Event`.
EVENT = "seq, kind, body, episode, policy, loss, constraints, time, author"
INSERT_FACT = """
INSERT INTO facts VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value, digest = excluded.digest
"""
INSERT_EPISODE = "INSERT INTO episodes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
INSERT_EVENT = "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"

#: The digest before the first event, and the contents of an episode that was not told.
ZEROS = bytes(DIGEST)

#: In place of the digest of a policy, where somebody else played with a policy that is not known.
UNKNOWN = b""

#: Arrays that are kept in memory: those of the last two episodes.
MOST_RECENT = 6

#: A query and its values.
Statement = tuple[str, tuple[Any, ...]]

FLOATS = np.dtype("<f8")


def digest_of(data: bytes) -> bytes:
    """Return the digest of an array or a file: the first 16 bytes of its SHA-256."""
    return sha256(data).digest()[:DIGEST]


def bytes_of(numbers: FloatArray) -> bytes:
    """Return floats as the journal stores them: little-endian, C order."""
    return numbers.astype(FLOATS, copy=False).tobytes()


def floats_of(data: bytes) -> FloatArray:
    """Return the array that `bytes_of` encoded, flat and read-only."""
    return np.frombuffer(data, FLOATS)


class Event(NamedTuple):
    """A change of the learner."""

    seq: int
    kind: str
    body: bytes
    episode: int | None = None
    policy: bytes | None = None  #: digest of the policy that played the episode, or `UNKNOWN`
    loss: bytes | None = None  #: digest of the loss, if it is not in the body
    constraints: bytes | None = None  #: digest of the constraints, if they are not in the body
    time: int | None = None  #: microseconds since 1970, UTC; None before format 7
    author: str = ""  #: who caused it

    @property
    def columns(self) -> tuple[Any, ...]:
        """The columns, without the digest."""
        return (
            self.seq, self.kind, self.episode, self.policy, self.loss, self.constraints, self.body, self.time,
            self.author,
        )  # fmt: skip

    @property
    def row(self) -> tuple[Any, ...]:
        """The columns that the digest covers: before format 7 there was no time and no author."""
        return self.columns[:7] if self.time is None else self.columns

    @property
    def contents(self) -> bytes:
        """The digest of the outcome of an episode."""
        return digest_of_row(self.loss, self.constraints, self.body)


class EpisodeRow(NamedTuple):
    """An episode that was opened."""

    number: int
    token: str
    policy: bytes  #: its digest, or `UNKNOWN`
    fate: str  #: "open", "told" or "given up"
    contents: bytes  #: the digest of its outcome; `ZEROS` without one
    time: int | None = None  #: when it was opened, as in `Event`
    author: str = ""  #: who opened it
    key: str = ""  #: of the call that opened it (`DurableLearner.ask`)

    @property
    def digest(self) -> bytes:
        """The digest of the row, which covers the columns that the format had."""
        return digest_of_row(*(self[:5] if self.time is None else self))

    @property
    def id(self) -> str:
        """The name of the episode outside."""
        return f"{self.number}-{self.token}"


class SnapshotRow(NamedTuple):
    """The files that hold the state after an event."""

    seq: int
    chain: bytes  #: the digest of that event
    contents: bytes  #: the digests of the files, one after another

    @property
    def files(self) -> dict[str, bytes]:
        """The names of the files with their digests: the first learner with the rest of the state, then the others."""
        digests = [self.contents[k : k + DIGEST] for k in range(0, len(self.contents), DIGEST)]
        return {f"snapshot-{self.seq}{f'-{k}' if k else ''}.npz": digest for k, digest in enumerate(digests)}


class Sizes(NamedTuple):
    """How much a journal stores."""

    events: int  #: rows
    event_bytes: int  #: bytes of their bodies
    unused: int  #: bytes of the file that new rows will reuse


class Journal:
    """The journal in a database. Raises StorageError if it is damaged or cannot be read or written."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.settled = 0  #: episodes told up to this event are marked in their rows
        self.last_event = self.last_episode = 0
        self.given_up = 0  #: episodes
        self.chain = ZEROS  #: the digest of the last event
        self._in_transaction = False
        self.broken = False  #: whether a change in the transaction was cut short, so that it cannot be committed
        self._recent: dict[bytes, bytes] = {}  #: arrays that are on disk, by digest; the one used last at the end
        with database.reading():
            self.read_end()

    def reload(self) -> None:
        """Drop an unfinished transaction."""
        self._in_transaction = False
        self.database.reload()
        self._recent.clear()

    def read_end(self) -> None:
        """Read where the journal ends."""
        events = self._query("SELECT seq, digest FROM events ORDER BY seq DESC LIMIT 1")
        newest = [(snapshot.seq, snapshot.chain) for snapshot in self.snapshots()[:1]]
        self.last_event, self.chain = max([(0, ZEROS), *newest, *events], key=lambda end: end[0])
        self.last_episode = self.database.last_episode()
        self.given_up = self.database.head().given_up

    def check_end(self) -> None:
        """Raise StorageError if the journal lost events or episodes that were acknowledged."""
        self.database.check_end(self.head)

    @property
    def head(self) -> Head:
        """Where the journal ends, as far as this object knows."""
        return Head(self.last_event, self.last_episode, self.given_up)

    def _query(self, query: str, *values: Any) -> list[Any]:
        return self.database.query(query, *values)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit all changes of a block together; a block inside another one belongs to its transaction.

        After an error the commit may have succeeded or not: call `reload` and `read_end`.
        """
        if self._in_transaction:
            try:
                yield
            except BaseException:
                self.broken = True
                raise
            return
        self.broken = False
        self.database.begin()
        try:
            self._in_transaction = True
            yield
            if self.broken:
                raise StorageError(f"{self}: a change was cut short; nothing was stored")
            self.database.commit(self.head)
        except BaseException:
            self.database.rollback()
            raise
        finally:
            self._in_transaction = False

    def _commit(self, *statements: Statement) -> None:
        """Commit statements together."""
        with self.transaction():
            for query, values in statements:
                self.database.execute(query, *values)

    def create(self, facts: Mapping[str, Any]) -> None:
        """Store the facts of a new directory."""
        rows = [(name, json.dumps(value)) for name, value in facts.items()]
        self._commit(*((INSERT_FACT, (*row, digest_of_row(*row))) for row in rows))

    def facts(self) -> dict[str, Any]:
        """Return the facts that the directory was created with."""
        rows = self._query("SELECT name, value, digest FROM facts")
        if any(digest_of_row(name, value) != digest for name, value, digest in rows):
            raise StorageError(f"{self}: the table of facts is damaged; {REMEDY}")
        return {name: json.loads(value) for name, value, _ in rows}

    def open_episode(
        self, token: str, policy: FloatArray | None, time: int | None = None, author: str = "", key: str = ""
    ) -> EpisodeRow:
        """Open an episode, played with the probabilities `policy` (n_pairs,), or None if they are not known."""
        arrays = {} if policy is None else {digest_of(data := bytes_of(policy)): data}
        with self.transaction():
            self.last_episode += 1
            played_by = next(iter(arrays), UNKNOWN)
            episode = EpisodeRow(self.last_episode, token, played_by, "open", ZEROS, time, author, key)
            self._commit(*self._missing(arrays), (INSERT_EPISODE, (*episode, episode.digest)))
            self._remember(arrays)
        return episode

    def give_up(self, episode: EpisodeRow) -> None:
        """Close an episode without an outcome."""
        with self.transaction():
            self.given_up += 1
            self._commit(_update(episode._replace(fate="given up")))

    def append(self, events: Sequence[Event], arrays: Mapping[bytes, bytes]) -> None:
        """Append events, with the arrays that they refer to, by digest."""
        statements = self._missing(arrays)
        with self.transaction():
            for event in events:
                self.last_event, self.chain = event.seq, digest_of_row(self.chain, *event.row)
                statements.append((INSERT_EVENT, (*event.columns, self.chain)))
            for query, values in statements:
                self.database.execute(query, *values)
            self._remember(arrays)

    def _missing(self, arrays: Mapping[bytes, bytes]) -> list[Statement]:
        """Return statements that store arrays, except those that are known to be stored."""
        new = [item for item in arrays.items() if item[0] not in self._recent]
        return [("INSERT INTO arrays VALUES (?, ?) ON CONFLICT DO NOTHING", item) for item in new]

    def _remember(self, arrays: Mapping[bytes, bytes]) -> None:
        self._recent |= arrays
        for digest in list(self._recent)[:-MOST_RECENT]:
            del self._recent[digest]

    def corrections(self) -> list[Event]:
        """Return the corrections, oldest first; they are never deleted."""
        rows = self._query(f"SELECT {EVENT} FROM events WHERE kind IN ('retract', 'amend') ORDER BY seq")
        return [Event(*row) for row in rows]

    def corrections_with_digests(self, until: int) -> list[tuple[Event, bytes]]:
        """Return the corrections up to an event, with the digests of their rows."""
        query = f"SELECT {EVENT}, digest FROM events WHERE kind IN ('retract', 'amend') AND seq <= ? ORDER BY seq"
        return [(Event(*columns), digest) for *columns, digest in self._query(query, until)]

    def put_correction(self, event: Event, digest: bytes, arrays: Mapping[bytes, bytes]) -> None:
        """Store a correction from before the first event of an imported journal."""
        self._commit(*self._missing(arrays), (INSERT_EVENT, (*event.columns, digest)))

    def put_episode(self, episode: EpisodeRow, arrays: Mapping[bytes, bytes]) -> None:
        """Store an episode of an imported journal, with its policy."""
        self._commit(*self._missing(arrays), (INSERT_EPISODE, (*episode, episode.digest)))
        self.last_episode = max(self.last_episode, episode.number)

    def episodes(self) -> list[EpisodeRow]:
        """Return all episodes that are remembered, oldest first."""
        return self._episodes("1 = 1")

    def time_of(self, seq: int) -> int | None:
        """Return the time of an event; None if it has none, or is not there."""
        return next((time for (time,) in self._query("SELECT time FROM events WHERE seq = ?", seq)), None)

    def events(self, after: SnapshotRow) -> Iterator[Event]:
        """Yield the events after a snapshot in order; raise StorageError at the first that is missing or damaged."""
        last, chain = after.seq, after.chain
        found = self.database.rows(f"SELECT {EVENT}, digest FROM events WHERE seq > ? ORDER BY seq", last)
        for *columns, digest in found:
            event = Event(*columns)
            if event.seq != last + 1:
                raise StorageError(f"{self}: event {last + 1} is missing; {REMEDY}")
            last, chain = event.seq, digest_of_row(chain, *event.row)
            if chain != digest:
                raise StorageError(f"{self}: event {event.seq} is damaged; {REMEDY}")
            yield event

    def new_events(self) -> Iterator[Event]:
        """Yield the events that other processes appended, and count them."""
        for event in self.events(SnapshotRow(self.last_event, self.chain, b"")):
            self.last_event, self.chain = event.seq, digest_of_row(self.chain, *event.row)
            yield event

    def new_episodes(self) -> list[EpisodeRow]:
        """Return the episodes that other processes opened, and count them."""
        found = self._episodes("number > ?", self.last_episode)
        self.last_episode = self.database.last_episode()
        return [episode for episode in found if episode.fate == "open"]

    def reaches_back(self) -> bool:
        """Return whether the next event, which another process appended, has not been deleted since."""
        return bool(self._query("SELECT 1 FROM events WHERE seq = ?", self.last_event + 1))

    def episode(self, number: int) -> EpisodeRow | None:
        """Return an episode; None if it does not exist or was deleted."""
        return next(iter(self._episodes("number = ?", number)), None)

    def open_episodes(self) -> list[EpisodeRow]:
        """Return the episodes that were neither told nor given up, oldest first."""
        return [episode for episode in self._episodes("fate = 'open'") if episode.fate == "open"]

    def _episodes(self, where: str, *values: Any) -> list[EpisodeRow]:
        found = []
        for row in self._query(f"{EPISODES} WHERE {where} ORDER BY number", self.settled, *values):
            episode, digest, outcome = EpisodeRow(*row[:8]), row[8], row[9:]
            if episode.digest != digest:
                raise StorageError(f"{self}: episode {episode.number} is damaged; {REMEDY}")
            if outcome[-1] is not None:
                episode = episode._replace(fate="told", contents=digest_of_row(*outcome))
            found.append(episode)
        return found

    def array(self, digest: bytes) -> FloatArray:
        """Return a stored array, flat and read-only; raise StorageError if it is missing or damaged."""
        if digest not in self._recent:
            found = self._query("SELECT numbers FROM arrays WHERE digest = ?", digest)
            data = found[0][0] if found else b""
            if digest_of(data) != digest:
                raise StorageError(f"{self}: a policy, a loss or constraints are damaged; {REMEDY}")
            self._remember({digest: data})
        return floats_of(self._recent[digest])

    def record_snapshot(self, snapshot: SnapshotRow) -> None:
        """Record a snapshot of the state after the last event, and mark the episodes told before it in their rows."""
        told = self._episodes("fate = 'open' AND since.episode IS NOT NULL")
        row = (*snapshot, digest_of_row(*snapshot))
        self._commit(
            *map(_update, told),
            ("DELETE FROM snapshots WHERE seq = ?", (snapshot.seq,)),
            ("INSERT INTO snapshots VALUES (?, ?, ?, ?)", row),
        )
        self.settled = snapshot.seq

    def snapshots(self, damage: list[str] | None = None) -> list[SnapshotRow]:
        """Return the snapshots that were recorded, newest first; add a line to `damage` for each damaged row."""
        found = []
        for *columns, digest in self._query("SELECT * FROM snapshots ORDER BY seq DESC"):
            if digest_of_row(*columns) == digest:
                found.append(SnapshotRow(*columns))
            elif damage is not None:
                damage.append(f"{self}: the row of a snapshot is damaged")
        return found

    def prune(self, events_to: int, snapshots: Sequence[SnapshotRow], episodes_before: int) -> None:
        """Delete events up to a number, all snapshots but these, and what only they referred to.

        Corrections stay. So do episodes that are open, that an event refers to, or from `episodes_before` on.
        """
        kept = ", ".join(str(snapshot.seq) for snapshot in snapshots)
        old = f"SELECT 1 FROM events WHERE seq <= ? AND {NO_CORRECTION} LIMIT 1"
        statements: list[Statement] = [(f"DELETE FROM snapshots WHERE seq NOT IN ({kept})", ())]
        if self._query(old, events_to):
            statements += [
                (f"DELETE FROM events WHERE seq <= ? AND {NO_CORRECTION}", (events_to,)),
                (f"DELETE FROM episodes WHERE number < ? AND fate <> 'open' AND number NOT IN ({TOLD})",
                 (episodes_before,)),
                (f"DELETE FROM arrays WHERE digest NOT IN ({REFERENCED})", ()),
            ]  # fmt: skip
        self._recent.clear()
        self._commit(*statements)

    def check_writable(self) -> None:
        """Commit a row that changes nothing."""
        self._commit(("UPDATE facts SET value = value WHERE name = 'format'", ()))

    def rewind(self, seq: int) -> None:
        """Delete everything after an event. Episodes told later are open again; those opened later are deleted.

        An episode that was given up later stays given up, since its time is not recorded.
        """
        if seq > self.last_event:
            raise InvalidInputError(f"there is no event {seq}; the last one is event {self.last_event}")
        if all(snapshot.seq > seq for snapshot in self.snapshots()):
            oldest = min((snapshot.seq for snapshot in self.snapshots()), default=0)
            raise InvalidInputError(
                f"event {seq} is gone: the journal reaches back to event {oldest}; use an older backup"
            )
        if seq == self.last_event:
            return
        [[until]] = self._query("SELECT time FROM events WHERE seq = ?", seq + 1)
        found = self._query("SELECT max(number) FROM episodes WHERE time IS NULL OR time <= ?", until or 0)
        later = [number for (number,) in self._query("SELECT episode FROM events WHERE kind = 'tell' AND seq > ?", seq)]
        [[told]] = self._query("SELECT coalesce(max(episode), 0) FROM events WHERE kind = 'tell' AND seq <= ?", seq)
        last = max(found[0][0] or 0, told)  # a clock may have gone back after it was opened
        reopened = [self.episode(number) for number in later if number <= last]
        self._recent.clear()
        self.last_event, self.last_episode = seq, last
        with self.transaction():
            self._commit(
                *(_update(row._replace(fate="open", contents=ZEROS)) for row in reopened if row is not None),
                ("DELETE FROM events WHERE seq > ?", (seq,)),
                ("DELETE FROM snapshots WHERE seq > ?", (seq,)),
                ("DELETE FROM episodes WHERE number > ?", (last,)),
                (f"DELETE FROM arrays WHERE digest NOT IN ({REFERENCED})", ()),
            )
            self.database.set_last_episode(last)
        self.read_end()

    def check_rows(self) -> None:
        """Raise StorageError if an episode or an array is damaged."""
        self._episodes("1")
        for (digest,) in self._query("SELECT digest FROM arrays"):
            self.array(digest)

    def sizes(self) -> Sizes:
        """Return how much is stored."""
        [[events, event_bytes]] = self._query("SELECT count(*), coalesce(sum(length(body)), 0) FROM events")
        return Sizes(events, int(event_bytes), self.database.unused())

    def close(self) -> None:
        """Close the database."""
        self.database.close()

    def __str__(self) -> str:
        return str(self.database)


def _update(episode: EpisodeRow) -> Statement:
    """Return the statement that writes the fate of an episode to its row."""
    values = (episode.fate, episode.contents, episode.digest, episode.number)
    return "UPDATE episodes SET fate = ?, contents = ?, digest = ? WHERE number = ?", values
