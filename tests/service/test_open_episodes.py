"""Episodes that are opened and never closed: repeated calls, lifetimes, and what shows them."""

from pathlib import Path
from time import time

import pytest

from tests.service.running import Running
from tests.service.test_service import WEEK, metrics
from tightrope import DurableLearner, load_problem, make_learner
from tightrope.errors import TooManyOpenError
from tightrope.ops import engine
from tightrope.ops import server as server_module


class Clock:
    """The clock of durable learners, set by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds = 1e9
        monkeypatch.setattr(engine, "_now", lambda: round(1e6 * self.seconds))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def test_asking_again_with_the_same_key_returns_the_same_episode(running: Running) -> None:
    at = "/learners/machine/ask"
    first, again, other = (running.send("POST", at, **{"Idempotency-Key": key}).body for key in ("a", "a", "b"))
    assert first == again != other
    assert running.of("/state")["open"] == 2
    running.tell(first["episode"], WEEK)
    assert running.send("POST", at, **{"Idempotency-Key": "a"}).body != first  # it is not open any more
    answer = running.send("POST", at, **{"Idempotency-Key": "x" * 101})
    assert (answer.status, answer.kind) == (422, "refused")
    document = running.get("/openapi.json").body["paths"]["/learners/{name}/ask"]["post"]
    assert [(one["in"], one["name"]) for one in document["parameters"]][1:] == [("header", "Idempotency-Key")]


@pytest.mark.parametrize("key", ["", "two words", "a" * 101, "\xe9"])
def test_a_key_that_the_document_does_not_allow_is_refused(running: Running, key: str) -> None:
    refused = running.send("POST", "/learners/machine/ask", **{"Idempotency-Key": key})
    assert (refused.status, refused.kind) == (422, "refused")
    assert running.of("/episodes")["open"] == []


def test_expired_episodes_make_room_and_are_counted(tmp_path: Path, machine: Path, clock: Clock) -> None:
    made = make_learner("uniform", load_problem(machine), episodes=100)
    with DurableLearner(tmp_path / "it", made, most_open=2, expire_after=60) as learner:
        first = learner.ask().id
        clock.seconds += 40
        second = learner.ask().id
        clock.seconds += 20
        assert learner.expire() == []  # the first is exactly 60 s old
        with pytest.raises(TooManyOpenError):
            learner.ask()
        clock.seconds += 1
        third = learner.ask().id  # takes the place of the first
        assert learner.open_ids() == [second, third]
        assert learner.give_up(first) == "already"
        clock.seconds += 40
        assert learner.expire() == [second]
        assert (learner.status.expired, learner.status.given_up, learner.status.open) == (2, 2, 1)
    with DurableLearner(tmp_path / "it") as learner:  # without a lifetime nothing expires
        clock.seconds += 1e9
        assert learner.expire() == []
        assert (learner.status.expired, learner.open_ids()) == (0, [third])


def test_the_service_gives_up_expired_episodes_by_itself(
    tmp_path: Path, machine: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "MAINTAIN_EVERY", 0.001)
    with Running(tmp_path / "machine", machine, expire_after=60) as running:
        lost = running.ask()
        clock.seconds += 61
        while running.of("/episodes")["open"]:
            pass
        state = running.of("/state")
        assert (state["open"], state["given_up"], state["expired"]) == (0, 1, 1)
        found, learner = metrics(running), ("learner", "machine")
        assert found["tightrope_episodes_expired_total", learner] == 1
        assert found["tightrope_episodes_open_oldest_seconds", learner] == 0
        assert running.tell(lost, WEEK).kind == "conflict"
        assert running.get(f"/learners/machine/policy?episode={lost}").kind == "unknown-episode"


def test_open_episodes_are_listed_with_their_times(tmp_path: Path, machine: Path) -> None:
    began = time()
    with Running(tmp_path / "machine", machine) as running:
        episodes = [running.ask(), running.send("POST", "/learners/machine/watch", {}).body["episode"]]
        listed = running.of("/episodes")
        assert listed["open"] == episodes
        assert began - 1 < listed["since"][0] <= listed["since"][1] < time() + 1
        assert metrics(running)["tightrope_episodes_open_oldest_seconds", ("learner", "machine")] >= 0
    with Running(tmp_path / "machine") as running:
        assert running.of("/episodes")["since"] == pytest.approx(listed["since"], abs=0.5)


def test_metrics_say_whether_a_learner_is_ready_and_how_much_space_is_left(running: Running) -> None:
    learner = ("learner", "machine")
    assert metrics(running)["tightrope_ready", learner] == 1
    assert metrics(running)["tightrope_disk_free_bytes", learner] > 0
    assert metrics(running)["tightrope_trouble", learner] == 0
    served = running.server.learners["machine"]
    served.ready, served.disk_error = False, "no space left"
    try:
        assert metrics(running)["tightrope_ready", learner] == 0
    finally:
        served.ready = True
    assert metrics(running)["tightrope_trouble", learner] == 1
