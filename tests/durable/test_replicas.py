"""Several replicas of one learner on a PostgreSQL database: each of them has the bits of one that plays alone."""

import os
import random
import signal
import threading
import time
from contextlib import closing
from functools import partial
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
from typer.testing import CliRunner

from fuzz.cluster import Cluster
from fuzz.durable import OPTIONS, sight_of
from fuzz.twin import Twin
from tests.durable.stories import fresh, one_more, played
from tests.durable.test_corrections import bits, during, ids, plain, tell_some
from tests.durable.test_stores import random_call
from tightrope import DurableLearner, InvalidInputError
from tightrope.cli.commands import app
from tightrope.errors import ConflictError, StorageError, TooManyOpenError, UnknownEpisodeError
from tightrope.ops import corrections, engine, postgres, rebuilding, state
from tightrope.ops.postgres import Address, PostgreSQL


@pytest.mark.parametrize(("name", "seed"), [("ucpd-practical", 4), ("uob-reps", 5)])
def test_replicas_that_take_turns_have_the_bits_of_plain_learners(database: str, name: str, seed: int) -> None:
    rng, twin = random.Random(seed), Twin(name)
    replicas = [DurableLearner(database, Twin(name).champion.learner, **OPTIONS) for _ in range(3)]
    for _ in range(150):
        random_call(rng.choice(replicas), twin, rng)
        found = rng.choice(replicas)
        found.refresh()
        assert sight_of(found) == twin.sight()
        if rng.random() < 0.05:
            k = rng.randrange(len(replicas))
            replicas[k].close()
            replicas[k] = DurableLearner(database, **OPTIONS)
    for learner in replicas:
        learner.refresh()
        assert sight_of(learner) == twin.sight()
        learner.close()
    assert twin.account.told > 5


def test_replicas_that_learn_at_once_lose_nothing_and_count_nothing_twice(database: str) -> None:
    """Every episode is told to all replicas, at the same time."""
    replicas = [DurableLearner(database, fresh("uniform"), most_open=100, snapshot_every=7) for _ in range(3)]
    episodes = [replicas[k % 3].ask() for k in range(30)]
    outcomes = {episode.id: played(replicas[0], episode) for episode in episodes}
    answers: list[tuple[str, str]] = []

    def tell_all(learner: DurableLearner, seed: int) -> None:
        ids = list(outcomes)
        random.Random(seed).shuffle(ids)
        answers.extend((id, learner.tell(id, **outcomes[id])) for id in ids)

    threads = [threading.Thread(target=tell_all, args=(learner, k)) for k, learner in enumerate(replicas)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == sorted((id, word) for id in outcomes for word in ("learned", "already", "already"))
    for learner in replicas:
        learner.refresh()
        assert (learner.status.told, learner.status.open) == (30, 0)
        assert learner.fingerprint() == replicas[0].fingerprint()
    for learner in replicas:
        learner.close()


def test_a_transaction_without_changes_keeps_the_end_that_another_replica_wrote(database: str) -> None:
    with DurableLearner(database, fresh("uniform")) as one, DurableLearner(database) as two:
        episodes = [one.ask(), one.ask()]
        outcomes = [played(one, episode) for episode in episodes]
        assert two.tell(episodes[0].id, **outcomes[0]) == "learned"
        with one._store.transaction():  # without catching up, as pruning once did
            pass
        assert one.tell(episodes[1].id, **outcomes[1]) == "learned"
        assert one.status.told == 2


def test_limits_and_keys_hold_across_replicas(database: str) -> None:
    with DurableLearner(database, fresh(), most_open=2) as one, DurableLearner(database, most_open=2) as two:
        first = one.ask(key="a")
        assert two.ask(key="a").id == first.id
        second = two.ask()
        with pytest.raises(TooManyOpenError):
            one.ask()
        two.give_up(first.id)
        with pytest.raises(ConflictError):
            one.tell(first.id, **played(one, first))
        assert one.open_ids() == [second.id]
        one.set_budgets([0.5, 0.5])
        two.refresh()
        assert two.status.budgets.tolist() == [0.5, 0.5]


def test_a_replica_far_behind_continues_from_a_snapshot(database: str) -> None:
    with DurableLearner(database, fresh()) as one, DurableLearner(database, snapshot_every=3, keep_days=0) as two:
        for _ in range(20):
            one_more(two)
        assert two.database.query("SELECT min(seq) > 1 FROM events") == [(True,)]
        assert one.fingerprint() == two.fingerprint()
        one_more(one)
        assert one.fingerprint() == two.fingerprint()


def test_a_replica_killed_while_learning_releases_the_lock(database: str) -> None:
    DurableLearner(database, fresh()).close()
    reading, writing = os.pipe()
    if (pid := os.fork()) == 0:
        try:
            learner = DurableLearner(database)
            episode = learner.ask()
            parts = played(learner, episode)

            def asleep() -> None:
                os.write(writing, episode.id.encode())
                time.sleep(600)

            learner.together([lambda: learner.tell(episode.id, **parts), asleep])
        finally:
            os._exit(1)
    id = os.read(reading, 100).decode()
    with closing(PostgreSQL(database, create=False)) as other:
        locked = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted"
        assert other.query(locked) == [(1,)]
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    with DurableLearner(database) as learner:
        assert (learner.status.told, learner.open_ids()) == (0, [id])
        assert learner.tell(id, **played(learner, learner.open_episodes()[id])) == "learned"


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT, signal.SIGKILL])
def test_a_restarted_database_loses_nothing(how: signal.Signals) -> None:
    with Cluster() as cluster, DurableLearner(cluster.address(), fresh()) as learner:
        one_more(learner)
        episode = learner.ask()
        parts, bits = played(learner, episode), learner.fingerprint()
        cluster.stop(how)
        for _ in range(2):
            with pytest.raises(StorageError):
                learner.tell(episode.id, **parts)
        assert learner.status.told == 1
        cluster.start()
        assert learner.fingerprint() == bits
        assert learner.tell(episode.id, **parts) == "learned"
        assert learner.status.told == 2


def test_a_commit_wakes_only_the_other_replicas(database: str) -> None:
    with DurableLearner(database, fresh()) as one, DurableLearner(database) as two:
        assert one.database.wait(0.0)  # something may have been committed before
        assert not one.database.wait(0.0)
        one.ask()
        assert not one.database.wait(0.05)
        two.ask()
        assert one.database.wait(60.0)


def test_a_database_without_a_learner_is_refused(database: str) -> None:
    with pytest.raises(InvalidInputError, match="contains no learner yet; pass one to create it"):
        DurableLearner(database)
    DurableLearner(database, fresh()).close()
    with pytest.raises(InvalidInputError, match="was made with"):
        DurableLearner(database, fresh("uniform"))


def test_messages_show_no_password(database: str) -> None:
    secret = database.replace("tightrope@", "tightrope:hush@")
    with DurableLearner(secret, fresh()) as learner:
        assert "hush" not in repr(learner)
        assert "schema=test-" in repr(learner)
    with pytest.raises(StorageError, match="nowhere") as error:
        DurableLearner("postgresql://me:hush@nowhere.invalid/it", fresh())
    assert "hush" not in str(error.value)


@pytest.mark.parametrize("password", ["s3cr/et", "s3cr#et", "s3cr?et", "s3cr@et", "s3cr%et"])
def test_a_password_that_is_not_encoded_is_refused_and_not_shown(password: str) -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(InvalidInputError, match="percent-encoded") as error:
        Address.read(f"postgresql://me:{password}@host/db")
    assert "s3cr" not in str(error.value)


def test_a_database_without_an_encoding_is_used_as_utf_8(cluster: Cluster) -> None:
    """Debian makes such databases where no locale is set, as in many containers."""
    with psycopg.connect(cluster.address(), autocommit=True) as sql:
        sql.execute("CREATE DATABASE plain ENCODING 'SQL_ASCII' TEMPLATE template0")
    address = cluster.address().replace("/tightrope?", "/plain?")
    with DurableLearner(address, fresh(), author="Zoë") as learner:
        one_more(learner)
    with DurableLearner(address) as learner:
        assert learner.status.told == 1
        assert learner.database.query("SELECT author FROM events") == [("Zoë",)]


@pytest.mark.parametrize("address", ["postgresql://h/d?schema=a;b", "postgresql://h/d?nonsense=1"])
def test_an_address_that_is_not_valid_is_refused(cluster: Cluster, address: str) -> None:
    with pytest.raises(InvalidInputError, match=r"schema is|address of the database"):
        DurableLearner(address)


def test_the_learner_has_the_name_of_the_schema_or_of_the_database() -> None:
    pytest.importorskip("psycopg")
    names = {text: Address.read(f"postgresql://u:p@h:5432/{text}") for text in ("shop", "shop?schema=north")}
    assert [(one.name, one.schema, str(one)) for one in names.values()] == [
        ("shop", "tightrope", "postgresql://h:5432/shop"),
        ("north", "north", "postgresql://h:5432/shop?schema=north"),
    ]


def test_the_command_line_corrects_a_learner_in_a_database_that_others_use(database: str) -> None:
    with DurableLearner(database, fresh()) as learner:
        told = tell_some(learner, 12)
        done = CliRunner().invoke(app, ["retract", database, told[3][0].id, "--reason", "a sensor", "--author", "Zoë"])
        assert done.exit_code == 0, done.output
        assert "event 13 retracts 1 episodes" in done.output
        [one] = learner.corrections()
        assert (one.reason, one.author, learner.status.told) == ("a sensor", "Zoë", 11)


@pytest.mark.parametrize("command", ["inspect DIR", "migrate DIR", "backup DIR FILE", "export DIR FILE.jsonl"])
def test_commands_for_directories_refuse_a_database_and_show_no_password(command: str) -> None:
    done = CliRunner().invoke(app, command.replace("DIR", "postgresql://me:hush@host/db").split())
    assert done.exit_code == 2
    assert "address of a database" in done.output and "pg_dump" in done.output
    assert "hush" not in done.output


def test_another_format_is_refused(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with DurableLearner(database, fresh()) as learner, learner._store.transaction():
        learner.database.execute("UPDATE facts SET value = '9' WHERE name = 'format'")
    with pytest.raises(InvalidInputError, match="has journal format 9, which a later version wrote"):
        DurableLearner(database)


def test_a_server_that_syncs_nothing_is_refused(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    DurableLearner(database, fresh()).close()
    query = PostgreSQL.query

    def unsafe(self: PostgreSQL, sql: str, *values: Any) -> Any:
        return query(self, sql.replace("current_setting('fsync')", "'off'"), *values)

    monkeypatch.setattr(PostgreSQL, "query", unsafe)
    with pytest.raises(StorageError, match="fsync = off"):
        DurableLearner(database)


def settings(database: str, **values: int | str) -> str:
    """Return the address with settings of the server for its connections."""
    given = quote(" ".join(f"-c {name}={value}" for name, value in values.items()))
    return f"{database}&options={given}"


def test_a_replica_suspended_with_the_lock_cannot_commit_later(database: str) -> None:
    """As a paused virtual machine: the server disconnects it, and another replica has told the episode meanwhile."""
    with DurableLearner(database, fresh()) as learner:
        episode = learner.ask()
        reading, writing = os.pipe()
        if (pid := os.fork()) == 0:
            try:
                with DurableLearner(settings(database, idle_in_transaction_session_timeout=300)) as child:
                    parts = played(child, child.open_episodes()[episode.id])

                    def stopped() -> None:
                        os.kill(os.getpid(), signal.SIGSTOP)

                    told, _ = child.together([lambda: child.tell(episode.id, **parts), stopped])
                    again = child.tell(episode.id, **parts)
                    words = f"{type(told).__name__} {again} {child.status.told} {child.fingerprint().hex()}"
                    os.write(writing, words.encode())
            finally:
                os._exit(1)
        os.waitpid(pid, os.WUNTRACED)  # it is stopped, with the lock
        assert learner.tell(episode.id, **played(learner, episode)) == "learned"
        os.kill(pid, signal.SIGCONT)
        os.waitpid(pid, 0)
        assert os.read(reading, 2**20).decode() == f"StorageError already 1 {learner.fingerprint().hex()}"
        assert learner.status.told == 1


def test_a_long_step_keeps_the_connection(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """While it replays the journal, while it learns what others learned, and while it learns many outcomes at once."""
    address = settings(database, idle_in_transaction_session_timeout=400)
    with DurableLearner(database, fresh("uniform")) as fast, DurableLearner(address) as slow:
        for _ in range(10):
            one_more(fast)
        episodes = [fast.ask() for _ in range(10)]
        outcomes = [played(fast, episode) for episode in episodes]
        monkeypatch.setattr(postgres, "ALIVE_EVERY", 0.0)
        apply = state.apply

        def slept(*arguments: Any) -> Any:
            time.sleep(0.1)
            return apply(*arguments)

        monkeypatch.setattr(engine, "apply", slept)
        monkeypatch.setattr(corrections, "apply", slept)
        tells = [partial(slow.tell, episode.id, **parts) for episode, parts in zip(episodes, outcomes, strict=True)]
        assert slow.together(tells) == ["learned"] * 10
        with DurableLearner(address) as opened:
            assert opened.status.told == 20


def test_a_commit_whose_answer_is_lost_is_found_by_the_next_call(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server commits, and the connection breaks before its answer arrives."""
    with DurableLearner(database, fresh()) as learner, DurableLearner(database) as other:
        episode = learner.ask()
        parts, send = played(learner, episode), PostgreSQL._send

        def broken(self: PostgreSQL, *more: Any) -> Any:
            answer = send(self, *more)
            if more and more[-1][0] == "COMMIT":
                monkeypatch.undo()
                self._sql.close()
                raise psycopg.OperationalError("server closed the connection unexpectedly")
            return answer

        monkeypatch.setattr(PostgreSQL, "_send", broken)
        with pytest.raises(StorageError, match="closed the connection"):
            learner.tell(episode.id, **parts)
        assert other.tell(episode.id, **parts) == "already"
        assert learner.tell(episode.id, **parts) == "already"
        assert learner.status.told == other.status.told == 1
        assert learner.fingerprint() == other.fingerprint()


def test_a_second_correction_at_the_same_time_is_refused(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"keep_journal": 1000}
    with DurableLearner(database, fresh(), **options) as one, DurableLearner(database, **options) as two:  # type: ignore[arg-type]
        told = tell_some(one, 12)
        with monkeypatch.context() as patch:
            patch.setattr(rebuilding, "LAST", 0)  # nothing is left to be replayed with the lock

            def retract() -> None:
                two.retract(ids(told[:1]))

            during(patch, 3, retract)
            with pytest.raises(ConflictError, match="another replica made a correction meanwhile"):
                one.retract(ids(told[5:6]))
        assert bits(one) == bits(two) == plain("ucpd-practical", told[1:])
        one.retract(ids(told[5:6]))
    with DurableLearner(database) as learner:
        assert bits(learner) == plain("ucpd-practical", told[1:5] + told[6:])


def test_a_correction_whose_events_another_replica_deletes_is_refused(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with DurableLearner(database, fresh(), keep_journal=1000) as one, DurableLearner(database, keep_journal=0) as two:
        told = tell_some(one, 12)
        with monkeypatch.context() as patch:
            patch.setattr(rebuilding, "LAST", 0)
            patch.setattr(rebuilding, "BATCH", 2)

            def delete() -> None:
                for _ in range(3):
                    tell_some(two, 3)
                    two.snapshot()

            during(patch, 2, delete)
            with pytest.raises(ConflictError, match="another replica deleted old events meanwhile"):
                one.retract(ids(told[1:2]))
        assert (one.status.retracted, one.corrections()) == (0, ())
        one_more(one)
        two.refresh()
        assert bits(one) == bits(two)


def test_times_are_those_of_the_database_whatever_the_clocks_of_replicas_say(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replica whose clock is an hour ahead would take all open episodes for expired."""
    with (
        DurableLearner(database, fresh(), expire_after=600.0) as one,
        DurableLearner(database, expire_after=600.0) as two,
    ):
        first = one.ask()
        one_more(one)
        [[before]] = one.database.query("SELECT max(time) FROM events")
        true = time.time_ns
        monkeypatch.setattr(time, "time_ns", lambda: true() + 3_600_000_000_000)
        assert two.expire() == []
        one_more(two)
        [[after]] = two.database.query("SELECT max(time) FROM events")
        assert before < after < before + 600e6
        assert two.open_ids() == [first.id]


def test_a_database_whose_end_was_lost_is_continued_from_what_it_has(database: str) -> None:
    """As after a failover to a server that had not received the last commits, on a connection that stayed open."""
    with DurableLearner(database, fresh()) as learner, DurableLearner(database) as other:
        one_more(learner)
        bits_before, lost = learner.fingerprint(), one_more(learner)
        other.refresh()
        store = learner._store
        with store.transaction():
            for statement in ("DELETE FROM events WHERE seq = 2", "DELETE FROM episodes WHERE number = 2"):
                store.database.execute(statement)
        with closing(PostgreSQL(database, create=False)) as admin:
            admin._sql.execute("UPDATE head SET event = 1, episode = 1")
        assert other.fingerprint() == bits_before
        with pytest.raises(UnknownEpisodeError):
            learner.tell(lost.id, **played(learner, lost))
        one_more(other)
        assert (learner.fingerprint(), learner.status.told) == (other.fingerprint(), 2)
    with DurableLearner(database) as learner:
        assert learner.status.told == 2


@pytest.mark.parametrize("isolation", ["repeatable\\ read", "serializable"])
def test_the_default_isolation_of_the_server_does_not_matter(database: str, isolation: str) -> None:
    address = settings(database, default_transaction_isolation=isolation)
    replicas = [DurableLearner(address, fresh("uniform"), most_open=100) for _ in range(2)]

    def tell_some_more(learner: DurableLearner) -> None:
        for _ in range(30):
            one_more(learner)

    threads = [threading.Thread(target=tell_some_more, args=(learner,)) for learner in replicas]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for learner in replicas:
        learner.refresh()
        assert learner.status.told == 60
        learner.close()
