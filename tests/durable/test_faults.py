"""What a machine can do to a durable learner, done for real."""

import os
import resource
import shutil
import sqlite3
import stat
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fuzz.durable import disturb
from tests.durable.stories import WORLD, fresh, one_more, opened, played
from tests.durable.test_learner import episode_fields, observe
from tests.learners.test_interrupts import interrupted_after
from tightrope.durable import DurableLearner
from tightrope.errors import ConflictError, InvalidInputError, StorageError, TightropeError
from tightrope.learners.base import Feedback
from tightrope.ops import snapshots
from tightrope.ops.inspection import inspect
from tightrope.ops.state import EpisodeFormat
from tightrope.ops.store import ZEROS, Event, HighWaterMark, Journal, SnapshotRow, bytes_of, digest_of_row
from tightrope.space import LayeredSpace
from tightrope.storage.checkpoints import fingerprint


@pytest.mark.parametrize(("name", "seed"), [("ucpd-practical", 11), ("uob-reps", 12)])
def test_killed_at_random_moments_nothing_is_lost(tmp_path: Path, name: str, seed: int) -> None:
    """The command does it a thousand times: python -m fuzz.durable."""
    counts = disturb(name, tmp_path / "it", kills=20, seed=seed)
    assert counts["acknowledged"] > 20


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of a file that was just opened
def test_an_interrupt_at_any_bytecode_leaves_all_or_nothing(tmp_path: Path) -> None:
    """Of a tell that also writes a snapshot: what is told again is learnt, or was."""
    twin = fresh("uniform")
    with opened(tmp_path, fresh("uniform"), snapshot_every=1) as learner:
        moment, learnt_before = 1, 0
        while True:
            parts = played(learner, episode := learner.ask())
            with suppress(KeyboardInterrupt), interrupted_after(moment) as count:
                learner.tell(episode.id, **parts)
                if count[0] < moment:
                    break
            learnt_before += learner.tell(episode.id, **parts) == "already"
            observe(twin, None, episode_fields(parts))
            assert learner.fingerprint() == fingerprint(twin)
            learner.snapshot()  # which leaves as much to do to the next one
            moment += 149
        observe(twin, None, episode_fields(parts))
        assert learnt_before > 2, "no interrupt came after the commit"
        assert learner.fingerprint() == fingerprint(twin)
        assert learner.status.told == twin.observed
    with opened(tmp_path) as learner:
        assert learner.fingerprint() == fingerprint(twin)


def test_an_interrupt_at_any_bytecode_of_an_ask_loses_no_id(tmp_path: Path) -> None:
    with opened(tmp_path, fresh("uniform")) as learner:
        ids, moment = set(), 1
        while True:
            learner.open_episodes()  # back to what is on disk, after an interrupt
            with suppress(KeyboardInterrupt), interrupted_after(moment) as count:
                ids.add(learner.ask().id)
                if count[0] < moment:
                    break
            moment += 17
        assert ids <= set(learner.open_episodes())
        assert learner.status.open == learner.status.asked


@contextmanager
def no_file_beyond(size: int) -> Iterator[None]:
    """As on a full disk, but that it is full for everybody: writing past this size fails."""
    import signal

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_on_a_full_disk_nothing_is_acknowledged_and_nothing_is_lost(tmp_path: Path) -> None:
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
    with opened(tmp_path) as learner:  # and all that it refers to is on disk, too
        assert learner.fingerprint() == fingerprint(twin)


def test_a_snapshot_that_cannot_be_written_is_put_off(tmp_path: Path) -> None:
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
def test_on_a_small_file_system_that_is_full(tmp_path: Path) -> None:
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
    """What comes of a call in a process of its own, of a user with few rights; root may write anywhere."""
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


def test_a_directory_that_must_not_be_written_is_refused(tmp_path: Path) -> None:
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


def test_a_clock_that_goes_backwards_is_not_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    """A directory that was killed: its journal has a log. Its bits and open ids."""
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
def test_what_is_damaged_is_never_learnt(tmp_path: Path, name: str) -> None:
    """Bits flipped and ends cut off, one at a time: the same bits, or a refusal in words."""
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


def test_without_any_whole_snapshot_it_is_refused(tmp_path: Path) -> None:
    grown(tmp_path)
    for path in (tmp_path / "it").glob("snapshot-*"):
        path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(StorageError, match="restore the directory from a backup"):
        opened(tmp_path)


def test_a_row_that_is_gone_from_the_middle_is_missed(tmp_path: Path) -> None:
    grown(tmp_path)
    with sqlite3.connect(tmp_path / "it" / "journal.sqlite") as sql:
        sql.execute("DELETE FROM events WHERE seq = 9")
    with pytest.raises(StorageError, match="event 9 is missing"):
        opened(tmp_path)


def test_a_row_in_place_of_another_is_found_out(tmp_path: Path) -> None:
    """One that has the right number and a digest of its own, but does not follow the one before."""
    grown(tmp_path)
    with sqlite3.connect(tmp_path / "it" / "journal.sqlite") as sql:
        [row] = sql.execute("SELECT seq, kind, body, episode, policy, loss, constraints FROM events WHERE seq = 9")
        other = Event(*row)._replace(body=bytes(len(row[2])))
        sql.execute(
            "UPDATE events SET body = ?, digest = ? WHERE seq = 9", (other.body, digest_of_row(ZEROS, *other.row))
        )
    with pytest.raises(StorageError, match="event 9 is damaged"):
        opened(tmp_path)


def test_a_schema_that_is_no_text_is_refused_in_words(tmp_path: Path) -> None:
    grown(tmp_path)
    journal = tmp_path / "it" / "journal.sqlite"
    data = journal.read_bytes()
    first = data.index(b"CREATE TABLE events")
    for at in range(first, first + 60):
        journal.write_bytes(data[:at] + bytes([data[at] | 0x80]) + data[at + 1 :])
        with pytest.raises(StorageError, match=r"journal\.sqlite"):
            opened(tmp_path)
        assert inspect(tmp_path / "it").damage


def test_a_commit_is_synced(tmp_path: Path) -> None:
    with opened(tmp_path, fresh()) as learner:
        assert learner._store._query("PRAGMA synchronous") == [(2,)]
        assert learner._store._query("PRAGMA journal_mode") == [("wal",)]


def test_a_directory_that_is_removed_acknowledges_nothing(tmp_path: Path) -> None:
    with opened(tmp_path, fresh()) as learner:
        parts = played(learner, episode := learner.ask())
        shutil.rmtree(learner.directory)
        for _ in range(2):
            with pytest.raises(StorageError):
                learner.tell(episode.id, **parts)
        with pytest.raises(StorageError):
            learner.ask()
        assert learner.status.told == 0


def test_a_directory_that_is_mistyped_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="itt contains no learner yet; pass one to create it"):
        DurableLearner(tmp_path / "there" / "itt")
    assert not list(tmp_path.iterdir())


def test_who_embeds_it_may_go_to_another_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As daemons do; the one that was there is removed."""
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


def test_a_directory_that_is_replaced_acknowledges_nothing(tmp_path: Path) -> None:
    with opened(tmp_path, fresh(), snapshot_every=3) as learner:
        for _ in range(4):
            one_more(learner)
        bits = learner.fingerprint()
        learner.directory.rename(tmp_path / "moved")
        shutil.copytree(tmp_path / "moved", learner.directory)
        kept = sorted(learner.directory.iterdir())
        with pytest.raises(StorageError, match="was removed or replaced"):  # at once
            learner.snapshot()
        assert sorted(learner.directory.iterdir()) == kept  # not in the copy, of which the journal knows nothing
        with pytest.raises(StorageError, match="was removed or replaced"):
            one_more(learner)
    for name in ("it", "moved"):
        with DurableLearner(tmp_path / name) as learner:
            assert learner.fingerprint() == bits


def test_a_directory_put_in_its_place_during_a_snapshot_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Snapshots go by the name of the directory, and prune what is found under it."""
    with DurableLearner(tmp_path / "other", fresh(), snapshot_every=3) as other:
        for _ in range(7):
            one_more(other)
        others = other.fingerprint()
    looked: list[Path] = []
    is_intact = snapshots._is_intact

    def swapped_after(folder: Path, snapshot: SnapshotRow) -> bool:
        answer = is_intact(folder, snapshot)
        looked.append(folder)
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


def test_a_directory_that_is_replaced_by_a_file_is_said_to_be(tmp_path: Path) -> None:
    """What came to disk before that is found out is acknowledged, and that no snapshot could be written is shown."""
    with opened(tmp_path, fresh(), snapshot_every=3) as learner:
        for _ in range(2):
            one_more(learner)
        parts = played(learner, episode := learner.ask())
        learner.directory.rename(tmp_path / "moved")
        learner.directory.write_text("mine")
        with suppress(StorageError):  # if that took longer than nobody looks
            assert learner.tell(episode.id, **parts) == "learned"
            assert "was removed or replaced" in learner.status.trouble
    with DurableLearner(tmp_path / "moved") as learner:
        assert learner.status.told in (2, 3)


def test_a_call_in_the_middle_of_another_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a handler of signals would make it, once the event is ready to be written."""
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


def test_a_journal_without_snapshots_is_not_begun_anew(tmp_path: Path) -> None:
    grown(tmp_path)
    with sqlite3.connect(tmp_path / "it" / "journal.sqlite") as sql:
        sql.execute("DELETE FROM snapshots")
    with pytest.raises(StorageError, match="the snapshots are missing"):
        opened(tmp_path, fresh())


def test_what_an_administrator_of_sqlite_adds_is_no_damage(tmp_path: Path) -> None:
    bits, _ = grown(tmp_path)
    with sqlite3.connect(tmp_path / "it" / "journal.sqlite") as sql:
        sql.execute("ANALYZE")
    with opened(tmp_path) as learner:
        assert learner.fingerprint() == bits


def test_a_head_that_is_none_is_refused_in_words(tmp_path: Path) -> None:
    grown(tmp_path)
    (tmp_path / "it" / "head").unlink()
    (tmp_path / "it" / "head").mkdir()
    with pytest.raises(StorageError, match="head"):
        opened(tmp_path)
    assert any("head" in words for words in inspect(tmp_path / "it").damage)


def test_a_head_that_never_ends_is_refused_in_words(tmp_path: Path) -> None:
    grown(tmp_path)
    (tmp_path / "it" / "head").unlink()
    os.mkfifo(tmp_path / "it" / "head")
    with pytest.raises(StorageError, match="head: not a regular file"):
        opened(tmp_path)


def test_a_head_that_somebody_added_to_says_nothing_until_the_next_commit(tmp_path: Path) -> None:
    grown(tmp_path)
    head = tmp_path / "it" / "head"
    head.write_bytes(HighWaterMark.encode(1000, 1000) + b"more")
    for _ in range(2):  # opened, it is left as it is
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


def test_somebody_elses_head_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "it").mkdir()
    (tmp_path / "it" / "head").write_text("of a story\n")
    with pytest.raises(InvalidInputError, match="no durable learner"):
        opened(tmp_path, fresh())
    assert (tmp_path / "it" / "head").read_text() == "of a story\n"


def test_killed_before_there_was_a_journal(tmp_path: Path) -> None:
    (tmp_path / "it").mkdir()
    (tmp_path / "it" / "head").touch()
    with opened(tmp_path, fresh()) as learner:
        one_more(learner)
    for path in (tmp_path / "it").iterdir():
        if path.name != "head":  # which knows of more, and so is not one to begin with
            path.unlink()
    with pytest.raises(StorageError, match="event 1 was acknowledged"):
        opened(tmp_path, fresh())


def test_a_process_that_forked_owns_nothing(tmp_path: Path) -> None:
    with opened(tmp_path, fresh()) as learner:
        said = as_nobody(learner.ask, setuid=False)
        assert said.startswith("InvalidInputError: another process opened")
        one_more(learner)


def test_a_transaction_that_somebody_left_open_takes_nothing_with_it(tmp_path: Path) -> None:
    """As after an error of SQLite that could not be rolled back."""
    with opened(tmp_path, fresh()) as learner:
        episode = learner.ask()
        learner._store._sql.execute("BEGIN IMMEDIATE")
        learner.tell(episode.id, **played(learner, episode))
        shutil.copytree(tmp_path / "it", tmp_path / "copy" / "it")  # as it is on disk now
    with opened(tmp_path / "copy") as learner:
        assert learner.status.told == 1


def test_telling_again_is_answered_after_the_rows_were_settled_by_snapshots(tmp_path: Path) -> None:
    told = {}
    with opened(tmp_path, fresh(), snapshot_every=5) as learner:
        for _ in range(15):
            episode = learner.ask()
            told[episode.id] = played(learner, episode)
            learner.tell(episode.id, **told[episode.id])
    with opened(tmp_path) as learner:
        assert {learner.tell(id, **parts) for id, parts in told.items()} == {"already"}


@pytest.mark.parametrize("feedback", ["full", "bandit"])
def test_a_body_that_was_made_up_is_refused(feedback: Feedback) -> None:
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


def test_a_version_that_knows_more_is_not_guessed_at(tmp_path: Path) -> None:
    with opened(tmp_path, fresh()) as learner:
        learner._store.append([Event(1, "sing", b"")], {})
    with pytest.raises(StorageError, match="'sing', which this version does not know"):
        opened(tmp_path)


def test_threads_wait_for_one_another_and_readers_do_not(tmp_path: Path) -> None:
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
