"""One file in place of another: whoever looks finds the old one or the new one, never half of either.

What is written goes to a temporary file beside the target, which is locked as long as its writer lives. One that can be
locked was left behind by a writer that was killed, and the next one to write the same target removes it.
"""

import os
import re
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from hashlib import blake2s
from pathlib import Path
from typing import IO

from tightrope.arguments import printable
from tightrope.errors import InvalidInputError
from tightrope.signals import finally_, held
from tightrope.storage.regular import check_regular, open_regular

if sys.platform != "win32":  # there nothing is locked, and what was left behind stays
    import fcntl


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Yield an open file; then what was written to it takes the place of `path`, whole and on disk.

    If the block raises, `path` is as it was and nothing else is left. The mode of a file that is there is kept. A link
    keeps pointing where it did, and what it points to is replaced. A folder, a pipe or a device is refused.
    """
    with _about(path), ExitStack() as stack:
        target, mode = _target(path)
        _remove_leftovers(target)
        with held():
            temporary, file = _open_temporary(target, mode)
            stack.enter_context(finally_(lambda: temporary.unlink(missing_ok=True)))
        with file:
            yield file
            file.flush()
            if mode is not None:
                os.chmod(temporary, mode)  # noqa: PTH101  # only now: it may forbid writing
            os.fsync(file.fileno())
            if sys.platform == "win32":
                file.close()  # Windows does not rename what is open
            temporary.replace(target)
        sync_folder(target.parent)


@contextmanager
def _about(path: Path) -> Iterator[None]:
    """An error of the system says which file it is about; that the disk is full, for one, does not."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error


def _target(path: Path) -> tuple[Path, int | None]:
    """What `path` leads to, and the permissions of the file that is there; None if there is none."""
    try:
        target = path.resolve()
        found = target.stat()
    except FileNotFoundError:
        return target, None
    except (ValueError, RuntimeError) as error:  # a null character, a link in a circle
        raise InvalidInputError(f"{printable(path)} is no name of a file: {printable(error)}") from error
    check_regular(path, found)
    return target, stat.S_IMODE(found.st_mode) & 0o777


def _prefix(target: Path) -> str:
    """What temporary files of this target begin with: short, however long its own name is."""
    return f".tightrope-{blake2s(os.fsencode(target.name), digest_size=8).hexdigest()}-"


def is_temporary(path: Path) -> bool:
    """Whether it is called like a temporary file of ours."""
    return re.fullmatch(r"\.tightrope-[0-9a-f]{16}-[0-9a-f]{16}\.tmp", path.name) is not None


def _open_temporary(target: Path, mode: int | None) -> tuple[Path, IO[bytes]]:
    """A new file beside the target, locked, that nobody may read who may not read the target."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    permissions = 0o666 if mode is None else mode | 0o600
    while True:
        temporary = target.with_name(f"{_prefix(target)}{secrets.token_hex(8)}.tmp")
        file = open(temporary, "w+b", opener=lambda name, _: os.open(name, flags, permissions))  # noqa: SIM115
        if lock(file.fileno(), wait=True) is None or temporary.exists():
            return temporary, file
        file.close()  # removed before it was locked: by someone who took it for a leftover


def _remove_leftovers(target: Path) -> None:
    """Remove the temporary files of this target whose writers are gone."""
    for leftover in target.parent.glob(f"{_prefix(target)}*.tmp"):
        with suppress(OSError, InvalidInputError), open_regular(leftover) as descriptor:  # someone else's, or gone
            if lock(descriptor, wait=False):
                leftover.unlink()


def lock(descriptor: int, *, wait: bool) -> bool | None:
    """Whether the file or folder is locked now, by us; None where that cannot be done. The lock ends with us."""
    if sys.platform == "win32":
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def sync_folder(folder: Path) -> None:
    """Make a rename in `folder` outlast a power cut, where folders can be synced at all (not on Windows)."""
    if hasattr(os, "O_DIRECTORY"):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
