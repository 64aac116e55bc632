"""Arrays of a journal, by digest: policies handed out, losses and constraints told. Many episodes have the same."""

from collections.abc import Callable
from hashlib import sha256
from typing import Any

import numpy as np

from tightrope.errors import StorageError
from tightrope.space import FloatArray

REAL = np.dtype("<f8")

TABLE = "CREATE TABLE IF NOT EXISTS arrays (digest BLOB PRIMARY KEY, numbers BLOB NOT NULL);"

#: As many are in memory, too: what an episode refers to, and the one before.
AT_HAND = 6


def digest_of(*parts: object) -> bytes:
    """16 bytes of what is written one after another, each with its length."""
    written = [part if isinstance(part, bytes) else str(part).encode() for part in parts]
    digest = sha256(b"".join([len(data).to_bytes(8, "little") for data in written]))  # faster than blake2b
    for data in written:
        digest.update(data)
    return digest.digest()[:16]


def bytes_of(numbers: FloatArray) -> bytes:
    """Floats as the journal keeps them."""
    return numbers.astype(REAL, copy=False).tobytes()


def decoded(body: bytes) -> FloatArray:
    """The other way round; others may write to it."""
    return np.frombuffer(bytearray(body), REAL)


class Arrays:
    """Those of one journal, which `query` reads and writes."""

    def __init__(self, query: Callable[..., list[Any]], journal: str) -> None:
        self._query, self._journal = query, journal
        self._at_hand: dict[bytes, tuple[bytes, FloatArray]] = {}  #: by digest, the last one used last
        self._sure: set[bytes] = set()  #: which of them are in the journal for sure

    def digest(self, array: bytes) -> bytes:
        """By which it is kept; of one that is at hand it need not be worked out. Then it is at hand."""
        for digest, (known, numbers) in self._at_hand.items():
            if known == array:
                return self._have_at_hand(digest, known, numbers)
        return self._have_at_hand(digest_of(array), array, decoded(array))

    def _have_at_hand(self, digest: bytes, array: bytes, numbers: FloatArray) -> bytes:
        self._at_hand.pop(digest, None)
        self._at_hand[digest] = array, numbers
        if len(self._at_hand) > AT_HAND:
            oldest = next(iter(self._at_hand))
            del self._at_hand[oldest]
            self._sure.discard(oldest)
        return digest

    def keep(self, digest: bytes) -> None:
        """Keep one that is at hand; one that is kept already is kept once."""
        if digest not in self._sure:
            self._query("INSERT OR IGNORE INTO arrays VALUES (?, ?)", digest, self._at_hand[digest][0])
            self._sure.add(digest)

    def be_unsure(self) -> None:
        """Something that was written may be gone."""
        self._sure.clear()

    def kept(self, digest: bytes) -> FloatArray:
        """One that was kept, to be read only: others read it, too."""
        array, numbers = self._at_hand.get(digest) or self._read(digest)
        self._have_at_hand(digest, array, numbers)
        return numbers

    def _read(self, digest: bytes) -> tuple[bytes, FloatArray]:
        found = self._query("SELECT numbers FROM arrays WHERE digest = ?", digest)
        array = bytes(found[0][0]) if found else b""
        if digest_of(array) != digest:
            raise StorageError(
                f"{self._journal}: a policy that was handed out, or a loss or constraints that were told, are "
                "damaged; restore the directory from a copy"
            )
        return array, decoded(array)

    def all(self) -> list[bytes]:
        """Their digests."""
        return [digest for (digest,) in self._query("SELECT digest FROM arrays")]

    def prune(self) -> None:
        """Forget those that no open episode and no event refers to."""
        needed = ["SELECT policy FROM episodes WHERE fate = 'open'"]
        needed += [f"SELECT {name} FROM events WHERE {name} IS NOT NULL" for name in ("policy", "loss", "constraints")]
        self._query(f"DELETE FROM arrays WHERE digest NOT IN ({' UNION '.join(needed)})")
        self.be_unsure()
