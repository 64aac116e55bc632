"""The SQLite database of a durable learner: a locked directory with the journal and its files.

journal.sqlite    the tables of the journal (`tightrope.ops.store`)
snapshot-*.npz    the state after an event (`tightrope.ops.snapshots`)
head              the numbers of the last event and the last episode, not synced (`HighWaterMark`)
"""

import json
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from errno import EINVAL
from os.path import realpath
from pathlib import Path
from stat import S_ISREG
from struct import Struct
from tempfile import TemporaryFile
from typing import Any
from zlib import crc32

from tightrope.arguments import printable
from tightrope.errors import InvalidInputError, StorageError, in_words
from tightrope.ops import formats
from tightrope.ops.database import REMEDY, Head, Row, digest_of_row
from tightrope.ops.formats import FORMAT, SCHEMA
from tightrope.storage.files import is_temporary, locked, sync_folder, write_bytes

JOURNAL = "journal.sqlite"
HEAD = "head"

#: The schema as SQLite stores it, without the statistics that ANALYZE adds.
STORED_SCHEMA = "SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_stat%' ORDER BY name"

NUMBERS = Struct("<QQ")


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


def no_learner(folder: Path | str) -> InvalidInputError:
    """Return the error for a directory without a learner."""
    return InvalidInputError(f"{printable(folder)} contains no learner yet; pass one to create it")


def require_learner(folder: Path, do: str) -> None:
    """Raise InvalidInputError if a directory contains no learner; for a directory of several, say how to `do` one."""
    if not (folder / JOURNAL).is_file():
        words = f"{printable(folder)} contains no durable learner: {JOURNAL} is missing"
        for path in sorted(folder.glob(f"*/{JOURNAL}"))[:1]:
            words += f"; it holds several learners: {do} {printable(path.parent)} and the others"
        raise InvalidInputError(words)


def other_files(folder: Path) -> dict[str, bytes]:
    """Return the files of a directory, by name, that belong neither to the journal nor to a snapshot."""
    return {
        path.name: path.read_bytes()
        for path in folder.iterdir()
        if path.is_file()
        and not (path.name.startswith((JOURNAL, HEAD)) or path.match("snapshot-*.npz") or is_temporary(path))
    }


@contextmanager
def appearing(folder: Path, doing: str, advice: str) -> Iterator[Path]:
    """Yield a temporary folder, which becomes `folder` when the block ends without an error.

    Its name ends in `doing`. If `folder` exists and is not empty, the error ends with `advice`.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidInputError(f"{printable(folder)} exists and is not empty; {advice}")
    partial = folder.resolve().with_name(f"{folder.name}.{doing}")
    shutil.rmtree(partial, ignore_errors=True)  # of a process that was killed
    try:
        partial.mkdir(parents=True)
        yield partial
        (partial / HEAD).unlink(missing_ok=True)
        partial.rename(folder)
        sync_folder(folder.resolve().parent)
    except OSError as error:
        raise StorageError(f"cannot write {in_words(error)}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


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
        """Return whether a file may be a mark. It is created first, so it can be the only file of a new directory."""
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
        """Write both numbers. If the disk is full, the old ones stay, which is harmless."""
        if self._file is not None:
            with suppress(OSError):
                os.pwrite(self._file, self.encode(event, episode), 0)
                if not self._truncated:  # the file may have been longer when it was opened
                    os.ftruncate(self._file, self.SIZE)
                    self._truncated = True

    def refuse_moved(self) -> None:
        """Raise StorageError if the directory was removed or replaced, since what is written to it would be lost."""
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


class SQLite:
    """The database of a directory, open for one writer or, with `read_only`, for one consistent look.

    Raises StorageError if it is damaged or cannot be read or written, InvalidInputError if it has another format or
    contains no learner.
    """

    shared, clock_offset = False, 0

    def __init__(self, folder: Path, *, read_only: bool = False) -> None:
        self.folder, self.path = folder, folder / JOURNAL
        self.found_format = FORMAT
        self._unwanted: tuple[str, set[str]] | None = None  #: `keep_files` after the commit
        with self._errors(), ExitStack() as stack:
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
            stack.pop_all()

    def _connect(self, options: str) -> sqlite3.Connection:
        address = f"{Path(realpath(self.path)).as_uri()}?{options}"  # SQLite does not resolve .. above the root
        return sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)

    def _begin_reading(self) -> None:
        """Show one state to all queries from now on, whatever a writer commits."""
        try:
            self._sql.execute("BEGIN")
            self._sql.execute("SELECT count(*) FROM facts")
        except sqlite3.OperationalError:  # on read-only media SQLite cannot register a reader
            self._sql.close()
            self._sql = self._connect("mode=ro&immutable=1")

    def _upgrade(self, folder: Path, *, read_only: bool) -> None:
        """Migrate a journal of an earlier format, in one transaction after a copy; for readers, in memory."""
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
        """Refuse a directory that is being created, or whose creation was killed."""
        some = "SELECT 1 FROM events UNION ALL SELECT 1 FROM episodes UNION ALL SELECT 1 FROM snapshots LIMIT 1"
        has_tables = self._sql.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone()
        if not any(self._acknowledged) and not (has_tables and self._sql.execute(some).fetchone()):
            raise no_learner(self.folder)

    def _refuse_other_schema(self) -> None:
        with closing(sqlite3.connect(":memory:")) as fresh:
            fresh.executescript(SCHEMA)
            expected = fresh.execute(STORED_SCHEMA).fetchall()
        if self._sql.execute(STORED_SCHEMA).fetchall() != expected:
            raise StorageError(f"{self}: the schema is damaged; {REMEDY}")

    def query(self, sql: str, *values: Any) -> list[Any]:
        """Return the rows that a query finds."""
        with self._errors():
            return self._sql.execute(sql, values).fetchall()

    def rows(self, sql: str, *values: Any) -> Iterator[Row]:
        """Yield the rows that a query finds."""
        with self._errors():
            for row in self._sql.execute(sql, values):  # noqa: UP028  # a cursor must not be closed after its database
                yield row

    def begin(self) -> None:
        """Drop an unfinished transaction. SQLite begins the next one at the first change."""
        self.rollback()

    def execute(self, sql: str, *values: Any) -> None:
        """Change rows."""
        with self._errors():
            if not self._sql.in_transaction:
                self.mark.refuse_moved()
                self._sql.execute("BEGIN IMMEDIATE")
            self._sql.execute(sql, values)

    def commit(self, head: Head) -> None:
        """Sync what was changed, if anything was; then delete the files that are not kept."""
        unwanted, self._unwanted = self._unwanted, None
        if self._sql.in_transaction:
            self.mark.refuse_moved()
            with self._errors():
                self._sql.execute("COMMIT")
            self.mark.write(head.event, head.episode)
        if unwanted is not None:
            self._delete_files(*unwanted)

    def rollback(self) -> None:
        """Drop the transaction, if there is one."""
        self._unwanted = None
        if self._sql.in_transaction:
            with self._errors():
                self._sql.execute("ROLLBACK")

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Do nothing: no other process changes the journal."""
        yield

    def keep_alive(self) -> None:
        """Do nothing: nobody waits."""

    def reload(self) -> None:
        """Drop an unfinished transaction, and read the mark again."""
        self.rollback()
        self._acknowledged = self.mark.read()

    def head(self) -> Head:
        """Return the end that the mark shows: no other process changes the journal."""
        return Head(*self.mark.read())

    def last_episode(self) -> int:
        """Return the number of the last episode that was ever opened."""
        found = self.query("SELECT seq FROM sqlite_sequence WHERE name = 'episodes'")
        return int(found[0][0]) if found else 0

    def set_last_episode(self, number: int) -> None:
        """Set the number of the last episode."""
        self.execute("UPDATE sqlite_sequence SET seq = ? WHERE name = 'episodes'", number)

    def check_end(self, head: Head) -> None:
        """Raise StorageError if the journal lost events or episodes that were acknowledged."""
        ends = {"event": head.event, "episode": head.episode}
        for (what, last), known in zip(ends.items(), self._acknowledged, strict=True):
            if known > last:
                raise StorageError(
                    f"{self} ends at {what} {last}, but {what} {known} was acknowledged: the journal is damaged; "
                    f"{REMEDY}, or remove {self.mark.path} to continue without the lost part"
                )

    def read_file(self, name: str) -> bytes | None:
        """Return the contents of a file in the directory."""
        try:
            return (self.folder / name).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StorageError(f"cannot read {in_words(error)}") from error

    def write_file(self, name: str, data: bytes) -> None:
        """Write a file to the directory."""
        self.mark.refuse_moved()
        try:
            write_bytes(self.folder / name, data)
        except OSError as error:
            raise StorageError(f"cannot write {in_words(error)}") from error
        except InvalidInputError as error:  # a directory or a device has the name of the file
            raise StorageError(f"cannot write {name}: {error}") from error

    def keep_files(self, pattern: str, names: set[str]) -> None:
        """Delete other files of a pattern after the commit."""
        self._unwanted = pattern, names

    def _delete_files(self, pattern: str, names: set[str]) -> None:
        self.mark.refuse_moved()
        for path in self.folder.iterdir():
            # a temporary file belongs to a process that was killed: only one process writes here
            if (path.match(pattern) and path.name not in names) or is_temporary(path):
                try:
                    path.unlink(missing_ok=True)
                except OSError as error:
                    raise StorageError(f"cannot remove {in_words(error)}") from error

    def tidy(self) -> None:
        """Keep the log short, without waiting for readers."""
        self.query("PRAGMA wal_checkpoint(PASSIVE)")

    def check_writable(self, size: int) -> None:
        """Write so many bytes to a temporary file."""
        try:
            with TemporaryFile(dir=self.folder) as file:
                file.write(bytes(size))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise StorageError(f"{printable(self.folder)} cannot be written: {error.strerror}") from error

    def copy_to(self, file: Path) -> None:
        """Write a compacted copy to a file; a writer may go on meanwhile."""
        self.rollback()
        self.query("VACUUM INTO ?", str(file))

    def damage(self) -> list[str]:
        """Return what SQLite finds wrong with the file."""
        return [f"{self}: {words}" for (words,) in self.query("PRAGMA quick_check(20)") if words != "ok"]

    def unused(self) -> int:
        """Return the bytes of free pages."""
        [[pages]], [[size]] = self.query("PRAGMA freelist_count"), self.query("PRAGMA page_size")
        return int(pages * size)

    def wait(self, seconds: float) -> bool:
        """Return at once: no other process changes the journal."""
        return False

    def close(self) -> None:
        """Close the files."""
        self.rollback()
        with self._errors():
            self._sql.close()
        self.mark.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError, UnicodeDecodeError) as error:  # a damaged schema may not be UTF-8
            raise StorageError(f"{self}: {error}") from error

    def __str__(self) -> str:
        return printable(self.path)
