"""Several replicas of one learner on a PostgreSQL database: each of them has the bits of one that plays alone."""

import os
import random
import signal
import threading
import time
from contextlib import closing
from typing import Any

import pytest

from fuzz.cluster import Cluster
from fuzz.durable import OPTIONS, sight_of
from fuzz.twin import Twin
from tests.durable.stories import fresh, one_more, played
from tests.durable.test_stores import random_call
from tightrope.durable import DurableLearner
from tightrope.errors import ConflictError, InvalidInputError, StorageError, TooManyOpenError
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


def test_a_transaction_that_looked_at_nothing_new_leaves_the_end_where_another_replica_put_it(database: str) -> None:
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


def test_a_replica_killed_while_it_learns_hands_the_lock_on(database: str) -> None:
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


def test_other_replicas_are_woken_and_this_one_is_not(database: str) -> None:
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
