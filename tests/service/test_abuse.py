"""Requests that a careful service refuses, and connections that must not keep others out."""

import json
import logging
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.service.running import Running
from tests.service.test_faults import connected, post, status_after
from tests.service.test_service import WEEK
from tightrope.ops.api import ApiError
from tightrope.ops.auth import Limits
from tightrope.ops.http import LINGER_BYTES, Connection
from tightrope.ops.server import Address, refuse_duplicate_keys


@pytest.mark.parametrize(
    ("body", "key"),
    [
        ('{"states": [], "actions": [], "scenario": 1, "scenario": 2}', "scenario"),
        ('{"states": [], "actions": [], "loss": {"good": {"run": -80, "run": 25}}}', "run"),
        ('{"states": [], "actions": [], "loss": {"good": {"run": 1, "r\\u0075n": 2}}}', "run"),
    ],
)
def test_a_key_that_appears_twice_is_refused_by_name(running: Running, body: str, key: str) -> None:
    episode = running.ask()
    answer = running.tell(episode, body.encode())
    assert (answer.status, answer.kind) == (400, "malformed")
    assert answer.body["detail"] == f"the key '{key}' appears twice in one object; send it once"
    assert running.of("/state")["told"] == 0


def test_duplicate_keys_are_found_in_large_bodies_too(running: Running) -> None:
    text = json.dumps(WEEK)[:-1] + " " * 2**17 + ', "scenario": 2}'
    assert "'scenario'" in running.tell(running.ask(), text.encode()).body["detail"]


def test_keys_may_repeat_in_different_objects_and_numbers_may_be_long() -> None:
    refuse_duplicate_keys(b'{"good": {"run": 1}, "worn": {"run": 1%s}}' % (b"0" * 5000))
    with pytest.raises(ApiError, match="'a' appears twice"):
        refuse_duplicate_keys(b'[{"a": 1, "b": {"c": 1}, "a": 1}]')


@pytest.mark.parametrize("given", ["", "text/plain", "application/x-www-form-urlencoded", "application/jsonl"])
def test_a_body_that_is_not_declared_as_json_is_refused(running: Running, given: str) -> None:
    episode = running.ask()
    path = f"/learners/machine/episodes/{episode}/tell"
    answer = running.send("POST", path, WEEK, **{"Content-Type": given})
    assert (answer.status, answer.kind) == (415, "wrong-type")
    right = {"Content-Type": "Application/JSON; charset=utf-8"}
    assert running.send("POST", path, WEEK, **right).status == 200


def test_transfer_encoding_with_content_length_is_refused_and_closes_the_connection(running: Running) -> None:
    head = post("/learners/machine/ask", "Content-Length: 5", "Transfer-Encoding: chunked")
    with connected(running) as connection, connection.makefile("rb") as answer:
        connection.sendall(head + b"0\r\n\r\n" + post("/learners/machine/ask", "Content-Length: 0"))
        text = answer.read()  # to its end: the connection is closed
    assert text.count(b"HTTP/1.1") == 1
    assert b" 400 " in text.splitlines()[0]
    assert b"Transfer-Encoding can't be present with Content-Length" in text
    assert running.of("/episodes")["open"] == []


def test_every_answer_has_security_headers_and_no_page_can_frame_it(running: Running) -> None:
    for place in ("/", "/docs", "/health", "/learners", "/metrics", "/nowhere"):
        headers = running.get(place).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "no-referrer"
        if place != "/metrics":
            assert "frame-ancestors 'none'" in headers["content-security-policy"]
            assert headers["content-security-policy"].startswith("default-src 'none'")


def test_connections_with_slow_headers_are_closed(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Connection, "headers_within", 0.05)
    ask = post("/learners/machine/ask", "Content-Length: 0")
    for start in (b"", b"GET /heal", ask + b"GET /heal"):  # also the second request of a connection
        with connected(running) as connection:
            connection.settimeout(20)
            connection.sendall(start)
            found = b""
            try:
                while data := connection.recv(65536):
                    found += data
                    connection.sendall(b"t")  # what follows the answer belongs to the next request
            except ConnectionError:
                pass
        assert found.count(b"HTTP/1.1 200") == (1 if start.startswith(ask) else 0)


@pytest.mark.parametrize(
    "start",
    [b"GET /health HTTP/1.1\r\nX-Slow: ", post("/learners/machine/episodes/1-x/tell", "Content-Length: 100") + b"{"],
    ids=["headers", "body"],
)
def test_slow_connections_do_not_keep_others_out(
    running: Running, monkeypatch: pytest.MonkeyPatch, start: bytes
) -> None:
    monkeypatch.setattr(Connection, "most_connections", 5)
    with ExitStack() as stack:
        for _ in range(20):
            stack.enter_context(connected(running)).sendall(start)
        assert running.get("/health").status == 200
        assert running.of("/state")["told"] == 0
        assert len(running.server._server.server_state.connections) <= 6


def test_health_answers_while_too_many_requests_are_answered(tmp_path: Path, machine: Path) -> None:
    with Running(tmp_path / "machine", machine, address=Address(limits=Limits(requests=1))) as running:
        half = post("/learners/machine/episodes/1-x/tell", "Content-Length: 100") + b"{"
        with connected(running) as connection:
            connection.sendall(half)
            answers = (running.get("/learners") for _ in range(1000))  # the request arrives meanwhile
            assert next(answer for answer in answers if answer.status != 200).kind == "busy"
            assert running.get("/health").status == 200
        assert any(running.get("/learners").status == 200 for _ in range(1000))


def test_a_client_that_sends_too_much_can_read_why(tmp_path: Path, machine: Path) -> None:
    with Running(tmp_path / "machine", machine, address=Address(limits=Limits(body=1000))) as running:
        size = LINGER_BYTES // 2
        head = post(f"/learners/machine/episodes/{running.ask()}/tell", f"Content-Length: {size}")
        assert b" 413 " in status_after(running, head + bytes(size))  # sendall does not fail


def test_out_of_memory_is_answered_without_a_traceback(
    running: Running, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    learner = running.server.learners["machine"].learner

    def ask(**given: str) -> None:
        raise MemoryError

    with caplog.at_level(logging.WARNING):
        with monkeypatch.context() as patched:
            patched.setattr(learner, "ask", ask)
            answer = running.send("POST", "/learners/machine/ask")
        assert (answer.status, answer.kind) == (503, "no-memory")
        assert running.ask()  # a traceback would be logged after the answer, and before this one
    assert [(record.getMessage(), record.exc_info) for record in caplog.records] == [
        ("out of memory", None),
        ("answered", None),
    ]
