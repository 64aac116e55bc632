"""The store of a durable learner: a locked directory with a journal in SQLite. Every commit is synced to disk.

    journal.sqlite   events      what the learner learned and how it was configured, in order; the digest of a row
                                 covers the row and the digest of the row before it
                     episodes    every episode that was opened, and its fate
                     arrays      policies, losses and constraints by digest; many rows refer to the same array
                     snapshots   the files that hold the state after an event (`tightrope.ops.snapshots`)
                     facts       what the directory was created with, as JSON
    head             the numbers of the last event and the last episode, not synced (`HighWaterMark`)

An episode is marked as told in its row when the next snapshot is recorded; until then its event says so.

Each method of `Journal` that writes is one transaction, and its result is on disk when it returns. None of the methods
shows SQL to its caller, so that another database can take the place of SQLite.
"""

import json
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from errno import EINVAL
from hashlib import blake2b, sha256
from os.path import realpath
from pathlib import Path
from stat import S_ISREG
from struct import Struct
from typing import Any, NamedTuple
from zlib import crc32

import msgspec
import numpy as np

from tightrope.arguments import printable
from tightrope.errors import InvalidInputError, StorageError
from tightrope.ops import formats
from tightrope.ops.formats import FORMAT, SCHEMA
from tightrope.space import FloatArray
from tightrope.storage.files import locked
from tightrope.storage.replacing import is_temporary, sync_folder

JOURNAL = "journal.sqlite"
HEAD = "head"

#: The schema as SQLite stores it, without the statistics that ANALYZE adds.
STORED_SCHEMA = "SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_stat%' ORDER BY name"

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

#: The columns of `Event`.
EVENT = "seq, kind, body, episode, policy, loss, constraints, time, author"
INSERT_EVENT = "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"

#: Bytes of a digest.
DIGEST = 16

#: The digest before the first event, and the contents of an episode that was not told.
ZEROS = bytes(DIGEST)

#: In place of the digest of a policy, where somebody else played with a policy that is not known.
UNKNOWN = b""

REMEDY = "restore the directory from a backup"

#: Arrays that are kept in memory, too: those of an episode, and of the one before.
MOST_RECENT = 6

#: A query and its values.
Statement = tuple[str, tuple[Any, ...]]

FLOATS = np.dtype("<f8")
NUMBERS = Struct("<QQ")
encode = msgspec.msgpack.Encoder().encode


def digest_of(data: bytes) -> bytes:
    """Return the digest of an array or a file: the first 16 bytes of its SHA-256."""
    return sha256(data).digest()[:DIGEST]


def digest_of_row(*columns: bytes | str | float | None) -> bytes:
    """Return the digest of a row: BLAKE2b, 16 bytes long, of its columns in MessagePack."""
    return blake2b(encode(columns), digest_size=DIGEST).digest()


def bytes_of(numbers: FloatArray) -> bytes:
    """Return floats as the journal stores them: little-endian, C order."""
    return numbers.astype(FLOATS, copy=False).tobytes()


def floats_of(data: bytes) -> FloatArray:
    """Return the array that `bytes_of` encoded, flat and writable."""
    return np.frombuffer(bytearray(data), FLOATS)


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
    key: str = ""  #: by which a call that opened it is known again, if it was given one

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


@contextmanager
def owned_directory(folder: Path, *, create: bool) -> Iterator[Path]:
    """Lock a directory for this process until the block ends; yield its absolute path.

    With `create`, the directory and its parents are created and synced. A directory that contains anything but a
    durable learner is refused.
    """
    with ExitStack() as stack:
        try:
            if not create and not (folder / JOURNAL).is_file():
                raise no_learner(folder)
            created = [path for path in (folder, *folder.parents) if not path.exists()]
            folder.mkdir(parents=True, exist_ok=True)
            for path in created:
                sync_folder(path.parent)
            folder = Path(realpath(folder))
            stack.enter_context(locked(folder, remedy="a directory belongs to one process at a time"))
            new = all(is_temporary(path) or HighWaterMark.is_at(path) for path in folder.iterdir())
        except OSError as error:
            raise StorageError(f"cannot write to {printable(folder)}: {error.strerror}") from error
        if not new and not (folder / JOURNAL).is_file():
            raise InvalidInputError(
                f"{printable(folder)} contains other files and no durable learner; choose another directory"
            )
        yield folder


def no_learner(folder: Path) -> InvalidInputError:
    """Return the error for a directory without a learner."""
    return InvalidInputError(f"{printable(folder)} contains no learner yet; pass one to create it")


class HighWaterMark:
    """The file `head`: the numbers of the last event and the last episode, with a checksum.

    A journal that lost its end looks intact, because SQLite drops an incomplete log silently. The mark is written after
    every commit and never synced: after a crash it may be older than the journal, or unreadable, which is harmless. It
    is newer only if the journal lost a commit.
    """

    SIZE = NUMBERS.size + 4

    def __init__(self, folder: Path, *, read_only: bool = False) -> None:
        self.path = folder / HEAD
        self._file: int | None = None
        self._truncated = False
        self._identity: tuple[int, int] | None = None
        try:
            flags = os.O_RDONLY if read_only else os.O_RDWR | os.O_CREAT
            self._file = os.open(self.path, flags | getattr(os, "O_BINARY", 0), 0o666)
            found = os.fstat(self._file)
            if not S_ISREG(found.st_mode):
                raise OSError(EINVAL, "not a regular file")
            self._identity = found.st_ino, found.st_dev
        except FileNotFoundError:  # read-only, and nothing was committed yet
            pass
        except OSError as error:
            self.close()
            raise StorageError(f"cannot read {self.path}: {error.strerror}") from error

    @classmethod
    def is_at(cls, path: Path) -> bool:
        """Return whether a file may be a mark. It is created first, so it may be alone in a new directory."""
        return path.name == HEAD and path.stat().st_size in (0, cls.SIZE)

    @staticmethod
    def encode(event: int, episode: int) -> bytes:
        """Return the contents of the file."""
        numbers = NUMBERS.pack(event, episode)
        return numbers + crc32(numbers).to_bytes(4, "little")

    def read(self) -> tuple[int, int]:
        """Return the last event and the last episode; zeros if the file is empty or damaged."""
        data = b"" if self._file is None else os.pread(self._file, 2 * self.SIZE, 0)
        if len(data) != self.SIZE:
            return 0, 0
        event, episode = NUMBERS.unpack_from(data)
        return (event, episode) if data == self.encode(event, episode) else (0, 0)

    def write(self, event: int, episode: int) -> None:
        """Write both numbers. On a full disk the old ones stay, which is harmless."""
        if self._file is not None:
            with suppress(OSError):
                os.pwrite(self._file, self.encode(event, episode), 0)
                if not self._truncated:  # somebody may have made it longer before it was opened
                    os.ftruncate(self._file, self.SIZE)
                    self._truncated = True

    def refuse_moved(self) -> None:
        """Raise StorageError if the directory was removed or replaced: nobody would find what is written to it."""
        try:
            found = self.path.stat()
            identity = found.st_ino, found.st_dev
        except (FileNotFoundError, NotADirectoryError):
            identity = None
        except OSError as error:
            raise StorageError(f"cannot find {self.path}: {error.strerror}") from error
        if identity != self._identity:
            raise StorageError(f"{printable(self.path.parent)} was removed or replaced; open it again")

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


class Journal:
    """The journal of a directory, open for one writer or, with `read_only`, for one consistent look.

    Raises StorageError if the journal is damaged or cannot be read or written, InvalidInputError if it has another
    format or contains no learner.
    """

    def __init__(self, folder: Path, *, read_only: bool = False) -> None:
        self.path = folder / JOURNAL
        self.settled = 0  #: the fates of episodes told up to this event are in their rows
        self.last_event = self.last_episode = 0
        self.chain = ZEROS  #: the digest of the last event
        self.found_format = FORMAT  #: the format on disk, before it was migrated
        self._recent: dict[bytes, bytes] = {}  #: arrays by digest, used lately and certainly on disk; newest last
        with self._storage_errors(), ExitStack() as stack:
            self.mark = HighWaterMark(folder, read_only=read_only)
            stack.callback(self.mark.close)
            self._acknowledged = self.mark.read()  # before the journal, to which a writer may append meanwhile
            self._sql = self._connect("mode=ro" if read_only else "mode=rwc")
            stack.callback(lambda: self._sql.close())
            if read_only:
                self._begin_reading()
            self._upgrade(folder, read_only=read_only)
            if read_only:
                self._refuse_empty()
            else:
                self._sql.execute("PRAGMA page_size = 8192")  # of a new file: arrays take fewer pages
                self._sql.execute("PRAGMA journal_mode = WAL")
                self._sql.execute("PRAGMA synchronous = FULL")
                self._sql.executescript(f"BEGIN; {SCHEMA} COMMIT")
            self._refuse_other_schema()
            self._read_end()
            stack.pop_all()

    def _connect(self, options: str) -> sqlite3.Connection:
        address = f"{Path(realpath(self.path)).as_uri()}?{options}"  # SQLite does not resolve .. above the root
        return sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)

    def _begin_reading(self) -> None:
        """See one state from now on, whatever a writer commits."""
        try:
            self._sql.execute("BEGIN")
            self._sql.execute("SELECT count(*) FROM facts")
        except sqlite3.OperationalError:  # on read-only media SQLite cannot register a reader
            self._sql.close()
            self._sql = self._connect("mode=ro&immutable=1")

    def _upgrade(self, folder: Path, *, read_only: bool) -> None:
        """Migrate a journal of an earlier format: in one transaction, after a copy; a reader does so in memory."""
        try:
            found = dict(self._sql.execute("SELECT name, value FROM facts WHERE name = 'format'"))
        except sqlite3.OperationalError:  # there are no tables yet
            return
        if not found or found["format"] == str(FORMAT):
            return
        if found["format"] not in map(str, formats.STEPS):
            raise InvalidInputError(f"{printable(folder)} {formats.refusal(found['format'])}")
        self.found_format = int(found["format"])
        if read_only:
            memory = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
            self._sql.backup(memory)
            self._sql.close()
            self._sql = memory
        else:
            formats.preserve(folder, self._sql, JOURNAL)
        row = "format", json.dumps(FORMAT)
        self._sql.execute("BEGIN IMMEDIATE")
        formats.migrate(self._sql, self.found_format)
        self._sql.execute("INSERT OR REPLACE INTO facts VALUES (?, ?, ?)", (*row, digest_of_row(*row)))
        self._refuse_other_schema()
        self._sql.execute("COMMIT")

    def _refuse_empty(self) -> None:
        """Refuse a directory that another process is creating, or was creating when it was killed."""
        some = "SELECT 1 FROM events UNION ALL SELECT 1 FROM episodes UNION ALL SELECT 1 FROM snapshots LIMIT 1"
        has_tables = self._sql.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone()
        if not any(self._acknowledged) and not (has_tables and self._sql.execute(some).fetchone()):
            raise no_learner(self.path.parent)

    def _refuse_other_schema(self) -> None:
        with closing(sqlite3.connect(":memory:")) as fresh:
            fresh.executescript(SCHEMA)
            expected = fresh.execute(STORED_SCHEMA).fetchall()
        if self._sql.execute(STORED_SCHEMA).fetchall() != expected:
            raise StorageError(f"{self}: the schema is damaged; {REMEDY}")

    def reload(self) -> None:
        """Drop an unfinished transaction and read again where the journal ends."""
        with self._storage_errors():
            self._roll_back()
            self._acknowledged = self.mark.read()
        self._recent.clear()
        self._read_end()

    def _read_end(self) -> None:
        events = self._query("SELECT seq, digest FROM events ORDER BY seq DESC LIMIT 1")
        ends = [(0, ZEROS), *((snapshot.seq, snapshot.chain) for snapshot in self.snapshots()[:1]), *events]
        self.last_event, self.chain = max(ends, key=lambda end: end[0])
        found = self._query("SELECT seq FROM sqlite_sequence WHERE name = 'episodes'")
        self.last_episode = int(found[0][0]) if found else 0

    def check_end(self) -> None:
        """Raise StorageError if the journal lost events or episodes that were acknowledged."""
        ends = {"event": self.last_event, "episode": self.last_episode}
        for (what, last), known in zip(ends.items(), self._acknowledged, strict=True):
            if known > last:
                raise StorageError(
                    f"{self} ends at {what} {last}, but {what} {known} was acknowledged: the journal is damaged; "
                    f"{REMEDY}, or remove {self.mark.path} to continue without the lost part"
                )

    def _query(self, query: str, *values: Any) -> list[Any]:
        with self._storage_errors():
            return self._sql.execute(query, values).fetchall()

    def _commit(self, *statements: Statement) -> None:
        """Commit statements together; after any error `reload` tells what is on disk."""
        with self._storage_errors():
            self.mark.refuse_moved()
            self._roll_back()
            try:
                if len(statements) > 1:  # a single one is a transaction of its own
                    self._sql.execute("BEGIN IMMEDIATE")
                for query, values in statements:
                    self._sql.execute(query, values)
                if self._sql.in_transaction:
                    self._sql.execute("COMMIT")
            except BaseException:
                self._roll_back()
                raise
        self.mark.write(self.last_event, self.last_episode)

    def _roll_back(self) -> None:
        if self._sql.in_transaction:
            self._sql.execute("ROLLBACK")

    def create(self, facts: Mapping[str, Any]) -> None:
        """Store what the directory is created with."""
        rows = [(name, json.dumps(value)) for name, value in facts.items()]
        self._commit(*(("INSERT OR REPLACE INTO facts VALUES (?, ?, ?)", (*row, digest_of_row(*row))) for row in rows))

    def facts(self) -> dict[str, Any]:
        """Return what the directory was created with."""
        rows = self._query("SELECT name, value, digest FROM facts")
        if any(digest_of_row(name, value) != digest for name, value, digest in rows):
            raise StorageError(f"{self}: the table of facts is damaged; {REMEDY}")
        return {name: json.loads(value) for name, value, _ in rows}

    def open_episode(
        self, token: str, policy: FloatArray | None, time: int | None = None, author: str = "", key: str = ""
    ) -> EpisodeRow:
        """Open an episode to be played with these probabilities (n_pairs,); None if they are not known."""
        arrays = {} if policy is None else {self.digest(data := bytes_of(policy)): data}
        episode = EpisodeRow(
            self.last_episode + 1, token, next(iter(arrays), UNKNOWN), "open", ZEROS, time, author, key
        )
        self.last_episode = episode.number
        row = (*episode, episode.digest)
        self._commit(*self._missing(arrays), ("INSERT INTO episodes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row))
        self._remember(arrays)
        return episode

    def give_up(self, episode: EpisodeRow) -> None:
        """Record that nobody will tell the outcome of an episode."""
        self._commit(_update(episode._replace(fate="given up")))

    def append(self, events: Sequence[Event], arrays: Mapping[bytes, bytes]) -> None:
        """Append events, with the arrays that they refer to, by digest."""
        statements = self._missing(arrays)
        for event in events:
            self.last_event, self.chain = event.seq, digest_of_row(self.chain, *event.row)
            statements.append((INSERT_EVENT, (*event.columns, self.chain)))
        self._commit(*statements)
        self._remember(arrays)

    def _missing(self, arrays: Mapping[bytes, bytes]) -> list[Statement]:
        """Return statements that store arrays, without those that are certainly stored."""
        new = [item for item in arrays.items() if item[0] not in self._recent]
        return [("INSERT OR IGNORE INTO arrays VALUES (?, ?)", item) for item in new]

    def _remember(self, arrays: Mapping[bytes, bytes]) -> None:
        self._recent |= arrays
        for digest in list(self._recent)[:-MOST_RECENT]:
            del self._recent[digest]

    def digest(self, data: bytes) -> bytes:
        """Return the digest of an array; many episodes have the losses and constraints of the one before."""
        found = [digest for digest, known in self._recent.items() if known == data]
        return found[0] if found else digest_of(data)

    def events(self, after: SnapshotRow) -> Iterator[Event]:
        """Yield the events after a snapshot in order; raise StorageError at the first that is missing or damaged."""
        last, chain = after.seq, after.chain
        with self._storage_errors():
            cursor = self._sql.execute(
                f"SELECT {EVENT}, digest FROM events WHERE seq > ? ORDER BY seq",
                (last,),
            )
            for *columns, digest in cursor:
                event = Event(*columns)
                if event.seq != last + 1:
                    raise StorageError(f"{self}: event {last + 1} is missing; {REMEDY}")
                last, chain = event.seq, digest_of_row(chain, *event.row)
                if chain != digest:
                    raise StorageError(f"{self}: event {event.seq} is damaged; {REMEDY}")
                yield event

    def episode(self, number: int) -> EpisodeRow | None:
        """Return an episode; None if there is no such row, or not any more."""
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
        """Return a stored array, flat and writable; raise StorageError if it is missing or damaged."""
        if digest not in self._recent:
            found = self._query("SELECT numbers FROM arrays WHERE digest = ?", digest)
            data = found[0][0] if found else b""
            if digest_of(data) != digest:
                raise StorageError(f"{self}: a policy, a loss or constraints are damaged; {REMEDY}")
            self._remember({digest: data})
        return floats_of(self._recent[digest])

    def record_snapshot(self, snapshot: SnapshotRow) -> None:
        """Record the files of a snapshot of the state after the last event, and settle the episodes told before."""
        told = [episode for episode in self._episodes("fate = 'open'") if episode.fate == "told"]
        row = (*snapshot, digest_of_row(*snapshot))
        self._commit(*map(_update, told), ("INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?)", row))
        self.settled = snapshot.seq
        self._query("PRAGMA wal_checkpoint(PASSIVE)")  # keeps the log short, and does not wait for readers

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
        """Delete events up to a number, other snapshots, closed episodes before a number, and unused arrays."""
        kept = ", ".join(str(snapshot.seq) for snapshot in snapshots)
        self._recent.clear()
        self._commit(
            ("DELETE FROM events WHERE seq <= ?", (events_to,)),
            (f"DELETE FROM snapshots WHERE seq NOT IN ({kept})", ()),
            ("DELETE FROM episodes WHERE number < ? AND fate <> 'open'", (episodes_before,)),
            (f"DELETE FROM arrays WHERE digest NOT IN ({REFERENCED})", ()),
        )

    def check_writable(self) -> None:
        """Commit a row that changes nothing."""
        self._commit(("UPDATE facts SET value = value WHERE name = 'format'", ()))

    def copy_to(self, file: Path) -> None:
        """Write a compacted copy of the journal to a file, which must be empty; a writer may go on meanwhile."""
        with self._storage_errors():
            self._roll_back()
            self._sql.execute("VACUUM INTO ?", (str(file),))

    def rewind(self, seq: int) -> None:
        """Forget everything after an event. Episodes told later are open again; those opened later are deleted.

        An episode that was given up later stays given up: nothing says when that was.
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
        last = found[0][0] or 0
        reopened = [self.episode(number) for number in later if number <= last]
        self._recent.clear()
        self.last_event, self.last_episode = seq, last
        self._commit(
            *(_update(episode._replace(fate="open", contents=ZEROS)) for episode in reopened if episode is not None),
            ("DELETE FROM events WHERE seq > ?", (seq,)),
            ("DELETE FROM snapshots WHERE seq > ?", (seq,)),
            ("DELETE FROM episodes WHERE number > ?", (last,)),
            ("UPDATE sqlite_sequence SET seq = ? WHERE name = 'episodes'", (last,)),
            (f"DELETE FROM arrays WHERE digest NOT IN ({REFERENCED})", ()),
        )
        self._read_end()

    def file_damage(self) -> list[str]:
        """Return what SQLite finds wrong with the file."""
        return [f"{self}: {words}" for (words,) in self._query("PRAGMA quick_check(20)") if words != "ok"]

    def check_rows(self) -> None:
        """Raise StorageError if an episode or an array is damaged."""
        self._episodes("1")
        for (digest,) in self._query("SELECT digest FROM arrays"):
            self.array(digest)

    def sizes(self) -> Sizes:
        """Return how much is stored."""
        [[events, event_bytes]] = self._query("SELECT count(*), coalesce(sum(length(body)), 0) FROM events")
        [[unused]], [[page]] = self._query("PRAGMA freelist_count"), self._query("PRAGMA page_size")
        return Sizes(events, event_bytes, unused * page)

    def close(self) -> None:
        """Close the files."""
        with self._storage_errors():
            self._roll_back()
            self._sql.close()
        self.mark.close()

    @contextmanager
    def _storage_errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError, UnicodeDecodeError) as error:  # a damaged schema may not be UTF-8
            raise StorageError(f"{self}: {error}") from error

    def __str__(self) -> str:
        return printable(self.path)


def _update(episode: EpisodeRow) -> Statement:
    """Return the statement that writes the fate of an episode to its row."""
    values = (episode.fate, episode.contents, episode.digest, episode.number)
    return "UPDATE episodes SET fate = ?, contents = ?, digest = ? WHERE number = ?", values
