"""The state after some event, as a checkpoint of its own file; the journal knows the digest of each.

The last two are kept, and the journal since the older one: if the newer one is damaged, the older one and the journal
give the same bits.
"""

import io
import logging
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path

from tightrope.arguments import printable
from tightrope.durable.journal import Journal
from tightrope.durable.state import State
from tightrope.errors import InvalidInputError, StorageError, in_words
from tightrope.learners.base import LearnerBase
from tightrope.storage import checkpoints
from tightrope.storage.files import write_bytes

log = logging.getLogger("tightrope")

KEPT = 2

#: Reads a learner from a file.
Loader = Callable[[Path], LearnerBase]


def file_of(folder: Path, seq: int) -> Path:
    """Where the state after event `seq` is."""
    return folder / f"snapshot-{seq}.npz"


def write(folder: Path, journal: Journal, state: State) -> None:
    """Keep the state after the last event, and forget the snapshots before the one before."""
    buffer = io.BytesIO()
    checkpoints.write(state.learner, buffer, state)
    path = file_of(folder, journal.last)
    try:
        write_bytes(path, buffer.getvalue())
    except OSError as error:
        raise StorageError(f"cannot write {in_words(error)}") from error
    with journal.commit():
        journal.write_snapshot({path.name: _digest(buffer.getvalue())})


def damage(folder: Path, name: str, digest: bytes) -> str | None:
    """What is wrong with a snapshot, if anything."""
    try:
        if _digest((folder / name).read_bytes()) == digest:
            return None
    except OSError as error:
        return f"cannot read {in_words(error)}"
    return f"{printable(folder / name)} is damaged"


def newest(folder: Path, journal: Journal, load: Loader) -> tuple[State, int, bytes]:
    """The last state that is whole, the event it is of, and that event's digest."""
    found = journal.rows("SELECT seq, name, chain, digest FROM snapshots ORDER BY seq DESC")
    wrong = []
    for seq, name, chain, digest in found:
        words = damage(folder, name, digest)
        if words is None:
            return _read(folder / name, load), int(seq), bytes(chain)
        log.warning("%s; the state is made anew from the snapshot before and the journal", words)
        wrong.append(words)
    raise StorageError(f"{'; '.join(wrong) or 'there is no snapshot'}; restore the directory from a copy")


def _read(path: Path, load: Loader) -> State:
    try:
        state = State(load(path))
        checkpoints.restore(path, state)
    except InvalidInputError as error:
        raise StorageError(f"cannot go on from {error}") from error
    return state


def prune(folder: Path, journal: Journal, keep_events: int, keep_episodes: int) -> None:
    """Forget what no snapshot that is kept needs."""
    kept = [int(seq) for (seq,) in journal.rows("SELECT seq FROM snapshots ORDER BY seq DESC LIMIT ?", KEPT)]
    oldest = kept[-1]
    with journal.commit():
        journal.prune(min(oldest, journal.last - keep_events), oldest, journal.last_episode() + 1 - keep_episodes)
    wanted = {file_of(folder, seq) for seq in kept}
    for path in folder.glob("snapshot-*.npz"):
        if path not in wanted:
            path.unlink(missing_ok=True)


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()
