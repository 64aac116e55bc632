"""Backups are written while the learner runs, and restored to the bits of any event that they hold."""

import os
import signal
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fuzz.durable import sight_of
from tests.durable.stories import fresh, one_more, opened, played
from tests.tracing import at_moment, interrupted_after
from tightrope import DurableLearner, InvalidInputError
from tightrope.cli.commands import app
from tightrope.durable import backup, restore
from tightrope.errors import ConflictError, StorageError, UnknownEpisodeError
from tightrope.ops.inspection import inspect

#: Of what was open or asked, `rewind` knows less than the learner did.
LEARNED = ("told", "events", "champion", "account", "guard", "learners")


def learned(learner: DurableLearner) -> dict[str, Any]:
    sight = sight_of(learner)
    return {name: sight[name] for name in LEARNED}


def command(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(map(str, arguments)))
    return result.exit_code, result.output


def test_a_backup_restores_the_same_learner(tmp_path: Path) -> None:
    with opened(tmp_path, fresh(), snapshot_every=4) as learner:
        for _ in range(10):
            one_more(learner)
        (learner.directory / "tables.npz").write_bytes(b"of a problem")
        waiting = learner.ask()
        code, said = command("backup", tmp_path / "it", tmp_path / "copy")
        assert (code, "up to event 10" in said) == (0, True), said
        sight = sight_of(learner)
        one_more(learner)
    code, said = command("restore", tmp_path / "copy", tmp_path / "new")
    assert (code, "at event 10: 10 episodes told, 1 open" in said) == (0, True), said
    assert (tmp_path / "new" / "tables.npz").read_bytes() == b"of a problem"
    with DurableLearner(tmp_path / "new") as learner:
        assert sight_of(learner) == sight
        assert learner.tell(waiting.id, **played(learner, waiting)) == "learned"


def test_a_backup_is_restored_though_the_clock_went_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An episode whose outcome is kept stays, though it was opened later than that by the clock."""
    clock = [2_000_000_000]
    monkeypatch.setattr("tightrope.ops.engine._now", lambda: clock[0])
    with opened(tmp_path, fresh(), keep_journal=1000) as learner:
        one_more(learner)
        first, second = learner.ask(), learner.ask()
        clock[0] = 1_000_000_000
        outcome = played(learner, first)
        learner.tell(first.id, **outcome)
        learner.tell(second.id, **played(learner, second))
    backup(tmp_path / "it", tmp_path / "copy")
    restore(tmp_path / "copy", tmp_path / "new", to_event=2)
    with DurableLearner(tmp_path / "new") as learner:
        assert learner.tell(first.id, **outcome) == "already"
        one_more(learner)
        assert learner.status.told == 3
    with DurableLearner(tmp_path / "new") as learner:
        assert learner.status.told == 3


def test_a_backup_can_be_restored_to_every_event_in_it(tmp_path: Path) -> None:
    sights = {}
    with opened(tmp_path, fresh(), snapshot_every=3) as learner:
        for k in range(10):
            one_more(learner)
            if k == 7:
                learner.challenge("other", fresh("ucpd"))
            if k == 8:
                learner.set_budgets(learner.status.budgets * 1.1)
            sights[learner.status.event] = learned(learner)
    backup(tmp_path / "it", tmp_path / "copy")
    restored = []
    for event in range(13):
        folder = tmp_path / f"to {event}"
        try:
            found = restore(tmp_path / "copy", folder, event)
        except InvalidInputError as error:
            assert "is gone: the journal reaches back to event" in str(error)
            assert not folder.exists()
            continue
        restored.append(event)
        assert not found.damage
        with DurableLearner(folder) as learner:
            assert learner.status.event == event
            if event in sights:
                assert learned(learner) == sights[event]
            one_more(learner)
    assert restored == list(range(9, 13))
    code, said = command("restore", tmp_path / "copy", tmp_path / "late", "--to-event", 13)
    assert (code, "there is no event 13; the last one is event 12" in said) == (2, True)


def test_restoring_reopens_later_outcomes_and_forgets_later_episodes(tmp_path: Path) -> None:
    with opened(tmp_path, fresh()) as learner:
        before, between = one_more(learner), learner.ask()
        time.sleep(0.001)
        learner.tell(between.id, **(outcome := played(learner, between)))
        time.sleep(0.001)
        after = one_more(learner)
        learner.snapshot()
    backup(tmp_path / "it", tmp_path / "copy")
    restore(tmp_path / "copy", tmp_path / "new", 1)
    with DurableLearner(tmp_path / "new") as learner:
        assert learner.open_ids() == [between.id]
        assert learner.tell(between.id, **outcome) == "learned"
        with pytest.raises(UnknownEpisodeError):
            learner.give_up(after.id)
        with pytest.raises(ConflictError, match="was told before"):
            learner.give_up(before.id)
        assert one_more(learner).id != after.id


def test_a_backup_of_a_busy_learner_contains_everything_acknowledged_before(tmp_path: Path) -> None:
    sights, stop = {}, threading.Event()
    with opened(tmp_path, fresh("uniform"), snapshot_every=10) as learner:

        def work() -> None:
            while not stop.is_set():
                one_more(learner)
                sights[learner.status.event] = learned(learner)

        one_more(learner)
        sights[1] = learned(learner)
        thread = threading.Thread(target=work)
        thread.start()
        try:
            for k in range(8):
                before = learner.status.event
                last = backup(tmp_path / "it", tmp_path / "copy")
                assert last >= before
                while last not in sights:  # acknowledged, and not yet looked at
                    time.sleep(0.001)
                restore(tmp_path / "copy", tmp_path / str(k))
                with DurableLearner(tmp_path / str(k)) as copy:
                    assert learned(copy) == sights[last]
        finally:
            stop.set()
            thread.join()


def directory(folder: Path) -> Path:
    with opened(folder, fresh("uniform"), snapshot_every=2) as learner:
        for _ in range(5):
            one_more(learner)
    return folder / "it"


def test_a_file_that_is_not_a_backup_is_neither_restored_nor_replaced(tmp_path: Path) -> None:
    it = directory(tmp_path)
    (tmp_path / "notes").write_text("mine")
    for file in (tmp_path / "notes", it / "journal.sqlite"):
        with pytest.raises(InvalidInputError, match="is not a backup"):
            restore(file, tmp_path / "new")
        with pytest.raises(InvalidInputError, match=r"is inside|is not a backup"):
            backup(it, file)
    assert (tmp_path / "notes").read_text() == "mine"
    with pytest.raises(InvalidInputError, match="No such file"):
        restore(tmp_path / "nothing", tmp_path / "new")
    with pytest.raises(InvalidInputError, match="is inside"):
        backup(it, it / "copy")
    with pytest.raises(InvalidInputError, match=r"several learners: back up .*it and the others"):
        backup(tmp_path, tmp_path / "copy")
    backup(it, tmp_path / "copy")
    with pytest.raises(InvalidInputError, match="not empty; restore to a new directory"):
        restore(tmp_path / "copy", it)
    assert not (tmp_path / "new").exists()


def test_a_damaged_backup_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    backup(directory(tmp_path), tmp_path / "copy")
    for statement in (
        "UPDATE files SET contents = zeroblob(length(contents)) WHERE name LIKE 'snapshot-4%'",
        "UPDATE events SET author = 'somebody' WHERE seq = 5",
        "UPDATE files SET name = '../' || name WHERE name LIKE 'snapshot-4%'",
    ):
        damaged = tmp_path / "damaged"
        damaged.write_bytes((tmp_path / "copy").read_bytes())
        with closing(sqlite3.connect(damaged)) as sql, sql:
            sql.execute(statement)
        with pytest.raises(StorageError, match=r"damaged.*use another backup"):
            restore(damaged, tmp_path / "new")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["copy", "damaged", "it"]


def test_a_damaged_directory_is_not_backed_up(tmp_path: Path) -> None:
    it = directory(tmp_path)
    next(it.glob("snapshot-4*")).write_bytes(b"")
    with pytest.raises(StorageError, match=r"snapshot-4[.]npz is damaged"):
        backup(it, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def killed(work: Callable[[], object], moment: int) -> bool:
    """Do work in a process that kills itself at that bytecode; return whether it came so far."""
    if (pid := os.fork()) == 0:
        try:
            with at_moment(moment, lambda: os.kill(os.getpid(), signal.SIGKILL)):
                work()
            os._exit(0)
        finally:
            os._exit(1)
    ended = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert ended in (0, -signal.SIGKILL)
    return ended != 0


def test_a_killed_backup_leaves_the_old_or_the_new_backup(tmp_path: Path) -> None:
    it, moment, seen = directory(tmp_path), 1, set()
    assert backup(it, tmp_path / "copy") == 5
    with opened(tmp_path) as learner:
        one_more(learner)
    (tmp_path / "before").write_bytes((tmp_path / "copy").read_bytes())
    while True:
        if not killed(lambda: backup(it, tmp_path / "copy"), moment):
            break
        held = restore(tmp_path / "copy", tmp_path / str(moment)).status
        assert held is not None
        seen.add(held.event)
        (tmp_path / "copy").write_bytes((tmp_path / "before").read_bytes())
        moment += 97
    assert seen == {5, 6}
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_a_killed_restore_leaves_nothing_or_all(tmp_path: Path) -> None:
    backup(directory(tmp_path), tmp_path / "copy")
    with interrupted_after(0) as count:
        restore(tmp_path / "copy", tmp_path / "first")
    new, seen, last = tmp_path / "new", set(), count[0]
    for moment in [*range(1, last, last // 20), *range(last - 100, last, 10)]:
        killed(lambda: restore(tmp_path / "copy", new), moment)
        seen.add(new.exists())
        if new.exists():
            assert not inspect(new).damage
            new.rename(tmp_path / str(moment))
    assert seen == {True, False}
    restore(tmp_path / "copy", new)
    assert not inspect(new).damage
    assert not (tmp_path / "new.restoring").exists()
