"""The client, when the service fails in the middle of an answer or does not answer."""

import sys
from importlib import import_module
from pathlib import Path
from socket import create_server
from threading import Thread

import pytest

from tightrope.errors import InvalidInputError
from tightrope.ops.client import Client, ServiceError

WHOLE = b'{"answer": "learned"}'
REFUSAL = b'{"type": "x#conflict", "detail": "told otherwise before"}'


def served(*answers: bytes) -> tuple[str, Thread]:
    """Serve the given answers, complete or not, one for each connection; return the address."""
    listener = create_server(("127.0.0.1", 0))

    def serve() -> None:
        with listener:
            for answer in answers:
                connection, _ = listener.accept()
                with connection:
                    connection.recv(65536)
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
    assert Client(address, "machine", patience=20).dismiss("a") == [{"name": "champion"}]
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
def test_a_token_that_is_no_header_is_refused_and_not_shown(token: str) -> None:
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
