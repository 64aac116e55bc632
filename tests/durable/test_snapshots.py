"""Snapshots that are damaged, cannot be written or removed, or are read meanwhile."""

import errno
import sqlite3
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.durable.stories import fresh, one_more, opened, rows
from tightrope import DurableLearner
from tightrope.errors import StorageError
from tightrope.ops.inspection import inspect


def grown(folder: Path, told: int = 7) -> DurableLearner:
    """Return a learner with snapshots after events 4, 8, …, and one open episode."""
    learner = opened(folder, fresh("uniform"), snapshot_every=4)
    for _ in range(told):
        one_more(learner)
    learner.ask()
    return learner


def test_flipped_bits_in_snapshot_rows_never_change_the_state(tmp_path: Path) -> None:
    """Bits of the page with the rows: the same state with a warning, or a StorageError."""
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


def test_two_intact_snapshots_are_kept(tmp_path: Path) -> None:
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


def test_files_that_cannot_be_removed_are_reported_and_retried(tmp_path: Path) -> None:
    with opened(tmp_path, fresh("uniform"), snapshot_every=2) as learner:
        in_its_way = learner.directory / "snapshot-old.npz"
        in_its_way.mkdir()
        for _ in range(3):
            one_more(learner)
        assert "snapshot-old.npz" in learner.status.trouble
        in_its_way.rmdir()
        one_more(learner)
        assert (learner.status.trouble, learner.status.told) == ("", 4)


def test_a_snapshot_does_not_wait_for_readers(tmp_path: Path) -> None:
    """SQLite would otherwise wait for as long as its timeout."""
    with grown(tmp_path) as learner:
        reader = sqlite3.connect(f"{(learner.directory / 'journal.sqlite').as_uri()}?mode=ro", uri=True)
        reader.execute("BEGIN")
        [[before]] = reader.execute("SELECT count(*) FROM events")
        learner._store.database._sql.execute("PRAGMA busy_timeout = 60000")  # type: ignore[attr-defined]
        teller = Thread(target=one_more, args=[learner])  # writes a snapshot
        teller.start()
        teller.join(30)
        assert not teller.is_alive()
        assert reader.execute("SELECT count(*) FROM events").fetchall() == [(before,)]
        reader.close()


def test_keep_journal_keeps_events(tmp_path: Path) -> None:
    with opened(tmp_path, fresh("uniform"), snapshot_every=2, keep_journal=7) as learner:
        for _ in range(12):
            one_more(learner)
        events = [seq for (seq,) in rows(learner, "SELECT seq FROM events ORDER BY seq")]
    assert events == list(range(5, 13))


def test_snapshots_that_cannot_be_read_now_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While no file can be opened, pruning is put off and no snapshot counts as damaged."""
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


def test_temporary_files_of_a_killed_process_are_removed(tmp_path: Path) -> None:
    with opened(tmp_path, fresh("uniform")) as learner:
        left = learner.directory / f".tightrope-{'0' * 16}-{'1' * 16}.tmp"
        left.touch()
        learner.snapshot()
        assert not left.exists()


def test_a_snapshot_reads_the_episodes_that_were_told_and_no_others(tmp_path: Path) -> None:
    """So that thousands of open ones do not hold up whoever waits for an action."""
    with opened(tmp_path, fresh()) as learner:
        for _ in range(50):
            learner.ask()
        one_more(learner)
        found, query = [], learner._store.database.query

        def counting(sql: str, *values: Any) -> list[Any]:
            rows = query(sql, *values)
            if "FROM episodes" in sql:
                found.append(len(rows))
            return rows

        learner._store.database.query = counting  # type: ignore[method-assign]
        learner.snapshot()
        assert found == [1]
        assert learner.status.open == 50
