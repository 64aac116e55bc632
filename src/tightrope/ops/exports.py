"""Exports: the episodes and all other events of a durable learner in one file, as JSON Lines or Parquet.

A file is a header, a record for each episode that was opened, and a record for each event, in order. `import_episodes`
makes the same directory from it, bit by bit, or lets another learner learn the outcomes.

Losses and uses are in the units of the learner; a use of 1 is `scales[i]` in the unit of budget i (`facts.units` of
the header).
"""

from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from secrets import token_hex
from typing import Any

import msgspec
import numpy as np

from tightrope.arguments import printable
from tightrope.errors import ConflictError, InvalidInputError, StorageError, in_words, missing
from tightrope.learners import load
from tightrope.learners.base import LearnerBase
from tightrope.ops import corrections, snapshots
from tightrope.ops.corrections import KINDS, UNLEARNABLE, Corrected
from tightrope.ops.engine import facts_of
from tightrope.ops.inspection import inspect
from tightrope.ops.sqlite import SQLite, appearing, other_files, require_learner
from tightrope.ops.state import EpisodeFormat, State, apply, refuse_foreign
from tightrope.ops.status import Status
from tightrope.ops.store import (
    UNKNOWN,
    ZEROS,
    EpisodeRow,
    Event,
    Journal,
    SnapshotRow,
    bytes_of,
    digest_of,
    floats_of,
)
from tightrope.storage.files import replacing, write_bytes

VERSION = 1

#: Records that are written to a Parquet file at once.
BATCH = 500


class Header(msgspec.Struct, frozen=True):
    """The first line of a file, or the metadata of a Parquet file."""

    tightrope_export: int  #: `VERSION`
    facts: dict[str, Any]  #: what the directory was created with: learner, budgets, units, names
    layer_sizes: list[int]
    n_actions: int
    tuples: list[list[int]]  #: state, action, next state: the order of losses and constraints
    feedback: str
    event: int  #: the first event of the file comes after this one
    chain: str  #: the digest of that event, in hexadecimal
    last_chain: str  #: the digest of the last event
    last_episode: int  #: the number of the last episode that was opened
    snapshot: list[str]  #: the files of the state after `event`, in base 64
    files: dict[str, str]  #: other files of the directory, in base 64


class Record(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """An event, or (kind "episode") an episode that was opened. Times are in microseconds since 1970."""

    kind: str
    event: int = 0
    episode: str = ""  #: its id
    time: int | None = None  #: of the event, or when the episode was opened
    author: str = ""  #: of the event, or who opened the episode
    corrected: int | None = None  #: of an outcome: 0 if it is retracted, or the number of the event that amends it
    policy: list[float] | None = None  #: (n_pairs,) that played the episode; empty if it is not known
    states: list[int] | None = None  #: (L + 1,)
    actions: list[int] | None = None  #: (L,)
    loss: list[float] | None = None  #: (n_tuples,) or (L,)
    constraints: list[list[float]] | None = None  #: (I, n_tuples) or (I, L)
    fate: str = ""  #: of an episode
    key: str = ""  #: of an episode
    contents: str = ""  #: of an episode: the digest of its outcome
    played: str = ""  #: of an episode: the digest of its policy
    body: str = ""  #: of another event than an outcome, in base 64
    digest: str = ""  #: of a correction before the first event


def export_episodes(folder: Path, file: Path) -> int:
    """Write the episodes and events of a directory, which may be in use, to a .jsonl or .parquet file.

    Returns
    -------
    The number of outcomes in the file.

    Raises
    ------
    InvalidInputError : if the directory contains no learner, or the file ends in something else.
    StorageError : if the directory is damaged, or the file cannot be written.
    """
    require_learner(folder, "export")
    write = _writer(file)
    count = 0

    def counted(records: Iterable[Record]) -> Iterator[Record]:
        nonlocal count
        for record in records:
            count += record.kind == "tell"
            yield record

    with closing(Journal(SQLite(folder, read_only=True))) as journal:
        header, records = _exported(folder, journal)
        write(file, header, counted(records))
    return count


def _exported(folder: Path, journal: Journal) -> tuple[Header, Iterator[Record]]:
    corrected = Corrected(corrections.read(journal.corrections()))
    for base in reversed(list(filter(corrected.is_base, journal.snapshots()))):
        try:
            files = snapshots.read(journal, base)
            break
        except StorageError:  # deleted meanwhile, or damaged
            continue
    else:
        raise StorageError(f"{journal}: no snapshot can be read")
    form = snapshots.format_of(files, load)
    space = form.space
    header = Header(
        VERSION,
        journal.facts(),
        list(space.layer_sizes),
        space.n_actions,
        space.tuples.tolist(),
        form.feedback,
        base.seq,
        base.chain.hex(),
        journal.chain.hex(),
        journal.last_episode,
        [b64encode(data).decode() for data in files],
        {name: b64encode(data).decode() for name, data in other_files(folder).items()},
    )
    return header, _records(journal, form, corrected, base)


def _records(journal: Journal, form: EpisodeFormat, corrected: Corrected, base: SnapshotRow) -> Iterator[Record]:
    ids = {}
    for row in journal.episodes():
        ids[row.number] = row.id
        policy = None if row.fate != "open" else _policy(journal, row.policy)
        yield Record(
            "episode", episode=row.id, time=row.time, author=row.author, policy=policy, fate=row.fate, key=row.key,
            contents=row.contents.hex(), played=row.policy.hex(),
        )  # fmt: skip
    for event, digest in journal.corrections_with_digests(base.seq):
        yield _correction(journal, form, event, ids, digest.hex())
    for event in journal.events(base):
        if event.kind == "tell":
            assert event.episode is not None
            id = ids.get(event.episode, f"{event.episode}-")
            change, policy = corrected.changes.get(event.seq), _policy(journal, event.policy or UNKNOWN)
            outcome = _outcome(journal, form, event)
            yield Record("tell", event.seq, id, event.time, event.author, change, policy, **outcome)
        elif event.kind in KINDS:
            yield _correction(journal, form, event, ids)
        else:
            body = b64encode(event.body).decode()
            yield Record(event.kind, event.seq, time=event.time, author=event.author, body=body)


def _correction(journal: Journal, form: EpisodeFormat, event: Event, ids: dict[int, str], digest: str = "") -> Record:
    [one] = corrections.read([event], whole=False)
    outcome = _outcome(journal, form, one.amended(event)) if event.kind == "amend" else {}
    return Record(
        event.kind, event.seq, "" if event.episode is None else ids.get(event.episode, f"{event.episode}-"), event.time,
        event.author, body=b64encode(event.body).decode(), digest=digest,
        played="" if event.policy is None else event.policy.hex(), **outcome,
    )  # fmt: skip


def _policy(journal: Journal, digest: bytes) -> list[float]:
    return [] if digest == UNKNOWN else journal.array(digest).tolist()


def _outcome(journal: Journal, form: EpisodeFormat, event: Event) -> dict[str, Any]:
    found = form.outcome(event, journal.array)
    names = ("states", "actions", "loss", "constraints")
    return {name: getattr(found, name).tolist() for name in names}


def import_episodes(
    file: Path, folder: Path, learner: LearnerBase | None = None, problem: Any = None, classes: tuple[type, ...] = ()
) -> Status:
    """Make a directory from an exported file; it appears only when it is complete.

    Parameters
    ----------
    file : a .jsonl or .parquet file of `export_episodes`.
    folder : the directory to create; an empty one may exist.
    learner : None to make the directory that was exported, with the same bits. Otherwise a new learner, which learns
        all outcomes of the file in their order, as they are corrected, each with the policy that played it; other
        events are left out, and so are outcomes that it cannot learn.
    problem : of the learner, whose names and units are stored.
    classes : learners and confidence rules of your own that the file may contain.

    Returns
    -------
    The status of the learner in the directory.

    Raises
    ------
    InvalidInputError : if the file is not an export, or was changed, or the learner has another space or needs full
        feedback that the file does not contain.
    StorageError : if the directory cannot be written.
    """
    with appearing(folder, "importing", "import into a new directory") as partial:
        with closing(Journal(SQLite(partial))) as journal:
            if learner is None:
                _import_all(file, journal, partial, lambda data: load(data, *classes))
            else:
                _import_history(file, journal, learner, problem)
        found = inspect(partial, classes)
        if found.damage or found.status is None:
            raise InvalidInputError(f"{printable(file)} cannot be imported: {'; '.join(found.damage)}")
    return found.status


def _import_all(file: Path, journal: Journal, folder: Path, load_: Any) -> None:
    """Fill a journal with all that was exported."""
    with _read(file) as (header, records):
        files = [b64decode(data) for data in header.snapshot]
        base = SnapshotRow(header.event, bytes.fromhex(header.chain), b"".join(map(digest_of, files)))
        form = snapshots.format_of(files, load_)
        with journal.transaction():
            journal.create(header.facts)
            for name, data in zip(base.files, files, strict=True):
                journal.database.write_file(name, data)
            journal.record_snapshot(base)
            journal.last_event, journal.chain = base.seq, base.chain
            for record in records:
                _import(journal, form, record)
            journal.last_episode = header.last_episode
            journal.database.set_last_episode(header.last_episode)
        if journal.chain.hex() != header.last_chain:
            raise InvalidInputError(f"{printable(file)} was changed, or is not complete; export it again")
        for name, text in header.files.items():
            if Path(name).name != name:
                raise InvalidInputError(f"{printable(file)} contains a file outside of the directory")
            write_bytes(folder / name, b64decode(text))
    state, _ = snapshots.restore(journal, load_)
    snapshots.write(journal, state)


def _import(journal: Journal, form: EpisodeFormat, record: Record) -> None:
    number, _, token = record.episode.partition("-")
    policy, arrays = bytes.fromhex(record.played), dict[bytes, bytes]()
    if record.policy:
        data = bytes_of(np.array(record.policy))
        policy = digest_of(data)
        arrays[policy] = data
    episode = EpisodeRow(int(number or 0), token, policy, record.fate, ZEROS, record.time, record.author, record.key)
    if record.kind == "episode":
        journal.put_episode(episode._replace(contents=bytes.fromhex(record.contents)), arrays)
        return
    body = b64decode(record.body)
    event = Event(record.event, record.kind, body, time=record.time, author=record.author)
    if record.states is not None:
        told, more = form.event(record.event, episode, _parts(record))
        arrays |= more
        event = event._replace(
            episode=episode.number, policy=policy, loss=told.loss, constraints=told.constraints,
            body=told.body if record.kind == "tell" else body,
        )  # fmt: skip
    if record.digest:
        journal.put_correction(event, bytes.fromhex(record.digest), arrays)
    else:
        journal.append([event], arrays)


def _parts(record: Record) -> tuple[Any, Any, Any, Any]:
    if record.actions is None or record.loss is None or record.constraints is None:
        raise InvalidInputError(f"the outcome of event {record.event} is not complete")
    return record.states, record.actions, np.array(record.loss), np.array(record.constraints)


def _import_history(file: Path, journal: Journal, learner: LearnerBase, problem: Any) -> None:
    """Let a new learner learn the outcomes of a file."""
    with _read(file) as (_, records):
        amended = {record.event: record for record in records if record.kind == "amend"}
    with _read(file) as (header, records):
        same = learner.space.tuples.tolist() == header.tuples and list(learner.space.layer_sizes) == header.layer_sizes
        if not same or len(learner.budgets) != len(header.facts["budgets"]):
            raise InvalidInputError(f"{learner.name} has another space or other budgets than the learner of the file")
        if learner.feedback == "full" and header.feedback == "bandit":
            raise InvalidInputError(f"{learner.name} needs full feedback, but only paths are in the file")
        state = State.new(learner)
        with journal.transaction():
            journal.create(facts_of(learner, problem))
            snapshots.write(journal, state)
            for record in records:
                if record.kind == "tell" and record.corrected != 0:
                    outcome = amended[record.corrected] if record.corrected else record
                    state = _learned(journal, state, record, outcome, header.feedback)
        snapshots.write(journal, state)


def _learned(journal: Journal, state: State, record: Record, outcome: Record, feedback: str) -> State:
    """Return the state after one more outcome; the same if it cannot be learned."""
    form = state.format
    states, actions, loss, constraints = _parts(outcome)
    if feedback == "full" and form.feedback == "bandit":
        path = form.space.path(states, actions)
        loss, constraints = loss[path], constraints[:, path]
    arrays: dict[bytes, bytes] = {}
    if record.policy:
        data = bytes_of(np.array(record.policy))
        arrays[digest_of(data)] = data
    played = next(iter(arrays), UNKNOWN)
    number = journal.last_episode + 1
    episode = EpisodeRow(number, token_hex(4), played, "told", ZEROS, record.time, record.author)
    event, more = form.event(journal.last_event + 1, episode, (states, actions, loss, constraints))
    event, arrays = event._replace(time=record.time, author=record.author), arrays | more
    try:
        refuse_foreign(state.learner, played, record.episode)
        state = apply(state, event, lambda digest: floats_of(arrays[digest]), load)
    except UNLEARNABLE:
        return state
    journal.put_episode(episode._replace(contents=event.contents), arrays)
    journal.append([event], arrays)
    return state


def _writer(file: Path) -> Any:
    match file.suffix:
        case ".jsonl":
            return _write_lines
        case ".parquet":
            return _write_parquet
    raise InvalidInputError(f"{printable(file)} ends in {file.suffix or 'nothing'}; write .jsonl or .parquet")


def _write_lines(file: Path, header: Header, records: Iterable[Record]) -> None:
    encode = msgspec.json.encode
    try:
        with replacing(file) as target:
            target.write(encode(header) + b"\n")
            for record in records:
                target.write(encode(record) + b"\n")
    except OSError as error:
        raise StorageError(f"cannot write {in_words(error)}") from error


def _write_parquet(file: Path, header: Header, records: Iterable[Record]) -> None:
    pyarrow = _pyarrow()
    schema = _schema(pyarrow).with_metadata({"tightrope": msgspec.json.encode(header)})
    try:
        with replacing(file) as target, pyarrow.parquet.ParquetWriter(target, schema) as writer:
            batch: list[dict[str, Any]] = []
            for record in records:
                batch.append(msgspec.structs.asdict(record))
                if len(batch) == BATCH:
                    writer.write_table(pyarrow.Table.from_pylist(batch, schema))
                    batch = []
            writer.write_table(pyarrow.Table.from_pylist(batch, schema))
    except OSError as error:
        raise StorageError(f"cannot write {in_words(error)}") from error


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise missing("pyarrow", "parquet") from error
    return pyarrow


def _schema(pyarrow: Any) -> Any:
    """Return the columns of a Parquet file: the fields of a record."""
    numbers, whole = pyarrow.list_(pyarrow.float64()), pyarrow.list_(pyarrow.int64())
    special = {"event": pyarrow.int64(), "time": pyarrow.int64(), "corrected": pyarrow.int64()}
    special |= {"policy": numbers, "loss": numbers, "constraints": pyarrow.list_(numbers)}
    special |= {"states": whole, "actions": whole}
    return pyarrow.schema([(name, special.get(name, pyarrow.string())) for name in Record.__struct_fields__])


@contextmanager
def _read(file: Path) -> Iterator[tuple[Header, Iterator[Record]]]:
    """Read the header, and yield it with the records."""
    _writer(file)  # refuses another suffix
    try:
        if file.suffix == ".parquet":
            with closing(_pyarrow().parquet.ParquetFile(file)) as parquet:
                found = (parquet.schema_arrow.metadata or {}).get(b"tightrope", b"{}")
                yield _header(found), _parquet_records(parquet)
        else:
            with file.open("rb") as lines:
                decode = msgspec.json.Decoder(Record).decode
                yield _header(lines.readline()), (decode(line) for line in lines)
    except OSError as error:
        raise InvalidInputError(f"cannot read {in_words(error)}") from error
    except (msgspec.MsgspecError, KeyError, ValueError, UnicodeDecodeError) as error:
        if isinstance(error, ConflictError | InvalidInputError):
            raise
        raise InvalidInputError(f"{printable(file)} is not an export of tightrope, or is damaged: {error}") from error


def _header(data: bytes) -> Header:
    header = msgspec.json.decode(data, type=Header)
    if header.tightrope_export != VERSION:
        raise InvalidInputError(f"the file has version {header.tightrope_export}; this tightrope reads {VERSION}")
    return header


def _parquet_records(parquet: Any) -> Iterator[Record]:
    for batch in parquet.iter_batches(BATCH):
        for values in batch.to_pylist():
            yield msgspec.convert(values, Record)
