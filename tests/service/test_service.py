"""The endpoints: numbers computed by hand, and the bits of a plain learner."""

import os
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from time import monotonic, sleep
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import numpy as np
import openapi_spec_validator
import pytest
from msgspec import structs
from prometheus_client.parser import text_string_to_metric_families

from fuzz.twin import with_one_more
from tests.durable.conftest import MEMORY
from tests.service.running import Running
from tightrope import (
    ConvergenceError,
    DurableLearner,
    Episode,
    InvalidInputError,
    LayeredSpace,
    load_problem,
    make_learner,
)
from tightrope.errors import StorageError
from tightrope.ops import corrections
from tightrope.ops.api import Tell, Values
from tightrope.ops.auth import Limits
from tightrope.ops.http import MOST_CONNECTIONS
from tightrope.ops.inputs import ProblemTables, Translator
from tightrope.ops.metrics import Metrics
from tightrope.ops.served_learner import MOST_RECORDS, ServedLearner
from tightrope.ops.server import Address, NewLearner, Server, token_of
from tightrope.ops.state import State
from tightrope.ops.state import apply as apply_event
from tightrope.ops.status import BudgetUnits
from tightrope.service import Client, ServiceError
from tightrope.storage import checkpoints

STATES: list[int | str] = ["good", "good", "worn", "good", "worn", "broken", "good"]
ACTIONS: list[int | str] = ["run", "run", "service", "run", "run", "repair", "run"]
WEEK = {"states": STATES, "actions": ACTIONS, "scenario": 1}


def test_an_episode_is_told_in_names_and_units(running: Running) -> None:
    episode = running.ask()
    answer = running.tell(episode, WEEK)
    assert (answer.status, answer.body) == (200, {"episode": episode, "answer": "learned"})
    state = running.of("/state")
    assert [state[key] for key in ("asked", "open", "told", "given_up", "loss_unit")] == [1, 0, 1, 0, "euros"]
    assert state["loss"] == pytest.approx(-100 * 4 + 20 - 40 + 60)  # as loss.csv has it
    [technician] = running.of("/spending")
    assert (technician["name"], technician["unit"]) == ("technician", "hours")
    assert (technician["budget"], technician["spent"]) == pytest.approx((2, 2 + 6))
    assert technician["share"] == pytest.approx(4)
    assert state["spending"] == [technician]


def test_the_learner_has_the_bits_of_a_plain_one(running: Running, machine: Path) -> None:
    problem = load_problem(machine)
    twin = make_learner("ucpd-practical", problem, episodes=1000)
    for k in range(5):
        episode = running.ask()
        states = [problem.space.state_number(f"{name}, step {i}") for i, name in enumerate(STATES)]
        assert running.tell(episode, {**WEEK, "scenario": k % 3 + 1}).status == 200
        actions = [problem.action_names.index(name) for name in ACTIONS]
        end = [problem.space.n_states - 1]
        twin.observe(Episode(states + end, actions, problem.losses.scenarios[k % 3], problem.constraints.mean))  # type: ignore[attr-defined]
    folder = served(running).place
    running.__exit__()
    with DurableLearner(folder) as learner:
        assert learner.fingerprint() == checkpoints.fingerprint(twin)


def test_an_episode_told_twice_counts_once(running: Running) -> None:
    episode, other = running.ask(), running.ask()
    assert running.of("/episodes")["open"] == [episode, other]
    assert running.tell(episode, WEEK).body["answer"] == "learned"
    assert running.of("/episodes")["open"] == [other]
    assert running.tell(episode, WEEK).body["answer"] == "already"
    assert running.tell(episode, {**WEEK, "scenario": 2}).kind == "conflict"
    give_up = f"/learners/{running.name}/episodes/{{}}/give-up"
    assert running.send("POST", give_up.format(episode)).kind == "conflict"
    assert [running.send("POST", give_up.format(other)).body["answer"] for _ in range(2)] == ["given up", "already"]
    assert running.tell(other, WEEK).kind == "conflict"
    assert running.tell("7-nobody", WEEK).kind == "unknown-episode"
    assert running.of("/state")["told"] == 1


@pytest.fixture(scope="module")
def unchanged(machine: Path) -> Iterator[Running]:
    """A service that no test changes."""
    memory = TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None)
    with memory as folder, Running(Path(folder, "machine"), machine) as running:
        yield running


@pytest.mark.parametrize(
    ("told", "kind", "words"),
    [
        (b"{", "malformed", "Input data was truncated"),
        (b"\xff\xfe", "malformed", ""),
        ({"states": STATES}, "malformed", "missing required field `actions`"),
        ({**WEEK, "luck": 3}, "malformed", "unknown field `luck`"),
        ({**WEEK, "states": STATES[1:]}, "refused", "an episode has 7 of each"),
        ({**WEEK, "states": ["good"] * 6 + ["rusty"]}, "refused", "there is no state 'rusty'"),
        ({**WEEK, "states": ["worn", *STATES[1:]]}, "refused", "no states are called 'worn' at step 0"),
        ({**WEEK, "actions": ["fly"] * 7}, "refused", "there is no action 'fly'"),
        ({**WEEK, "actions": ["repair", *ACTIONS[1:]]}, "refused", "step 0 of the trajectory cannot happen"),
        ({**WEEK, "scenario": 4}, "refused", "3 losses are recorded"),
        ({**WEEK, "scenario": None}, "refused", "loss is missing"),
        ({**WEEK, "loss": [0] * 56}, "refused", "both loss and scenario"),
        ({**WEEK, "scenario": None, "loss": [0] * 7}, "refused", "one for every move, 56"),
        ({**WEEK, "scenario": None, "loss": [61] * 56}, "refused", "a loss is 61; these units are for -100 to 60"),
        ({**WEEK, "scenario": None, "loss": {"good": {"run": 0}}}, "refused", "has no value for 'service' in 'good"),
        ({**WEEK, "scenario": None, "loss": {"good": {"repair": 0}}}, "refused", "'repair' is no action of 'good"),
        ({**WEEK, "constraints": {"fuel": [0] * 56}}, "refused", "there is no budget 'fuel'"),
        (
            {**WEEK, "constraints": {"technician": [7] * 56}},
            "refused",
            "technician is 7 hours in a move; it can be at most 6 hours",
        ),
    ],
)
def test_invalid_outcomes_are_refused_and_change_nothing(running: Running, told: Any, kind: str, words: str) -> None:
    episode = running.ask()
    answer = running.tell(episode, told)
    assert answer.kind == kind
    assert words in answer.body["detail"]
    assert "add the step" not in answer.body["detail"]  # in a path it is known
    assert running.of("/episodes")["open"] == [episode]
    assert running.of("/state")["told"] == 0


def test_the_error_of_a_large_use_is_in_the_units_of_its_budget() -> None:
    """The budgets of 4 steps may sum to 4; delay takes 3 of them, and 10 litres are 1."""
    space, budgets = LayeredSpace.dense([1, 1, 1, 1, 1], 1), BudgetUnits(("fuel", "delay"), (10.0, 2.0), ("litres", ""))
    translator = Translator(space, "full", budgets, ProblemTables.none(space.n_tuples))
    translator.refuse_beyond(np.array([1.0, 3.0]), 4, ["fuel"])
    with pytest.raises(InvalidInputError, match="fuel is 15 litres; it can be at most 10 litres, given the other"):
        translator.refuse_beyond(np.array([1.5, 3.0]), 4, ["fuel"])
    with pytest.raises(InvalidInputError, match="delay is 6; it can be at most 5, given the other budgets"):
        translator.refuse_beyond(np.array([1.5, 3.0]), 4, ["fuel", "delay"])


def test_a_loss_by_name_equals_that_of_the_table(running: Running, machine: Path) -> None:
    translator = served(running).translator
    by_name: dict[str, dict[str, float]] = {
        "good": {"run": -100, "service": 20}, "worn": {"run": -40, "service": 20}, "broken": {"stand": 30, "repair": 60}
    }  # fmt: skip
    hours: Values = {
        "good": {"run": 0, "service": 2},
        "worn": {"run": 0, "service": 2},
        "broken": {"stand": 0, "repair": 6},
    }
    one = translator.outcome(Tell(STATES, ACTIONS, scenario=1))
    other = translator.outcome(Tell([*STATES, "end"], ACTIONS, loss=by_name, constraints={"technician": hours}))
    for name, value in one.items():
        np.testing.assert_allclose(value, other[name], atol=1e-15)


def test_a_learner_with_bandit_feedback_is_told_the_path(tmp_path: Path, machine: Path) -> None:
    with Running(tmp_path / "it", machine, "ucpd-bandit") as running:
        costs, hours = [-100, -100, 20, -100, -40, 60, -100], [0, 0, 2, 0, 0, 6, 0]
        told = {"states": STATES, "actions": ACTIONS, "loss": costs, "constraints": {"technician": hours}}
        episodes = running.ask(), running.ask()
        assert running.tell(episodes[0], told).status == 200
        assert running.tell(episodes[1], WEEK).status == 200  # the tables contain the values along the path, too
        state = running.of("/state")
        assert (state["loss"], state["spending"][0]["spent"]) == pytest.approx((-360 * 2, 16))


def test_an_action_is_drawn_from_the_policy_of_its_episode(running: Running) -> None:
    episode = running.ask()
    for _ in range(3):
        assert running.tell(running.ask(), WEEK).status == 200
    before, now = running.of(f"/policy?episode={episode}"), running.of("/policy")
    assert set(before["probability"]) == {0.5}
    assert before["probability"] != now["probability"]
    assert (before["state_name"][0], before["action_name"][0]) == ("good, step 0", "run")
    for table, query in ((before, f"&episode={episode}"), (now, "")):
        acted = running.of(f"/act?state={quote('worn, step 1')}{query}")
        assert (acted["state"], acted["state_name"]) == (2, "worn, step 1")
        rows = zip(table["state"], table["action"], table["probability"], strict=True)
        assert acted["probability"] == {(s, a): p for s, a, p in rows}[2, acted["action"]]
        assert acted["action_name"] in ("run", "service")
    assert running.get(f"/learners/{running.name}/act?state=0&episode=9-x").kind == "unknown-episode"
    assert running.get(f"/learners/{running.name}/act").kind == "malformed"
    assert running.get(f"/learners/{running.name}/act?state=end").kind == "refused"
    assert running.get(f"/learners/{running.name}/act?state=worn").kind == "refused"


def test_names_of_digits_are_not_numbers(tmp_path: Path, machine: Path) -> None:
    """The name of state 0 is the last number, and so on backwards."""
    problem = load_problem(machine)
    n = problem.space.n_states
    backwards = replace(problem, state_names=[str(n - 1 - state) for state in range(n)])
    with DurableLearner(tmp_path / "it", make_learner("uniform", backwards, episodes=9), problem=backwards) as learner:
        ProblemTables.of(backwards).write(learner.database)
    with Running(tmp_path / "it") as running:
        client = Client(running.server.address, "it")
        for acted in (client.act(0), running.of("/act?number=0")):
            assert (acted["state"], acted["state_name"]) == (0, str(n - 1))
        with pytest.raises(ServiceError, match=f"name of another state; write number=0 or number={n - 1}"):
            client.act("0")
        assert running.get(f"/learners/it/act?state={n}").kind == "refused"
        path = [problem.space.state_number(f"{name}, step {i}") for i, name in enumerate(STATES)]
        names: list[int | str] = [str(n - 1 - state) for state in path]
        numbers: list[int | str] = [*path]
        translator = served(running).translator
        assert translator.outcome(Tell(names, ACTIONS, scenario=1))["states"][:-1] == path
        assert translator.outcome(Tell(numbers, ACTIONS, scenario=1))["states"][:-1] == path
        with pytest.raises(InvalidInputError, match=f"loss has no value for 'service' in '{n - 1}'"):
            translator.outcome(Tell(names, ACTIONS, loss={str(n - 1): {"run": 1.0}}))


def test_digits_are_a_number_only_in_urls(running: Running) -> None:
    assert running.of("/act?state=2")["state_name"] == running.of("/act?number=2")["state_name"] == "worn, step 1"
    for query in ("", "state=0&number=0", "number=", "number=-1", "number=x", "number=1e9", f"number={'9' * 5000}"):
        assert running.get(f"/learners/{running.name}/act?{query}").kind == "malformed"
    for query in ("state=999", "number=999", f"state={'9' * 5000}"):
        assert running.get(f"/learners/{running.name}/act?{query}").kind == "refused"
    answer = running.tell(running.ask(), {**WEEK, "states": ["0", *STATES[1:]]})
    assert "there is no state '0'" in answer.body["detail"]


def served(running: Running, name: str | None = None) -> ServedLearner:
    return running.server.learners[name or running.name]


def slowly(observe: Callable[[Any], None], begun: Event, go_on: Event) -> Callable[[Any], None]:
    """Return `observe`, delayed until `go_on`."""

    def slow(episode: Any) -> None:
        begun.set()
        go_on.wait()
        observe(episode)

    return slow


def test_readers_do_not_wait_for_learning(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on = Event(), Event()
    learner = served(running).learner._state.learner
    observe = learner.observe

    monkeypatch.setattr(learner, "observe", slowly(observe, begun, go_on))
    episode, answers = running.ask(), []
    telling = Thread(target=lambda: answers.append(running.tell(episode, WEEK)))
    telling.start()
    begun.wait()
    for place in ("act?state=0", f"act?state=0&episode={episode}", "policy", "state", "spending", "episodes", "series"):
        assert running.get(f"/learners/{running.name}/{place}").status == 200
    assert running.get("/metrics").status == running.get("/ready").status == 200
    assert not answers
    go_on.set()
    telling.join()
    assert answers[0].body["answer"] == "learned"


def test_a_stop_waits_for_a_tell_in_progress(tmp_path: Path, machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on, answers = Event(), Event(), []
    with Running(tmp_path / "it", machine) as running:
        learner = served(running).learner._state.learner
        observe = learner.observe
        monkeypatch.setattr(learner, "observe", slowly(observe, begun, go_on))
        episode = running.ask()
        telling = Thread(target=lambda: answers.append(running.tell(episode, WEEK)))
        telling.start()
        begun.wait()
        running.server.stop()
        go_on.set()
    telling.join()
    assert answers[0].body["answer"] == "learned"
    with DurableLearner(tmp_path / "it") as found:
        assert found.status.told == 1


def test_a_stop_does_not_wait_for_a_replay(tmp_path: Path, machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Running(tmp_path / "it", machine) as running:
        for _ in range(6):
            running.tell(running.ask(), WEEK)
    begun, go_on, learnt = Event(), Event(), list[int]()

    def slowly_applied(state: State, event: Any, *arguments: Any) -> State:
        begun.set()
        go_on.wait()
        learnt.append(event.seq)
        return apply_event(state, event, *arguments)

    with monkeypatch.context() as slow:
        slow.setattr(corrections, "apply", slowly_applied)
        running = Running(tmp_path / "it")
        running._opened = lambda: begun.wait()  # type: ignore[method-assign]
        with running:
            assert running.get("/ready").kind == "not-ready"
        go_on.set()
        served(running)._writer.shutdown()
    assert (learnt, running.raised) == ([1], [])
    with DurableLearner(tmp_path / "it") as found:
        assert found.status.told == 6


def test_errors_of_learning_and_of_the_disk_are_reported(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    learner, episode = served(running).learner, running.ask()
    for error, kind, ready in ((ConvergenceError("no"), "cannot-learn", 200), (StorageError("full"), "storage", 503)):

        def fails(*arguments: Any, error: Exception = error, **named: Any) -> None:
            raise error

        with monkeypatch.context() as broken:
            broken.setattr(learner, "tell", fails)
            broken.setattr(learner, "check_disk", fails)
            assert running.tell(episode, WEEK).kind == kind
            assert [running.get("/ready").status for _ in range(3)] == [ready] * 3
            trouble = float(ready == 503)  # until a write succeeds
            assert f'tightrope_trouble{{learner="machine"}} {trouble}' in running.get("/metrics").body
    assert running.tell(episode, WEEK).body["answer"] == "learned"
    assert running.get("/ready").status == 200


def test_the_service_is_ready_again_soon_after_the_disk(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """GET /ready tries the disk again, without any other request."""
    learner, episode = served(running).learner, running.ask()
    before = learner.fingerprint()
    with monkeypatch.context() as broken:
        broken.setattr(learner._store, "append", lambda *event: (_ for _ in ()).throw(StorageError("full")))
        assert running.tell(episode, WEEK).kind == "storage"
    answers = [running.get("/ready").status]
    while answers[-1] == 503:
        answers.append(running.get("/ready").status)
    assert (answers[0], answers[-1]) == (503, 200)
    assert learner.fingerprint() == before
    assert learner.status.event == 0


def test_an_internal_error_is_reported_and_logged(
    running: Running, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(ProblemTables, "own_loss", lambda *arguments: 1 / 0)
        assert running.get(f"/learners/{running.name}/state").kind == "failed"
    assert running.of("/state")["told"] == 0
    running.__exit__()
    assert "ZeroDivisionError" in caplog.text


def test_too_many_open(tmp_path: Path, machine: Path) -> None:
    with Running(tmp_path / "it", machine, most_open=2) as running:
        running.ask()
        running.ask()
        answer = running.send("POST", "/learners/it/ask")
        assert (answer.kind, answer.headers["retry-after"]) == ("too-many-open", "1")


def test_the_number_of_waiting_requests_is_limited(
    tmp_path: Path, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on, most, answers = Event(), Event(), 3, list[Any]()
    with Running(tmp_path / "it", machine, address=Address(limits=Limits(waiting=most))) as running:
        learner = served(running).learner._state.learner
        observe = learner.observe
        monkeypatch.setattr(learner, "observe", slowly(observe, begun, go_on))
        episodes = [running.ask() for _ in range(most + 1)]
        tellers = [Thread(target=lambda id=id: answers.append(running.tell(id, WEEK))) for id in episodes[:most]]
        for teller in tellers:
            teller.start()
        begun.wait()
        until = monotonic() + 60  # far more than it takes
        while served(running).waiting < most and monotonic() < until:
            sleep(0.01)
        try:
            assert served(running).waiting == most
            for refused in (running.tell(episodes[-1], WEEK), running.send("POST", "/learners/it/ask")):
                assert (refused.kind, refused.headers["retry-after"]) == ("busy", "1")
                assert refused.body["detail"] == "3 requests are waiting for it"
            assert running.get("/health").status == running.get("/learners/it/act?number=0").status == 200
        finally:
            go_on.set()
        for teller in tellers:
            teller.join()
        assert [answer.body["answer"] for answer in answers] == ["learned"] * most
        assert running.tell(episodes[-1], WEEK).body["answer"] == "learned"  # none is waiting any more


def test_waiting_requests_leave_connections_for_readers() -> None:
    assert 2 * Limits().waiting <= Limits().requests <= MOST_CONNECTIONS


def test_several_learners_are_served_by_name(tmp_path: Path, machine: Path) -> None:
    problem = load_problem(machine)
    for name in ("one", "the other"):
        DurableLearner(tmp_path / name, make_learner("uniform", problem, episodes=9)).close()
    (tmp_path / "no learner").mkdir()
    with Running(tmp_path) as running:
        assert not running.raised
        assert running.get("/learners").body == {"learners": ["one", "the other"]}
        assert running.send("POST", "/learners/the%20other/ask").status == 200
        asked = [running.get(f"/learners/{quote(name)}/state").body["asked"] for name in ("one", "the other")]
        assert asked == [0, 1]
        assert running.get("/learners/third/state").kind == "unknown-learner"
        episode = running.send("POST", "/learners/one/ask").body["episode"]
        moves = {s: (a, successor) for s, a, successor in reversed(problem.space.tuples.tolist())}
        states, actions = [0], []
        while states[-1] in moves:
            action, successor = moves[states[-1]]
            actions.append(action)
            states.append(successor)
        numbers = {"states": states, "actions": actions, "scenario": 1}
        answer = running.send("POST", f"/learners/one/episodes/{episode}/tell", numbers)
        assert "0 losses are recorded" in answer.body["detail"]  # the learner was made without a problem


def test_serving_an_empty_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"there is no learner in .*--problem"):
        Server(tmp_path / "nowhere", Address())


def test_a_directory_whose_name_is_not_utf8_is_refused(tmp_path: Path, machine: Path) -> None:
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    DurableLearner(folder, make_learner("uniform", load_problem(machine), episodes=9)).close()
    for directory in (tmp_path, folder):
        with pytest.raises(InvalidInputError, match=r"the folder caf\\udce9 is not UTF-8; rename it"):
            Server(directory, Address())


def test_a_learner_that_cannot_be_opened_ends_the_service(tmp_path: Path, machine: Path) -> None:
    with Running(tmp_path / "it", machine) as running:
        running.ask()
    for path in (tmp_path / "it").glob("snapshot-*"):
        path.write_bytes(b"junk")
    with Running(tmp_path / "it") as running:
        pass
    assert "is damaged" in str(running.raised[0])
    assert isinstance(running.raised[0], StorageError)


def test_two_services_cannot_serve_one_learner(running: Running) -> None:
    with Running(served(running).place) as second:
        pass
    assert "belongs to one process at a time" in str(second.raised[0])
    assert running.of("/state")["asked"] == 0


def test_a_restarted_service_continues(tmp_path: Path, machine: Path) -> None:
    with Running(tmp_path / "it", machine) as running:
        told, still_open = running.ask(), running.ask()
        running.tell(told, WEEK)
        before, policy = running.of("/state"), running.of(f"/policy?episode={still_open}")
    with Running(tmp_path / "it") as running:  # without the problem: its tables were kept
        assert running.of("/state") == before
        assert running.of(f"/policy?episode={still_open}") == policy
        assert running.tell(told, WEEK).body["answer"] == "already"
        assert running.tell(still_open, WEEK).body["answer"] == "learned"


def metrics(running: Running) -> dict[tuple[Any, ...], float]:
    """Return the samples by name and labels, as Prometheus reads them."""
    answer = running.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.body)
        for sample in family.samples
    }


def test_prometheus_reads_the_metrics(running: Running) -> None:
    running.tell(running.ask(), WEEK)
    running.get("/nowhere")
    found = metrics(running)
    budget = (("budget", "technician"), ("learner", "machine"), ("unit", "hours"))
    assert found["tightrope_spent", *budget] == 8
    assert found["tightrope_budget", *budget] == 2
    [spent] = running.of("/spending")
    assert spent["price_unit"] == "euros per hour"
    price = (("budget", "technician"), ("learner", "machine"), ("unit", "euros per hour"))
    assert found["tightrope_price", *price] == spent["price"] == running.of("/series")["price"][-1][0] > 0
    assert found["tightrope_episodes_told_total", ("learner", "machine")] == 1
    tell = ("place", "/learners/{name}/episodes/{episode}/tell")
    assert found["tightrope_http_requests_total", ("method", "POST"), tell, ("status", "200")] == 1
    assert found["tightrope_http_request_seconds_count", tell] == 1
    assert found["tightrope_http_request_seconds_bucket", ("le", "+Inf"), tell] == 1
    assert found["tightrope_http_requests_total", ("method", "any"), ("place", "elsewhere"), ("status", "404")] == 1


def test_prometheus_reads_names_with_special_characters() -> None:
    for name in ('a "b"', "a\\b", "a\\nb", "a\nb", "\\", '\\"'):
        counts = {"asked": 0, "told": 0, "given_up": 0, "expired": 0, "open": 0, "epoch": 1}
        units = SimpleNamespace(names=(), units=())
        status = SimpleNamespace(**counts, spending=(), standings=(), trouble="", units=units)
        learner: Any = SimpleNamespace(
            name=name, ready=True, waiting=0, disk_error="", oldest=0.0, free_space=1,
            learner=SimpleNamespace(status=status),
        )  # fmt: skip
        families = text_string_to_metric_families(Metrics([learner]).text().decode())
        samples = [sample for family in families for sample in family.samples if "learner" in sample.labels]
        assert {sample.labels["learner"] for sample in samples} == {name}
        assert len(samples) == 11


def test_metrics_of_challengers(running: Running) -> None:
    at = f"/learners/{running.name}/challengers/doubtful"
    running.send("PUT", at, {"learner": "uniform", "episodes": 9})
    running.tell(running.ask(), WEEK)
    [champion, doubtful] = (("challenger", name) for name in ("ucpd-practical", "doubtful"))
    machine, unit = ("learner", "machine"), ("unit", "hours")
    for playing, epoch in ((champion, 2), (doubtful, 1)):
        found = metrics(running)
        for one in (champion, doubtful):
            assert found["tightrope_champion", one, machine] == (one == playing)
            assert found["tightrope_would_have_spent", ("budget", "technician"), one, machine, unit] == 8
            assert found["tightrope_failed", one, machine] == 0
            assert found["tightrope_weighed", one, machine] == 1
        assert found["tightrope_epoch", machine] == epoch  # falls, and so is no counter
        running.send("POST", f"{at}/promote")
    state = served(running).learner._state
    failed = replace(state.entrants["ucpd-practical"], failed="by a fault")
    served(running).learner._state = state.with_entrant("ucpd-practical", failed)
    running.send("PUT", f"/learners/{running.name}/budgets", {"budgets": {"technician": 3}})
    assert metrics(running)["tightrope_failed", champion, machine] == 1


def test_the_series_stays_short(running: Running) -> None:
    kept, learner = served(running), served(running).learner
    for _ in range(3 * MOST_RECORDS):
        account = with_one_more(learner.status.account, [0.0, 0.0], learner.status.budgets)
        learner._status = structs.replace(learner.status, account=account)
        kept._record()
    assert kept.history.told[-1] == 3 * MOST_RECORDS
    assert MOST_RECORDS / 2 <= len(kept.history.told) <= MOST_RECORDS + 1
    assert len({len(column) for column in structs.astuple(kept.history)}) == 1


def test_every_event_is_recorded_in_the_series(running: Running) -> None:
    """Also events other than a tell: after a promotion the price is that of the new champion."""
    running.tell(running.ask(), WEEK)
    before, series = running.of("/state"), running.of("/series")
    assert (before["event"], series["told"]) == (1, [0, 1])
    at = f"/learners/{running.name}"
    running.send("PUT", f"{at}/budgets", {"budgets": {"technician": 3}})
    running.send("PUT", f"{at}/challengers/other", {"learner": "uniform", "episodes": 9})
    running.send("POST", f"{at}/challengers/other/promote")
    now, later = running.of("/state"), running.of("/series")
    assert (now["event"], later["told"]) == (4, [0, 1])
    assert (before["spending"][0]["price"] > 0, now["spending"][0]["price"]) == (True, 0)
    assert later["allowed"] == [[0.0], [pytest.approx(2)]]  # so far; from now on 3
    assert later["price"] == [series["price"][0], [0.0]]


def test_the_client(running: Running) -> None:
    client = Client(running.server.address, running.name)
    episode = client.ask()
    assert client.act("worn, step 1", episode)["state"] == 2
    assert client.tell(episode, STATES, ACTIONS, scenario=1) == "learned"
    assert client.tell(episode, STATES, ACTIONS, scenario=1) == "already"
    assert client.give_up(client.ask()) == "given up"
    assert client.state()["told"] == 1
    assert len(client.policy()["probability"]) == 36
    with pytest.raises(ServiceError, match="told with another outcome before") as refused:
        client.tell(episode, STATES, ACTIONS, scenario=2)
    assert (refused.value.kind, refused.value.status) == ("conflict", 409)


def test_damaged_tables_are_refused(tmp_path: Path, machine: Path) -> None:
    with Running(tmp_path / "it", machine):
        pass
    tables = tmp_path / "it" / "tables.npz"
    whole = tables.read_bytes()
    for content, words in ((whole[: len(whole) // 2], "cannot be read"), (b"", "cannot be read")):
        tables.write_bytes(content)
        with Running(tmp_path / "it") as running:
            pass
        assert words in str(running.raised[0])


def test_the_units_of_a_learner_cannot_change(tmp_path: Path, machine: Path) -> None:
    """Neither a missing file nor an edited problem changes them."""
    with Running(tmp_path / "it", machine):
        pass
    edited = tmp_path / "machine"
    shutil.copytree(machine, edited)
    losses = (edited / "loss.csv").read_text()
    (edited / "loss.csv").write_text(re.sub(r"(?m)^(.*),-?\d+(\.\d+)?$", r"\1,7", losses, count=1))
    assert losses != (edited / "loss.csv").read_text()
    with Running(tmp_path / "it", edited) as running:
        pass
    assert "was made for other tables" in str(running.raised[0])
    with Running(tmp_path / "it", machine) as running:  # the same again
        running.ask()
    (tmp_path / "it" / "tables.npz").unlink()
    with Running(tmp_path / "it") as running:
        pass
    assert "so the units of machine are not known" in str(running.raised[0])


def test_a_late_episode_is_a_conflict(tmp_path: Path, machine: Path) -> None:
    """The learner learns only from its current policy."""
    with Running(tmp_path / "it", machine, "reinforce-lagrangian") as running:
        first, second = running.ask(), running.ask()
        assert running.tell(first, WEEK).status == 200
        answer = running.tell(second, WEEK)
        assert (answer.status, answer.kind) == (409, "conflict")
        assert "earlier policy" in answer.body["detail"]
        assert "or the learner cannot learn from its policy" in answer.body["title"]


def test_the_openapi_document_and_its_page(running: Running) -> None:
    document = running.get("/openapi.json").body
    openapi_spec_validator.validate(document)
    places = {(path, method.upper()) for path, methods in document["paths"].items() for method in methods}
    assert places == {(route.path, method) for route in running.server.service.routes for method in route.methods}
    page = running.get("/docs").body
    for path, _ in places:
        assert path in page
    assert "http://" not in page and "https://" not in page.replace("https://github", "")
    for kind in ("conflict", "too-large"):
        assert f'<tr id="{kind}">' in page


def test_the_token_is_read_from_a_file_or_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIGHTROPE_TOKEN", raising=False)
    assert token_of(None) is None
    monkeypatch.setenv("TIGHTROPE_TOKEN", "from the environment\n")
    assert token_of(None) == "from the environment"
    (tmp_path / "token").write_text("from the file\n")
    (tmp_path / "token").chmod(0o644)
    with pytest.raises(InvalidInputError, match=r"can be read or changed by other users \(mode 644\); run: chmod 600"):
        token_of(tmp_path / "token")
    (tmp_path / "token").chmod(0o640)  # as a group of containers needs it
    assert token_of(tmp_path / "token") == "from the file"
    with pytest.raises(InvalidInputError, match=r"cannot read the token: .*nowhere"):
        token_of(tmp_path / "nowhere")


def test_other_addresses_than_loopback_need_a_token(tmp_path: Path) -> None:
    for host in ("0.0.0.0", "::", "192.0.2.1", "example.org"):
        with pytest.raises(InvalidInputError, match="give a token"):
            Address(host)
        Address(host, token="x" * 16)
    for host in ("127.0.0.1", "127.8.8.8", "::1", "localhost"):
        Address(host)
    with pytest.raises(InvalidInputError, match="at least 16 characters"):
        Address(token="short")
    with pytest.raises(InvalidInputError, match="a key needs its certificate"):
        Address(key=tmp_path / "key")


def test_a_port_in_use_is_refused(running: Running, tmp_path: Path, machine: Path) -> None:
    port = int(running.server.address.rstrip("/").rpartition(":")[2])
    problem = load_problem(machine)
    made = NewLearner(tmp_path / "second", problem, make_learner("uniform", problem, episodes=9))
    with pytest.raises(InvalidInputError, match=f"cannot serve at 127.0.0.1, port {port}"):
        Server(tmp_path / "second", Address(port=port), made)
