"""The client, when the service fails in the middle of an answer or does not answer."""

import asyncio
import inspect
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from socket import create_server
from threading import Thread

import pytest

from tests.service.running import Running
from tests.service.test_service import ACTIONS, STATES
from tightrope import InvalidInputError
from tightrope.ops import api, calls
from tightrope.ops.client import AsyncClient, Client, ServiceError
from tightrope.ops.server import Address

WHOLE = b'{"answer": "learned"}'
REFUSAL = b'{"type": "x#conflict", "detail": "told otherwise before"}'


def served(*answers: bytes, requests: list[bytes] | None = None) -> tuple[str, Thread]:
    """Serve the given answers, complete or not, one for each connection; return the address."""
    listener, received = create_server(("127.0.0.1", 0)), [] if requests is None else requests

    def serve() -> None:
        with listener:
            for answer in answers:
                connection, _ = listener.accept()
                with connection:
                    received.append(connection.recv(65536))
                    connection.sendall(answer)

    thread = Thread(target=serve, daemon=True)
    thread.start()
    return f"http://127.0.0.1:{listener.getsockname()[1]}", thread


def head(status: str, length: int) -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n".encode()


@pytest.mark.parametrize("cut", [head("200 OK", 40) + WHOLE[:5], head("409 Conflict", 40) + REFUSAL[:5], b""])
def test_the_client_retries_after_an_incomplete_answer(cut: bytes) -> None:
    address, thread = served(cut, head("200 OK", len(WHOLE)) + WHOLE)
    assert Client(address, "machine", patience=20).tell("1", states=[], actions=[]) == "learned"
    thread.join()


def test_the_client_does_not_retry_after_an_error() -> None:
    address, thread = served(head("409 Conflict", len(REFUSAL)) + REFUSAL)
    with pytest.raises(ServiceError, match="told otherwise before") as refusal:
        Client(address, "machine", patience=20).tell("1", states=[], actions=[])
    assert refusal.value.kind == "conflict"
    thread.join()


def test_dismissing_again_after_a_lost_answer_succeeds() -> None:
    """The first answer is lost, so the second attempt finds no such challenger."""
    nobody, left = b'{"type": "x#unknown-challenger", "detail": "nobody"}', b'[{"name": "champion"}]'
    answers = head("404 Not Found", len(nobody)) + nobody, head("200 OK", len(left)) + left
    address, thread = served(b"", *answers)
    assert [one["name"] for one in Client(address, "machine", patience=20).dismiss("a")] == ["champion"]
    thread.join()
    address, thread = served(answers[0])
    with pytest.raises(ServiceError, match="nobody"):
        Client(address, "machine", patience=20).dismiss("a")
    thread.join()


def test_a_timeout_says_what_to_do() -> None:
    with create_server(("127.0.0.1", 0)) as silent:
        client = Client(f"http://127.0.0.1:{silent.getsockname()[1]}", "machine", patience=0.05)
        with pytest.raises(ServiceError, match=r"no answer in 0.05 s; .* carried out: send it again") as told:
            client.tell("1", states=[], actions=[])
        with pytest.raises(ServiceError, match=r"no answer in 0.05 s, or with more patience"):
            client.state()
    assert (told.value.kind, told.value.status) == ("no-answer", 0)


def test_an_error_of_a_proxy_is_a_service_error() -> None:
    address, thread = served(head("502 Bad Gateway", 4) + b"oops")
    with pytest.raises(ServiceError, match="status 502"):
        Client(address, "machine", patience=20).tell("1", states=[], actions=[])
    thread.join()


def test_a_service_error_has_title_and_detail() -> None:
    both = ServiceError(404, {"title": "no learner of this name is served", "detail": "these are served: w2"})
    assert str(both) == "no learner of this name is served: these are served: w2"
    assert str(ServiceError(404, {"title": "nothing here"})) == "nothing here"


def test_a_service_that_does_not_run_is_reported() -> None:
    with create_server(("127.0.0.1", 0)) as gone:
        address = f"http://127.0.0.1:{gone.getsockname()[1]}"
    with pytest.raises(ServiceError, match=rf"no service answers at {address}: .*refused; check that") as told:
        Client(f"{address}/", "machine", patience=0).ask()
    assert (told.value.kind, told.value.status) == ("no-answer", 0)
    address, thread = served(b"")
    with pytest.raises(ServiceError, match="carried out: send it again; check that it is running"):
        Client(address, "machine", patience=0).ask()
    thread.join()


@pytest.mark.parametrize("token", ["a secret\nof two lines", "a secret\x7f", "a sécret"])
def test_a_token_that_is_not_a_valid_header_is_refused_and_not_shown(token: str) -> None:
    with pytest.raises(InvalidInputError, match="one line of printable ASCII") as refused:
        Client("http://127.0.0.1:1", "machine", token)
    assert "cret" not in str(refused.value)


def test_an_unreadable_certificate_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty.pem").touch()
    for name in ("nosuch.pem", "empty.pem"):
        with pytest.raises(InvalidInputError, match=rf"the certificate cannot be used: .*{name}: .*PEM file"):
            Client("https://127.0.0.1:1", "machine", certificate=tmp_path / name)


@pytest.mark.parametrize(
    ("module", "package", "arguments"), [("openapi", "schemathesis", []), ("guided", "atheris", ["folders"])]
)
def test_fuzzing_without_its_extra_says_what_to_install(
    module: str, package: str, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    fuzzing = import_module(f"fuzz.{module}")
    for given, said in ((["--help"], 0), (arguments, rf"needs {package}, .* pip install 'tightrope\[fuzz\]'$")):
        monkeypatch.setattr(sys, "argv", [module, *given])
        with pytest.raises(SystemExit, match=str(said)):
            fuzzing.main()


def test_all_attempts_of_ask_have_one_key_and_two_asks_have_two() -> None:
    requests: list[bytes] = []
    asked = head("200 OK", 16) + b'{"episode": "1"}'
    address, thread = served(b"", asked, asked, requests=requests)
    with Client(address, "machine", patience=20) as client:
        assert (client.ask(), client.ask()) == ("1", "1")
    thread.join()
    first, again, other = (re.findall(rb"(?i)idempotency-key: (\w+)", request) for request in requests)
    assert first == again != other


def test_connections_are_reused(running: Running) -> None:
    connections = running.server._server.server_state.connections
    with Client(running.server.address, "machine") as client:
        for _ in range(20):
            client.give_up(client.ask())
        assert len(connections) == 1


def test_a_body_beyond_the_limit_is_a_clear_error(running: Running) -> None:
    with Client(running.server.address, "machine", patience=600) as client:
        episode = client.ask()
        with pytest.raises(ServiceError, match="the body is larger than the limit: the limit is 8388608 bytes") as told:
            client.tell(episode, STATES, ACTIONS, loss=[0.0] * 2_000_000)
        assert (told.value.kind, told.value.status, told.value.tries) == ("too-large", 413, 1)
        assert client.tell(episode, STATES, ACTIONS, scenario=1) == "learned"


def test_the_asynchronous_client_plays_episodes_at_once(running: Running) -> None:
    async def play(client: AsyncClient, scenario: int) -> str:
        episode = await client.ask()
        assert (await client.act("good, step 0", episode))["state"] == 0
        return await client.tell(episode, STATES, ACTIONS, scenario=scenario)

    async def main() -> None:
        async with AsyncClient(running.server.address, "machine") as client:
            assert await asyncio.gather(*(play(client, 1 + k % 3) for k in range(9))) == ["learned"] * 9
            assert (await client.state())["told"] == 9
            assert await client.give_up(await client.watch()) == "given up"
            await client.challenge("other", "uniform", episodes=9)
            assert [one["name"] for one in await client.dismiss("other")] == ["ucpd-practical"]
            with pytest.raises(ServiceError, match="is not open") as refused:
                await client.policy("1-x")
            assert refused.value.kind == "unknown-episode"

    asyncio.run(main())


def test_both_clients_have_the_same_methods() -> None:
    def methods(kind: type) -> dict[str, inspect.Signature]:
        return {
            name: inspect.signature(one) for name, one in vars(kind).items() if name.isidentifier() and name[0] != "_"
        }

    assert methods(Client) == methods(AsyncClient)


@pytest.mark.parametrize("name", ["Acted", "State", "Table", "Rules", "Standing", "Spending"])
def test_the_answers_of_the_client_have_the_fields_of_the_service(name: str) -> None:
    assert list(getattr(calls, name).__annotations__) == list(getattr(api, name).__struct_fields__)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make a certificate with")
def test_tls_on_one_side_only_is_reported(running: Running, tmp_path: Path, machine: Path) -> None:
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    line = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 9 -subj /CN=localhost"
    subprocess.run([*line.split(), "-keyout", key, "-out", certificate], check=True, capture_output=True)
    secure = Running(tmp_path / "secure", machine, address=Address(certificate=certificate, key=key))
    secure._opened = lambda: True  # type: ignore[method-assign]
    with secure:
        address = secure.server.address.replace("https", "http")
        for call in (Client(address, "secure", patience=600).state, Client(address, "secure", patience=600).ask):
            with pytest.raises(ServiceError, match=rf"the service at {address[:-1]} speaks TLS; use https://") as told:
                call()
            assert (told.value.kind, told.value.status) == ("wrong-scheme", 0)
    address = running.server.address.replace("http", "https")
    with pytest.raises(ServiceError, match=rf"the service at {address[:-1]} does not speak TLS; use http://"):
        Client(address, "machine", patience=600).state()
