"""The state after some event, as checkpoints: a file for each learner, whose digests the journal knows.

The last two are kept, and the journal since the older one: if the newer one is damaged, the older one and the journal
give the same bits.
"""

import logging
from itertools import groupby
from pathlib import Path

from tightrope.arguments import printable
from tightrope.durable.arrays import digest_of
from tightrope.durable.journal import Journal
from tightrope.durable.state import Entrant, Reader, State, checkpoint_of
from tightrope.errors import InvalidInputError, StorageError, in_words
from tightrope.storage import checkpoints
from tightrope.storage.files import write_bytes

log = logging.getLogger("tightrope")

KEPT = 2


def write(folder: Path, journal: Journal, state: State) -> None:
    """Keep the state after the last event: the first learner with all that is not a learner's, then the others."""
    digests = {}
    for k, entrant in enumerate(state.entrants.values()):
        data = checkpoint_of(entrant.learner, entrant if k else state)
        name = f"snapshot-{journal.last}{f'-{k}' if k else ''}.npz"
        try:
            write_bytes(folder / name, data)
        except OSError as error:
            raise StorageError(f"cannot write {in_words(error)}") from error
        except InvalidInputError as error:  # something else is in its place
            raise StorageError(f"cannot write a snapshot: {error}") from error
        digests[name] = digest_of(data)
    with journal.commit():
        journal.write_snapshot(digests)
    journal.settle_down()


def whole(folder: Path, name: str, digest: bytes) -> bytes:
    """The bytes of a file, or a refusal."""
    try:
        data = (folder / name).read_bytes()
    except OSError as error:
        raise StorageError(f"cannot read {in_words(error)}") from error
    if digest_of(data) != digest:
        raise StorageError(f"{printable(folder / name)} is damaged")
    return data


def newest(folder: Path, journal: Journal, read: Reader) -> tuple[State, int, bytes]:
    """The last state that is whole, the event it is of, and that event's digest."""
    found = journal.rows("SELECT seq, chain, name, digest FROM snapshots ORDER BY seq DESC, length(name), name")
    wrong = []
    for (seq, chain), rows in groupby(found, key=lambda row: (int(row[0]), bytes(row[1]))):
        try:
            files = [whole(folder, name, digest) for *_, name, digest in rows]
        except StorageError as error:
            log.warning("%s; the state is made anew from the snapshot before and the journal", error)
            wrong.append(str(error))
        else:
            return _state(files, read, folder), seq, chain
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
    """Forget what no snapshot that is kept needs."""
    kept = journal.rows("SELECT DISTINCT seq FROM snapshots ORDER BY seq DESC LIMIT ?", KEPT)
    oldest = int(kept[-1][0])
    with journal.commit():
        journal.prune(min(oldest, journal.last - keep_events), oldest, journal.asked + 1 - keep_episodes)
    wanted = {name for (name,) in journal.rows("SELECT name FROM snapshots")}
    for path in folder.glob("snapshot-*.npz"):
        if path.name not in wanted:
            path.unlink(missing_ok=True)
