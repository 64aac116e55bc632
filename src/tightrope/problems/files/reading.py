"""Files from anywhere: regular ones, and no more of them than there is room for."""

import os
from pathlib import Path

from tightrope.arguments import printable
from tightrope.errors import InvalidInputError
from tightrope.storage.regular import open_regular


def read_regular(path: Path, limit: int) -> bytes:
    """All of a regular file of at most `limit` bytes; anything else is refused unread, and never waited for.

    What the system says (there is no such file, it must not be read) is raised as OSError.
    """
    with open_regular(path) as descriptor:
        _check_size(path, os.fstat(descriptor).st_size, limit)
        with open(descriptor, "rb", closefd=False) as file:
            data = file.read(limit + 1) or b""
        _check_size(path, len(data), limit)  # it may have grown
        return data


def decode(path: Path, data: bytes) -> str:
    """The text of a file, refused with the line of the first byte that is not UTF-8."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # a byte-order mark is not counted in the position, but the lines are the same
        start = error.start + (len(data) - len(error.object))
        line = data.count(b"\n", 0, start) + 1
        raise InvalidInputError(
            f"{printable(path)}, line {line}: byte {data[start]:#04x} is not UTF-8; save the file in that encoding"
        ) from error


def _check_size(path: Path, size: int, limit: int) -> None:
    if size > limit:
        found, most = f"{size / 1e6:.1f} MB", f"{limit / 1e6:g}"
        raise InvalidInputError(
            f"{printable(path)} has {found}, and at most {most} are read; leave out what can be left out"
        )
