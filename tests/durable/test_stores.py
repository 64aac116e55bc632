"""What holds for a learner in a directory and in a PostgreSQL database; the first twin is plain learners in memory."""

import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fuzz.durable import CALLS, OPTIONS, number_of, operate, sight_of
from fuzz.twin import Twin, somebody, story
from tests.durable.stories import fresh, one_more, played
from tightrope import ConvergenceError, DurableLearner, InvalidInputError
from tightrope.errors import StorageError
from tightrope.ops import engine, state
from tightrope.ops.sqlite import SQLite
from tightrope.storage.checkpoints import fingerprint

Place = Path | str


def random_call(learner: DurableLearner, twin: Twin, rng: random.Random) -> None:
    """Make a call that is possible, with the twin."""
    what, number = rng.choice(CALLS), rng.randrange(100)
    opened = learner.open_ids()
    if what in ("ask", "watch") and len(opened) == OPTIONS["most_open"]:
        return
    if what in ("tell", "give_up"):
        if not opened:
            return
        id = rng.choice(opened)
        number = number_of(id)
        if what == "tell" and twin.refuses(number):
            return
        if what == "give_up":
            learner.give_up(id)
        else:
            parts = story(twin.given[number] or somebody(0), twin.feedback, number)
            assert learner.tell(id, **parts) == "learned"
            assert learner.tell(id, **parts) == "already"
    elif what == "again" or not twin.can(what, number):
        return
    else:
        operate(learner, what, number)
    twin.do(what, number)


@pytest.mark.parametrize(("name", "seed"), [("ucpd-practical", 1), ("ucpd-bandit", 2), ("uob-reps", 3)])
def test_every_call_has_the_bits_of_plain_learners(place: Place, name: str, seed: int) -> None:
    rng, twin = random.Random(seed), Twin(name)
    learner = DurableLearner(place, Twin(name).champion.learner, **OPTIONS)
    for _ in range(150):
        random_call(learner, twin, rng)
        assert sight_of(learner) == twin.sight()
        if rng.random() < 0.05:
            learner.close()
            learner = DurableLearner(place, **OPTIONS)
            assert sight_of(learner) == twin.sight()
    learner.close()
    assert twin.account.told > 5


def commits_of(learner: DurableLearner, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that grows by the last event of each commit."""
    commit, found = learner.database.commit, list[int]()

    def counted(head: Any) -> None:
        commit(head)
        found.append(head.event)

    monkeypatch.setattr(learner.database, "commit", counted)
    return found


def test_calls_together_are_one_commit(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    twin = fresh()
    with DurableLearner(place, fresh()) as learner, DurableLearner(fresh_place(place), twin) as alone:
        commits, told = commits_of(learner, monkeypatch), learner.status.told
        asked = learner.together([learner.ask for _ in range(5)])
        tells: list[Callable[[], Any]] = []
        for one in asked:
            assert not isinstance(one, Exception)
            tells.append(partial(learner.tell, one.id, **played(learner, one)))
            again = alone.ask()
        outcomes = learner.together([*tells, tells[0], lambda: learner.status.told])
        assert outcomes == ["learned"] * 5 + ["already", told]  # published after the commit
        assert commits == [0, 5]
        for again in alone.open_episodes().values():
            alone.tell(again.id, **played(learner, again))
        assert learner.fingerprint() == alone.fingerprint()
        assert learner.status.told == 5
    with DurableLearner(place) as learner:
        assert learner.status.told == 5


def fresh_place(place: Place) -> Place:
    return place.with_name("other") if isinstance(place, Path) else f"{place}-other"


def test_a_refused_call_changes_nothing_and_the_others_go_on(place: Place) -> None:
    with DurableLearner(place, fresh()) as learner:
        first, second = learner.ask(), learner.ask()
        wrong = played(learner, first) | {"loss": [2.0]}
        refused, unknown, learned = learner.together(
            [
                lambda: learner.tell(first.id, **wrong),
                lambda: learner.tell("9-00000000", **wrong),
                lambda: learner.tell(second.id, **played(learner, second)),
            ]
        )
        assert isinstance(refused, InvalidInputError)
        assert isinstance(unknown, InvalidInputError)
        assert (learned, learner.open_ids()) == ("learned", [first.id])


def test_an_episode_that_cannot_be_learned_undoes_only_itself(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Learners in memory may have learned half of it: they are restored, with the calls before it."""
    apply = state.apply

    def failing(before: Any, event: Any, *given: Any) -> Any:
        new = apply(before, event, *given)
        if event.episode == 2:
            raise ConvergenceError("of this test")
        return new

    with DurableLearner(place, fresh()) as learner:
        episodes = [learner.ask() for _ in range(3)]
        stories = [played(learner, episode) for episode in episodes]
        with monkeypatch.context() as patch:
            patch.setattr(engine, "apply", failing)
            first, failed, third = learner.together(
                [partial(learner.tell, one.id, **parts) for one, parts in zip(episodes, stories, strict=True)]
            )
        assert (first, third) == ("learned", "learned")
        assert isinstance(failed, ConvergenceError)
        assert (learner.status.told, learner.open_ids()) == (2, [episodes[1].id])
        bits = learner.fingerprint()
    with DurableLearner(place) as learner:
        assert (learner.status.told, learner.fingerprint()) == (2, bits)


@pytest.mark.parametrize("at", ["execute", "commit"])
def test_nothing_of_a_failed_commit_is_acknowledged(place: Place, at: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with DurableLearner(place, fresh()) as learner:
        one_more(learner)
        bits, episodes = learner.fingerprint(), [learner.ask() for _ in range(3)]
        tells = [partial(learner.tell, one.id, **played(learner, one)) for one in episodes]
        change, changes = learner.database.execute, list[int]()

        def full(*given: Any) -> None:
            changes.append(1)
            if at == "commit" or len(changes) == 4:
                raise StorageError("full")
            change(*given)

        with monkeypatch.context() as patch:
            patch.setattr(learner.database, at, full)
            assert any(isinstance(one, StorageError) for one in learner.together(tells))
        told = learner.status.told
        assert set(learner.together(tells)) <= {"learned", "already"}
        assert (told, learner.status.told) == (1 if at == "commit" else told, 4)
    with DurableLearner(place) as learner:
        assert learner.status.told == 4
        assert learner.fingerprint() != bits


def test_snapshots_are_pruned_in_both_databases(place: Place) -> None:
    with DurableLearner(place, fresh(), snapshot_every=4, keep_days=0, keep_journal=0) as learner:
        for _ in range(9):
            one_more(learner)
        found = [snapshot.seq for snapshot in learner._store.snapshots()]
        assert found == [8, 4]
        assert learner.database.read_file("snapshot-4.npz") is not None
        assert learner.database.read_file("snapshot-0.npz") is None
        assert learner.database.query("SELECT min(seq) FROM events") == [(5,)]
        learner.snapshot()
        assert [snapshot.seq for snapshot in learner._store.snapshots()] == [9, 8]


def test_a_damaged_event_is_detected_in_both_databases(place: Place) -> None:
    with DurableLearner(place, fresh()) as learner:
        for _ in range(3):
            one_more(learner)
        with learner._store.transaction():
            learner.database.execute("UPDATE events SET author = 'nobody' WHERE seq = 2")
    with pytest.raises(StorageError, match="event 2 is damaged"):
        DurableLearner(place)


def test_sqlite_is_not_shared(tmp_path: Path) -> None:
    with DurableLearner(tmp_path / "it", fresh()) as learner:
        assert isinstance(learner.database, SQLite)
        assert not learner.database.shared
        assert not learner.database.wait(1000.0)
        assert fingerprint(fresh()) == learner.fingerprint()
