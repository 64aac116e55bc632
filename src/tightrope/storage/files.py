"""Files of a study: each is written whole (`replacing`), and a folder belongs to one writer at a time."""

import csv
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from io import StringIO
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from tightrope.errors import InvalidInputError
from tightrope.storage.replacing import is_temporary, lock, replacing


def write_bytes(path: Path, data: bytes) -> None:
    """`Path.write_bytes`, through `replacing`."""
    with replacing(path) as file:
        file.write(data)


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Indented JSON with a final newline, through `replacing`; NaN and infinity are refused."""
    text = json.dumps(value, indent=2, allow_nan=False, ensure_ascii=False) + "\n"
    # a name that is not UTF-8 has characters that cannot be encoded; escaped, as JSON knows it, they read back
    write_bytes(path, text.encode(errors="backslashreplace"))


def write_csv(path: Path, columns: Mapping[str, Iterable[object]]) -> None:
    """A heading and one line per record, through `replacing`; every number reads back to the same bits."""
    written = StringIO()
    lines = csv.writer(written, lineterminator="\n")
    lines.writerow(columns)
    lines.writerows(zip(*(map(_cell, column) for column in columns.values()), strict=True))
    write_bytes(path, written.getvalue().encode())


def _cell(value: Any) -> str:
    plain = value.item() if hasattr(value, "item") else value  # of numpy
    return plain if isinstance(plain, str) else repr(plain).removesuffix(".0")


def read_csv(path: Path) -> dict[str, list[str]]:
    """What `write_csv` wrote, cell by cell."""
    with path.open(newline="", encoding="utf-8") as file:
        heading, *rows = csv.reader(file)
    return {name: [row[k] for row in rows] for k, name in enumerate(heading)}


@contextmanager
def claim_folder(folder: Path, mark: str) -> Iterator[bool]:
    """Make `folder` for one writer; yield whether it is new, without the file `mark` by which we know it again.

    A folder with anything else in it is refused. Until the block ends, nobody else can claim it.
    """
    with ExitStack() as stack:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(locked(folder))
            new = all(is_temporary(path) for path in folder.iterdir())
        except OSError as error:
            raise InvalidInputError(f"cannot write to the folder {folder}: {error.strerror}") from error
        if not new and not (folder / mark).is_file():
            raise InvalidInputError(f"{folder} holds files that are no study of tightrope; choose another with --out")
        yield new


@contextmanager
def locked(
    folder: Path, patience: float = 0.0, remedy: str = "wait until that is done, or choose another folder with --out"
) -> Iterator[None]:
    """Refuse a folder that somebody else holds, and goes on holding for so many seconds."""
    if sys.platform == "win32":  # where folders cannot be locked
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    until = monotonic() + patience
    try:
        while lock(descriptor, wait=False) is False:
            if monotonic() >= until:
                raise InvalidInputError(f"somebody else is writing to {folder}; {remedy}")
            sleep(0.05)
        yield
    finally:
        os.close(descriptor)
