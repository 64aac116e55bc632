"""The journal of a directory: an SQLite file in which a commit is on disk (WAL, synchronous=FULL).

    events      what the learner is made of, in the order in which it was learnt; each row's digest covers the row and
                the digest before it, so no row can be changed, lost or moved without being found out
    episodes    what was handed out, and what became of it; of what was told since the last snapshot, the event says so
    arrays      what both refer to (`Arrays`)
    snapshots   which files hold the state after which event (`snapshots`); each row has a digest of itself
    facts       what the directory was made with, as JSON

A journal that lost its end looks whole. So the last event and the last episode also stand in a file of their own
(`Head`), which is not synced: after a crash it is at most behind the journal, unless the journal lost something.
"""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from os.path import realpath
from pathlib import Path
from typing import Any, NamedTuple

from tightrope.arguments import printable
from tightrope.errors import InvalidInputError, StorageError
from tightrope.ops.arrays import TABLE, Arrays, digest_of_row
from tightrope.ops.head import Head

NAME = "journal.sqlite"

#: Bytes of a page in a new journal. What is long has half as many to be written and pruned as of SQLite's 4096, and an
#: event alone takes no longer.
PAGE = 8192

#: Pages after which what is in the log is put where it belongs, if no snapshot comes before: 16 MB.
PAGES = 2048

SCHEMA = f"""
CREATE TABLE IF NOT EXISTS events (
    seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, episode INTEGER, policy BLOB, loss BLOB, constraints BLOB,
    body BLOB NOT NULL, digest BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS episodes (
    number INTEGER PRIMARY KEY AUTOINCREMENT, token TEXT NOT NULL, policy BLOB NOT NULL, fate TEXT NOT NULL,
    contents BLOB NOT NULL, digest BLOB NOT NULL
);
{TABLE}
CREATE TABLE IF NOT EXISTS snapshots (
    seq INTEGER PRIMARY KEY, chain BLOB NOT NULL, contents BLOB NOT NULL, digest BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL, digest BLOB NOT NULL);
"""

#: What was made of it.
TABLES = "SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_stat%' ORDER BY name"

#: Rows of episodes; and what was told of them after some event, by which one.
HANDED = """
SELECT episodes.*, since.seq, since.loss, since.constraints, since.body FROM episodes LEFT JOIN (
    SELECT * FROM events WHERE kind = 'tell' AND seq > ?
) AS since ON since.episode = number
"""

#: Raised whenever what was written before can no longer be read as it is.
FORMAT = 6

#: What the first event follows, and in place of the digest of what was told, where nothing was.
START = UNTOLD = bytes(16)

#: Episodes that were told, of which it is at hand what a snapshot writes to their rows; of more it is read.
MOST_TOLD = 10_000


class Event(NamedTuple):
    """One thing that was learnt, or that changes how it is learnt."""

    seq: int
    kind: str
    episode: int | None
    policy: bytes | None  #: digest of what played it
    loss: bytes | None  #: digest of what was told of it, if it is not in the body
    constraints: bytes | None  #: the same
    body: bytes

    @property
    def contents(self) -> bytes:
        """The digest of what was told."""
        return digest_of_row(self.loss, self.constraints, self.body)


class Handed(NamedTuple):
    """An episode that was handed out."""

    number: int
    token: str
    policy: bytes  #: its digest
    fate: str  #: open, told, given up
    contents: bytes  #: digest of what was told; zeros as long as nothing was, and so a row is always as long

    @property
    def id(self) -> str:
        """By which it is known outside."""
        return f"{self.number}-{self.token}"

    def told(self, contents: bytes) -> "Handed":
        """The same after that was told."""
        return Handed(self.number, self.token, self.policy, "told", contents)


class Snapshot(NamedTuple):
    """The state after some event, in files."""

    seq: int
    chain: bytes  #: the digest of that event
    contents: bytes  #: the digests of the files, one after another


class Journal:
    """Open for one writer, or for reading only. Whatever SQLite has to say is said in words."""

    def __init__(self, folder: Path, *, read_only: bool = False) -> None:
        self.path = folder / NAME
        self._waiting: list[tuple[str, tuple[Any, ...] | list[Any]]] = []  #: of what is listed, a row each
        self.head = Head(folder, read_only=read_only)  # before the journal, which may go on meanwhile
        with self._in_words(), ExitStack() as stack:
            stack.callback(self.head.close)
            self._sql = self._connect("mode=ro" if read_only else "mode=rwc")
            stack.callback(lambda: self._sql.close())
            if read_only:
                self._begin_reading()
            self._refuse_other_format()
            if read_only:
                self._refuse_unbegun()
            else:
                self._sql.execute(f"PRAGMA page_size = {PAGE}")
                self._sql.execute("PRAGMA journal_mode = WAL")
                self._sql.execute("PRAGMA synchronous = FULL")
                self._sql.execute("PRAGMA secure_delete = OFF")  # where it is on, all that is pruned is written again
                self._sql.execute(f"PRAGMA wal_autocheckpoint = {PAGES}")
                self._sql.executescript(f"BEGIN; {SCHEMA} COMMIT")
            self._refuse_other_tables()
            self.arrays = Arrays(self.rows, self.write, str(self))
            #: An event up to which every episode that was told has that in its row: that of a snapshot that is whole.
            self.settled = 0
            self._told: list[tuple[Handed, Event]] | None = None  #: all that was told since; None: it is to be read
            self._read_end()
            stack.pop_all()

    def _connect(self, options: str) -> sqlite3.Connection:
        address = f"{Path(realpath(self.path)).as_uri()}?{options}"  # SQLite knows no .. above the root
        return sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)

    def _begin_reading(self) -> None:
        """From now on see one state, whatever is written meanwhile."""
        try:
            self._sql.execute("BEGIN")
            self._sql.execute("SELECT count(*) FROM facts")
        except sqlite3.OperationalError:  # where nothing can be written, not even who reads; what is open is not seen
            self._sql.close()
            self._sql = self._connect("mode=ro&immutable=1")

    def _refuse_other_format(self) -> None:
        """Whatever else was different then."""
        try:
            facts = dict(self._sql.execute("SELECT name, value FROM facts WHERE name IN ('format', 'tightrope')"))
        except sqlite3.OperationalError:  # nothing is there yet
            return
        if facts and facts.get("format") != str(FORMAT):
            raise InvalidInputError(
                f"{printable(self.path.parent)} is of format {facts.get('format')}, written by tightrope "
                f"{facts.get('tightrope')}; this version reads format {FORMAT}"
            )

    def _refuse_unbegun(self) -> None:
        """Somebody makes it just now, or was ended before the first snapshot."""
        some = "SELECT 1 FROM events UNION ALL SELECT 1 FROM episodes UNION ALL SELECT 1 FROM snapshots LIMIT 1"
        made = self._sql.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone()
        if not (self.head.begun or (made and self._sql.execute(some).fetchone())):
            raise unbegun(self.path.parent)

    def _refuse_other_tables(self) -> None:
        """What a damaged one gives back is not what was written."""
        with closing(sqlite3.connect(":memory:")) as plain:
            plain.executescript(SCHEMA)
            made = plain.execute(TABLES).fetchall()
        if self._sql.execute(TABLES).fetchall() != made:
            raise StorageError(f"{self}: its tables are damaged; restore the directory from a copy")

    def _read_end(self) -> None:
        """The number and the digest of the last event, be it pruned, and the last episode ever handed out."""
        events = self.rows("SELECT seq, digest FROM events ORDER BY seq DESC LIMIT 1")
        ends = [(0, START), *((one.seq, one.chain) for one in self.snapshots()[:1]), *events]
        self.last, self.chain = max(ends, key=lambda end: end[0])
        found = self.rows("SELECT seq FROM sqlite_sequence WHERE name = 'episodes'")
        self.asked = int(found[0][0]) if found else 0

    def rows(self, query: str, *values: Any) -> list[Any]:
        """All that a query gives."""
        with self._in_words():
            return self._sql.execute(query, values).fetchall()

    def write(self, query: str, *values: Any) -> None:
        """Something to be written by the next `commit`, unless we `forget` it."""
        self._waiting.append((query, values))

    def commit(self) -> None:
        """What was written is on disk after it, all of it or nothing; if it raises, `reread`."""
        try:
            self.head.look()
            if self._sql.in_transaction:  # somebody was cut off, and so was the end of it
                self._sql.execute("ROLLBACK")
            query, values = self._waiting[0]
            if len(self._waiting) == 1 and isinstance(values, tuple):  # a transaction of its own: three calls in one
                self._sql.execute(query, values)
            else:
                self._sql.execute("BEGIN IMMEDIATE")
                for query, values in self._waiting:
                    run = self._sql.executemany if isinstance(values, list) else self._sql.execute
                    run(query, values)
                self._sql.execute("COMMIT")
            self._waiting.clear()
        except BaseException as error:
            with self._in_words():
                self.roll_back()
                raise error
        self.head.write(self.last, self.asked)

    def forget(self) -> None:
        """Whatever is to be written by the next `commit`."""
        self._waiting.clear()

    def roll_back(self) -> None:
        """Forget what was written and not committed."""
        self.forget()
        if self._sql.in_transaction:
            self._sql.execute("ROLLBACK")

    def reread(self) -> None:
        """After an interrupt: what is on disk counts."""
        with self._in_words():
            self.roll_back()
        self.arrays.be_unsure()
        self._told = None
        self._read_end()

    def append(self, event: Event, handed: Handed | None = None) -> None:
        """One more event, about an episode that was handed out, or about none."""
        self.arrays.keep(event.loss, event.constraints)
        chain = digest_of_row(self.chain, *event)
        self.write("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?)", *event, chain)
        self.last, self.chain = event.seq, chain
        if self._told is not None and handed is not None:
            self._told.append((handed, event))
            if len(self._told) > MOST_TOLD:
                self._told = None

    def events(self, after: int, chain: bytes) -> Iterator[Event]:
        """Those after `after`, whose digest is `chain`, in order; refused at the first that is not as it was."""
        with self._in_words():
            cursor = self._sql.execute("SELECT * FROM events WHERE seq > ? ORDER BY seq", (after,))
            for *columns, digest in cursor:
                event = Event(*columns)
                if event.seq != after + 1:
                    raise StorageError(f"{self}: event {after + 1} is missing; restore the directory from a copy")
                after, chain = event.seq, digest_of_row(chain, *event)
                if chain != digest:
                    raise StorageError(f"{self}: event {event.seq} is damaged; restore the directory from a copy")
                yield event

    def hand_out(self, token: str, policy: bytes) -> Handed:
        """A new episode, and the digest of what is to be played in it; none: nobody knows what."""
        self.arrays.keep(policy)
        handed = Handed(1 + self.asked, token, policy, "open", UNTOLD)
        self.write("INSERT INTO episodes VALUES (?, ?, ?, ?, ?, ?)", *handed, digest_of_row(*handed))
        self.asked = handed.number
        return handed

    def settle(self, settled: list[Handed]) -> None:
        """Episodes are no longer open."""
        rows = [(one.fate, one.contents, digest_of_row(*one), one.number) for one in settled]
        self._waiting.append(("UPDATE episodes SET fate = ?, contents = ?, digest = ? WHERE number = ?", rows))

    def handed(self, where: str, *values: Any) -> list[Handed]:
        """Episodes that were handed out, those that are remembered."""
        found = self.rows(f"{HANDED} WHERE {where} ORDER BY number", self.settled, *values)
        return [self._fate(Handed(*row[:5]), *row[5:]) for row in found]

    def open_episodes(self) -> list[Handed]:
        """Those that were neither told nor given up."""
        return [handed for handed in self.handed("fate = 'open'") if handed.fate == "open"]

    def _fate(self, handed: Handed, digest: bytes, seq: int | None, *told: bytes | None) -> Handed:
        """An episode as its row has it; or as the event of that number says, of what was told in it."""
        if digest_of_row(*handed) != digest:
            raise StorageError(f"{self}: episode {handed.number} is damaged; restore the directory from a copy")
        return handed if seq is None else handed.told(digest_of_row(*told))

    def facts(self) -> dict[str, Any]:
        """What the directory was made with."""
        found = self.rows("SELECT name, value, digest FROM facts")
        for name, value, digest in found:
            if digest_of_row(name, value) != digest:
                raise StorageError(f"{self}: what it was made with is damaged; restore the directory from a copy")
        return {name: json.loads(value) for name, value, _ in found}

    def write_facts(self, facts: dict[str, Any]) -> None:
        """Keep them."""
        for fact in [(name, json.dumps(value)) for name, value in facts.items()]:
            self.write("INSERT OR REPLACE INTO facts VALUES (?, ?, ?)", *fact, digest_of_row(*fact))

    def write_snapshot(self, snapshot: Snapshot) -> None:
        """Commit that it holds the state after the last event; what became of episodes until then is in their rows."""
        if self._told is None:
            self.settle([handed for handed in self.handed("fate = 'open'") if handed.fate == "told"])
        else:
            self.settle([handed.told(event.contents) for handed, event in self._told])
        self.write("INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?)", *snapshot, digest_of_row(*snapshot))
        self.commit()
        self.settled, self._told = snapshot.seq, []

    def snapshots(self, damage: list[str] | None = None) -> list[Snapshot]:
        """Those that were written, the newest first; of rows that are not as they were `damage` tells."""
        found = []
        for *columns, digest in self.rows("SELECT * FROM snapshots ORDER BY seq DESC"):
            if digest_of_row(*columns) == digest:
                found.append(Snapshot(*columns))
            elif damage is not None:
                damage.append(f"{self}: the row of a snapshot is damaged")
        return found

    def prune(self, events_to: int, snapshots: list[int], episodes_before: int) -> None:
        """Forget events up to a number, other snapshots, what became of older episodes, and arrays nobody needs."""
        self.write("DELETE FROM events WHERE seq <= ?", events_to)
        self.write(f"DELETE FROM snapshots WHERE seq NOT IN ({', '.join(map(str, snapshots))})")
        self.write("DELETE FROM episodes WHERE number < ? AND fate <> 'open'", episodes_before)
        self.arrays.prune()

    def touch(self) -> None:
        """Write something that changes nothing: whether it can be."""
        self.write("UPDATE facts SET value = value WHERE name = 'format'")
        self.commit()

    def settle_down(self) -> None:
        """Put the log where it belongs, as far as nobody reads it, whom it does not wait for: less is in it to be lost.

        Its file stays as long as it is, so that a commit need not make it longer: that is half of a sync.
        """
        self.rows("PRAGMA wal_checkpoint(PASSIVE)")

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
        except (sqlite3.Error, OSError, UnicodeDecodeError) as error:  # a damaged schema is no text
            raise StorageError(f"{self}: {error}") from error

    def __str__(self) -> str:
        return printable(self.path)


def unbegun(folder: Path) -> InvalidInputError:
    """For who looks for a learner where there is none."""
    return InvalidInputError(f"{printable(folder)} holds no learner yet; give it one to begin with")
