"""The log: one line for each record, with the request that it is about and without secrets."""

import json
import logging
import sys
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from tests.service.running import Running
from tests.service.test_service import WEEK
from tightrope.errors import StorageError
from tightrope.ops.logs import SELDOM, Formatter, Seldom
from tightrope.ops.server import Address

TOKEN = "a secret of many characters"


class Log:
    """What the service logs, in one format."""

    def __init__(self, format: Any) -> None:
        self.handler = logging.StreamHandler(StringIO())
        self.handler.setFormatter(Formatter(format))

    @property
    def text(self) -> str:
        return str(self.handler.stream.getvalue())

    @property
    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text.splitlines()]


@pytest.fixture
def log() -> Iterator[Log]:
    found, logger = Log("json"), logging.getLogger("tightrope.service")
    logger.addHandler(found.handler)
    logger.setLevel(logging.INFO)
    yield found
    logger.removeHandler(found.handler)
    logger.setLevel(logging.NOTSET)


def test_every_request_is_a_line_of_json_with_an_id_and_no_secrets(tmp_path: Path, machine: Path, log: Log) -> None:
    running = Running(tmp_path / "machine", machine, address=Address(token=TOKEN))
    running.authorization = f"Bearer {TOKEN}"
    with running:
        episode = running.ask()
        answer = running.send(
            "POST", f"/learners/machine/episodes/{episode}/tell?a=b", WEEK, **{"X-Request-Id": "mine-1"}
        )
        assert answer.headers["x-request-id"] == "mine-1"
        ids = [
            running.get("/health", **{"X-Request-Id": given}).headers["x-request-id"]
            for given in ("", "a b", "x" * 999)
        ]
        assert all(len(id) == 16 for id in ids) and len(set(ids)) == 3
    [told] = [one for one in log.records if one.get("request") == "mine-1"]
    assert 0 < told.pop("seconds") < 600
    assert told.pop("time").endswith("Z")
    assert told == {
        "level": "info",
        "message": "answered",
        "request": "mine-1",
        "address": "127.0.0.1",
        "method": "POST",
        "path": f"/learners/machine/episodes/{episode}/tell",
        "author": "token",
        "status": 200,
    }
    for secret in (TOKEN, "Bearer", "worn", "a=b"):
        assert secret not in log.text


def test_a_failure_is_a_warning_once_per_second(running: Running, log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1e9]
    monkeypatch.setattr(running.server.service.auth, "clock", lambda: clock[0])
    monkeypatch.setattr(running.server.learners["machine"].learner, "ask", failing)
    for now in (0.0, 0.0, 0.0, SELDOM):
        clock[0] = 1e9 + now
        assert running.send("POST", "/learners/machine/ask").status == 503
    assert running.get("/health").status == 200  # the line is written after the answer
    warnings = [one for one in log.records if one["level"] == "warning"]
    assert [(one["status"], one["path"], one["before"]) for one in warnings] == [
        (503, "/learners/machine/ask", 0),
        (503, "/learners/machine/ask", 2),
    ]


def failing(**given: str) -> None:
    raise StorageError("the disk is full")


def test_the_text_format_is_one_readable_line() -> None:
    record = logging.LogRecord("tightrope", logging.WARNING, "", 0, "the disk is %s", ("full",), None)
    record.created = 0.5
    record.fields = {"address": "192.0.2.1", "author": ""}
    assert Formatter("text").format(record) == "1970-01-01T00:00:00.500Z warning: the disk is full address=192.0.2.1"
    try:
        raise ValueError("no")
    except ValueError:
        record.exc_info = sys.exc_info()
    assert Formatter("text").format(record).endswith("\nValueError: no")
    found = json.loads(Formatter("json").format(record))
    assert found["traceback"].endswith("ValueError: no")
    assert "\n" not in Formatter("json").format(record)


def test_seldom_counts_the_messages_left_out() -> None:
    seldom = Seldom()
    assert [seldom.due("a", now) for now in (0, 0, 0.5, 1, 1.5, 3)] == [0, None, None, 2, None, 1]
    assert seldom.due("b", 0) == 0
