"""Journals of released formats are migrated: whole or not at all, and never without a fixture."""

import shutil
import sqlite3
from contextlib import suppress
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fuzz.migrations import RELEASES, check, disturb, format_of, rows_of, sight_of
from tests.durable.stories import fresh, one_more, opened, rows
from tests.releases.archives import top_folders, unpack
from tests.tracing import interrupted_after
from tightrope.cli.commands import app
from tightrope.errors import StorageError
from tightrope.ops.formats import FORMAT, SCHEMA, STEPS
from tightrope.ops.sqlite import SQLite
from tightrope.ops.store import digest_of

ARCHIVE = RELEASES / "0.2" / "durable.tar.gz"

#: The digest of the schema of each format. What was released never changes; another schema is another format.
SCHEMAS = {7: "5a27aed978ea8bc541718c65eb5bfe32"}


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """Return a directory that 0.2 wrote."""
    unpack(ARCHIVE, tmp_path)
    return tmp_path / top_folders(ARCHIVE)[0] / "directory"


def test_a_schema_changes_only_with_its_format() -> None:
    """If this fails: raise FORMAT, write a step from the format before, and add its directory to tests/releases."""
    assert digest_of(SCHEMA.encode()).hex() == SCHEMAS.get(FORMAT)


def test_every_earlier_format_has_a_step_and_a_directory_of_a_release(tmp_path: Path) -> None:
    found = set()
    for archive in RELEASES.glob("*/durable.tar.gz"):
        unpack(archive, tmp_path / archive.parent.name)
        found |= {format_of(path.parent) for path in (tmp_path / archive.parent.name).rglob("journal.sqlite")}
    assert set(STEPS) == set(range(6, FORMAT))
    assert found >= set(STEPS)


def test_a_migration_cut_off_at_any_moment_leaves_the_old_or_the_new_directory(old: Path, tmp_path: Path) -> None:
    before, sight, moment, seen = rows_of(old), sight_of(old), 1, set()
    while True:
        target = tmp_path / str(moment)
        shutil.copytree(old, target)
        with suppress(KeyboardInterrupt), interrupted_after(moment) as count:
            SQLite(target).close()
            if count[0] < moment:
                break
        copied = (target / f"before-format-{FORMAT}").is_dir()
        assert rows_of(target) == before
        if (format_of(target), copied) not in seen:  # takes a while
            check(target, before, sight, 6)
            seen.add((format_of(target), copied))
        SQLite(target).close()
        assert (rows_of(target), format_of(target)) == (before, FORMAT)
        shutil.rmtree(target)
        moment += 5
    assert seen == {(6, False), (6, True), (FORMAT, True)}


def test_a_killed_migration_leaves_the_old_or_the_new_directory() -> None:
    """`python -m fuzz.migrations` does the same 200 times."""
    counts = disturb(ARCHIVE, top_folders(ARCHIVE)[0], kills=10, seed=3, where=None)
    assert counts["format 6"] + counts[f"format {FORMAT}"] == 10


def test_a_dry_run_changes_nothing_and_migrate_keeps_a_copy(old: Path) -> None:
    def files() -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in old.iterdir() if not path.name.endswith("-shm")}

    unchanged = files()
    said = CliRunner().invoke(app, ["migrate", str(old), "--dry-run"])
    assert (said.exit_code, "would be migrated from format 6 to 7" in said.output) == (0, True), said.output
    assert files() == unchanged
    before = rows_of(old)
    said = CliRunner().invoke(app, ["migrate", str(old)])
    assert (said.exit_code, "migrated from format 6 to 7" in said.output) == (0, True), said.output
    assert rows_of(old / "before-format-7") == before
    said = CliRunner().invoke(app, ["migrate", str(old)])
    assert "has format 7 already" in said.output


def test_a_dry_run_refuses_a_damaged_directory(old: Path) -> None:
    for snapshot in old.glob("snapshot-*"):
        snapshot.unlink()
    said = CliRunner().invoke(app, ["migrate", str(old), "--dry-run"])
    assert said.exit_code == 1
    assert format_of(old) == 6


def test_events_and_episodes_have_a_time_and_an_author(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time_ns", lambda: 1_700_000_000_123_456_789)
    with opened(tmp_path, fresh(), author="operator") as learner:
        one_more(learner)
        learner.set_budgets(learner.status.budgets, author="alice")
        learner.ask(author="bob")
        events = rows(learner, "SELECT kind, time, author FROM events")
        assert events == [("tell", 1_700_000_000_123_456, "operator"), ("budgets", 1_700_000_000_123_456, "alice")]
        assert rows(learner, "SELECT author FROM episodes") == [("operator",), ("bob",)]
        assert list(learner.opened_at().values()) == [1_700_000_000.123456]


def test_a_changed_author_is_damage(tmp_path: Path) -> None:
    with opened(tmp_path, fresh(), author="alice") as learner:
        one_more(learner)
    with sqlite3.connect(tmp_path / "it" / "journal.sqlite") as sql:
        sql.execute("UPDATE events SET author = 'bob'")
    with pytest.raises(StorageError, match="event 1 is damaged"):
        opened(tmp_path)


def test_asking_again_with_the_key_returns_the_episode_while_it_is_open(tmp_path: Path) -> None:
    with opened(tmp_path, fresh()) as learner:
        first = learner.ask(key="a")
        one_more(learner)
        assert learner.ask(key="a").id == first.id
        assert learner.ask(key="b").id != first.id
    with opened(tmp_path) as learner:
        again = learner.ask(key="a")
        assert again.id == first.id
        assert (again.policy.probabilities == first.policy.probabilities).all()
        learner.give_up(first.id)
        assert learner.ask(key="a").id != first.id
