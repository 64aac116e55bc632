"""Files from anywhere: regular ones, and no more of them than there is room for."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

from tightrope.errors import InvalidInputError

#: What a path can lead to instead of a file.
KINDS: dict[str, Callable[[int], bool]] = {
    "a folder": stat.S_ISDIR,
    "a pipe": stat.S_ISFIFO,
    "a device": lambda mode: stat.S_ISCHR(mode) or stat.S_ISBLK(mode),
}

#: Only where a system has them: not to wait for whoever writes to a pipe, and bytes as they are.
UNTOUCHED = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def read_regular(path: Path, limit: int) -> bytes:
    """All of a regular file of at most `limit` bytes; anything else is refused unread, and never waited for.

    What the system says (there is no such file, it must not be read) is raised as OSError.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | UNTOUCHED)
    except ValueError as error:  # a null character
        raise InvalidInputError(f"{str(path)!r} is no name of a file: {error}") from error
    try:
        found = os.fstat(descriptor)  # of what is open, which can no longer become something else
        if not stat.S_ISREG(found.st_mode):
            kind = next((name for name, is_one in KINDS.items() if is_one(found.st_mode)), "something else")
            raise InvalidInputError(f"{path} is {kind}, not a file")
        _check_size(path, found.st_size, limit)
        with open(descriptor, "rb", closefd=False) as file:
            data = file.read(limit + 1) or b""
        _check_size(path, len(data), limit)  # it may have grown
        return data
    finally:
        os.close(descriptor)


def decode(path: Path, data: bytes) -> str:
    """The text of a file, refused with the line of the first byte that is not UTF-8."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # a byte-order mark is not counted in the position, but the lines are the same
        start = error.start + (len(data) - len(error.object))
        line = data.count(b"\n", 0, start) + 1
        raise InvalidInputError(
            f"{path}, line {line}: byte {data[start]:#04x} is not UTF-8; save the file in that encoding"
        ) from error


def _check_size(path: Path, size: int, limit: int) -> None:
    if size > limit:
        raise InvalidInputError(
            f"{path} has {size / 1e6:.1f} MB, and at most {limit / 1e6:g} are read; leave out what can be left out"
        )
