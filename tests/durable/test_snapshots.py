"""Snapshots that are damaged, in the way, or read meanwhile: what counts is in the journal."""

import errno
import sqlite3
from pathlib import Path
from threading import Thread

import pytest

from tests.durable.stories import fresh, one_more, opened, rows
from tightrope.durable import DurableLearner
from tightrope.errors import StorageError
from tightrope.ops.inspection import inspect


def grown(folder: Path, told: int = 7) -> DurableLearner:
    """Snapshots after 4 and 8, and so on; one episode is open."""
    learner = opened(folder, fresh("uniform"), snapshot_every=4)
    for _ in range(told):
        one_more(learner)
    learner.ask()
    return learner


def test_any_bit_of_a_row_may_be_flipped(tmp_path: Path) -> None:
    """All bits of the page that holds the rows: the same state with a warning, or a refusal; never another state."""
    with grown(tmp_path) as learner:
        truth = learner.fingerprint(), learner.open_ids(), learner.status.event
    folder = tmp_path / "it"
    journal = folder / "journal.sqlite"
    with sqlite3.connect(journal) as sql:
        [[root]] = sql.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'snapshots'")
        [[size]] = sql.execute("PRAGMA page_size")
    whole = journal.read_bytes()
    page = (root - 1) * size
    first = int.from_bytes(whole[page + 5 : page + 7], "big")  # of the cells, which end with the page
    seen = set()
    for at in range(page + first, page + size):
        for bit in (0, 3, 7):
            data = bytearray(whole)
            data[at] ^= 1 << bit
            journal.write_bytes(data)
            (folder / "journal.sqlite-wal").unlink(missing_ok=True)
            try:
                with DurableLearner(folder) as learner:
                    assert (learner.fingerprint(), learner.open_ids(), learner.status.event) == truth, (at, bit)
                    seen.add("same")
            except StorageError:
                seen.add("refused")
    assert "same" in seen


def test_a_damaged_one_is_not_one_of_the_two_that_are_kept(tmp_path: Path) -> None:
    with grown(tmp_path, 9) as learner:
        pass
    (tmp_path / "it" / "snapshot-8.npz").write_bytes(b"damaged")
    with opened(tmp_path, snapshot_every=4) as learner:
        for _ in range(4):
            one_more(learner)
        assert sorted(path.name for path in learner.directory.glob("snapshot-*")) == [
            "snapshot-10.npz", "snapshot-4.npz",
        ]  # fmt: skip
        bits, told = learner.fingerprint(), learner.status.told
    assert not inspect(tmp_path / "it").damage
    (tmp_path / "it" / "snapshot-10.npz").write_bytes(b"damaged")
    with opened(tmp_path) as learner:
        assert (learner.fingerprint(), learner.status.told) == (bits, told)


def test_what_cannot_be_removed_is_put_off_and_said(tmp_path: Path) -> None:
    with opened(tmp_path, fresh("uniform"), snapshot_every=2) as learner:
        in_its_way = learner.directory / "snapshot-old.npz"
        in_its_way.mkdir()
        for _ in range(3):
            one_more(learner)
        assert "snapshot-old.npz" in learner.status.trouble
        in_its_way.rmdir()
        one_more(learner)
        assert (learner.status.trouble, learner.status.told) == ("", 4)


def test_who_reads_is_not_waited_for(tmp_path: Path) -> None:
    """SQLite would wait for 5 s by itself, and for as long as it is told to."""
    with grown(tmp_path) as learner:
        reader = sqlite3.connect(f"{(learner.directory / 'journal.sqlite').as_uri()}?mode=ro", uri=True)
        reader.execute("BEGIN")
        [[before]] = reader.execute("SELECT count(*) FROM events")
        learner._store._sql.execute("PRAGMA busy_timeout = 60000")
        teller = Thread(target=one_more, args=[learner])  # writes a snapshot
        teller.start()
        teller.join(30)
        assert not teller.is_alive()
        assert reader.execute("SELECT count(*) FROM events").fetchall() == [(before,)]
        reader.close()


def test_events_are_kept_as_asked(tmp_path: Path) -> None:
    with opened(tmp_path, fresh("uniform"), snapshot_every=2, keep_journal=7) as learner:
        for _ in range(12):
            one_more(learner)
        events = [seq for (seq,) in rows(learner, "SELECT seq FROM events ORDER BY seq")]
    assert events == list(range(6, 13))


def test_what_cannot_be_read_now_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file can be opened for a while: that is put off, and no snapshot is taken for damaged."""
    with opened(tmp_path, fresh("uniform"), snapshot_every=2) as learner:
        for _ in range(3):
            one_more(learner)

        def failing(path: Path) -> bytes:
            raise OSError(errno.EMFILE, "too many open files", str(path))

        with monkeypatch.context() as patch:
            patch.setattr(Path, "read_bytes", failing)
            one_more(learner)
        assert "too many open files" in learner.status.trouble
        assert len(list(learner.directory.glob("snapshot-*"))) == 3
        one_more(learner)
        assert learner.status.trouble == ""
        assert len(list(learner.directory.glob("snapshot-*"))) == 2


def test_what_a_killed_writer_left_is_removed(tmp_path: Path) -> None:
    with opened(tmp_path, fresh("uniform")) as learner:
        left = learner.directory / f".tightrope-{'0' * 16}-{'1' * 16}.tmp"
        left.touch()
        learner.snapshot()
        assert not left.exists()
