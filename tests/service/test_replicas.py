"""Several services on one PostgreSQL database: every one of them answers everything."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from threading import Thread
from time import sleep
from typing import Any

import pytest

from fuzz.cluster import Cluster
from fuzz.replicas import Disturbed
from tests.durable.conftest import cluster as cluster
from tests.durable.conftest import database as database
from tests.service.running import Running
from tests.service.test_service import WEEK, served
from tightrope import DurableLearner


def until(found: Callable[[], bool]) -> None:
    """Wait until something holds; the test ends by its own time limit if it never does."""
    while not found():
        sleep(0.01)


def test_replicas_answer_for_one_another(database: str, machine: Path) -> None:
    with Running(database, machine) as one, Running(database, machine) as two:
        assert one.name == two.name == database.rpartition("schema=")[2]
        asked = one.ask()
        acted = two.get(f"/learners/{two.name}/act?state=0&episode={asked}")  # it may not have heard of it yet
        assert acted.status == 200
        assert two.tell(asked, WEEK).body["answer"] == "learned"
        assert one.tell(asked, WEEK).body["answer"] == "already"
        until(lambda: bool(one.of("/state")["told"] == 1))
        assert one.of("/spending") == two.of("/spending")
        assert one.of("/policy") == two.of("/policy")
        other = two.ask()
        until(lambda: bool(one.of("/episodes")["open"] == [other]))
        budgets = {"budgets": {"technician": 3.0}}
        assert one.send("PUT", f"/learners/{one.name}/budgets", budgets).status == 200
        until(lambda: bool(two.of("/spending")[0]["budget"] == 3.0))
        assert one.send("POST", f"/learners/{one.name}/episodes/{other}/give-up").body["answer"] == "given up"
        until(lambda: bool(two.of("/episodes")["open"] == []))
        assert one.get("/metrics").status == two.get("/ready").status == 200
    with Running(database) as again:
        assert again.tell(asked, WEEK).body["answer"] == "already"


def test_the_other_replica_goes_on_when_one_is_closed(database: str, machine: Path) -> None:
    with Running(database, machine) as one:
        with Running(database) as two:
            asked = two.ask()
        assert one.tell(asked, WEEK).body["answer"] == "learned"


@pytest.mark.parametrize("place", ["sqlite", "postgresql"])
def test_tells_that_wait_share_a_commit(
    place: str, tmp_path: Path, machine: Path, request: pytest.FixtureRequest
) -> None:
    """The writer is busy until all of them wait."""
    where = tmp_path / "it" if place == "sqlite" else request.getfixturevalue("database")
    with Running(where, machine) as running:
        learner, commits, answers = served(running).learner, list[int](), list[Any]()
        commit = learner.database.commit

        def counted(head: Any) -> None:
            commits.append(head.event)
            commit(head)

        episodes = [running.ask() for _ in range(20)]
        learner.database.commit = counted  # type: ignore[method-assign]
        threads = [
            Thread(target=lambda id=id: answers.append(running.tell(id, WEEK).body["answer"])) for id in episodes
        ]
        with learner._lock:
            for thread in threads:
                thread.start()
            until(lambda: served(running).waiting == 20)
        for thread in threads:
            thread.join()
        assert answers == ["learned"] * 20
        assert len(commits) <= 2, "one for the first, and one for all that came meanwhile"
        assert running.of("/state")["told"] == 20
    with DurableLearner(where) as learner:
        assert learner.status.told == 20


def test_killed_replicas_and_a_restarted_database_lose_nothing(tmp_path: Path, cluster: Cluster) -> None:
    """`python -m fuzz.replicas` does the same for longer."""
    with Cluster() as own, closing(Disturbed(tmp_path, own, n_replicas=2, n_clients=2, seed=7)) as disturbed:
        found = disturbed.run(kills=3, restarts=1)
    assert found["learned"] > 0
