"""The file of tokens: roles, expiry, rotation, reloading, authors in the journal, and wrong tokens."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import pytest

from tests.service.running import Running
from tests.service.test_service import WEEK, metrics
from tightrope import InvalidInputError
from tightrope.ops import auth, tokens
from tightrope.ops.api import ROLES, Role, endpoints_of
from tightrope.ops.served_learner import ServedLearner
from tightrope.ops.server import Address
from tightrope.ops.sqlite import SQLite
from tightrope.ops.store import ZEROS, Journal, SnapshotRow
from tightrope.ops.tokens import Token, Tokens

#: A role that each method and path needs: the table of docs/how-to/service.md.
NEEDED: dict[str, Role] = {
    "POST /ask": "act",
    "GET /act": "act",
    "POST /watch": "act",
    "POST /episodes/{episode}/tell": "tell",
    "POST /episodes/{episode}/give-up": "tell",
    "PUT /budgets": "operate",
    "PUT /stop-loss": "operate",
    "PUT /challengers/{challenger}": "operate",
    "DELETE /challengers/{challenger}": "operate",
    "POST /challengers/{challenger}/promote": "operate",
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "tokens.json"


@pytest.fixture
def secrets(file: Path) -> dict[str, str]:
    """A token for each role, and one for all roles."""
    return {role: tokens.add(file, f"the {role}er", [role]) for role in ROLES} | {
        "all": tokens.add(file, "everything", ROLES)
    }


@pytest.fixture
def guarded(tmp_path: Path, machine: Path, file: Path, secrets: dict[str, str]) -> Iterator[Running]:
    with Running(tmp_path / "guarded", machine, address=Address(tokens=file)) as running:
        yield running


def bearing(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def test_each_endpoint_needs_its_role_and_no_other(guarded: Running, secrets: dict[str, str]) -> None:
    """With the role, a request without a valid body gets as far as its body; without, it is refused before."""
    for one in endpoints_of(ServedLearner):
        needed = NEEDED.get(f"{one.method} {one.path.removeprefix('/learners/{name}')}")
        assert one.role == needed or (needed is None and one.role == ("read" if one.method == "GET" else "operate"))
        path = one.path.format(name="guarded", episode="1-x", challenger="none", event="1")
        for role in ROLES:
            answer = guarded.send(one.method, path, b"[]" if one.body else None, **bearing(secrets[role]))
            assert (answer.status == 403) == (role != one.role), (one, role, answer)
            if answer.status == 403:
                assert answer.kind == "no-role"
                assert answer.body["detail"] == f"the token the {role}er needs the role {one.role}"
    for place in ("/learners", "/metrics", "/openapi.json", "/docs", "/"):
        assert guarded.get(place, **bearing(secrets["read"])).status == 200
        assert guarded.get(place, **bearing(secrets["tell"])).kind == "no-role"


def test_the_name_of_the_token_is_the_author_in_the_journal(guarded: Running, secrets: dict[str, str]) -> None:
    at = "/learners/guarded"
    episode = guarded.send("POST", f"{at}/ask", **bearing(secrets["act"])).body["episode"]
    assert guarded.send("POST", f"{at}/episodes/{episode}/tell", WEEK, **bearing(secrets["tell"])).status == 200
    challenger = {"learner": "uniform", "episodes": 9}
    for method, path, body in (
        ("PUT", "/budgets", {"budgets": {"technician": 3}}),
        ("PUT", "/stop-loss", {"rules": {}}),
        ("PUT", "/challengers/new", challenger),
        ("POST", "/challengers/new/promote", None),
        ("POST", "/challengers/ucpd-practical/promote", None),
        ("DELETE", "/challengers/new", None),
    ):
        assert guarded.send(method, at + path, body, **bearing(secrets["operate"])).status == 200
    with closing(Journal(SQLite(Path(guarded.server.learners["guarded"].place), read_only=True))) as journal:
        events = list(journal.events(SnapshotRow(0, ZEROS, b"")))
        asked = journal.episode(1)
    assert [event.author for event in events] == ["the teller", *["the operateer"] * 6]
    assert asked is not None and asked.author == "the acter"


def test_a_changed_file_of_tokens_takes_effect_without_a_restart(
    guarded: Running, file: Path, secrets: dict[str, str], monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    monkeypatch.setattr(auth, "REFRESH_EVERY", 0.0)

    def status(secret: str) -> int:
        return guarded.get("/learners", **bearing(secret)).status

    added = tokens.add(file, "later", ["read"])
    assert (status(added), status(secrets["read"])) == (200, 200)
    rotated = tokens.rotate(file, "later", timedelta(hours=1))
    assert (status(added), status(rotated)) == (200, 200)
    replaced = tokens.rotate(file, "later", timedelta())
    assert (status(added), status(rotated), status(replaced)) == (401, 401, 200)
    assert "has expired" in guarded.get("/learners", **bearing(rotated)).body["detail"]
    tokens.remove(file, "later")
    assert status(replaced) == 401
    whole = file.read_bytes()
    for harm in (lambda: file.write_bytes(b"{"), lambda: file.chmod(0o644), file.unlink):
        harm()
        assert status(secrets["read"]) == 200  # the previous tokens stay valid
        found = guarded.get("/metrics", **bearing(secrets["read"])).body
        assert "tightrope_tokens_trouble 1.0" in found
        file.unlink(missing_ok=True)
        file.touch(0o600)
        file.write_bytes(whole)
        assert status(secrets["read"]) == 200
        assert "tightrope_tokens_trouble 0.0" in guarded.get("/metrics", **bearing(secrets["read"])).body
    words = [record.getMessage() for record in caplog.records]
    assert sum("the previous tokens stay valid" in one for one in words) == 3
    assert any("run: chmod 600" in one for one in words)


def test_a_file_of_tokens_contains_hashes_and_is_private(file: Path) -> None:
    old = os.umask(0)
    try:
        secret = tokens.add(file, "planner", ["act", "read"], datetime(2100, 1, 1, tzinfo=UTC))
    finally:
        os.umask(old)
    assert file.stat().st_mode & 0o777 == 0o600
    assert secret not in file.read_text()
    [found] = tokens.read(file)
    assert found == Token(
        "planner", sha256(secret.encode()).hexdigest(), ["read", "act"], datetime(2100, 1, 1, tzinfo=UTC)
    )
    assert not found.expired
    with pytest.raises(InvalidInputError, match="there is a token 'planner' already; rotate or remove it"):
        tokens.add(file, "planner", ["read"])
    with pytest.raises(InvalidInputError, match="did you mean 'planner'"):
        tokens.rotate(file, "plannner", timedelta())
    file.chmod(0o604)
    for call in (tokens.read, lambda path: Tokens(path=path), lambda path: Address(tokens=path)):
        with pytest.raises(InvalidInputError, match=r"tokens.json can be read or changed by other users .*chmod 600"):
            call(file)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "truncated"),
        ('{"tokens": [{"name": "a", "sha256": "0", "roles": []}]}', r"\$.tokens\[0\].sha256"),
        ('{"tokens": [{"name": "a", "sha256": "%s", "roles": ["admin"]}]}' % ("0" * 64), "admin"),
        ('{"tokens": [{"name": "a", "sha256": "%s", "roles": [], "expires": "2027-01-01"}]}' % ("0" * 64), "expires"),
        ('{"tokens": [{"name": "a\\n", "sha256": "%s", "roles": []}]}' % ("0" * 64), "cannot be printed"),
    ],
)
def test_an_invalid_file_of_tokens_is_refused_with_its_path(file: Path, text: str, words: str) -> None:
    file.touch(0o600)
    file.write_text(text)
    with pytest.raises(InvalidInputError, match=words):
        Tokens(path=file)


def test_an_expired_token_is_refused_and_rotation_ends_with_the_old_expiry(file: Path) -> None:
    soon = datetime.now(UTC) + timedelta(hours=1)
    old = tokens.add(file, "planner", ["read"], soon)
    tokens.rotate(file, "planner", timedelta(days=9))
    assert [one.expires for one in tokens.read(file)] == [soon, soon]
    past, _ = tokens.made("late", ["read"], datetime.now(UTC))
    assert past.expired
    held = Tokens("a single token of old", file)
    for secret, name in ((old, "planner"), ("a single token of old", "token")):
        found = held.find(secret.encode())
        assert found is not None and found.name == name
    assert held.find(b"else") is None


def test_wrong_tokens_are_logged_counted_and_limited(
    guarded: Running, secrets: dict[str, str], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guarded.server.service.auth, "clock", lambda: 1e9)
    wrong = "a guess of many characters"
    answers = [guarded.get("/learners?secret=1", **bearing(wrong)) for _ in range(15)]
    assert [answer.status for answer in answers] == [401] * 10 + [429] * 5
    assert "wrong tokens per second" in answers[-1].body["detail"]
    assert guarded.get("/learners", **bearing(secrets["read"])).status == 200
    guarded.get("/learners")  # a token that is missing is not wrong
    found = guarded.get("/metrics", **bearing(secrets["read"])).body
    assert "tightrope_wrong_tokens_total 15.0" in found
    records = [record for record in caplog.records if record.getMessage() == "wrong token"]
    assert len(records) == 1
    assert wrong not in caplog.text and secrets["read"] not in caplog.text


def test_readiness_tells_why_only_to_the_holder_of_a_token(guarded: Running, secrets: dict[str, str]) -> None:
    served = guarded.server.learners["guarded"]
    assert guarded.get("/ready").status == 200
    served.ready = False
    try:
        for headers, words in (({}, "send a token to read why"), (bearing(secrets["read"]), "guarded is being opened")):
            answer = guarded.get("/ready", **headers)
            assert (answer.status, answer.kind) == (503, "not-ready")
            assert answer.body["detail"].startswith(words)
    finally:
        served.ready = True
    assert guarded.get("/ready", **bearing("wrong, and long enough")).status == 401


def command(*given: object) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "tightrope.cli", "token", *map(str, given)]
    return subprocess.run(line, capture_output=True, text=True, timeout=600)


def test_the_command_makes_rotates_lists_and_removes_tokens(file: Path) -> None:
    made = command("add", file, "planner", "--role", "act", "--role", "read", "--expires", "2100-01-31")
    assert made.returncode == 0, made.stderr
    secret = made.stdout.strip()
    held = Tokens(path=file).find(secret.encode())
    assert held is not None and held.roles == ["read", "act"]
    rotated = command("rotate", file, "planner").stdout.strip()
    assert rotated != secret and Tokens(path=file).find(rotated.encode())
    listed = command("list", file).stdout.splitlines()
    assert [line.split()[0] for line in listed] == ["name", "planner", "planner"]
    assert "2100-01-31 00:00 UTC" in listed[2] and secret not in "".join(listed)
    assert command("remove", file, "planner").returncode == 0
    assert json.loads(file.read_text()) == {"tokens": []}
    for wrong, words in (
        (("add", file, "x"), "Missing option '--role'"),
        (("add", file, "x", "--role", "king"), "'king' is not one of"),
        (("add", file, "x", "--role", "read", "--expires", "soon"), "is not a time; write 2027-01-31"),
        (("remove", file, "nobody"), "there is no token 'nobody'"),
    ):
        refused = command(*wrong)
        assert refused.returncode == 2 and words in refused.stderr, refused


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="there is no SIGHUP on this system")
def test_sighup_reads_the_tokens_again_and_does_not_end_the_service(tmp_path: Path, machine: Path, file: Path) -> None:
    first = tokens.add(file, "first", ["read"])
    line = [sys.executable, "-m", "tightrope.cli", "serve", str(tmp_path / "it"), "--problem", str(machine)]
    line += ["--port", "0", "--tokens", str(file), "--log-format", "json"]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stderr is not None
    try:
        address = process.stdout.readline().strip()
        until(lambda: status_at(address, first) == 200)
        second = tokens.add(file, "second", ["read"])
        process.send_signal(signal.SIGHUP)
        logged = json.loads(process.stderr.readline())
        assert (logged["level"], logged["message"]) == ("warning", "the tokens were read again")
        assert status_at(address, second) == 200
    finally:
        process.terminate()
        assert process.wait(60) == 128 + signal.SIGTERM
        process.stdout.close()
        process.stderr.close()


def until(done: Callable[[], bool]) -> None:
    while not done():
        pass


def status_at(address: str, secret: str) -> int:
    from urllib.error import HTTPError, URLError
    from urllib.request import Request, urlopen

    try:
        with urlopen(Request(f"{address}learners", headers=bearing(secret)), timeout=60) as answer:
            return int(answer.status)
    except HTTPError as error:
        with error:
            return error.code
    except URLError:
        return 0


def test_metrics_need_the_role_read(guarded: Running, secrets: dict[str, str]) -> None:
    guarded.authorization = f"Bearer {secrets['all']}"
    assert metrics(guarded)["tightrope_ready", ("learner", "guarded")] == 1
