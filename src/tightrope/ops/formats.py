"""The formats of a journal: the schema of the present one, and how each released one before becomes the next.

A directory of a released format opens in every later version. `Journal` migrates it in one transaction, after it copied
the directory (`preserve`); a kill at any moment leaves the old format or the new one. To add a format: write its schema
and a step to it, raise `FORMAT`, and add a directory of it to the tests (`tests/releases`).
"""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from os import O_RDONLY, fsync
from os import close as close_file
from os import open as open_file
from pathlib import Path

from tightrope import __version__
from tightrope.storage.files import is_temporary, sync_folder

#: The present format; it increases when earlier versions can no longer read a journal.
FORMAT = 7

#: The text of each statement is part of the format: a journal whose schema differs is damaged.
SCHEMA = """
CREATE TABLE IF NOT EXISTS events (
    seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, episode INTEGER, policy BLOB, loss BLOB, constraints BLOB,
    body BLOB NOT NULL, time INTEGER, author TEXT NOT NULL, digest BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS corrections ON events (seq) WHERE kind IN ('retract', 'amend');
CREATE TABLE IF NOT EXISTS episodes (
    number INTEGER PRIMARY KEY AUTOINCREMENT, token TEXT NOT NULL, policy BLOB NOT NULL, fate TEXT NOT NULL,
    contents BLOB NOT NULL, time INTEGER, author TEXT NOT NULL, key TEXT NOT NULL, digest BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS arrays (digest BLOB PRIMARY KEY, numbers BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS snapshots (
    seq INTEGER PRIMARY KEY, chain BLOB NOT NULL, contents BLOB NOT NULL, digest BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL, digest BLOB NOT NULL);
"""


def _from_6(sql: sqlite3.Connection) -> None:
    """Add a time and an author to events and episodes. Those of before have no time, and keep their digests."""
    last = sql.execute("SELECT seq FROM sqlite_sequence WHERE name = 'episodes'").fetchall()
    for table in ("events", "episodes"):
        sql.execute(f"ALTER TABLE {table} RENAME TO {table}_6")
    for statement in SCHEMA.split(";")[:-1]:
        sql.execute(statement)
    sql.execute(
        "INSERT INTO events SELECT seq, kind, episode, policy, loss, constraints, body, NULL, '', digest FROM events_6"
    )
    sql.execute(
        "INSERT INTO episodes SELECT number, token, policy, fate, contents, NULL, '', '', digest FROM episodes_6"
    )
    for table in ("events", "episodes"):
        sql.execute(f"DROP TABLE {table}_6")
    sql.execute("DELETE FROM sqlite_sequence WHERE name = 'episodes'")
    sql.executemany("INSERT INTO sqlite_sequence VALUES ('episodes', ?)", last)  # numbers are never used again


#: For each format that was released before this one, the step to the next.
STEPS: dict[int, Callable[[sqlite3.Connection], None]] = {6: _from_6}


def migrate(sql: sqlite3.Connection, found: int) -> None:
    """Bring the tables from format `found` to `FORMAT`, in the transaction that is open."""
    for format in range(found, FORMAT):
        STEPS[format](sql)


def refusal(found: str) -> str:
    """Say why a format cannot be read, and what to do."""
    if found.isdecimal() and int(found) > FORMAT:
        return (
            f"has journal format {found}, which a later version wrote; tightrope {__version__} reads formats "
            f"{min(STEPS)} to {FORMAT}: upgrade tightrope"
        )
    return f"has journal format {found}, which no release wrote; tightrope {__version__} reads {min(STEPS)} to {FORMAT}"


def preserve(folder: Path, sql: sqlite3.Connection, journal: str) -> Path:
    """Copy a directory, before it is migrated, to a folder in it, which the version that wrote it can open.

    The copy appears whole or not at all. An earlier one, of a migration that was cut off, is replaced.
    """
    target = folder / f"before-format-{FORMAT}"
    partial = target.with_suffix(".partial")
    for path in (partial, target):
        shutil.rmtree(path, ignore_errors=True)
    partial.mkdir()
    with closing(sqlite3.connect(partial / journal)) as copy:
        sql.backup(copy)
    for path in folder.iterdir():
        if path.is_file() and not path.name.startswith((journal, "head")) and not is_temporary(path):
            shutil.copy2(path, partial)
    for path in partial.iterdir():
        _sync(path)
    sync_folder(partial)
    partial.rename(target)
    sync_folder(folder)
    return target


def _sync(path: Path) -> None:
    descriptor = open_file(path, O_RDONLY)
    try:
        fsync(descriptor)
    finally:
        close_file(descriptor)
