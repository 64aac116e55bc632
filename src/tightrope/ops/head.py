"""How far the journal was: two numbers and their checksum, written after every commit and never synced.

What a process wrote is there when it is killed. After a power cut it may be older than the journal, or unreadable; both
are harmless. Newer than the journal it cannot be, unless the journal lost what was acknowledged.

The file is mapped, as SQLite maps the index of its log: to write it takes no call of the system.
"""

import os
from errno import EINVAL
from mmap import mmap
from pathlib import Path
from stat import S_ISREG
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
        self._file: int | None = None
        self._map: mmap | None = None  #: of the file, once something was written to it
        self._known: tuple[int, int] | None = None  #: None if nothing whole is there
        self._identity: tuple[int, int] | None = None
        self._looked = -LOOK_EVERY
        try:
            flags = os.O_RDONLY if read_only else os.O_RDWR | os.O_CREAT
            self._file = os.open(self.path, flags | getattr(os, "O_BINARY", 0), 0o666)
            found = os.fstat(self._file)
            if not S_ISREG(found.st_mode):
                raise OSError(EINVAL, "it is no file")
            self._identity = found.st_ino, found.st_dev
            self._known = _decoded(os.read(self._file, 2 * SIZE))
        except FileNotFoundError:  # nothing was written yet
            pass
        except OSError as error:
            self.close()
            raise StorageError(f"cannot read {self.path}: {error.strerror}") from error

    @property
    def begun(self) -> bool:
        """Whether any event or episode is known of."""
        return any(self._known or ())

    def look(self) -> None:
        """Refuse a directory that was removed; once in LOOK_EVERY seconds, if this is asked with every commit."""
        if monotonic() >= self._looked + LOOK_EVERY:
            self.refuse_removed()

    def refuse_removed(self) -> None:
        """What is written to a file that nobody finds any more is lost."""
        try:
            found = self.path.stat()
            identity = found.st_ino, found.st_dev
        except (FileNotFoundError, NotADirectoryError):
            identity = None
        except OSError as error:
            raise StorageError(f"cannot find {self.path}: {error.strerror}") from error
        if identity != self._identity:
            raise StorageError(f"{printable(self.path.parent)} was removed or replaced; open it anew")
        self._looked = monotonic()

    def write(self, event: int, episode: int) -> None:
        """Both numbers; on a full disk the old ones stay, and who is killed in between leaves none."""
        data = _encoded(event, episode)
        if self._map is not None:
            self._map[:] = data
        elif self._file is not None:
            try:
                os.pwrite(self._file, data, 0)  # so there is room for what will be written to it
                os.ftruncate(self._file, SIZE)
                self._map = mmap(self._file, SIZE)
            except OSError:
                return
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
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _encoded(event: int, episode: int) -> bytes:
    numbers = NUMBERS.pack(event, episode)
    return numbers + crc32(numbers).to_bytes(4, "little")


def _decoded(data: bytes) -> tuple[int, int] | None:
    """The other way round; None of anything else."""
    if len(data) != SIZE:
        return None
    event, episode = NUMBERS.unpack_from(data)
    return (event, episode) if data == _encoded(event, episode) else None
