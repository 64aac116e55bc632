"""Where a journal is stored: the one interface between the journal and an SQL database.

    SQLite        `tightrope.ops.sqlite`: a directory that belongs to one process; the default
    PostgreSQL    `tightrope.ops.postgres`: a database that several replicas share

The journal writes its statements with `?` for values, in the SQL that both databases understand.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec

#: What to do about damage.
REMEDY = "restore the directory from a backup"

#: How the address of a PostgreSQL database begins; any other address is a directory.
POSTGRES = ("postgresql://", "postgres://")

#: Bytes of a digest.
DIGEST = 16

#: A row of a table.
Row = tuple[Any, ...]

encode = msgspec.msgpack.Encoder().encode


def digest_of_row(*columns: bytes | str | float | None) -> bytes:
    """Return the digest of a row: BLAKE2b, 16 bytes long, of its columns in MessagePack."""
    return blake2b(encode(columns), digest_size=DIGEST).digest()


class Head(NamedTuple):
    """Where a journal ends."""

    event: int  #: number of the last event
    episode: int  #: number of the last episode that was opened
    given_up: int = 0  #: episodes that were given up since the journal was opened, or ever


class Database(Protocol):
    """Tables that are changed in transactions, and files beside them.

    All methods raise StorageError if the database is damaged, or cannot be read or written.
    """

    @property
    def shared(self) -> bool:
        """Whether other processes may change it, too."""

    @property
    def found_format(self) -> int:
        """The format that was found, before the journal was migrated."""

    @property
    def clock_offset(self) -> int:
        """How far the clock of the database is ahead of this machine's, in microseconds."""

    def query(self, sql: str, *values: Any) -> list[Any]:
        """Return the rows that a query finds."""

    def rows(self, sql: str, *values: Any) -> Iterator[Row]:
        """Yield the rows that a query finds, without reading all of them first."""

    def begin(self) -> None:
        """Begin a transaction. No other process changes the journal until it ends."""

    def execute(self, sql: str, *values: Any) -> None:
        """Change rows, in the transaction."""

    def commit(self, head: Head) -> None:
        """End the transaction; its changes are on disk when this returns. The journal now ends at `head`."""

    def rollback(self) -> None:
        """Drop the transaction, if there is one."""

    def reading(self) -> AbstractContextManager[None]:
        """Show one state of the journal to all queries of a block, whatever other processes commit."""

    def keep_alive(self) -> None:
        """Show the database that this process is at work; to be called in long transactions."""

    def reload(self) -> None:
        """Connect again if the connection was lost, and drop an unfinished transaction."""

    def head(self) -> Head:
        """Return where the journal ends, as far as other processes may have changed that."""

    def last_episode(self) -> int:
        """Return the number of the last episode that was ever opened."""

    def set_last_episode(self, number: int) -> None:
        """Set the number of the last episode, in the transaction."""

    def check_end(self, head: Head) -> None:
        """Raise StorageError if the journal, which ends at `head`, lost something that was acknowledged."""

    def read_file(self, name: str) -> bytes | None:
        """Return the contents of a file; None if there is no such file."""

    def write_file(self, name: str, data: bytes) -> None:
        """Write a file: it is replaced as a whole, and on disk when this returns or when the transaction ends."""

    def keep_files(self, pattern: str, names: set[str]) -> None:
        """Delete the files whose names match a pattern, but for these, when the transaction ends."""

    def tidy(self) -> None:
        """Keep the files of the database small."""

    def check_writable(self, size: int) -> None:
        """Raise StorageError if so many bytes cannot be written now; keep none of them."""

    def copy_to(self, file: Path) -> None:
        """Write a compacted copy to a file, an SQLite database; the file must be empty."""

    def damage(self) -> list[str]:
        """Return what the database itself finds wrong with its files."""

    def unused(self) -> int:
        """Return the bytes that new rows will reuse."""

    def wait(self, seconds: float) -> bool:
        """Wait at most so long until another process changed the journal; return whether one may have."""

    def close(self) -> None:
        """Close the connection and the files."""

    def __str__(self) -> str:
        """Return the name of the database for messages, without a password."""
