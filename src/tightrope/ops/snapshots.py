"""The state after some event, as checkpoints: a file for each learner, whose digests the journal knows.

The last two are kept, and the journal since the older one: if the newer one is damaged, the older one and the journal
give the same bits.
"""

import logging
from itertools import islice
from pathlib import Path

from tightrope.arguments import printable
from tightrope.errors import InvalidInputError, StorageError, in_words
from tightrope.ops.arrays import digest_of
from tightrope.ops.journal import Journal, Snapshot
from tightrope.ops.state import Entrant, Reader, State, checkpoint_of
from tightrope.storage import checkpoints
from tightrope.storage.files import write_bytes
from tightrope.storage.replacing import is_temporary

log = logging.getLogger("tightrope")

KEPT = 2

#: Bytes of a digest.
DIGEST = 16


def names_of(snapshot: Snapshot) -> list[str]:
    """Its files: that of the first learner, with all that is not a learner's, then those of the others."""
    return [f"snapshot-{snapshot.seq}{f'-{k}' if k else ''}.npz" for k in range(len(snapshot.contents) // DIGEST)]


def write(folder: Path, journal: Journal, state: State) -> None:
    """Keep the state after the last event."""
    journal.head.refuse_removed()
    files = [checkpoint_of(one.learner, one if k else state) for k, one in enumerate(state.entrants.values())]
    snapshot = Snapshot(journal.last, journal.chain, b"".join(map(digest_of, files)))
    for name, data in zip(names_of(snapshot), files, strict=True):
        try:
            write_bytes(folder / name, data)
        except OSError as error:
            raise StorageError(f"cannot write {in_words(error)}") from error
        except InvalidInputError as error:  # something else is in its place
            raise StorageError(f"cannot write a snapshot: {error}") from error
    journal.head.refuse_removed()  # or they are somebody else's
    journal.write_snapshot(snapshot)
    journal.settle_down()


def whole(folder: Path, snapshot: Snapshot) -> list[bytes]:
    """What is in its files, or a refusal."""
    files = []
    for k, name in enumerate(names_of(snapshot)):
        try:
            files.append((folder / name).read_bytes())
        except OSError as error:
            raise StorageError(f"cannot read {in_words(error)}") from error
        if digest_of(files[-1]) != snapshot.contents[k * DIGEST : (k + 1) * DIGEST]:
            raise StorageError(f"{printable(folder / name)} is damaged")
    return files


def newest(folder: Path, journal: Journal, read: Reader) -> tuple[State, Snapshot]:
    """The last state that is whole, and the snapshot that it is of."""
    wrong: list[str] = []
    for snapshot in journal.snapshots(wrong):
        try:
            files = whole(folder, snapshot)
        except StorageError as error:
            wrong.append(str(error))
        else:
            for words in wrong:
                log.warning("%s; the state is made anew from the snapshot before and the journal", words)
            return _state(files, read, folder), snapshot
    raise StorageError(f"{'; '.join(wrong) or 'there is no snapshot'}; restore the directory from a copy")


def _state(files: list[bytes], read: Reader, folder: Path) -> State:
    """What `write` wrote."""
    try:
        first, *others = files
        state = State(read(first))
        checkpoints.restore(first, state)
        for name, data in zip(state.names[1:], others, strict=True):
            state.entrants[name] = Entrant(read(data))
            checkpoints.restore(data, state.entrants[name])
    except InvalidInputError as error:
        raise StorageError(f"cannot go on from the snapshot in {printable(folder)}: {error}") from error
    return state


def prune(folder: Path, journal: Journal, keep_events: int, keep_episodes: int) -> None:
    """Forget what no snapshot that is kept needs: the last ones that are whole."""
    kept = list(islice((one for one in journal.snapshots() if _is_whole(folder, one)), KEPT))
    if not kept:
        raise StorageError(f"no snapshot in {printable(folder)} can be read")
    oldest = kept[-1].seq
    journal.prune(min(oldest, journal.last - keep_events), [one.seq for one in kept], journal.asked + 1 - keep_episodes)
    journal.head.refuse_removed()  # so these were ours
    journal.commit()
    journal.head.refuse_removed()  # so these are
    wanted = {name for snapshot in kept for name in names_of(snapshot)}
    for path in folder.iterdir():
        if (path.match("snapshot-*.npz") and path.name not in wanted) or is_temporary(path):  # of who was killed
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise StorageError(f"cannot remove {in_words(error)}") from error


def _is_whole(folder: Path, snapshot: Snapshot) -> bool:
    """Whether it can be gone on from; where that cannot be told now, it is not told."""
    try:
        whole(folder, snapshot)
    except StorageError as error:
        if isinstance(error.__cause__, OSError) and not isinstance(error.__cause__, FileNotFoundError):
            raise
        return False
    return True
