"""Clients that disconnect, send half or too much; signals and SIGKILL under load: no loss."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from fuzz.service import disturb
from tests.service.running import Running
from tests.service.test_service import WEEK
from tightrope import DurableLearner
from tightrope.ops.auth import Limits
from tightrope.ops.server import Address
from tightrope.service import Client


def connected(running: Running) -> socket.socket:
    parts = urlsplit(running.server.address)
    return socket.create_connection((parts.hostname, parts.port), timeout=600)


def hang_up_after(running: Running, data: bytes) -> None:
    with connected(running) as connection:
        connection.sendall(data)


def status_after(running: Running, data: bytes) -> bytes:
    """Return the first line of the answer."""
    with connected(running) as connection, connection.makefile("rb") as answer:
        connection.sendall(data)
        return answer.readline()


def sent_before_it_hung_up(running: Running, head: bytes, piece: bytes, most: int) -> int:
    """Return how many bytes of a body could be sent."""
    with connected(running) as connection:
        connection.sendall(head)
        sent = 0
        try:
            while sent < most:
                connection.sendall(piece)
                sent += len(piece)
        except ConnectionError:
            pass
        return sent


def post(place: str, *headers: str) -> bytes:
    always = "Host: localhost", "Content-Type: application/json"
    return "\r\n".join([f"POST {place} HTTP/1.1", *always, *headers, "", ""]).encode()


def test_clients_that_disconnect_do_not_harm_others(running: Running) -> None:
    episode = running.ask()
    tell, body = f"/learners/machine/episodes/{episode}/tell", json.dumps(WEEK).encode()
    whole = post(tell, f"Content-Length: {len(body)}") + body
    for cut in range(0, len(whole), 7):
        hang_up_after(running, whole[:cut])
    hang_up_after(running, post(tell, "Transfer-Encoding: chunked") + b'9\r\n{"sta')
    hang_up_after(running, b"\x00\xff" * 500)
    assert running.of("/episodes")["open"] == [episode]
    assert running.of("/state")["told"] == 0
    hang_up_after(running, whole)  # all was sent, so the episode is learned, once
    assert running.tell(episode, WEEK).status == 200
    assert running.of("/state")["told"] == 1


def test_a_large_body_is_refused_while_it_arrives(tmp_path: Path, machine: Path) -> None:
    with Running(tmp_path / "machine", machine, address=Address(limits=Limits(body=1000))) as running:
        episode = running.ask()
        tell = f"/learners/machine/episodes/{episode}/tell"
        answer = running.tell(episode, b" " * 1001)
        assert answer.kind == "too-large"
        assert answer.body["detail"] == "the limit is 1000 bytes"
        assert b" 413 " in status_after(running, post(tell, f"Content-Length: {2**30}"))
        for unwanted in (
            post("/learners/machine/ask"),
            b"GET /learners/machine/state HTTP/1.1\r\nHost: localhost\r\n\r\n",
        ):
            length = f"Content-Length: {2**30}\r\n\r\n".encode()
            assert b" 413 " in status_after(running, unwanted.removesuffix(b"\r\n") + length)
        assert running.of("/episodes")["open"] == [episode]
        chunked, chunk = post(tell, "Transfer-Encoding: chunked"), b"10000\r\n" + bytes(2**16) + b"\r\n"
        assert b" 413 " in status_after(running, chunked + chunk)
        for head in (chunked, post(tell, f"Content-Length: {2**30}")):
            assert sent_before_it_hung_up(running, head, chunk, most=2**30) < 2**25  # what sockets hold
        assert running.tell(episode, WEEK).status == 200


def test_a_body_that_does_not_arrive_times_out(tmp_path: Path, machine: Path) -> None:
    with Running(tmp_path / "machine", machine, address=Address(limits=Limits(patience=0.05))) as running:
        half = post("/learners/machine/episodes/1-x/tell", "Content-Length: 100") + b"{"
        assert b" 408 " in status_after(running, half)


def test_a_request_to_upgrade_is_answered_as_usual(running: Running) -> None:
    """Java's HttpClient and `curl --http2` offer another protocol with the first request."""
    episode, body = running.ask(), json.dumps(WEEK).encode()
    offer = "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA"
    tell = post(f"/learners/machine/episodes/{episode}/tell", *offer, f"Content-Length: {len(body)}") + body
    assert b" 200 " in status_after(running, tell)
    assert running.of("/state")["told"] == 1


def test_a_connection_goes_on_after_an_upgrade_was_offered(running: Running) -> None:
    """The body of the first request arrives later than its headers, together with a second request."""
    body = json.dumps(WEEK).encode()
    tells = [
        post(
            f"/learners/machine/episodes/{running.ask()}/tell", "Connection: Upgrade", "Upgrade: h2c",
            f"Content-Length: {len(body)}",
        ) + body
        for _ in range(2)
    ]  # fmt: skip
    with connected(running) as connection:
        connection.sendall(tells[0][:-20])
        assert running.get("/health").status == 200  # the first part has arrived
        connection.sendall(tells[0][-20:] + tells[1])
        answers = b""
        while answers.count(b"learned") < 2 and (piece := connection.recv(2**16)):
            answers += piece
    assert answers.count(b"HTTP/1.1 200 ") == 2
    assert running.of("/state")["told"] == 2


def test_headers_may_arrive_in_pieces_before_a_large_body(running: Running) -> None:
    path, body = f"/learners/machine/episodes/{running.ask()}/tell", json.dumps(WEEK).encode() + b" " * 2**17
    head = post(path, "X-Long: " + "x" * 12_000, f"Content-Length: {len(body)}")
    with connected(running) as connection, connection.makefile("rb") as answer:
        for start in range(0, 12_000, 3_000):
            connection.sendall(head[start : start + 3_000])
            assert running.get("/health").status == 200
        connection.sendall(head[12_000:] + body)
        assert b" 200 " in answer.readline()


@pytest.mark.parametrize("data", [b"\x00\xff" * 50, b"CONNECT example.org:80 HTTP/1.1\r\nHost: localhost\r\n\r\n"])
def test_what_is_not_a_request_is_refused_as_a_problem(running: Running, data: bytes) -> None:
    with connected(running) as connection, connection.makefile("rb") as answer:
        connection.sendall(data)
        text = answer.read()  # to its end: the connection is closed
    assert text.startswith(b"HTTP/1.1 400 ")
    assert b"application/problem+json" in text and b"/docs#malformed" in text


def test_endless_headers_are_refused(running: Running) -> None:
    head = post("/learners/machine/ask").removesuffix(b"\r\n")
    assert b" 200 " in status_after(running, head + b"X-Long: " + b"x" * 15_000 + b"\r\n\r\n")
    assert b" 400 " in status_after(running, head + b"X-Long: " + b"x" * 2**15)
    many = b"".join(b"X-%d: x\r\n" % k for k in range(4000))
    assert b" 400 " in status_after(running, head + many)
    for endless in (head + b"X-Long: ", b"GET /"):
        assert sent_before_it_hung_up(running, endless, b"x" * 2**16, most=2**30) < 2**25  # what sockets hold
    assert len(running.of("/episodes")["open"]) == 1


@pytest.mark.parametrize(
    ("number", "before"),
    [(signal.SIGTERM, signal.SIG_DFL), (signal.SIGINT, signal.SIG_DFL), (signal.SIGINT, signal.SIG_IGN)],
)
def test_a_signal_ends_the_service_without_loss(
    tmp_path: Path, machine: Path, number: signal.Signals, before: signal.Handlers
) -> None:
    """Also SIGINT that is ignored, as in the background of a script."""
    command = ["serve", str(tmp_path / "it"), "--problem", str(machine), "--port", "0"]
    process = subprocess.Popen(
        [sys.executable, "-m", "tightrope.cli", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, before),
    )  # fmt: skip
    assert process.stdout is not None
    client = Client(process.stdout.readline().strip(), "it", patience=600)
    for _ in range(2):
        client.tell(client.ask(), **WEEK)  # type: ignore[arg-type]
    os.kill(process.pid, number)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 128 + number
    assert [line for line in said.splitlines() if line.startswith("tightrope: ")] == [
        "tightrope: interrupted" if number == signal.SIGINT else "tightrope: ended on request (SIGTERM)"
    ]
    with DurableLearner(tmp_path / "it") as learner:
        assert learner.status.told == 2


def test_a_service_killed_under_load_keeps_the_same_bits(tmp_path: Path) -> None:
    found = disturb(tmp_path, kills=3, interrupts=1, seed=1, n_clients=3, say=print)
    assert found["learned"] >= 3
