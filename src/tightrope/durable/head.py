"""How far the journal was: two numbers and their checksum, written after every commit and never synced.

What a process wrote is there when it is killed. After a power cut it may be older than the journal, or unreadable; both
are harmless. Newer than the journal it cannot be, unless the journal lost what was acknowledged.

The file is mapped, as SQLite maps the index of its log: to write it takes no call of the system.
"""

import os
from mmap import mmap
from pathlib import Path
from struct import Struct
from time import monotonic
from zlib import crc32

from tightrope.arguments import printable
from tightrope.errors import StorageError

NAME = "head"

NUMBERS = Struct("<QQ")

#: Bytes of it.
SIZE = NUMBERS.size + 4

#: Seconds for which a commit need not look whether the directory is there: it might have been removed so much later.
LOOK_EVERY = 0.05


class Head:
    """The last event and the last episode."""

    def __init__(self, folder: Path, *, read_only: bool = False) -> None:
        self.path = folder / NAME
        self._map: mmap | None = None
        self._known: tuple[int, int] | None = None  #: None if nothing whole is there
        self._looked = -LOOK_EVERY
        try:
            flags = os.O_RDONLY if read_only else os.O_RDWR | os.O_CREAT
            file = os.open(self.path, flags | getattr(os, "O_BINARY", 0), 0o666)
        except FileNotFoundError:  # nothing was written yet
            return
        except OSError as error:
            raise StorageError(f"cannot open {self.path}: {error.strerror}") from error
        try:
            data = os.read(file, 2 * SIZE)
            self._known = _decoded(data)
            if not read_only:
                os.ftruncate(file, SIZE)
                os.pwrite(file, data[:SIZE].ljust(SIZE, b"\0"), 0)  # there is room for what will be written to it
                own = os.fstat(file)
                self._identity, self._map = (own.st_ino, own.st_dev), mmap(file, SIZE)
        except OSError as error:
            raise StorageError(f"cannot read {self.path}: {error.strerror}") from error
        finally:
            os.close(file)

    def look(self) -> None:
        """Refuse a directory that was removed; once in LOOK_EVERY seconds, if this is asked with every commit."""
        if monotonic() >= self._looked + LOOK_EVERY:
            self.refuse_removed()

    def refuse_removed(self) -> None:
        """What is written to a file that nobody finds any more is lost."""
        try:
            found = self.path.stat()
            if (found.st_ino, found.st_dev) == self._identity:
                self._looked = monotonic()
                return
        except FileNotFoundError:
            pass
        raise StorageError(f"{printable(self.path.parent)} was removed or replaced; open it anew")

    def write(self, event: int, episode: int) -> None:
        """Both numbers. Who is killed in between leaves none."""
        if self._map is not None:
            self._map[:] = _encoded(event, episode)
            self._known = event, episode

    def check(self, journal: object, event: int, episode: int) -> None:
        """Refuse a journal that is behind."""
        for what, known, found in zip(("event", "episode"), self._known or (0, 0), (event, episode), strict=True):
            if known > found:
                raise StorageError(
                    f"{journal} ends at {what} {found}, but {what} {known} was acknowledged: it is damaged; "
                    f"restore the directory from a copy, or remove {self.path} to go on without what was lost"
                )

    def close(self) -> None:
        """Let go of the file."""
        if self._map is not None:
            self._map.close()
            self._map = None


def _encoded(event: int, episode: int) -> bytes:
    numbers = NUMBERS.pack(event, episode)
    return numbers + crc32(numbers).to_bytes(4, "little")


def _decoded(data: bytes) -> tuple[int, int] | None:
    """The other way round; None of anything else."""
    if len(data) != SIZE:
        return None
    event, episode = NUMBERS.unpack_from(data)
    return (event, episode) if data == _encoded(event, episode) else None
