"""Budgets, stop-loss, challengers and shadow mode over HTTP: in the names and units of the problem."""

from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest

from tests.service.running import Answer, Running
from tests.service.test_service import ACTIONS, STATES, WEEK, served
from tightrope import DurableLearner, Episode, load_problem, make_learner
from tightrope.ops.served_learner import MOST_LEARNERS
from tightrope.service import Client, ServiceError
from tightrope.storage import checkpoints

SAFE = {
    "good": {"run": 1.0, "service": 0.0},
    "worn": {"run": 1.0, "service": 0.0},
    "broken": {"stand": 0.75, "repair": 0.25},
}

#: It may do all that others may.
OTHERS = SAFE | {"good": {"run": 0.8, "service": 0.2}, "worn": {"run": 0.8, "service": 0.2}}


def put(running: Running, place: str, body: Any) -> Answer:
    return running.send("PUT", f"/learners/{running.name}{place}", body)


def test_budgets_are_changed_over_http_in_their_own_units(tmp_path: Path, machine: Path) -> None:
    with Running(tmp_path / "it", machine) as running:
        running.tell(running.ask(), WEEK)
        [technician] = put(running, "/budgets", {"budgets": {"technician": 3}}).body
        assert (technician["budget"], technician["spent"], technician["allowed"]) == pytest.approx((3, 8, 2))
        running.tell(running.ask(), WEEK)
        assert running.of("/spending")[0]["allowed"] == pytest.approx(2 + 3)
        for body, kind, words in (
            ({"budgets": {"fuel": 1}}, "refused", "there is no budget 'fuel'"),
            ({"budgets": {"technician": 45}}, "refused", "technician is 45 hours; it can be at most 42 hours"),
            ({"budgets": {"technician": -45}}, "refused", "technician is -45 hours; it can be no less than -42 hours"),
            ({"budgets": {"technician": "much"}}, "malformed", "Expected `float`"),
            ({}, "malformed", "missing required field `budgets`"),
        ):
            answer = put(running, "/budgets", body)
            assert (answer.kind, words in answer.body["detail"]) == (kind, True)
    with DurableLearner(tmp_path / "it") as learner:
        assert [one.budget for one in learner.status.spending] == pytest.approx([3])
        assert learner.status.event == 3


def test_a_stop_loss_has_the_safe_policy_played(running: Running) -> None:
    """The week uses 8 hours of 2: 6 over the budget, and 12 after the second."""
    assert running.of("/stop-loss") == {"rules": {}, "safe_policy": None}
    rule = {"most": 6.5, "by": "spent", "back": 1.0, "horizon": 0, "window": 100}
    answer = put(running, "/stop-loss", {"rules": {"technician": rule}, "safe_policy": SAFE})
    found = running.of("/stop-loss")
    assert answer.body == found
    assert found["rules"]["technician"] == pytest.approx(rule)
    stopped = []
    for _ in range(2):
        running.tell(running.ask(), WEEK)
        stopped.append(running.of("/spending")[0]["stopped"])
    assert stopped == [False, True]
    table = running.of(f"/policy?episode={running.ask()}")
    rows = zip(table["state_name"], table["action_name"], table["probability"], strict=True)
    played = {(state.partition(",")[0], action): probability for state, action, probability in rows}
    assert played == {(state, action): p for state, actions in SAFE.items() for action, p in actions.items()}
    assert found["safe_policy"] == table["probability"]
    for body, words in (
        ({"rules": {"technician": rule}}, "safe_policy is missing"),
        ({"rules": {"fuel": rule}, "safe_policy": SAFE}, "there is no budget 'fuel'"),
        ({"rules": {"technician": rule | {"back": 7}}, "safe_policy": SAFE}, "above most"),
        ({"rules": {"technician": rule | {"horizon": 9}}, "safe_policy": SAFE}, 'say by="predicted"'),
        ({"rules": {"technician": rule}, "safe_policy": [0.5]}, "safe_policy has shape (1,)"),
        ({"rules": {"technician": rule}, "safe_policy": SAFE | {"good": {"run": 1, "service": 1}}}, "sum to 2"),
        ({"rules": {"technician": rule}, "safe_policy": {"good": {"run": 1}}}, "has no value for"),
    ):
        answer = put(running, "/stop-loss", body)
        assert (answer.kind, words in answer.body["detail"]) == ("refused", True), answer
    assert running.of("/stop-loss") == found
    assert put(running, "/stop-loss", {"rules": {}}).body == {"rules": {}, "safe_policy": None}
    assert not running.of("/spending")[0]["stopped"]


def test_challengers_learn_and_one_is_promoted(tmp_path: Path, machine: Path) -> None:
    problem = load_problem(machine)
    twin = make_learner("ucpd", problem, episodes=100, V=3.0)
    states = [problem.space.state_number(f"{name}, step {i}") for i, name in enumerate(STATES)]
    actions = [problem.action_names.index(name) for name in ACTIONS]
    losses: Any = problem.losses
    week = Episode([*states, problem.space.n_states - 1], actions, losses.scenarios[0], problem.constraints.mean)
    with Running(tmp_path / "it", machine) as running:
        told = {"learner": "ucpd", "episodes": 100, "options": {"V": 3.0}}
        first, other = put(running, "/challengers/the%20other", told).body
        assert (first["champion"], other["champion"], other["name"]) == (True, False, "the other")
        assert other["learner"]["V"] == 3.0
        for _ in range(3):
            running.tell(running.ask(), WEEK)
            twin.observe(week)
        first, other = running.of("/challengers")
        assert (first["weighed"], other["weighed"], other["failed"]) == (3, 3, "")
        promoted = running.send("POST", "/learners/it/challengers/the%20other/promote").body
        assert [one["champion"] for one in promoted] == [False, True]
        assert running.of("/policy")["probability"] == twin.policy.probabilities.tolist()
        assert running.send("DELETE", "/learners/it/challengers/the%20other").kind == "refused"
        assert running.send("DELETE", "/learners/it/challengers/nobody").kind == "unknown-challenger"
        assert running.send("POST", "/learners/it/challengers/nobody/promote").kind == "unknown-challenger"
        [left] = running.send("DELETE", "/learners/it/challengers/ucpd-practical").body
        assert left["name"] == "the other"
    with DurableLearner(tmp_path / "it") as learner:
        assert learner.fingerprint() == checkpoints.fingerprint(twin)


@pytest.mark.parametrize(
    ("learner", "told"),
    [
        ("ucpd-practical", {}),
        ("ucpd-practical", {"options": {"ties": False, "radius_scale": 0.5}}),
        ("psrl", {"seed": 3}),
    ],
)
def test_a_challenger_has_the_bits_of_make_learner(
    tmp_path: Path, machine: Path, learner: str, told: dict[str, Any]
) -> None:
    """With the same name, options and seed it has the settings and bits of `make_learner`."""
    problem = load_problem(machine)
    champion = make_learner(learner, problem, episodes=1000, seed=told.get("seed", 0), **told.get("options", {}))
    with Running(tmp_path / "it", machine, champion) as running:
        first, twin = put(running, "/challengers/twin", {"learner": learner, "episodes": 1000, **told}).body
        assert first["learner"] == twin["learner"]
        durable = served(running).learner
        for k in range(4):
            assert len({durable.fingerprint(one.name) for one in durable.status.standings}) == 1, k
            assert running.tell(running.ask(), WEEK).status == 200


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"learner": "nobody"}, "there is no learner 'nobody'"),
        ({"learner": "ucpd"}, "needs the number of episodes"),
        ({"learner": "ucpd", "episodes": 9, "options": {"speed": 1}}, "no option 'speed'"),
        ({"learner": "ucpd", "episodes": 9, "options": {"ties": "all"}}, "ties is 'all'; expected true"),
        ({"learner": "ucpd", "episodes": 9, "options": {"V": -1}}, "V is -1"),
        ({"learner": "opt-primal-dual", "episodes": 9}, "needs its slack, which only Python can pass"),
        ({"learner": "shifted-bandit-uc-o-reps", "episodes": 9}, "its own policy only"),
    ],
)
def test_invalid_challengers_are_refused(running: Running, told: dict[str, Any], words: str) -> None:
    answer = put(running, "/challengers/other", told)
    assert (answer.kind, words in answer.body["detail"]) == ("refused", True), answer
    assert [one["name"] for one in running.of("/challengers")] == ["ucpd-practical"]


@pytest.mark.parametrize(
    ("name", "status", "words"),
    [
        ("a%2Fb", 400, "contains %2F"),
        ("a%2fpromote", 400, "contains %2F"),
        ("a%FF", 400, "not UTF-8"),
        ("%C0%AF", 400, "not UTF-8"),
        ("%00", 422, "at most 100 printable characters"),
        ("%2e%2E", 422, "at most 100 printable characters"),
        ("n" * 10_000, 422, "at most 100 printable characters"),
    ],
)
def test_invalid_names_of_challengers_are_refused(running: Running, name: str, status: int, words: str) -> None:
    place = f"/learners/{running.name}/challengers/{name}"
    answer = put(running, f"/challengers/{name}", {"learner": "uniform", "episodes": 9})
    assert (answer.status, answer.kind) == (status, "malformed" if status == 400 else "refused")
    assert words in answer.body["detail"]
    for method, there in (("DELETE", place), ("POST", f"{place}/promote"), ("POST", place)):
        answer = running.send(method, there)
        assert answer.kind == "malformed" if status == 400 else answer.status in (404, 405)
    assert [one["name"] for one in running.of("/challengers")] == ["ucpd-practical"]


def test_the_document_limits_names_of_challengers(running: Running) -> None:
    longest = "ü" * 100
    assert (
        put(running, f"/challengers/{quote(longest)}", {"learner": "uniform", "episodes": 9}).body[1]["name"] == longest
    )
    places = running.get("/openapi.json").body["paths"]
    for method in ("put", "delete"):
        called = places["/learners/{name}/challengers/{challenger}"][method]
        [schema] = [one["schema"] for one in called["parameters"] if one["name"] == "challenger"]
        assert schema == {"type": "string", "minLength": 1, "maxLength": 100, "pattern": "^[^/]*$"}
        assert called["responses"]["400"]["description"].count("malformed") == 1
    assert "400" in places["/learners/{name}/state"]["get"]["responses"]


def test_the_number_of_learners_is_limited(running: Running) -> None:
    told = {"learner": "uniform", "episodes": 9}
    codes = [put(running, f"/challengers/{k}", told).status for k in range(MOST_LEARNERS)]
    assert codes == [200] * (MOST_LEARNERS - 1) + [422]


def test_repeated_operations_count_once(running: Running) -> None:
    learner = served(running).learner
    told = {"learner": "ucpd", "episodes": 9}
    put(running, "/challengers/a", told)
    running.tell(running.ask(), WEEK)
    events, standings = learner.status.event, running.of("/challengers")
    again = put(running, "/challengers/a", told)
    assert (again.status, again.body) == (200, standings)
    promoted = running.send("POST", f"/learners/{running.name}/challengers/ucpd-practical/promote")
    assert (promoted.status, promoted.body) == (200, standings)
    for other, words in (
        ({"learner": "ucpd", "episodes": 10}, "a was made with episodes = 9, the one given with 10"),
        ({"learner": "uniform", "episodes": 9}, "a was made with learner = 'ucpd', the one given with 'uniform'"),
    ):
        answer = put(running, "/challengers/a", other)
        assert (answer.status, answer.kind, words in answer.body["detail"]) == (409, "name-taken", True), answer
    assert (learner.status.event, running.of("/challengers")) == (events, standings)


def test_episodes_of_others_are_watched_over_http(tmp_path: Path, machine: Path) -> None:
    with Running(tmp_path / "it", machine) as running:
        client = Client(running.server.address, "it")
        weighed, unknown = client.watch(OTHERS), client.watch()
        assert running.of("/episodes")["open"] == [weighed, unknown]
        assert set(client.policy(weighed)["probability"]) == {0.2, 0.25, 0.75, 0.8}
        assert "by a policy that is not known" in running.get(f"/learners/it/policy?episode={unknown}").body["detail"]
        assert running.send("POST", "/learners/it/watch", {"policy": [1.0]}).kind == "refused"
    with Running(tmp_path / "it") as running:
        assert running.of("/episodes")["open"] == [weighed, unknown]
        assert running.tell(unknown, WEEK).body["answer"] == "learned"
        ran = {"states": ["good"] * 7, "actions": ["run"] * 7, "scenario": 1}
        assert running.tell(weighed, ran).body["answer"] == "learned"
        [one] = running.of("/challengers")
        assert (one["weighed"], one["on_paths"], one["spent_on_paths"]) == (1, 1, {"technician": pytest.approx(8)})
        assert one["would_have_spent"] == {"technician": 0.0}
        assert running.of("/series")["told"] == [0, 1, 2]


def test_would_have_lost_covers_the_weighed_episodes(tmp_path: Path, machine: Path) -> None:
    """-100 to 60 euros are -1 to 1: 80 each, around -20. Step k weighs (0.5 / 0.8)^k; of three episodes, one does.

    Of one played with SAFE nothing can be said: it never does what the learner does.
    """
    with Running(tmp_path / "it", machine, "uniform") as running:
        client = Client(running.server.address, "it")
        ran: dict[str, Any] = {"states": ["good"] * 7, "actions": ["run"] * 7, "scenario": 1}
        for episode in (client.watch(), client.watch(SAFE), client.watch(OTHERS)):
            assert client.tell(episode, **ran) == "learned"
        [one] = client.challengers()
        assert (one["weighed"], one["on_paths"], one["uncovered"]) == (1, 1, 1)
        assert one["would_have_lost"] == pytest.approx(-80 * sum(0.625**k for k in range(1, 8)) - 20 * 7)


def test_the_client_has_all_operations(running: Running) -> None:
    client = Client(running.server.address, running.name)
    assert client.set_budgets(technician=4.0)[0]["budget"] == pytest.approx(4)
    assert client.set_budgets({"technician": 5.0})[0]["budget"] == pytest.approx(5)
    rules = client.stop_loss({"technician": {"most": 1}}, SAFE)
    assert rules["rules"]["technician"]["most"] == pytest.approx(1)
    assert client.rules() == rules == client.stop_loss(**rules)
    assert client.stop_loss({})["rules"] == {}
    assert [one["name"] for one in client.challenge("a b", "uniform", episodes=9)] == ["ucpd-practical", "a b"]
    assert [one["champion"] for one in client.promote("a b")] == [False, True]
    assert (
        [one["name"] for one in client.dismiss("ucpd-practical")]
        == ["a b"]
        == [one["name"] for one in client.challengers()]
    )
    with pytest.raises(ServiceError) as refused:
        client.dismiss("nobody")
    assert refused.value.kind == "unknown-challenger"
    assert np.isfinite(running.of("/state")["loss"])


def test_a_wrong_method_lists_the_allowed_ones(running: Running) -> None:
    for place, methods in (("stop-loss", {"GET", "HEAD", "PUT"}), ("challengers/other", {"PUT", "DELETE"})):
        answer = running.send("PATCH", f"/learners/{running.name}/{place}")
        assert answer.kind == "wrong-method"
        assert set(answer.headers["allow"].split(", ")) == methods


def test_outcomes_are_retracted_and_amended_over_http(tmp_path: Path, machine: Path) -> None:
    with Running(tmp_path / "it", machine) as running:

        def post(place: str, body: Any) -> Answer:
            return running.send("POST", f"/learners/{running.name}{place}", body)

        policies, episodes = [running.of("/policy")], []
        for _ in range(3):
            episodes.append(running.ask())
            running.tell(episodes[-1], WEEK)
            policies.append(running.of("/policy"))
        effect = post("/retract", {"episodes": episodes[1:], "dry_run": True}).body
        assert (effect["event"], effect["told"], running.of("/state")["retracted"]) == (0, 1, 0)
        effect = post("/retract", {"episodes": episodes[1:], "reason": "wrong week"}).body
        assert (effect["event"], effect["told_before"], effect["told"]) == (4, 3, 1)
        assert [one["spent"] for one in effect["spending"]] == pytest.approx([8])
        assert running.of("/policy") == policies[1]
        assert running.tell(episodes[1], WEEK).body["answer"] == "already"
        state = running.of("/state")
        assert (state["told"], state["retracted"], state["given_up"], state["correcting"]) == (1, 2, 0, False)
        post("/corrections/4/undo", {})
        assert running.of("/policy") == policies[3]
        answer = post(f"/episodes/{episodes[2]}/amend", WEEK | {"reason": "x"})
        assert (answer.kind, "has this outcome already" in answer.body["detail"]) == ("conflict", True)
        found = running.of("/corrections")
        assert [(one["kind"], one["undone_by"], one["reason"]) for one in found["corrections"]] == [
            ("retract", 5, "wrong week"), ("undo", None, ""),
        ]  # fmt: skip
        assert not found["in_progress"]
        for place, body, kind in (
            ("/retract", {}, "refused"),
            ("/retract", {"episodes": ["1-00000000"]}, "unknown-episode"),
            ("/corrections/4/undo", {}, "conflict"),
            ("/corrections/x/undo", {}, "refused"),
            ("/episodes/1-00000000/amend", WEEK, "unknown-episode"),
            ("/retract", {"nonsense": 1}, "malformed"),
        ):
            assert post(place, body).kind == kind
