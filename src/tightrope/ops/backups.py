"""Backups of a durable learner: one file, written while the learner runs, and restored to any event that it holds.

A backup is an SQLite database: the compacted tables of the journal after some event, and a table `files` with the
snapshots and the other files of the directory.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from tightrope.arguments import printable, whole
from tightrope.errors import InvalidInputError, StorageError, in_words
from tightrope.ops import snapshots
from tightrope.ops.database import REMEDY
from tightrope.ops.inspection import MOST_ATTEMPTS, Inspection, inspect
from tightrope.ops.sqlite import JOURNAL, SQLite, appearing, other_files, require_learner
from tightrope.ops.store import Journal, SnapshotRow, digest_of
from tightrope.storage.files import replacing, sync_folder, write_bytes

FILES = "CREATE TABLE files (name TEXT PRIMARY KEY, contents BLOB NOT NULL, digest BLOB NOT NULL)"

#: The first bytes of every SQLite database.
MAGIC = b"SQLite format 3\0"


def backup(folder: Path, file: Path) -> int:
    """Write a backup of a directory, which may be in use; return the number of its last event.

    Parameters
    ----------
    folder : the directory.
    file : the backup to write. An earlier backup is replaced, once the new one is complete.

    Raises
    ------
    InvalidInputError : if the directory contains no learner, or `file` is something else than a backup.
    StorageError : if the directory is damaged, or the file cannot be written.
    """
    require_learner(folder, "back up")
    if file.resolve().is_relative_to(folder.resolve()):
        raise InvalidInputError(f"{printable(file)} is inside {printable(folder)}; write the backup somewhere else")
    if file.exists():
        with _opened(file):
            pass  # refuses to replace anything but a backup
    try:
        with replacing(file) as target:
            for attempt in range(MOST_ATTEMPTS):
                target.truncate(0)
                try:
                    return _copy(folder, Path(target.name))
                except StorageError:  # the learner may have deleted all snapshots of the copy
                    if attempt == MOST_ATTEMPTS - 1:
                        raise
    except OSError as error:
        raise StorageError(f"cannot write {in_words(error)}") from error
    raise AssertionError("unreachable")


def _copy(folder: Path, target: Path) -> int:
    """Write the journal and the files that belong to it."""
    with ExitStack() as stack:
        journal = Journal(stack.enter_context(closing(SQLite(folder, read_only=True))))
        journal.check_end()
        for damage in journal.database.damage():
            raise StorageError(damage)
        journal.database.copy_to(target)
        stack.enter_context(_errors(target))
        sql = stack.enter_context(closing(sqlite3.connect(target, isolation_level=None)))
        sql.execute("PRAGMA journal_mode = OFF")
        sql.execute("BEGIN")
        sql.execute(FILES)
        files = other_files(folder)
        for row in sql.execute("SELECT seq, chain, contents FROM snapshots").fetchall():
            snapshot = SnapshotRow(*row)
            try:
                files |= zip(snapshot.files, snapshots.read(journal, snapshot), strict=True)
            except StorageError:  # the learner has deleted it meanwhile; any other one will do
                if all(journal.database.read_file(name) is not None for name in snapshot.files):
                    raise
                sql.execute("DELETE FROM snapshots WHERE seq = ?", (snapshot.seq,))
        for name, data in files.items():
            sql.execute("INSERT INTO files VALUES (?, ?, ?)", (name, data, digest_of(data)))
        sql.execute("COMMIT")
        [[kept]] = sql.execute("SELECT count(*) FROM snapshots")
        if not kept:
            raise StorageError(f"the snapshots in {printable(folder)} are missing; {REMEDY}")
        [[last]] = sql.execute("SELECT max(seq) FROM (SELECT seq FROM events UNION ALL SELECT seq FROM snapshots)")
    return int(last)


def restore(file: Path, folder: Path, to_event: int | None = None, classes: tuple[type, ...] = ()) -> Inspection:
    """Restore a backup to a new directory, which appears only when it is complete and was read back.

    Parameters
    ----------
    file : the backup.
    folder : the directory to create; an empty one may exist.
    to_event : leave out everything that happened after this event. Episodes that were told later are open again, and
        episodes that were opened later are not known.
    classes : learners and confidence rules of your own that it may contain.

    Returns
    -------
    What the directory contains.

    Raises
    ------
    InvalidInputError : if `file` is no backup, `folder` is not empty, or the backup does not reach back to the event.
    StorageError : if the backup is damaged, or the directory cannot be written.
    """
    if to_event is not None:
        whole(to_event, "to_event", 0)
    with _opened(file) as sql, appearing(folder, "restoring", "restore to a new directory") as partial:
        _extract(sql, partial)
        if to_event is not None:
            with closing(Journal(SQLite(partial))) as journal:
                journal.rewind(to_event)
        found = inspect(partial, classes)
        if found.damage:
            raise StorageError(f"{printable(file)} is damaged: {'; '.join(found.damage)}; use another backup")
    return found


def _extract(sql: sqlite3.Connection, folder: Path) -> None:
    """Write the files of a backup to a folder."""
    sql.execute("VACUUM INTO ?", (str(folder / JOURNAL),))
    with closing(sqlite3.connect(folder / JOURNAL)) as journal:
        for name, data, digest in journal.execute("SELECT * FROM files"):
            if digest_of(data) != digest or Path(name).name != name:
                raise StorageError(f"{printable(name)} in the backup is damaged; use another backup")
            write_bytes(folder / name, data)
        journal.execute("DROP TABLE files")
        journal.execute("VACUUM")
    with (folder / JOURNAL).open("rb") as file:
        os.fsync(file.fileno())
    sync_folder(folder)


@contextmanager
def _opened(file: Path) -> Iterator[sqlite3.Connection]:
    """Open a backup; refuse anything else."""
    try:
        with file.open("rb") as start:
            magic = start.read(len(MAGIC))
    except OSError as error:
        raise InvalidInputError(f"cannot read {in_words(error)}") from error
    with _errors(file), closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)) as sql:
        tables = set()
        if magic == MAGIC:
            tables = {name for (name,) in sql.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
        if not {"events", "facts", "files"} <= tables:
            raise InvalidInputError(f"{printable(file)} is not a backup of tightrope")
        yield sql


@contextmanager
def _errors(file: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise StorageError(f"{printable(file)}: {error}") from error
