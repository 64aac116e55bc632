"""The PostgreSQL database of a durable learner, which several replicas share.

Every change is a transaction under one advisory lock: whoever holds it first learns what the others committed, then
learns its own events, and commits. So one replica learns at a time, all of them in the same order. The lock ends with
the transaction, and with the connection of a replica that dies.
"""

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, Self
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from tightrope.arguments import printable, shown
from tightrope.errors import InvalidInputError, StorageError, missing
from tightrope.ops import formats
from tightrope.ops.database import POSTGRES, Head, Row
from tightrope.ops.formats import FORMAT

try:
    import psycopg
    from psycopg import sql as names
    from psycopg.conninfo import conninfo_to_dict, make_conninfo
except ImportError as error:
    raise missing(str(error.name), "postgres") from error

#: The tables of a learner are in a schema of their own.
SCHEMA = "tightrope"

#: The schema of a journal of format 7, and the files and the head, which SQLite keeps outside of its database.
TABLES = """
CREATE TABLE events (
    seq bigint PRIMARY KEY, kind text NOT NULL, episode bigint, policy bytea, loss bytea, constraints bytea,
    body bytea NOT NULL, time bigint, author text NOT NULL, digest bytea NOT NULL
);
CREATE INDEX corrections ON events (seq) WHERE kind IN ('retract', 'amend');
CREATE INDEX outcomes ON events (episode);
CREATE TABLE episodes (
    number bigint PRIMARY KEY, token text NOT NULL, policy bytea NOT NULL, fate text NOT NULL,
    contents bytea NOT NULL, time bigint, author text NOT NULL, key text NOT NULL, digest bytea NOT NULL
);
CREATE INDEX open_episodes ON episodes (number) WHERE fate = 'open';
CREATE TABLE arrays (digest bytea PRIMARY KEY, numbers bytea NOT NULL);
CREATE TABLE snapshots (seq bigint PRIMARY KEY, chain bytea NOT NULL, contents bytea NOT NULL, digest bytea NOT NULL);
CREATE TABLE facts (name text PRIMARY KEY, value text NOT NULL, digest bytea NOT NULL);
CREATE TABLE files (name text PRIMARY KEY, contents bytea NOT NULL);
CREATE TABLE head (event bigint NOT NULL, episode bigint NOT NULL, given_up bigint NOT NULL);
INSERT INTO head VALUES (0, 0, 0);
"""

#: The first number of the advisory lock; the second one is made from the name of the schema.
LOCK = 0x7467

#: Seconds until a connection attempt fails, and after which a peer that does not answer counts as dead.
PATIENCE = 10

#: Milliseconds after which the server disconnects a replica that holds the lock and sends nothing, unless the server is
#: configured otherwise; and seconds after which a replica that is at work sends something.
IDLE, ALIVE_EVERY = 10_000, 1.0

SETTINGS = f"""
SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') IN ('off', 'local');
SELECT set_config('idle_in_transaction_session_timeout', '{IDLE}', false)
    WHERE current_setting('idle_in_transaction_session_timeout') = '0';
SET tcp_user_timeout = {1000 * PATIENCE};
SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 3;
"""


class Address(NamedTuple):
    """A database and a schema in it."""

    url: str  #: as libpq understands it
    schema: str
    name: str  #: of the learner in the URLs of a service: that of the schema, or of the database

    @classmethod
    def read(cls, address: str) -> Self:
        """Take `schema=…` out of the query of a URL. Raises InvalidInputError if it is not valid."""
        parts = urlsplit(address)
        user = parts.netloc.rpartition("@")[0]
        if "@" in user + parts.path + parts.query or parts.fragment:  # "/" ended the password, and its rest is a path
            raise InvalidInputError(
                "the address of the database has a character that must be percent-encoded in a user or a password: "
                "%2F for /, %3A for :, %3F for ?, %23 for #, %40 for @; or put the password in ~/.pgpass or PGPASSWORD"
            )
        options = dict(parse_qsl(parts.query))
        schema = options.pop("schema", "")
        if schema and not re.fullmatch(r"[A-Za-z0-9_-]{1,60}", schema):
            raise InvalidInputError(
                f"schema is {shown(schema)}; expected at most 60 letters, digits, hyphens and underscores"
            )
        url = urlunsplit(parts._replace(query=urlencode(options, quote_via=quote)))  # libpq reads + as +
        try:
            found = conninfo_to_dict(url)
        except psycopg.Error as error:
            words = str(error).strip().replace(parts.password or "\n", "…")
            raise InvalidInputError(
                f"the address of the database is not valid: {words}"
            ) from None  # it shows the password
        return cls(url, schema or SCHEMA, schema or str(found.get("dbname") or SCHEMA))

    def __str__(self) -> str:
        """Return the address without user and password."""
        parts = urlsplit(self.url)
        shown_schema = "" if self.schema == SCHEMA else f"?schema={self.schema}"
        return printable(f"{POSTGRES[0]}{parts.netloc.rpartition('@')[2]}{parts.path}{shown_schema}")


@lru_cache(256)
def _translated(sql: str) -> Any:
    """Return a statement with the placeholders of psycopg."""
    return sql.replace("?", "%s")


class PostgreSQL:
    """A schema of a database. With `create`, it is created if it does not exist.

    Raises InvalidInputError if it contains no learner, or one of another format; StorageError if the server cannot be
    reached, or does not keep what it acknowledges.
    """

    shared = True
    found_format = FORMAT

    def __init__(self, address: str, *, create: bool) -> None:
        self.address = Address.read(address)
        self._pending: list[tuple[str, Sequence[Any]]] = []  #: changes of the transaction that were not sent yet
        self._end: Head | None = None  #: in a transaction: where the journal ended when it began
        self._last_sent = 0.0  #: when something was sent to the server, by `time.monotonic`
        self.clock_offset = 0
        self._listener: psycopg.Connection[Any] | None = None
        self._sql = self._connect()
        try:
            self._prepare(create)
        except BaseException:
            self.close()
            raise

    def _connect(self) -> psycopg.Connection[Any]:
        options = {"connect_timeout": str(PATIENCE), "application_name": "tightrope"}
        options |= {name: str(value) for name, value in conninfo_to_dict(self.address.url).items() if value is not None}
        options["client_encoding"] = "UTF8"  # without it psycopg returns bytes where the encoding is SQL_ASCII
        with self._errors():
            connection = psycopg.connect(make_conninfo(**options), autocommit=True)
            for statement in filter(str.strip, SETTINGS.split(";")):
                connection.execute(statement)
            connection.execute(names.SQL("SET search_path = {}").format(names.Identifier(self.address.schema)))
        return connection

    def _prepare(self, create: bool) -> None:
        """Create the tables if they are missing; refuse other formats, and a server that syncs nothing."""
        with self._errors():
            [[fsync, key]] = self.query("SELECT current_setting('fsync'), hashtext(?)", self.address.schema)
            if fsync != "on":
                raise StorageError(f"{self}: the server runs with fsync = off and may lose what it acknowledged")
            # Each statement has to see what was committed before it got the lock, whatever the server's default is.
            self._lock = f"BEGIN ISOLATION LEVEL READ COMMITTED; SELECT pg_advisory_xact_lock({LOCK}, {key}); "
            self._channel = f"tightrope_{key & 0xFFFFFFFF:x}"
            if not self._has_tables():
                if not create:
                    raise InvalidInputError(f"{self} contains no learner yet; pass one to create it")
                self._sql.execute(self._lock)
                if not self._has_tables():  # another replica may have created them meanwhile
                    schema = names.Identifier(self.address.schema)
                    self._sql.execute(names.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(schema))
                    self._sql.execute(TABLES)
                self._sql.execute("COMMIT")
        for (found,) in self.query("SELECT value FROM facts WHERE name = 'format'"):
            if found != str(FORMAT):
                raise InvalidInputError(f"{self} {formats.refusal(found)}")

    def _has_tables(self) -> bool:
        [[found]] = self.query("SELECT to_regclass(?) IS NOT NULL", f'"{self.address.schema}".head')
        return bool(found)

    def query(self, sql: str, *values: Any) -> list[Any]:
        """Return the rows that a query finds."""
        with self._errors():
            self._send()
            self._last_sent = time.monotonic()
            return self._sql.execute(_translated(sql), values, binary=True).fetchall()

    def rows(self, sql: str, *values: Any) -> Iterator[Row]:
        """Yield the rows that a query finds."""
        yield from self.query(sql, *values)

    def begin(self) -> None:
        """Wait for the lock, and note where the journal ends."""
        self.rollback()
        with self._errors():
            now = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
            cursor = self._sql.execute(f"{self._lock}SELECT event, episode, given_up, {now} FROM head")
            while cursor.nextset():
                pass
            *end, now_there = cursor.fetchall()[0]
            self._end, self._last_sent = Head(*end), time.monotonic()
            self.clock_offset = now_there - time.time_ns() // 1000

    def execute(self, sql: str, *values: Any) -> None:
        """Change rows; sent with the next query or the commit."""
        self._pending.append((sql, values))

    def _send(self, *more: tuple[str, Sequence[Any]]) -> str | None:
        """Send the changes that are pending, and more of them, in one round trip; return the answer to the last."""
        statements, self._pending = [*self._pending, *more], []
        if not statements:
            return None
        with self._sql.pipeline():
            cursors = [self._sql.execute(_translated(sql), values) for sql, values in statements]
        return cursors[-1].statusmessage

    def commit(self, head: Head) -> None:
        """Store the end of the journal, wake the other replicas, and commit."""
        if self._end is not None:  # another replica may be ahead of a transaction that did not catch up
            head = Head(*map(max, head, self._end))
        changed = bool(self._pending) or head != self._end
        self._end = None
        update = "UPDATE head SET event = ?, episode = ?, given_up = ?", head
        notify = "SELECT pg_notify(?, '')", (self._channel,)
        with self._errors():
            answer = self._send(*([update, notify] if changed else []), ("COMMIT", ()))
        if answer != "COMMIT":
            raise StorageError(f"{self}: the server answered {answer} to a commit; nothing was stored")

    def rollback(self) -> None:
        """Drop the transaction, if there is one."""
        self._pending, self._end = [], None
        if self._sql.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            with suppress(psycopg.Error):  # without the connection there is no transaction
                self._sql.execute("ROLLBACK")

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Show one state to all queries of a block."""
        if self._sql.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            yield
            return
        with self._errors():
            self._sql.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        try:
            yield
        finally:
            self.rollback()

    def keep_alive(self) -> None:
        """Send something in a long transaction, so that the server does not take this replica for one that hangs."""
        if time.monotonic() - self._last_sent > ALIVE_EVERY:
            self.query("SELECT 1")

    def reload(self) -> None:
        """Connect again if the connection was lost, and drop an unfinished transaction."""
        self.rollback()
        if self._sql.closed or self._sql.broken or not self._answers():
            self._sql.close()
            self._sql = self._connect()

    def _answers(self) -> bool:
        try:
            self._sql.execute("SELECT 1")
        except psycopg.Error:
            return False
        return True

    def head(self) -> Head:
        """Return where the journal ends."""
        if self._end is None:
            return Head(*self.query("SELECT event, episode, given_up FROM head")[0])
        return self._end

    def last_episode(self) -> int:
        """Return the number of the last episode that was ever opened."""
        return self.head().episode

    def set_last_episode(self, number: int) -> None:
        """Do nothing: the number is stored with the commit."""

    def check_end(self, head: Head) -> None:
        """Raise StorageError if events or episodes are missing at the end."""
        end = self.head()
        if end != head:
            raise StorageError(f"{self}: the journal ends at {head}, but its end was recorded at {end}")

    def read_file(self, name: str) -> bytes | None:
        """Return the contents of a file in the table of files."""
        found = self.query("SELECT contents FROM files WHERE name = ?", name)
        return bytes(found[0][0]) if found else None

    def write_file(self, name: str, data: bytes) -> None:
        """Write a file to the table of files."""
        statement = "INSERT INTO files VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET contents = excluded.contents"
        self.execute(statement, name, data)
        with self._errors():
            self._send()

    def keep_files(self, pattern: str, names: set[str]) -> None:
        """Delete other files of a pattern, in the transaction."""
        for (name,) in self.query("SELECT name FROM files"):
            if fnmatchcase(name, pattern) and name not in names:
                self.execute("DELETE FROM files WHERE name = ?", name)

    def tidy(self) -> None:
        """Do nothing: the server does."""

    def check_writable(self, size: int) -> None:
        """Do nothing: only a commit shows it."""

    def copy_to(self, file: Path) -> None:
        """Refuse: PostgreSQL has tools of its own."""
        raise InvalidInputError(f"{self} is backed up with pg_dump")

    def damage(self) -> list[str]:
        """Return nothing: the server checks its own files."""
        return []

    def unused(self) -> int:
        """Return 0: the server manages its files."""
        return 0

    def wait(self, seconds: float) -> bool:
        """Wait at most so long until a replica committed; return whether one did. Only one thread may wait."""
        try:
            if self._listener is None or self._listener.closed:
                self._listener = self._connect()
                self._listener.execute(names.SQL("LISTEN {}").format(names.Identifier(self._channel)))
                return True  # what was committed before is not announced again
            own = self._sql.info.backend_pid
            return any(notice.pid != own for notice in self._listener.notifies(timeout=seconds, stop_after=1))
        except psycopg.Error as error:
            if self._listener is not None:
                self._listener.close()
            raise StorageError(f"{self}: {error}") from error

    def close(self) -> None:
        """Close the connections."""
        for connection in (self._sql, self._listener):
            if connection is not None:
                connection.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            raise StorageError(f"{self}: {str(error).strip() or type(error).__name__}") from error

    def __str__(self) -> str:
        return str(self.address)
