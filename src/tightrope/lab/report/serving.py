"""The page of a study that is being played, on this machine alone: it can be read, and nothing else."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import Any

from tightrope.errors import InvalidInputError
from tightrope.lab.folder import HISTORY, RUNS, progress
from tightrope.lab.report.content import content
from tightrope.lab.report.page import as_json, page

HOST = "127.0.0.1"


class Latest:
    """What the page shows of a study, made anew only where its runs have written something."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = Lock()
        self._stamps: list[tuple[str, int]] = []
        self._content: dict[str, Any] = {}

    def content(self) -> dict[str, Any]:
        """What is there now."""
        with self._lock:
            found = sorted(self.folder.glob(f"{RUNS}/*/{HISTORY}"))
            stamps = [(path.parent.name, path.stat().st_mtime_ns) for path in found]
            if not self._content or stamps != self._stamps:
                self._content, self._stamps = content(self.folder, live=True), stamps
            return self._content | {"progress": asdict(progress(self.folder))}


class Handler(BaseHTTPRequestHandler):
    """Two answers: the page, and what is new on it."""

    latest: Latest
    server: ThreadingHTTPServer

    def do_GET(self) -> None:
        """The page at /, its content at /content.json."""
        # a name that leads here from elsewhere could let other pages read along
        if self.headers.get("Host") not in [f"{name}:{self.server.server_port}" for name in (HOST, "localhost")]:
            return self.send_error(403)
        if self.path not in ("/", "/content.json"):
            return self.send_error(404)
        try:
            found = self.latest.content()
        except FileNotFoundError:  # runs are being thrown away, to be played anew
            return self.send_error(503)
        if self.path == "/":
            return self._answer("text/html", page(found))
        return self._answer("application/json", as_json(found))

    def _answer(self, kind: str, text: str) -> None:
        data = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: whoever plays has the terminal."""


class Server(ThreadingHTTPServer):
    """Ends with the command, and is silent about readers who go away in the middle of an answer."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: whoever plays has the terminal."""


@contextmanager
def served(folder: Path, port: int = 0) -> Iterator[str]:
    """Yield the address at which the page of the study in `folder` can be read until the block is left."""
    handler = type("OfFolder", (Handler,), {"latest": Latest(folder)})
    try:
        server = Server((HOST, port), handler)
    except (OSError, OverflowError) as error:
        raise InvalidInputError(f"cannot serve at port {port}: {error}; choose another with --port") from error
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
    thread.start()
    try:
        yield f"http://{HOST}:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
