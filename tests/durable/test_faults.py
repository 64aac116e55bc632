"""Faults: kills, interrupts, full disks, damaged files, moved directories."""

import os
import resource
import shutil
import signal
import sqlite3
import stat
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fuzz.durable import disturb
from tests.durable.stories import WORLD, fresh, one_more, opened, played
from tests.durable.test_learner import episode_fields, observe
from tests.tracing import interrupted_after
from tightrope import DurableLearner, InvalidInputError, LayeredSpace, TightropeError
from tightrope.errors import ConflictError, StorageError
from tightrope.learners.base import Feedback
from tightrope.ops import snapshots
from tightrope.ops.inspection import inspect
from tightrope.ops.sqlite import HighWaterMark
from tightrope.ops.state import EpisodeFormat
from tightrope.ops.store import ZEROS, Event, Journal, SnapshotRow, bytes_of, digest_of_row
from tightrope.storage.checkpoints import fingerprint


@pytest.mark.parametrize(("name", "seed"), [("ucpd-practical", 11), ("uob-reps", 12)])
def test_a_learner_killed_at_random_moments_loses_nothing(tmp_path: Path, name: str, seed: int) -> None:
    """`python -m fuzz.durable` does the same a thousand times."""
    counts = disturb(name, tmp_path / "it", kills=20, seed=seed)
    assert counts["acknowledged"] > 0  # how many depends on how busy the machine is


@contextmanager
def interrupting(learner: DurableLearner, moment: int) -> Iterator[list[int]]:
    """Interrupt calls of a learner at that bytecode, as `interrupted_after` does.

    A trace may interrupt the end of `with lock:`, where Python itself looks for no signals; release the lock then. That
    signals do not leave it locked is tested below.
    """
    try:
        with suppress(KeyboardInterrupt), interrupted_after(moment) as count:
            yield count
    finally:
        while learner._lock._is_owned():  # type: ignore[attr-defined]
            learner._lock.release()


#: For an interrupt that comes while Python frees something, such as a file that was just opened.
UNRAISABLE = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@UNRAISABLE
def test_an_interrupt_at_any_bytecode_of_a_tell_leaves_all_or_nothing(tmp_path: Path) -> None:
    """The tell also writes a snapshot; telling again learns the episode unless it was learned."""
    twin = fresh("uniform")
    with opened(tmp_path, fresh("uniform"), snapshot_every=1) as learner:
        moment, learnt_before = 1, 0
        while True:
            parts = played(learner, episode := learner.ask())
            with interrupting(learner, moment) as count:
                learner.tell(episode.id, **parts)
                if count[0] < moment:
                    break
            learnt_before += learner.tell(episode.id, **parts) == "already"
            observe(twin, None, episode_fields(parts))
            assert learner.fingerprint() == fingerprint(twin)
            learner.snapshot()  # so that the next tell has as much to do
            moment += 149
        observe(twin, None, episode_fields(parts))
        assert learnt_before > 2, "no interrupt came after the commit"
        assert learner.fingerprint() == fingerprint(twin)
        assert learner.status.told == twin.observed
    with opened(tmp_path) as learner:
        assert learner.fingerprint() == fingerprint(twin)


@UNRAISABLE
def test_an_interrupt_at_any_bytecode_of_an_ask_loses_no_id(tmp_path: Path) -> None:
    with opened(tmp_path, fresh("uniform")) as learner:
        ids, moment = set(), 1
        while True:
            learner.open_episodes()  # recovers after an interrupt
            with interrupting(learner, moment) as count:
                ids.add(learner.ask().id)
                if count[0] < moment:
                    break
            moment += 17
        assert ids <= set(learner.open_episodes())
        assert learner.status.open == learner.status.asked


@UNRAISABLE
def test_an_interrupt_at_any_return_in_a_correction_allows_another_one(tmp_path: Path) -> None:
    with opened(tmp_path, fresh("uniform"), snapshot_every=2) as learner:
        ids = []
        for _ in range(5):
            parts = played(learner, episode := learner.ask())
            learner.tell(episode.id, **parts)
            ids.append(episode.id)
        before, moment = learner.fingerprint(), 0
        while True:
            moment += 1 if moment < 40 else 11  # it begins in the first ones
            with suppress(KeyboardInterrupt), interrupted_after(moment, "return") as count:
                learner.retract([ids[2]], dry_run=True)
                if count[0] < moment:
                    break
            assert not learner.correcting
            assert learner.fingerprint() == before
        assert moment > 50
        assert learner.retract([ids[2]]).episodes == (3,)


class Alarm(BaseException):
    """The exception that the signal handler raises."""


@UNRAISABLE
def test_signals_leave_no_call_half_done(tmp_path: Path) -> None:
    """A real timer interrupts asks and tells at moments that the test does not choose; each next call is answered."""

    def ring(number: int, frame: object) -> None:
        raise Alarm

    twin, rung, delays = fresh("uniform"), 0, np.random.default_rng(17)
    handler = signal.signal(signal.SIGALRM, ring)
    try:
        with opened(tmp_path, fresh("uniform"), snapshot_every=3, most_open=10**6) as learner:
            for _ in range(150):
                parts = played(learner, episode := learner.ask())
                try:
                    signal.setitimer(signal.ITIMER_REAL, delays.uniform(1e-5, 3e-3))
                    learner.ask()
                    learner.tell(episode.id, **parts)
                    signal.setitimer(signal.ITIMER_REAL, 0)
                except Alarm:
                    rung += 1
                learner.tell(episode.id, **parts)
                observe(twin, None, episode_fields(parts))
                assert learner.fingerprint() == fingerprint(twin)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
    assert rung > 0


@contextmanager
def no_file_beyond(size: int) -> Iterator[None]:
    """Let writing beyond this size fail, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_a_failed_commit_returns_to_the_published_state_without_a_replay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    twin = fresh()
    with opened(tmp_path, fresh()) as learner:
        for _ in range(3):
            parts = played(learner, episode := learner.ask())
            learner.tell(episode.id, **parts)
            observe(twin, None, episode_fields(parts))
        monkeypatch.setattr(snapshots, "restore", None)
        parts, other = played(learner, episode := learner.ask()), learner.ask()
        calls: list[Callable[[], str]] = [
            partial(learner.tell, episode.id, **parts),
            partial(learner.give_up, other.id),
        ]
        with no_file_beyond(1000):
            assert {type(answer) for answer in learner.together(calls)} == {StorageError}
        assert (learner.fingerprint(), learner.open_ids()) == (fingerprint(twin), [episode.id, other.id])
        assert learner.together(calls) == ["learned", "given up"]
        observe(twin, None, episode_fields(parts))
        assert learner.fingerprint() == fingerprint(twin)


def test_a_full_disk_acknowledges_nothing_and_loses_nothing(tmp_path: Path) -> None:
    twin = fresh()
    with opened(tmp_path, fresh(), snapshot_every=3) as learner:
        for _ in range(4):
            parts = played(learner, episode := learner.ask())
            learner.tell(episode.id, **parts)
            observe(twin, None, episode_fields(parts))
        parts = played(learner, episode := learner.ask())
        with no_file_beyond(1000):
            for _ in range(2):
                with pytest.raises(StorageError, match=r"journal\.sqlite"):
                    learner.tell(episode.id, **parts)
            with pytest.raises(StorageError):
                learner.ask()
            assert learner.status.told == 4
        assert learner.fingerprint() == fingerprint(twin)
        assert learner.tell(episode.id, **parts) == "learned"
        observe(twin, None, episode_fields(parts))
        assert learner.fingerprint() == fingerprint(twin)
    with opened(tmp_path) as learner:  # the arrays are on disk, too
        assert learner.fingerprint() == fingerprint(twin)


def test_a_failed_snapshot_is_retried_at_the_next_event(tmp_path: Path) -> None:
    with opened(tmp_path, fresh(), snapshot_every=2) as learner:
        one_more(learner)
        in_its_way = learner.directory / "snapshot-2.npz"
        in_its_way.mkdir()
        assert one_more(learner)
        assert "snapshot-2.npz" in learner.status.trouble
        with pytest.raises(StorageError, match="snapshot-2"):
            learner.snapshot()
        in_its_way.rmdir()
        one_more(learner)
        assert learner.status.trouble == ""
        assert (learner.directory / "snapshot-3.npz").is_file()


@pytest.mark.skipif(os.getuid() != 0, reason="only root may mount")
def test_a_full_file_system_loses_nothing(tmp_path: Path) -> None:
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", tmp_path], capture_output=True)
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    try:
        acknowledged, refused, learner = 0, 0, opened(tmp_path, fresh(), snapshot_every=10_000)
        with learner:
            while refused < 3:
                try:
                    one_more(learner)
                    acknowledged += 1
                except TightropeError as error:
                    assert isinstance(error, StorageError)
                    refused += 1
            assert acknowledged > 10
            assert learner.status.told == acknowledged
            with pytest.raises(StorageError):
                learner.check_disk()
            bits = learner.fingerprint()
        with opened(tmp_path) as learner:
            assert (learner.fingerprint(), learner.status.told) == (bits, acknowledged)
    finally:
        subprocess.run(["umount", tmp_path], check=True)


def as_nobody(call: Callable[[], object], *, setuid: bool = True) -> str:
    """Return the result of a call in another process, of a user without rights if we are root."""
    reading, writing = os.pipe()
    if (pid := os.fork()) == 0:
        try:
            if setuid and os.getuid() == 0:
                os.setuid(65534)
            call()
            os.write(writing, b"done")
        except BaseException as error:
            os.write(writing, f"{type(error).__name__}: {error}".encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(pid, 0)
    with os.fdopen(reading, "rb") as said:
        return said.read().decode()


def test_a_read_only_directory_is_refused_but_can_be_inspected(tmp_path: Path) -> None:
    with opened(tmp_path, fresh()) as learner:
        one_more(learner)
    folder = tmp_path / "it"
    tmp_path.chmod(0o755)
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.iterdir())}
    for path in modes:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        assert as_nobody(lambda: DurableLearner(folder)).startswith("StorageError")
        seen = inspect(folder)
        assert (seen.damage, seen.status and seen.status.told) == ((), 1)
    finally:
        for path, mode in modes.items():
            path.chmod(mode)


def test_nothing_depends_on_the_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    twin = fresh()
    with opened(tmp_path, fresh(), snapshot_every=2) as learner:
        for t in range(8):
            monkeypatch.setattr(time, "time", lambda t=t: 1e9 - 1000.0 * t)
            monkeypatch.setattr(time, "monotonic", lambda t=t: 1e6 - 1000.0 * t)
            parts = played(learner, episode := learner.ask())
            learner.tell(episode.id, **parts)
            observe(twin, None, episode_fields(parts))
            for path in learner.directory.iterdir():
                os.utime(path, (1e9 - t, 1e9 - t))
    with opened(tmp_path) as learner:
        assert learner.fingerprint() == fingerprint(twin)


def grown(folder: Path) -> tuple[bytes, list[str]]:
    """Copy a directory while it is open, as after a kill; return its fingerprint and open ids."""
    with opened(folder, fresh(), snapshot_every=4) as learner:
        for _ in range(10):
            one_more(learner)
        learner.ask()
        bits, ids = learner.fingerprint(), list(learner.open_episodes())
        copy = folder / "copy"
        copy.mkdir()
        for path in learner.directory.iterdir():
            (copy / path.name).write_bytes(path.read_bytes())
    return bits, ids


FILES = ("journal.sqlite", "journal.sqlite-wal", "snapshot-4.npz", "snapshot-8.npz", "head")


@pytest.mark.parametrize("name", FILES)
def test_damaged_files_never_change_the_state(tmp_path: Path, name: str) -> None:
    """After a flipped bit or a truncation: the same bits, or a StorageError."""
    bits, ids = grown(tmp_path)
    whole = {path.name: path.read_bytes() for path in (tmp_path / "copy").iterdir()}
    assert set(FILES) <= set(whole)
    rng, outcomes = np.random.default_rng([5, FILES.index(name)]), []
    for number in range(24):
        folder = tmp_path / f"damaged-{number}"
        folder.mkdir()
        for other, content in whole.items():
            (folder / other).write_bytes(content)
        data = bytearray(whole[name])
        if number % 4 == 3:
            data = data[: int(rng.integers(len(data)))]
        else:
            at = int(rng.integers(len(data)))
            data[at] ^= 1 << int(rng.integers(8))
        (folder / name).write_bytes(data)
        try:
            with DurableLearner(folder) as learner:
                assert (learner.fingerprint(), list(learner.open_episodes())) == (bits, ids)
                outcomes.append("same")
        except StorageError as error:
            assert str(folder) in str(error)
            outcomes.append("refused")
    if name.startswith("snapshot") or name == "head":
        assert set(outcomes) == {"same"}
    else:
        assert "refused" in outcomes


def test_a_directory_without_an_intact_snapshot_is_refused(tmp_path: Path) -> None:
    grown(tmp_path)
    for path in (tmp_path / "it").glob("snapshot-*"):
        path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(StorageError, match="restore the directory from a backup"):
        opened(tmp_path)


def test_a_missing_event_is_detected(tmp_path: Path) -> None:
    grown(tmp_path)
    with sqlite3.connect(tmp_path / "it" / "journal.sqlite") as sql:
        sql.execute("DELETE FROM events WHERE seq = 9")
    with pytest.raises(StorageError, match="event 9 is missing"):
        opened(tmp_path)


def test_a_replaced_event_is_detected(tmp_path: Path) -> None:
    """The row has the right number and a valid digest, but that of another predecessor."""
    grown(tmp_path)
    with sqlite3.connect(tmp_path / "it" / "journal.sqlite") as sql:
        [row] = sql.execute("SELECT seq, kind, body, episode, policy, loss, constraints FROM events WHERE seq = 9")
        other = Event(*row)._replace(body=bytes(len(row[2])))
        sql.execute(
            "UPDATE events SET body = ?, digest = ? WHERE seq = 9", (other.body, digest_of_row(ZEROS, *other.row))
        )
    with pytest.raises(StorageError, match="event 9 is damaged"):
        opened(tmp_path)


def test_a_schema_that_is_not_utf8_is_a_storage_error(tmp_path: Path) -> None:
    grown(tmp_path)
    journal = tmp_path / "it" / "journal.sqlite"
    data = journal.read_bytes()
    first = data.index(b"CREATE TABLE events")
    for at in range(first, first + 60):
        journal.write_bytes(data[:at] + bytes([data[at] | 0x80]) + data[at + 1 :])
        with pytest.raises(StorageError, match=r"journal\.sqlite"):
            opened(tmp_path)
        assert inspect(tmp_path / "it").damage


def test_commits_are_synced(tmp_path: Path) -> None:
    with opened(tmp_path, fresh()) as learner:
        assert learner._store._query("PRAGMA synchronous") == [(2,)]
        assert learner._store._query("PRAGMA journal_mode") == [("wal",)]


def test_a_removed_directory_acknowledges_nothing(tmp_path: Path) -> None:
    with opened(tmp_path, fresh()) as learner:
        parts = played(learner, episode := learner.ask())
        shutil.rmtree(learner.directory)
        for _ in range(2):
            with pytest.raises(StorageError):
                learner.tell(episode.id, **parts)
        with pytest.raises(StorageError):
            learner.ask()
        assert learner.status.told == 0


def test_opening_without_a_learner_does_not_create_a_directory(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="itt contains no learner yet; pass one to create it"):
        DurableLearner(tmp_path / "there" / "itt")
    assert not list(tmp_path.iterdir())


def test_the_working_directory_may_change_while_it_is_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As daemons do; the former working directory is even removed."""
    for name in ("here", "elsewhere"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with DurableLearner("../it", fresh(), snapshot_every=1) as learner:
        monkeypatch.chdir("../elsewhere")
        (tmp_path / "here").rmdir()
        one_more(learner)
        assert (learner.status.told, learner.status.trouble) == (1, "")
        assert learner.directory == tmp_path / "it"
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_replaced_directory_acknowledges_nothing(tmp_path: Path) -> None:
    with opened(tmp_path, fresh(), snapshot_every=3) as learner:
        for _ in range(4):
            one_more(learner)
        bits = learner.fingerprint()
        learner.directory.rename(tmp_path / "moved")
        shutil.copytree(tmp_path / "moved", learner.directory)
        kept = sorted(learner.directory.iterdir())
        with pytest.raises(StorageError, match="was removed or replaced"):  # at once
            learner.snapshot()
        assert sorted(learner.directory.iterdir()) == kept  # nothing was written to the copy
        with pytest.raises(StorageError, match="was removed or replaced"):
            one_more(learner)
    for name in ("it", "moved"):
        with DurableLearner(tmp_path / name) as learner:
            assert learner.fingerprint() == bits


def test_a_directory_replaced_during_a_snapshot_keeps_its_own_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Snapshots are written and pruned by path, so they must notice that another directory is there."""
    with DurableLearner(tmp_path / "other", fresh(), snapshot_every=3) as other:
        for _ in range(7):
            one_more(other)
        others = other.fingerprint()
    looked: list[SnapshotRow] = []
    is_intact, folder = snapshots._is_intact, tmp_path / "it"

    def swapped_after(journal: Journal, snapshot: SnapshotRow) -> bool:
        answer = is_intact(journal, snapshot)
        looked.append(snapshot)
        if len(looked) == 2:
            folder.rename(tmp_path / "moved")
            (tmp_path / "other").rename(folder)
        return answer

    with opened(tmp_path, fresh()) as learner:
        for _ in range(4):
            one_more(learner)
        bits = learner.fingerprint()
        monkeypatch.setattr(snapshots, "_is_intact", swapped_after)
        with pytest.raises(StorageError, match="was removed or replaced"):
            learner.snapshot()
        monkeypatch.undo()
    for name, expected in (("it", others), ("moved", bits)):
        with DurableLearner(tmp_path / name) as learner:
            assert learner.fingerprint() == expected


def test_a_directory_replaced_by_a_file_is_reported(tmp_path: Path) -> None:
    """Nothing is acknowledged, and the moved directory opens."""
    with opened(tmp_path, fresh(), snapshot_every=3) as learner:
        for _ in range(2):
            one_more(learner)
        parts = played(learner, episode := learner.ask())
        learner.directory.rename(tmp_path / "moved")
        learner.directory.write_text("mine")
        with pytest.raises(StorageError, match="was removed or replaced"):
            learner.tell(episode.id, **parts)
    with DurableLearner(tmp_path / "moved") as learner:
        assert learner.status.told == 2


def test_a_call_from_a_signal_handler_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The call comes while the event is about to be written."""
    with opened(tmp_path, fresh()) as learner:
        parts = played(learner, episode := learner.ask())
        journal = learner._store
        for call in (learner.open_ids, learner.close):

            def interrupted(events: Any, arrays: Any, call: Callable[[], object] = call) -> None:
                call()
                Journal.append(journal, events, arrays)

            with monkeypatch.context() as patch:
                patch.setattr(journal, "append", interrupted)
                with pytest.raises(ConflictError, match="a call is in progress in this thread"):
                    learner.tell(episode.id, **parts)
        assert learner.status.told == 0
        assert learner.tell(episode.id, **parts) == "learned"
        bits = learner.fingerprint()
    with opened(tmp_path) as learner:
        assert (learner.fingerprint(), learner.status.told) == (bits, 1)


def test_a_journal_without_snapshots_is_not_created_again(tmp_path: Path) -> None:
    grown(tmp_path)
    with sqlite3.connect(tmp_path / "it" / "journal.sqlite") as sql:
        sql.execute("DELETE FROM snapshots")
    with pytest.raises(StorageError, match="the snapshots are missing"):
        opened(tmp_path, fresh())


def test_statistics_of_sqlite_are_not_damage(tmp_path: Path) -> None:
    bits, _ = grown(tmp_path)
    with sqlite3.connect(tmp_path / "it" / "journal.sqlite") as sql:
        sql.execute("ANALYZE")
    with opened(tmp_path) as learner:
        assert learner.fingerprint() == bits


def test_a_directory_named_head_is_a_storage_error(tmp_path: Path) -> None:
    grown(tmp_path)
    (tmp_path / "it" / "head").unlink()
    (tmp_path / "it" / "head").mkdir()
    with pytest.raises(StorageError, match="head"):
        opened(tmp_path)
    assert any("head" in words for words in inspect(tmp_path / "it").damage)


def test_a_pipe_named_head_is_a_storage_error(tmp_path: Path) -> None:
    grown(tmp_path)
    (tmp_path / "it" / "head").unlink()
    os.mkfifo(tmp_path / "it" / "head")
    with pytest.raises(StorageError, match="head: not a regular file"):
        opened(tmp_path)


def test_an_invalid_head_is_ignored_until_the_next_commit(tmp_path: Path) -> None:
    grown(tmp_path)
    head = tmp_path / "it" / "head"
    head.write_bytes(HighWaterMark.encode(1000, 1000) + b"more")
    for _ in range(2):  # opening does not change it
        with opened(tmp_path) as learner:
            told = learner.status.told
    with opened(tmp_path) as learner:
        one_more(learner)
    assert head.stat().st_size == HighWaterMark.SIZE
    head.write_bytes(HighWaterMark.encode(1000, 1000))
    with pytest.raises(StorageError, match="event 1000 was acknowledged"):
        opened(tmp_path)
    head.unlink()
    with opened(tmp_path) as learner:
        assert learner.status.told == told + 1


def test_another_file_named_head_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "it").mkdir()
    (tmp_path / "it" / "head").write_text("of a story\n")
    with pytest.raises(InvalidInputError, match="no durable learner"):
        opened(tmp_path, fresh())
    assert (tmp_path / "it" / "head").read_text() == "of a story\n"


def test_a_directory_killed_before_the_journal_was_created_is_usable(tmp_path: Path) -> None:
    (tmp_path / "it").mkdir()
    (tmp_path / "it" / "head").touch()
    with opened(tmp_path, fresh()) as learner:
        one_more(learner)
    for path in (tmp_path / "it").iterdir():
        if path.name != "head":  # which says that something was acknowledged
            path.unlink()
    with pytest.raises(StorageError, match="event 1 was acknowledged"):
        opened(tmp_path, fresh())


def test_a_forked_process_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path, fresh()) as learner:
        said = as_nobody(learner.ask, setuid=False)
        assert said.startswith("InvalidInputError: another process opened")
        one_more(learner)


def test_an_unfinished_transaction_is_rolled_back(tmp_path: Path) -> None:
    """As after an error of SQLite without a rollback."""
    with opened(tmp_path, fresh()) as learner:
        episode = learner.ask()
        learner._store.database._sql.execute("BEGIN IMMEDIATE")  # type: ignore[attr-defined]
        learner.tell(episode.id, **played(learner, episode))
        shutil.copytree(tmp_path / "it", tmp_path / "copy" / "it")  # as it is on disk now
    with opened(tmp_path / "copy") as learner:
        assert learner.status.told == 1


def test_outcomes_are_remembered_across_snapshots(tmp_path: Path) -> None:
    told = {}
    with opened(tmp_path, fresh(), snapshot_every=5) as learner:
        for _ in range(15):
            episode = learner.ask()
            told[episode.id] = played(learner, episode)
            learner.tell(episode.id, **told[episode.id])
    with opened(tmp_path) as learner:
        assert {learner.tell(id, **parts) for id, parts in told.items()} == {"already"}


@pytest.mark.parametrize("feedback", ["full", "bandit"])
def test_an_event_with_an_impossible_path_is_refused(feedback: Feedback) -> None:
    """Tuples 0 and 6 are (0,0,1) and (2,0,3)."""
    form = EpisodeFormat(LayeredSpace.dense([1, 2, 1], 2), 1, feedback)
    rest = bytes_of(np.zeros(4 if feedback == "bandit" else 0))

    def path_of(path: list[int]) -> list[int]:
        event = Event(1, "tell", np.array(path).tobytes() + rest, 1, b"policy", b"loss", b"constraints")
        return list(form.outcome(event, lambda digest: np.zeros(8)).path)

    assert path_of([1, 6]) == [1, 6]
    for path in ([0, 6], [1], [1, 6, 6], [1, 8]):
        with pytest.raises(InvalidInputError):
            path_of(path)


def test_an_unknown_kind_of_event_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path, fresh()) as learner:
        learner._store.append([Event(1, "sing", b"")], {})
    with pytest.raises(StorageError, match="'sing', which this version does not know"):
        opened(tmp_path)


def test_calls_of_threads_are_serialized_and_status_does_not_wait(tmp_path: Path) -> None:
    with opened(tmp_path, fresh("uniform"), most_open=100) as learner:
        said: list[str] = []

        def work() -> None:
            for _ in range(10):
                episode = learner.ask()
                said.append(learner.tell(episode.id, **played(learner, episode)))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        with learner._lock:  # a call that takes long
            assert learner.status.told <= 40
            assert len(learner.policy.probabilities) == WORLD.space.n_pairs
        for thread in threads:
            thread.join()
        assert said == ["learned"] * 40
        assert (learner.status.told, learner.status.open) == (40, 0)
