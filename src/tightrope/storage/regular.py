"""Regular files, and nothing else: a pipe would be waited for, a device has no end."""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tightrope.arguments import printable
from tightrope.errors import InvalidInputError

#: What a path can lead to instead of a file.
KINDS: dict[str, Callable[[int], bool]] = {
    "a folder": stat.S_ISDIR,
    "a pipe": stat.S_ISFIFO,
    "a device": lambda mode: stat.S_ISCHR(mode) or stat.S_ISBLK(mode),
}

#: Only where a system has them: not to wait for whoever writes to a pipe, and bytes as they are.
UNTOUCHED = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


@contextmanager
def open_regular(path: Path) -> Iterator[int]:
    """A descriptor to read a regular file from; anything else is refused unread, and never waited for.

    What the system says (there is no such file, it must not be read) is raised as OSError.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | UNTOUCHED)
    except ValueError as error:  # a null character
        raise InvalidInputError(f"{printable(path)} is no name of a file: {printable(error)}") from error
    try:
        check_regular(path, os.fstat(descriptor))  # of what is open, which can no longer become something else
        yield descriptor
    finally:
        os.close(descriptor)


def check_regular(path: Path, found: os.stat_result) -> None:
    """Refuse what is found at `path` if it is no regular file."""
    if not stat.S_ISREG(found.st_mode):
        kind = next((name for name, is_one in KINDS.items() if is_one(found.st_mode)), "something else")
        raise InvalidInputError(f"{printable(path)} is {kind}, not a file")
