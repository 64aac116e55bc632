"""Retracting and amending give, bit by bit, the learner that never saw what was retracted, or saw what is amended."""

import json
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from inspect import signature
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from fuzz.durable import sight_of
from tests.durable.conftest import MEMORY
from tests.durable.stories import WORLD, fresh, number_of, one_more, opened, played, rows, story
from tightrope import BanditEpisode, DurableLearner, Episode, InvalidInputError
from tightrope.cli.commands import app, serve
from tightrope.durable import OpenEpisode, backup, restore
from tightrope.errors import ConflictError, StorageError, UnknownEpisodeError
from tightrope.ops.corrections import Corrected
from tightrope.ops.inspection import inspect
from tightrope.ops.snapshots import SPACING, Retention, _older
from tightrope.ops.sqlite import SQLite
from tightrope.ops.store import SnapshotRow
from tightrope.storage.checkpoints import fingerprint

#: An episode and its outcome.
Told = tuple[OpenEpisode, dict[str, Any]]


def tell_some(learner: DurableLearner, count: int, author: str | None = None) -> list[Told]:
    """Ask for episodes and tell them, with up to three open at once, so that some are told late."""
    told: list[Told] = []
    waiting: list[OpenEpisode] = []
    together = 1 if learner.status.entrants[0].learner.learns_from == "own" else 3
    for _ in range(count):
        waiting.append(learner.ask())
        if len(waiting) == together:
            for episode in reversed(waiting):
                told.append((episode, played(learner, episode)))
                learner.tell(episode.id, **told[-1][1], author=author)
            waiting = []
    for episode in waiting:
        learner.give_up(episode.id)
    return told


def plain(name: str, told: Iterable[Told]) -> tuple[bytes, bytes]:
    """Return the bits of a learner in memory that is told these outcomes in order, and its spending."""
    learner, sums = fresh(name), np.zeros(1 + len(WORLD.budgets))
    for episode, parts in told:
        path, full = WORLD.space.path(parts["states"], parts["actions"]), learner.feedback == "full"
        costs = np.vstack([parts["loss"], parts["constraints"]])
        costs = costs[:, path] if full else costs
        learner.observe(
            Episode(**parts)
            if full
            else BanditEpisode(parts["states"], parts["actions"], costs[0], costs[1:], episode.policy)
        )
        sums += np.add.accumulate(costs, axis=1)[:, -1]
    return fingerprint(learner), sums.tobytes()


def bits(learner: DurableLearner) -> tuple[bytes, bytes]:
    return learner.fingerprint(), learner.status.account.sums[0].tobytes()


def ids(told: Iterable[Told]) -> list[str]:
    return [episode.id for episode, _ in told]


@pytest.fixture(scope="module")
def thousand() -> Iterator[tuple[DurableLearner, list[Told]]]:
    with (
        TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder,
        opened(Path(folder), fresh("ucpd-bandit"), keep_journal=100_000) as learner,
    ):
        yield learner, tell_some(learner, 999)


@settings(max_examples=8, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(chosen=st.sets(st.integers(0, 998), min_size=1), density=st.sampled_from([None, 0.01, 0.3, 0.9]))
def test_any_subset_of_a_thousand_can_be_retracted(
    thousand: tuple[DurableLearner, list[Told]], chosen: set[int], density: float | None
) -> None:
    learner, told = thousand
    if density is not None:  # hypothesis likes small sets
        draw = random.Random(min(chosen))
        chosen |= {k for k in range(len(told)) if draw.random() < density}
    before = bits(learner)
    effect = learner.retract(ids(told[k] for k in chosen))
    assert bits(learner) == plain("ucpd-bandit", [one for k, one in enumerate(told) if k not in chosen])
    assert (learner.status.told, learner.status.retracted) == (len(told) - len(chosen), len(chosen))
    assert learner.status.given_up == 0
    learner.undo(effect.event)
    assert bits(learner) == before


@pytest.mark.parametrize("name", ["ucpd-practical", "ucpd", "uob-reps", "fpop", "uniform"])
def test_retracting_is_exact_for_other_learners_also_after_reopening(tmp_path: Path, name: str) -> None:
    with opened(tmp_path, fresh(name), snapshot_every=7, keep_journal=1000) as learner:
        told = tell_some(learner, 60)
        for share in (0.1, 0.5):
            chosen = set(random.Random(share).sample(range(20, 60), round(40 * share)))
            effect = learner.retract(ids(told[k] for k in chosen))
            assert effect.replayed < 60  # not from the start
            truth = plain(name, [one for k, one in enumerate(told) if k not in chosen])
            assert bits(learner) == truth
            learner.undo(effect.event)
            assert bits(learner) == plain(name, told)
        learner.undo(effect.event + 1)  # retracted again
        assert bits(learner) == truth
        sight, corrections = sight_of(learner), learner.corrections()
    with opened(tmp_path) as learner:
        assert (sight_of(learner), learner.corrections()) == (sight, corrections)
        for path in learner.directory.glob("snapshot-*"):
            path.name == f"snapshot-{learner.status.event}.npz" and path.write_bytes(b"")
    with opened(tmp_path) as learner:  # from an older snapshot and the journal, under all corrections
        assert sight_of(learner) == sight


@pytest.mark.parametrize("name", ["ucpd-practical", "ucpd-bandit"])
def test_amending_is_exact(tmp_path: Path, name: str) -> None:
    with opened(tmp_path, fresh(name), snapshot_every=5, keep_journal=1000) as learner:
        told = tell_some(learner, 30)
        others = {k: story(told[k][0].policy, learner.feedback, 1000 + k) for k in (3, 17, 29)}
        effects = {k: learner.amend(told[k][0].id, **other, reason="wrong unit") for k, other in others.items()}
        amended = [(episode, others.get(k, parts)) for k, (episode, parts) in enumerate(told)]
        assert bits(learner) == plain(name, amended)
        assert learner.status.told == 30
        with pytest.raises(ConflictError, match="has this outcome already"):
            learner.amend(told[3][0].id, **others[3])
        retracted = learner.retract([told[17][0].id])
        with pytest.raises(ConflictError, match="is retracted; undo that first"):
            learner.amend(told[17][0].id, **told[17][1])
        assert bits(learner) == plain(name, amended[:17] + amended[18:])
        learner.undo(retracted.event)
        assert bits(learner) == plain(name, amended)
        learner.undo(effects[3].event)
        assert bits(learner) == plain(name, [told[3] if k == 3 else one for k, one in enumerate(amended)])
        assert [one.kind for one in learner.corrections()] == ["amend"] * 3 + ["retract", "undo", "undo"]
        assert [one.undone_by for one in learner.corrections()] == [36, None, None, 35, None, None]


def test_a_learner_from_its_own_policy_leaves_out_episodes_after_a_retracted_one(tmp_path: Path) -> None:
    """It would have refused to be told of them, and so does the corrected one."""
    with opened(tmp_path, fresh("reinforce-lagrangian"), snapshot_every=4, keep_journal=1000) as learner:
        told = tell_some(learner, 20)
        effect = learner.retract([told[12][0].id])
        assert effect.left_out == tuple(range(14, 21))
        assert bits(learner) == plain("reinforce-lagrangian", told[:12])
        status = learner.status
        assert (status.told, status.retracted, status.left_out, status.given_up) == (12, 1, 7, 0)
        one_more(learner)
        last = learner.retract([told[12][0].id, told[3][0].id], dry_run=True)
        assert set(last.left_out) == {*range(5, 13), *range(14, 22)}
        undone = learner.undo(effect.event)
        assert undone.left_out == (21,)
        assert bits(learner) == plain("reinforce-lagrangian", told)
    found = inspect(tmp_path / "it").status
    assert found is not None and (found.told, found.left_out) == (20, 1)


def test_outcomes_are_chosen_by_id_time_and_author(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(1_000_000_000, 2_000_000_000, 1_000_000))
    monkeypatch.setattr("tightrope.ops.engine._now", lambda: next(clock))  # two readings an episode: 1000 s, 1001 s, …
    with opened(tmp_path, fresh("uniform"), keep_journal=1000) as learner:
        told = [one for k in range(12) for one in [one_more_by(learner, "sensor 1" if k % 3 else "sensor 2")]]
        numbers = [number_of(episode) for episode in told]

        def chosen(**conditions: Any) -> list[int]:
            return list(learner.retract(**conditions, dry_run=True).episodes)

        assert chosen(told_by="sensor 2") == numbers[::3]
        assert chosen(since=1007.0) == numbers[3:]  # told at 1001, 1003, …
        assert chosen(until=datetime.fromtimestamp(1007, UTC)) == numbers[:3]
        assert chosen(since=1003.0, until=1019.0, told_by="sensor 2") == [numbers[3], numbers[6]]
        assert chosen(episodes=[told[5].id, told[1].id]) == [numbers[1], numbers[5]]
        assert learner.status.event == 12 and learner.corrections() == ()
        for conditions, words in (
            ({}, "no condition is given"),
            ({"told_by": "nobody"}, "no outcome in the journal meets these conditions"),
            ({"since": datetime(2026, 1, 1)}, "without a time zone"),
            ({"episodes": [told[1].id], "told_by": "sensor 2"}, "episode 2 cannot be retracted"),
            ({"episodes": [learner.ask().id]}, "episode 13 cannot be retracted: it was not told"),
            ({"told_by": "sensor 2", "reason": "a\nb"}, "reason is"),
        ):
            with pytest.raises(InvalidInputError, match=words):
                learner.retract(**conditions)
        with pytest.raises(UnknownEpisodeError):
            learner.retract(["1-00000000"])
        learner.retract(told_by="sensor 2", reason="offset", author="alice")
        with pytest.raises(ConflictError, match="retracted already"):
            learner.retract(told_by="sensor 2")
        assert learner.tell(told[0].id, **played(learner, told[0])) == "already"
        [one] = learner.corrections()
        assert (one.author, one.reason, one.episodes) == ("alice", "offset", tuple(numbers[::3]))


def one_more_by(learner: DurableLearner, author: str) -> OpenEpisode:
    episode = learner.ask()
    learner.tell(episode.id, **played(learner, episode), author=author)
    return episode


def during(monkeypatch: pytest.MonkeyPatch, at: int, call: Callable[[], None]) -> None:
    """Make a call while a correction is prepared, when it replays its event number `at`."""
    apply, count = Corrected.apply, iter(range(1, 10**6))

    def applied(self: Corrected, *arguments: Any) -> Any:
        if next(count) == at:
            call()
        return apply(self, *arguments)

    monkeypatch.setattr(Corrected, "apply", applied)


def test_calls_during_a_correction_use_the_old_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path, fresh(), snapshot_every=30, keep_journal=0) as learner:
        told = tell_some(learner, 60)
        old, later = learner.policy.probabilities, list[Told]()

        def meanwhile() -> None:
            assert learner.correcting
            assert learner.status.retracted == 0
            with pytest.raises(ConflictError, match="another correction is in progress"):
                learner.retract(ids(told[:1]))
            first = learner.ask()
            np.testing.assert_array_equal(first.policy.probabilities, old)
            later.append((first, played(learner, first)))
            learner.tell(first.id, **later[0][1])
            later.extend(tell_some(learner, 90))  # writes snapshots, which prune nothing that is needed

        during(monkeypatch, 2, meanwhile)
        learner.retract(ids(told[-4:]))
        assert not learner.correcting
        assert len(later) == 91
        assert bits(learner) == plain("ucpd-practical", [*told[:-4], *later])
    with opened(tmp_path) as learner:
        assert bits(learner) == plain("ucpd-practical", [*told[:-4], *later])


def test_an_interrupted_correction_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path, fresh(), keep_journal=1000) as learner:
        told = tell_some(learner, 60)
        sight = sight_of(learner)
        with monkeypatch.context() as patch:
            during(patch, 40, interrupted)
            with pytest.raises(KeyboardInterrupt):
                learner.retract(ids(told[:5]))
        assert (sight_of(learner), learner.correcting) == (sight, False)
        with monkeypatch.context() as patch:  # the snapshot is written, the event is not
            patch.setattr(SQLite, "commit", interrupted)
            with pytest.raises(KeyboardInterrupt):
                learner.retract(ids(told[:5]))
        assert (learner.directory / "snapshot-61.npz").exists()
        assert sight_of(learner) == sight
        with monkeypatch.context() as patch:
            during(patch, 3, learner.close)
            with pytest.raises(InvalidInputError, match="is closed"):
                learner.retract(ids(told[:5]))
    with opened(tmp_path, keep_journal=1000) as learner:
        assert sight_of(learner) == sight
        learner.retract(ids(told[:5]))
        assert bits(learner) == plain("ucpd-practical", told[5:])


def interrupted(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


def test_a_challenger_that_failed_on_a_retracted_episode_learns_again(tmp_path: Path) -> None:
    with opened(tmp_path, fresh("ucpd"), snapshot_every=3, keep_journal=1000) as learner:
        unknown = learner.watch()
        learner.challenge("other", fresh("ucpd-bandit"))
        tell_some(learner, 3)
        learner.tell(unknown, **story(learner.policy, "full", 99))
        tell_some(learner, 3)
        assert [bool(one.failed) for one in learner.status.standings] == [False, True]
        effect = learner.retract([unknown])
        assert [bool(one.failed) for one in learner.status.standings] == [False, False]
        learner.promote("other")
        with pytest.raises(ConflictError, match=r"\(promote\) could not have happened then: other has failed"):
            learner.undo(effect.event)
        assert learner.status.champion == "other"
    with opened(tmp_path) as learner:
        assert [bool(one.failed) for one in learner.status.standings] == [False, False]


def test_old_corrections_stay_when_the_journal_is_pruned(tmp_path: Path) -> None:
    with opened(tmp_path, fresh(), snapshot_every=4, keep_journal=20) as learner:
        told = tell_some(learner, 12)
        effect = learner.retract(ids(told[2:5]), reason="fault")
        tell_some(learner, 60)
        before, sight = learner.corrections(), sight_of(learner)
        [[first]] = rows(learner, "SELECT min(seq) FROM events WHERE kind = 'tell'")
        assert first > 20
        with pytest.raises(InvalidInputError, match=r"the journal reaches back to event \d+"):
            learner.undo(effect.event)
        with pytest.raises(InvalidInputError, match="told before the journal begins"):
            learner.retract(ids(told[6:7]))
        with pytest.raises(InvalidInputError, match="told before the journal begins"):
            learner.amend(told[6][0].id, **story(told[6][0].policy, "full", 1000))
    with opened(tmp_path) as learner:
        assert (learner.corrections(), sight_of(learner)) == (before, sight)
        assert learner.status.retracted == 3


def test_damaged_corrections_are_detected(tmp_path: Path) -> None:
    with opened(tmp_path, fresh(), snapshot_every=4, keep_journal=8) as learner:
        told = tell_some(learner, 12)
        learner.retract(ids(told[9:10]))
        learner.retract(ids(told[10:11]))
        tell_some(learner, 60)  # their digest in the chain of events cannot be checked any more
    good = (tmp_path / "it" / "journal.sqlite").read_bytes()
    for change, words in (
        ("UPDATE events SET author = 'bob' WHERE seq = 13", "event 13, a correction, is damaged"),
        ("DELETE FROM events WHERE seq = 13", "the correction before event 14 is missing"),
    ):
        (tmp_path / "it" / "journal.sqlite").write_bytes(good)
        with sqlite3.connect(tmp_path / "it" / "journal.sqlite") as sql:
            sql.execute(change)
        with pytest.raises(StorageError, match=words):
            opened(tmp_path)
        assert any(words in damage for damage in inspect(tmp_path / "it").damage)


def test_a_backup_is_restored_to_before_and_after_a_correction(tmp_path: Path) -> None:
    with opened(tmp_path, fresh(), snapshot_every=5, keep_journal=1000) as learner:
        told = tell_some(learner, 24)
        before = bits(learner)
        effect = learner.retract(ids(told[3:9]))
        after = bits(learner)
        tell_some(learner, 12)
    backup(tmp_path / "it", tmp_path / "copy")
    for event, truth, retracted in ((effect.event - 1, before, 0), (effect.event, after, 6)):
        restore(tmp_path / "copy", tmp_path / f"to {event}", event)
        with DurableLearner(tmp_path / f"to {event}") as learner:
            assert bits(learner) == truth
            assert learner.status.retracted == retracted
            shutil.rmtree(learner.directory, ignore_errors=True)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(every=st.integers(1, 50), count=st.integers(2, 400), events=st.integers(0, 5000), age=st.integers(0, 5000))
def test_retention_keeps_the_promised_events_and_few_snapshots(every: int, count: int, events: int, age: int) -> None:
    """As in a directory with a snapshot after every `every` events, and one event per second."""

    class Times:
        last_event = 0

        def time_of(self, seq: int) -> int | None:
            return seq if seq <= self.last_event else None

    journal, kept = Times(), [SnapshotRow(0, b"", b"")]
    for k in range(1, count):
        journal.last_event = last = k * every
        kept.insert(0, SnapshotRow(last, b"", b""))
        retention = Retention(events, last - age)
        kept = kept[:2] + _older(journal, kept[2:], kept[1], retention)  # type: ignore[arg-type]
        promised = max(last - events, last - age - 1, 0)
        assert kept[-1].seq <= promised or kept[-1].seq <= last - every  # all events since then are there
        assert min(one.seq for one in kept) <= max(promised, 0)
    ages = [journal.last_event - one.seq for one in kept]
    for newer, older in pairwise(ages[2:]):
        assert older - newer <= max(SPACING * older, every)
    assert len(kept) <= 4 + 2 * np.log(count * every) / SPACING


def command(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(map(str, arguments)))
    return result.exit_code, result.output


def test_the_commands_retract_undo_and_amend(tmp_path: Path) -> None:
    with opened(tmp_path, fresh("ucpd-bandit")) as learner:
        told = [one_more_by(learner, "sensor 1" if k % 2 else "sensor 2") for k in range(8)]
        before = bits(learner)
    it = tmp_path / "it"
    code, said = command("retract", it, "--told-by", "sensor 1", "--dry-run")
    assert (code, "now retracts 4 episodes: 2, 4, 6, 8" in said) == (0, True), said
    assert "8 told before, 4 after" in said
    assert "dry run: nothing was changed" in said
    code, said = command(
        "retract", it, told[0].id, "--until", "2100-01-01T00:00Z", "--reason", "test", "--author", "bob"
    )
    assert (code, "event 9 retracts 1 episodes: 1" in said) == (0, True), said
    code, said = command("inspect", it)
    assert "1 retracted" in said and "bob" in said and "retracts 1 episodes" in said
    code, said = command("retract", it, "--undo", 9)
    assert (code, "event 10 undoes the correction of event 9" in said) == (0, True), said
    with opened(tmp_path) as learner:
        assert bits(learner) == before
        outcome = played(learner, told[2])
    body = {
        "states": outcome["states"].tolist(),
        "actions": outcome["actions"].tolist(),
        "loss": (outcome["loss"] / 2).tolist(),
        "constraints": {f"constraint {i}": row.tolist() for i, row in enumerate(outcome["constraints"])},
    }
    (tmp_path / "outcome.json").write_text(json.dumps(body))
    code, said = command("amend", it, told[2].id, tmp_path / "outcome.json")
    assert (code, f"event 11 amends episode {told[2].id}" in said) == (0, True), said
    for arguments, words in (
        (("retract", it), "no condition is given"),
        (("retract", it, "--undo", 3), "event 3 is no correction"),
        (("retract", it, "--undo", 11, "--told-by", "x"), "give one or the other"),
        (("retract", it, "--since", "yesterday"), "'yesterday' is not a time"),
        (("retract", it, "--since", "2026-01-01"), "without a time zone"),
        (("amend", it, told[2].id, it), "cannot read"),
        (("amend", it, told[2].id, it / "head"), "is not an outcome"),
    ):
        code, said = command(*arguments)
        assert (code, words in " ".join(said.split())) == (2, True), said
    with opened(tmp_path) as learner:
        assert [one.kind for one in learner.corrections()] == ["retract", "undo", "amend"]


def test_the_service_keeps_events_as_long_as_the_learner() -> None:
    own, served = signature(DurableLearner).parameters, signature(serve).parameters
    assert [own[name].default for name in ("keep_days", "keep_journal", "snapshot_every")] == [
        served[name].default for name in ("keep_days", "keep_journal", "snapshot_every")
    ]
