"""Arrays of a journal, by digest: policies handed out, losses and constraints told. Many episodes have the same."""

from collections.abc import Callable
from hashlib import blake2b, sha256
from typing import Any

import msgspec
import numpy as np

from tightrope.errors import StorageError
from tightrope.space import FloatArray

REAL = np.dtype("<f8")

encoded = msgspec.msgpack.Encoder().encode

TABLE = "CREATE TABLE IF NOT EXISTS arrays (digest BLOB PRIMARY KEY, numbers BLOB NOT NULL);"

#: As many are in memory, too: what an episode refers to, and the one before.
AT_HAND = 6


def digest_of(data: bytes | bytearray) -> bytes:
    """16 bytes by which data is known; of much data, processors work out this one fastest."""
    return sha256(data).digest()[:16]


def digest_of_row(*columns: bytes | str | float | None) -> bytes:
    """16 bytes of all that a row says, in its order and as what it is (MessagePack); of little, this one is faster."""
    return blake2b(encoded(columns), digest_size=16).digest()


def bytes_of(numbers: FloatArray) -> bytes:
    """Floats as the journal keeps them."""
    return numbers.astype(REAL, copy=False).tobytes()


def decoded(body: bytes) -> FloatArray:
    """The other way round; others may write to it."""
    return np.frombuffer(bytearray(body), REAL)


class Arrays:
    """Those of one journal, which `query` reads; what is to be `write`ten there is, with whatever refers to it."""

    def __init__(self, query: Callable[..., list[Any]], write: Callable[..., None], journal: str) -> None:
        self._query, self._write, self._journal = query, write, journal
        self._at_hand: dict[bytes, tuple[bytearray, FloatArray]] = {}  #: by digest, bytes as numbers; held last, last
        self._sure: set[bytes] = set()  #: which of them are in the journal for sure

    def hold(self, array: FloatArray) -> tuple[bytes, FloatArray]:
        """Have it at hand: the digest by which it is kept, and the same numbers in an array of ours, to be read only.

        Of one that is at hand already nothing need be worked out.
        """
        array = np.ascontiguousarray(array, REAL)
        for digest, (data, numbers) in self._at_hand.items():
            if len(data) == array.nbytes and data == array:  # bytes are compared, where they are: neither is copied
                self._at_hand[digest] = self._at_hand.pop(digest)  # the last one held
                return digest, numbers.reshape(array.shape)
        data = bytearray(array)
        digest = digest_of(data)
        return digest, self._have_at_hand(digest, data).reshape(array.shape)

    def _have_at_hand(self, digest: bytes, data: bytearray) -> FloatArray:
        numbers = np.frombuffer(data, REAL)
        self._at_hand[digest] = data, numbers
        if len(self._at_hand) > AT_HAND:
            oldest = next(iter(self._at_hand))
            del self._at_hand[oldest]
            self._sure.discard(oldest)
        return numbers

    def keep(self, *digests: bytes | None) -> None:
        """Keep those that are at hand, if they are any; what is kept already is kept once."""
        for digest in digests:
            if digest and digest not in self._sure:
                self._write("INSERT OR IGNORE INTO arrays VALUES (?, ?)", digest, self._at_hand[digest][0])
                self._sure.add(digest)

    def be_unsure(self) -> None:
        """Something that was written may be gone."""
        self._sure.clear()

    def kept(self, digest: bytes) -> FloatArray:
        """One that was kept, to be read only: others read it, too."""
        held = self._at_hand.get(digest)
        return self._have_at_hand(digest, self._read(digest)) if held is None else held[1]

    def _read(self, digest: bytes) -> bytearray:
        found = self._query("SELECT numbers FROM arrays WHERE digest = ?", digest)
        data = bytearray(found[0][0] if found else b"")
        if digest_of(data) != digest:
            raise StorageError(
                f"{self._journal}: a policy that was handed out, or a loss or constraints that were told, are "
                "damaged; restore the directory from a copy"
            )
        return data

    def all(self) -> list[bytes]:
        """Their digests."""
        return [digest for (digest,) in self._query("SELECT digest FROM arrays")]

    def prune(self) -> None:
        """Forget those that no open episode and no event refers to."""
        needed = ["SELECT policy FROM episodes WHERE fate = 'open'"]
        needed += [f"SELECT {name} FROM events WHERE {name} IS NOT NULL" for name in ("policy", "loss", "constraints")]
        self._write(f"DELETE FROM arrays WHERE digest NOT IN ({' UNION '.join(needed)})")
        self.be_unsure()
