"""Admission: every endpoint without the token and with wrong ones, other sites, rates, TLS."""

import base64
import shutil
import ssl
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.running import Running
from tightrope import InvalidInputError
from tightrope.ops import auth
from tightrope.ops.api import ApiError
from tightrope.ops.auth import MOST_ADDRESSES, Auth, Bucket, Limits
from tightrope.ops.http import Request
from tightrope.ops.metrics import Metrics
from tightrope.ops.server import Address
from tightrope.ops.tokens import Tokens
from tightrope.service import Client, ServiceError

TOKEN = "a token of more than 16 characters"
WRONG = [
    "", "Bearer", "Bearer ", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", f"Bearer {TOKEN.upper()}", TOKEN,
    f"Token {TOKEN}", "Basic", "Basic ????", f"Basic {base64.b64encode(b'no colon').decode()}",
    f"Basic {base64.b64encode(f'{TOKEN}:'.encode()).decode()}", "Bearer \xff\xfe",
]  # fmt: skip


@pytest.fixture
def guarded(tmp_path: Path, machine: Path) -> Iterator[Running]:
    running = Running(tmp_path / "guarded", machine, address=Address(token=TOKEN))
    running.authorization = f"Bearer {TOKEN}"
    with running:
        running.authorization = ""
        yield running


def test_only_health_and_readiness_answer_without_the_token(guarded: Running) -> None:
    names = {"name": "guarded", "episode": "1-x", "challenger": "other", "event": "4"}
    places = {route.path.format(**names) for route in guarded.server.service.routes}
    assert len(places) == 27
    for place in places | {"/nowhere", "/health/", "/learners/other/state", "/docs#x"}:
        for method in ("GET", "POST", "PUT", "DELETE", "OPTIONS"):
            answer = guarded.send(method, place, b"{}" if method in ("POST", "PUT") else None)
            if place in ("/health", "/ready"):
                assert answer.status == (200 if method == "GET" else 405)
                continue
            assert (answer.status, answer.kind) == (401, "no-token")
            assert answer.headers["www-authenticate"] == 'Basic realm="tightrope"'
    assert guarded.server.learners["guarded"].learner.status.asked == 0


def test_wrong_tokens_are_refused(guarded: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auth, "WRONG_RATE", 100.0)
    for authorization in WRONG:
        assert guarded.get("/learners", Authorization=authorization).status == 401
    password = base64.b64encode(f"anybody:{TOKEN}".encode()).decode()
    for right in (f"Bearer {TOKEN}", f"bearer {TOKEN}", f"Basic {password}"):
        assert guarded.get("/learners", Authorization=right).status == 200
    client = Client(guarded.server.address, "guarded", f"{TOKEN}\n")  # as a file has it
    assert client.state()["told"] == 0
    episode = client.ask()
    assert client.episodes() == [episode]
    with pytest.raises(ServiceError, match=r"^no learner of this name is served: the learners here are guarded$"):
        Client(guarded.server.address, "other", TOKEN).state()


def test_requests_of_pages_of_other_sites_are_refused(running: Running, guarded: Running) -> None:
    host = running.server.address.removeprefix("http://").rstrip("/")
    for headers in (
        {"Host": "example.org"},
        {"Host": "example.org:80"},
        {"Host": "["},
        {"Host": ""},
        {"Host": "128.0.0.1"},
        {"Origin": "https://example.org"},
        {"Origin": f"http://{host.partition(':')[0]}"},  # another port of this machine
        {"Origin": f"http://{host}0"},
        {"Origin": "http://["},
    ):
        assert running.send("POST", "/learners/machine/ask", **headers).kind == "elsewhere"
    for headers in (
        {"Origin": f"http://{host}"},
        {"Host": "localhost:1"},
        {"Host": "127.0.0.2:9"},
        {"Host": "[::1]:5"},
    ):
        assert running.send("POST", "/learners/machine/ask", **headers).status == 200
    assert running.get("/health", Host="example.org").kind == "elsewhere"
    announced = running.get("/openapi.json").body["paths"]["/health"]["get"]["responses"]
    assert set(announced) == {"200", "400", "403"}
    right = f"Bearer {TOKEN}"
    assert guarded.get("/learners", Authorization=right, Host="example.org").status == 200  # whatever it is called
    assert guarded.get("/learners", Authorization=right, Origin="null").kind == "elsewhere"


def test_a_bucket_refills_with_time() -> None:
    bucket = Bucket(rate=2.0, now=0.0)
    assert [bucket.take(2.0, now) for now in (0, 0, 0, 0.4, 0.5, 0.5, 9, 9, 9)] == [
        True, True, False, False, True, False, True, True, False,
    ]  # fmt: skip


def test_each_address_has_its_own_rate() -> None:
    now = [0.0]
    admission = Auth(Tokens(), Limits(rate=2), Metrics(), lambda: now[0])

    async def receive() -> None: ...

    def asks(address: str, path: str = "/learners") -> bool:
        scope = {"path": path, "raw_path": path.encode(), "query_string": b"", "client": (address, 1)}
        scope |= {"method": "GET", "headers": [(b"host", b"localhost")]}
        try:
            admission.admit(Request(scope, receive), 1)
            return True
        except ApiError as refusal:
            assert refusal.kind == "too-many-requests"
            return False

    assert [asks("a"), asks("a"), asks("a"), asks("b")] == [True, True, False, True]
    assert all(asks("a", "/health") for _ in range(9))
    now[0] = 0.5
    assert [asks("a"), asks("a")] == [True, False]
    for k in range(2 * MOST_ADDRESSES):
        asks(str(k))
    assert len(admission._buckets) <= MOST_ADDRESSES


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make a certificate with")
def test_tls(tmp_path: Path, machine: Path) -> None:
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    subprocess.run(
        [
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
            "9", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1",
            "-keyout", key, "-out", certificate,
        ],
        check=True,
        capture_output=True,
    )  # fmt: skip
    running = Running(tmp_path / "it", machine, address=Address(certificate=certificate, key=key))
    context = ssl.create_default_context(cafile=str(certificate))
    running._opened = lambda: True  # type: ignore[method-assign]
    with running:
        assert running.server.address.startswith("https://")
        with urllib.request.urlopen(f"{running.server.address}health", context=context, timeout=60) as answer:
            assert answer.status == 200
        assert Client(running.server.address, "it", patience=600, certificate=certificate).state()["told"] == 0
        with pytest.raises(ServiceError, match=r"is not trusted: self.signed certificate; pass certificate=") as told:
            Client(running.server.address, "it", patience=600).state()
        assert (told.value.kind, told.value.status) == ("untrusted", 0)
    nosuch = tmp_path / "nosuch.pem"
    for place, files in (
        (Address(certificate=key), f"{key}: "),
        (Address(certificate=nosuch), f"{nosuch}: No such file"),
        (Address(certificate=certificate, key=nosuch), f"{certificate} and {nosuch}: No such file"),
    ):
        with pytest.raises(InvalidInputError, match=f"the certificate or its key cannot be used: {files}"):
            Running(tmp_path / "it", machine, address=place)
