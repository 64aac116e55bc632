"""The journal of a directory: an SQLite file in which a commit is on disk (WAL, synchronous=FULL).

    events      what the learner is made of, in the order in which it was learnt; each row's digest covers the row and
                the digest before it, so no row can be changed, lost or moved without being found out
    episodes    what was handed out, and what became of it
    policies    what was handed out with it, by digest
    snapshots   which files hold the state after which event (`snapshots`)
    facts       what the directory was made with, as JSON

A journal that lost its end looks whole. So the last event and the last episode also stand in a file of their own
(`Head`), which is not synced: after a crash it is at most behind the journal, unless the journal lost something.
"""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from tightrope.arguments import printable
from tightrope.durable.head import Head
from tightrope.errors import StorageError

NAME = "journal.sqlite"

#: Pages after which what is in the log is put where it belongs: 16 MB.
PAGES = 4096

SCHEMA = """
CREATE TABLE IF NOT EXISTS events (
    seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, episode INTEGER, policy BLOB, body BLOB NOT NULL, digest BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS episodes (
    number INTEGER PRIMARY KEY AUTOINCREMENT, token TEXT NOT NULL, policy BLOB NOT NULL, fate TEXT NOT NULL,
    contents BLOB, digest BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS fates ON episodes (fate) WHERE fate = 'open';
CREATE TABLE IF NOT EXISTS policies (digest BLOB PRIMARY KEY, probabilities BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS snapshots (
    seq INTEGER, name TEXT, chain BLOB NOT NULL, digest BLOB NOT NULL, PRIMARY KEY (seq, name)
);
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL, digest BLOB NOT NULL);
"""

#: What the first event follows.
START = bytes(16)


class Event(NamedTuple):
    """One thing that was learnt, or that changes how it is learnt."""

    seq: int
    kind: str
    episode: int | None
    policy: bytes | None  #: digest of what played it
    body: bytes


class Handed(NamedTuple):
    """An episode that was handed out."""

    number: int
    token: str
    policy: bytes  #: its digest
    fate: str  #: open, told, given up
    contents: bytes | None  #: digest of what was told

    @property
    def id(self) -> str:
        """By which it is known outside."""
        return f"{self.number}-{self.token}"


def digest_of(*parts: object) -> bytes:
    """16 bytes of what is written one after another, each with its length."""
    digest = sha256()  # a third of the time that blake2b takes, where the processor helps
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode()
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.digest()[:16]


def _link(chain: bytes, event: Event, body: bytes) -> bytes:
    """The digest of an event: of the one before, of what the row says, and of its body."""
    return digest_of(chain, *event[:-1], body)


class Journal:
    """Open for one writer, or for reading only. Whatever SQLite has to say is said in words."""

    def __init__(self, folder: Path, *, read_only: bool = False) -> None:
        self.path = folder / NAME
        self.head = Head(folder, read_only=read_only)  # before the journal, which may go on meanwhile
        with self._in_words():
            self._sql = self._connect("mode=ro" if read_only else "mode=rwc")
            if read_only:
                self._begin_reading()
            else:
                self._sql.execute("PRAGMA journal_mode = WAL")
                self._sql.execute("PRAGMA synchronous = FULL")
                self._sql.execute(f"PRAGMA wal_autocheckpoint = {PAGES}")
                self._sql.executescript(SCHEMA)
        self._read_end()

    def _connect(self, options: str) -> sqlite3.Connection:
        address = f"{self.path.absolute().as_uri()}?{options}"
        return sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)

    def _begin_reading(self) -> None:
        """From now on see one state, whatever is written meanwhile."""
        try:
            self._sql.execute("BEGIN")
            self._sql.execute("SELECT count(*) FROM facts")
        except sqlite3.OperationalError:  # where nothing can be written, not even who reads; what is open is not seen
            self._sql.close()
            self._sql = self._connect("mode=ro&immutable=1")

    def _read_end(self) -> None:
        """The number and the digest of the last event, be it pruned, and the last episode ever handed out."""
        [row] = self.rows(
            "SELECT seq, digest FROM events UNION ALL SELECT seq, chain FROM snapshots "
            "UNION ALL SELECT 0, ? ORDER BY seq DESC LIMIT 1",
            START,
        )
        self.last, self.chain = int(row[0]), bytes(row[1])
        found = self.rows("SELECT seq FROM sqlite_sequence WHERE name = 'episodes'")
        self.asked = int(found[0][0]) if found else 0

    def rows(self, query: str, *values: Any) -> list[Any]:
        """All that a query gives."""
        with self._in_words():
            return self._sql.execute(query, values).fetchall()

    @contextmanager
    def commit(self) -> Iterator[None]:
        """What is written in the block is on disk after it, all of it or nothing."""
        before = self.last, self.chain, self.asked
        with self._in_words():
            self.roll_back()
            self._sql.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._sql.execute("COMMIT")
            except BaseException:
                self.last, self.chain, self.asked = before
                self.roll_back()
                raise
        self.head.write(self.last, self.asked)

    def roll_back(self) -> None:
        """Forget what was written and not committed."""
        if self._sql.in_transaction:
            self._sql.execute("ROLLBACK")

    def reread(self) -> None:
        """After an interrupt: what is on disk counts."""
        with self._in_words():
            self.roll_back()
        self._read_end()

    def append(
        self,
        kind: str,
        body: bytes,
        episode: int | None = None,
        policy: bytes | None = None,
        digest: bytes | None = None,
    ) -> Event:
        """One more event; the digest of its body if that is known."""
        event = Event(self.last + 1, kind, episode, policy, body)
        chain = _link(self.chain, event, digest_of(body) if digest is None else digest)
        self._sql.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)", (*event, chain))
        self.last, self.chain = event.seq, chain
        return event

    def events(self, after: int, chain: bytes) -> Iterator[Event]:
        """Those after `after`, whose digest is `chain`, in order; refused at the first that is not as it was."""
        with self._in_words():
            cursor = self._sql.execute("SELECT * FROM events WHERE seq > ? ORDER BY seq", (after,))
            for *columns, digest in cursor:
                event = Event(*columns)
                if event.seq != after + 1:
                    raise StorageError(f"{self}: event {after + 1} is missing; restore the directory from a copy")
                after, chain = event.seq, _link(chain, event, digest_of(event.body))
                if chain != digest:
                    raise StorageError(f"{self}: event {event.seq} is damaged; restore the directory from a copy")
                yield event

    def hand_out(self, token: str, policy: bytes, probabilities: bytes) -> Handed:
        """A new episode, and what is to be played in it."""
        self._sql.execute("INSERT OR IGNORE INTO policies VALUES (?, ?)", (policy, probabilities))
        handed = Handed(1 + self.asked, token, policy, "open", None)
        self._sql.execute("INSERT INTO episodes VALUES (?, ?, ?, ?, ?, ?)", (*handed, digest_of(*handed)))
        self.asked = handed.number
        return handed

    def settle(self, handed: Handed, fate: str, contents: bytes | None = None) -> None:
        """An episode is no longer open."""
        settled = handed._replace(fate=fate, contents=contents)
        self._sql.execute(
            "UPDATE episodes SET fate = ?, contents = ?, digest = ? WHERE number = ?",
            (fate, contents, digest_of(*settled), handed.number),
        )

    def handed(self, where: str, *values: Any) -> list[Handed]:
        """Episodes that were handed out, those that are remembered."""
        found = self.rows(f"SELECT * FROM episodes WHERE {where} ORDER BY number", *values)
        for *columns, digest in found:
            if digest_of(*columns) != digest:
                raise StorageError(f"{self}: episode {columns[0]} is damaged; restore the directory from a copy")
        return [Handed(*columns) for *columns, _ in found]

    def policy(self, digest: bytes) -> bytes:
        """The probabilities of a policy that was handed out."""
        found = self.rows("SELECT probabilities FROM policies WHERE digest = ?", digest)
        if not found or digest_of(found[0][0]) != digest:
            raise StorageError(f"{self}: a policy that was handed out is damaged; restore the directory from a copy")
        return bytes(found[0][0])

    def facts(self) -> dict[str, Any]:
        """What the directory was made with."""
        found = self.rows("SELECT name, value, digest FROM facts")
        for name, value, digest in found:
            if digest_of(name, value) != digest:
                raise StorageError(f"{self}: what it was made with is damaged; restore the directory from a copy")
        return {name: json.loads(value) for name, value, _ in found}

    def write_facts(self, facts: dict[str, Any]) -> None:
        """Keep them."""
        told = [(name, json.dumps(value)) for name, value in facts.items()]
        rows = [(*one, digest_of(*one)) for one in told]
        self._sql.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?, ?)", rows)

    def write_snapshot(self, digests: dict[str, bytes]) -> None:
        """The files by these names hold the state after the last event."""
        rows = [(self.last, name, self.chain, digest) for name, digest in digests.items()]
        self._sql.executemany("INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?)", rows)

    def prune(self, events_to: int, snapshots_before: int, episodes_before: int) -> None:
        """Forget events up to a number, older snapshots, what became of older episodes, and policies nobody needs."""
        self._sql.execute("DELETE FROM events WHERE seq <= ?", (events_to,))
        self._sql.execute("DELETE FROM snapshots WHERE seq < ?", (snapshots_before,))
        self._sql.execute("DELETE FROM episodes WHERE number < ? AND fate <> 'open'", (episodes_before,))
        self._sql.execute(
            "DELETE FROM policies WHERE digest NOT IN (SELECT policy FROM episodes WHERE fate = 'open') "
            "AND digest NOT IN (SELECT policy FROM events WHERE policy IS NOT NULL)"
        )

    def settle_down(self) -> None:
        """Put the log where it belongs, as far as nobody reads it: a smaller log has less to lose."""
        self.rows("PRAGMA wal_checkpoint(TRUNCATE)")

    def check_end(self) -> None:
        """Refuse a journal that lost what was acknowledged."""
        self.head.check(self, self.last, self.asked)

    def damage(self) -> list[str]:
        """What SQLite itself finds wrong with the file."""
        return [str(words) for (words,) in self.rows("PRAGMA quick_check(20)") if words != "ok"]

    def close(self) -> None:
        """Put the log where it belongs."""
        with self._in_words():
            self.roll_back()
            self._sql.close()
        self.head.close()

    @contextmanager
    def _in_words(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise StorageError(f"{self}: {error}") from error

    def __str__(self) -> str:
        return printable(self.path)
