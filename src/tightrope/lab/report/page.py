"""The page of a study: one HTML file that makes no requests, or a live page that is served on the loopback address."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from string import Template
from threading import Lock, Thread
from typing import Any

from tightrope.errors import InvalidInputError
from tightrope.lab.folder import HISTORY, RUNS, progress
from tightrope.lab.report.content import content
from tightrope.storage.files import write_bytes

ASSETS = files("tightrope.lab.report") / "assets"

#: In the order in which they are put into a page; the library first.
STYLES = ("uPlot-1.6.32.min.css", "page.css")
SCRIPTS = ("uPlot-1.6.32.min.js", "elements.js", "charts.js", "tables.js", "policies.js", "figures.js")
LICENCE = "uPlot-1.6.32.LICENSE"  # to be kept with every copy

#: Characters that could end the element of the content, as escapes of JSON.
HARMLESS = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


def write_page(folder: Path, path: Path) -> None:
    """Write the page about the study in `folder`."""
    from tightrope.lab.report.content import content

    write_bytes(path, page(content(folder)).encode())


def page(content: Mapping[str, Any]) -> str:
    """Return the page of this content as HTML."""
    return whole_page(str(content["title"]), content, asset("page.js"), live=bool(content["live"]))


def whole_page(title: str, content: Mapping[str, Any], script: str, *, live: bool) -> str:
    """Return a page that needs no other file; no text in `content` can end its element or be executed.

    Parameters
    ----------
    script : draws the content.
    live : whether the script may request new content from where the page came from.
    """
    return Template(asset("page.html")).substitute(
        title=escape(title),
        connect="'self'" if live else "'none'",
        styles="\n".join(map(asset, STYLES)),
        scripts="\n".join([*map(asset, SCRIPTS), script]),
        licence=asset(LICENCE),
        content=as_json(content).translate(HARMLESS),
    )


def as_json(content: Mapping[str, Any]) -> str:
    """Return compact JSON in ASCII; lone surrogates, which file names may have, are escaped."""
    return json.dumps(content, separators=(",", ":"), allow_nan=False)


def asset(name: str) -> str:
    """Return the text of an asset."""
    return (ASSETS / name).read_text("utf-8")


HOST = "127.0.0.1"


class Latest:
    """The content of the page, made again only when a run has written something."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = Lock()
        self._stamps: list[tuple[str, int]] = []
        self._content: dict[str, Any] = {}

    def content(self) -> dict[str, Any]:
        """Return the current content."""
        with self._lock:
            found = sorted(self.folder.glob(f"{RUNS}/*/{HISTORY}"))
            stamps = [(path.parent.name, path.stat().st_mtime_ns) for path in found]
            if not self._content or stamps != self._stamps:
                self._content, self._stamps = content(self.folder, live=True), stamps
            return self._content | {"progress": asdict(progress(self.folder))}


class Handler(BaseHTTPRequestHandler):
    """Answers two requests: the page, and its content."""

    latest: Latest
    server: ThreadingHTTPServer

    def do_GET(self) -> None:
        """Answer / with the page, /content.json with its content."""
        # against DNS rebinding, by which other pages could read this one
        if self.headers.get("Host") not in [f"{name}:{self.server.server_port}" for name in (HOST, "localhost")]:
            return self.send_error(403)
        if self.path not in ("/", "/content.json"):
            return self.send_error(404)
        try:
            found = self.latest.content()
        except FileNotFoundError:  # runs are being discarded, to start over
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
        """Print nothing: the terminal belongs to the command."""


class Server(ThreadingHTTPServer):
    """Ends with the command, and prints nothing about clients that disconnect."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing: the terminal belongs to the command."""


@contextmanager
def served(folder: Path, port: int = 0) -> Iterator[str]:
    """Serve the page of the study in `folder` until the block ends; yield its address."""
    handler = type("OfFolder", (Handler,), {"latest": Latest(folder)})
    try:
        server = Server((HOST, port), handler)
    except (OSError, OverflowError) as error:
        raise InvalidInputError(f"cannot listen on port {port}: {error}; choose another with --port") from error
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
    thread.start()
    try:
        yield f"http://{HOST}:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
