"""Files that are written whole or not at all, regular files, and folders with one writer at a time.

`replacing` writes to a temporary file beside the target, which is locked while its writer lives, and renames it. A
temporary file that is not locked was left by a writer that was killed; the next writer of the same target removes it.
"""

import csv
import json
import os
import re
import secrets
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from hashlib import blake2s
from io import StringIO
from pathlib import Path
from time import monotonic, sleep
from typing import IO, Any

from tightrope.arguments import printable
from tightrope.errors import InvalidInputError
from tightrope.signals import finally_, held

#: The kinds of things that a path can lead to instead of a file.
KINDS: dict[str, Callable[[int], bool]] = {
    "a folder": stat.S_ISDIR,
    "a pipe": stat.S_ISFIFO,
    "a device": lambda mode: stat.S_ISCHR(mode) or stat.S_ISBLK(mode),
}

#: Flags of `open`, if the system has them: do not wait for the writer of a pipe; do not translate line endings.
UNTOUCHED = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


@contextmanager
def open_regular(path: Path) -> Iterator[int]:
    """Open a regular file for reading, and yield its descriptor.

    Raises
    ------
    InvalidInputError : for a folder, a pipe or a device; none of them is read or waited for.
    OSError : if the file does not exist or cannot be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | UNTOUCHED)
    except ValueError as error:  # a null character
        raise InvalidInputError(f"{printable(path)} is not a valid file name: {printable(error)}") from error
    try:
        # the status of the open file, which later changes of the path do not affect
        check_regular(path, os.fstat(descriptor))
        yield descriptor
    finally:
        os.close(descriptor)


def check_regular(path: Path, found: os.stat_result) -> None:
    """Raise InvalidInputError unless `path`, with this stat result, is a regular file."""
    if not stat.S_ISREG(found.st_mode):
        kind = next((name for name, is_one in KINDS.items() if is_one(found.st_mode)), "something else")
        raise InvalidInputError(f"{printable(path)} is {kind}, not a file")


if sys.platform != "win32":  # on Windows there are no locks, and leftover temporary files remain
    import fcntl


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Yield an open file that replaces `path` atomically when the block ends, synced to disk.

    If the block raises, `path` is unchanged and no temporary file is left. The mode of an existing file is kept. The
    target of a symbolic link is replaced, not the link.

    Raises
    ------
    InvalidInputError : if `path` is a folder, a pipe or a device.
    OSError : with the name of the file, if it cannot be written.
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
                file.close()  # Windows does not rename open files
            temporary.replace(target)
        sync_folder(target.parent)


@contextmanager
def _about(path: Path) -> Iterator[None]:
    """Add the path to any OSError, since some, such as a full disk, do not name a file; name a missing folder."""
    try:
        yield
    except OSError as error:
        lacking = isinstance(error, FileNotFoundError) and not path.parent.is_dir()
        words = f"there is no folder {printable(path.parent)}" if lacking else error.strerror or str(error)
        raise OSError(error.errno, words, str(path)) from error


def _target(path: Path) -> tuple[Path, int | None]:
    """Return the file that `path` resolves to, and its permissions (None if it does not exist)."""
    try:
        target = path.resolve()
        found = target.stat()
    except FileNotFoundError:
        return target, None
    except (ValueError, RuntimeError) as error:  # a null character, a link in a circle
        raise InvalidInputError(f"{printable(path)} is not a valid file name: {printable(error)}") from error
    check_regular(path, found)
    return target, stat.S_IMODE(found.st_mode) & 0o777


def _prefix(target: Path) -> str:
    """Return the prefix of the temporary files of this target; its length does not depend on the name."""
    return f".tightrope-{blake2s(os.fsencode(target.name), digest_size=8).hexdigest()}-"


def is_temporary(path: Path) -> bool:
    """Return whether this is the name of a temporary file of `replacing`."""
    return re.fullmatch(r"\.tightrope-[0-9a-f]{16}-[0-9a-f]{16}\.tmp", path.name) is not None


def _open_temporary(target: Path, mode: int | None) -> tuple[Path, IO[bytes]]:
    """Open a new, locked file beside the target, readable only by those who may read the target."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    permissions = 0o666 if mode is None else mode | 0o600
    while True:
        temporary = target.with_name(f"{_prefix(target)}{secrets.token_hex(8)}.tmp")
        file = open(temporary, "w+b", opener=lambda name, _: os.open(name, flags, permissions))  # noqa: SIM115
        if lock(file.fileno(), wait=True) is None or temporary.exists():
            return temporary, file
        file.close()  # another writer removed it before it was locked


def _remove_leftovers(target: Path) -> None:
    """Remove the temporary files of this target whose writers have ended."""
    for leftover in target.parent.glob(f"{_prefix(target)}*.tmp"):
        with suppress(OSError, InvalidInputError), open_regular(leftover) as descriptor:  # another user's, or removed
            if lock(descriptor, wait=False):
                leftover.unlink()


def lock(descriptor: int, *, wait: bool) -> bool | None:
    """Lock a file or folder until it is closed; return whether that worked, None where locks are not supported."""
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
    """Sync `folder`, so that a rename in it survives a power cut; Windows cannot sync folders."""
    if hasattr(os, "O_DIRECTORY"):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_bytes(path: Path, data: bytes) -> None:
    """Write bytes, through `replacing`."""
    with replacing(path) as file:
        file.write(data)


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write indented JSON with a final newline, through `replacing`; NaN and infinity are refused."""
    text = json.dumps(value, indent=2, allow_nan=False, ensure_ascii=False) + "\n"
    # file names that are not UTF-8 contain lone surrogates, which are written as escapes of JSON
    write_bytes(path, text.encode(errors="backslashreplace"))


def write_csv(path: Path, columns: Mapping[str, Iterable[object]]) -> None:
    """Write a heading and one line per record, through `replacing`; numbers are read back with the same bits."""
    written = StringIO()
    lines = csv.writer(written, lineterminator="\n")
    lines.writerow(columns)
    lines.writerows(zip(*(map(_cell, column) for column in columns.values()), strict=True))
    write_bytes(path, written.getvalue().encode())


def _cell(value: Any) -> str:
    plain = value.item() if hasattr(value, "item") else value  # of numpy
    return plain if isinstance(plain, str) else repr(plain).removesuffix(".0")


@contextmanager
def claim_folder(folder: Path, mark: str) -> Iterator[bool]:
    """Lock a folder, and create it if needed; the file `mark` identifies it as ours. Yield whether it is new.

    Raises
    ------
    InvalidInputError : if another process has claimed it, it cannot be written, or it has files but not `mark`.
    """
    with ExitStack() as stack:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(locked(folder))
            new = all(is_temporary(path) for path in folder.iterdir())
        except OSError as error:
            words = "it is a file" if isinstance(error, FileExistsError) else error.strerror
            raise InvalidInputError(f"cannot write to the folder {folder}: {words}; choose another one") from error
        if not new and not (folder / mark).is_file():
            raise InvalidInputError(f"{folder} has files that are not a study; choose another folder with --out")
        yield new


@contextmanager
def locked(
    folder: Path, patience: float = 0.0, remedy: str = "wait until that is done, or choose another folder with --out"
) -> Iterator[None]:
    """Lock a folder; refuse it if another process still has the lock after `patience` seconds."""
    if sys.platform == "win32":  # where folders cannot be locked
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    until = monotonic() + patience
    try:
        while lock(descriptor, wait=False) is False:
            if monotonic() >= until:
                raise InvalidInputError(f"another process is writing to {folder}; {remedy}")
            sleep(0.05)
        yield
    finally:
        os.close(descriptor)
