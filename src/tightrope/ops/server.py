"""`tightrope serve`: find or make the learners, listen, and end so that nothing acknowledged is lost."""

import os
import socket
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tightrope.arguments import printable
from tightrope.errors import InvalidInputError, in_words, missing
from tightrope.ops.learner import DurableLearner
from tightrope.ops.limits import Limits
from tightrope.ops.store import JOURNAL
from tightrope.ops.tables import Tables

try:
    import uvicorn

    from tightrope.ops.app import make_app
    from tightrope.ops.auth import is_loopback
    from tightrope.ops.served_learner import Keeper, Opener
except ImportError as error:
    raise missing(str(error.name), "service") from error

#: Where the token may be, if no file is named.
VARIABLE = "TIGHTROPE_TOKEN"

#: Shorter ones can be guessed.
SHORTEST_TOKEN = 16

#: Seconds that requests under way may take after a signal; and connections that nobody speaks on are kept.
GRACE, KEEP_ALIVE = 10, 30

#: Seconds after which a thread of Python gives way to another: whoever reads waits no longer for one who writes.
GIVE_WAY = 0.0005

#: Bytes of the headers of a request.
MOST_HEADERS = 16 * 2**10

#: Connections, and requests under way, at once; files that a process may open are few.
MOST_CONNECTIONS = 500


@dataclass(frozen=True)
class Made:
    """A learner to begin with, where there is none; and the problem that it is for."""

    folder: Path
    problem: Any
    learner: Any


@dataclass(frozen=True)
class Place:
    """Where to listen, and who may speak."""

    host: str = "127.0.0.1"
    port: int = 0
    token: str | None = None
    certificate: Path | None = None
    key: Path | None = None
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if self.token is None and not self.loopback:
            raise InvalidInputError(
                f"whoever reaches {self.host} could tell the learner anything; give a token (--token-file, or the "
                f"variable {VARIABLE}), or serve on 127.0.0.1"
            )
        if self.token is not None and (len(self.token) < SHORTEST_TOKEN or not self.token.isascii()):
            raise InvalidInputError(f"the token must have at least {SHORTEST_TOKEN} characters, of ASCII")
        if self.key is not None and self.certificate is None:
            raise InvalidInputError("a key needs its certificate")

    @property
    def loopback(self) -> bool:
        """Whether only this machine can come here."""
        return is_loopback(self.host)

    def listen(self) -> socket.socket:
        """A socket that is bound already, so that its port is known."""
        try:
            family, _, _, _, address = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)[0]
            return socket.create_server(address[:2], family=family)
        except (OSError, OverflowError, UnicodeError) as error:
            raise InvalidInputError(f"cannot serve at {self.host}, port {self.port}: {error}; choose others") from error


def token_of(file: Path | None) -> str | None:
    """The token: in a file, in the environment, or none."""
    if file is None:
        found = os.environ.get(VARIABLE)
        return None if found is None else found.strip()  # a shell may leave a newline
    try:
        return file.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        words = in_words(error) if isinstance(error, OSError) else f"{file}: no text"
        raise InvalidInputError(f"cannot read the token: {words}") from error


def learners_in(directory: Path, made: Made | None) -> dict[str, Path]:
    """The folders of learners by name: the directory itself, or those in it."""
    folders = [directory] if (directory / JOURNAL).is_file() else []
    if not folders and directory.is_dir():
        folders = sorted(path for path in directory.iterdir() if (path / JOURNAL).is_file())
    if made is not None and made.folder not in folders:
        if directory in folders:
            raise InvalidInputError(f"{printable(directory)} is the directory of one learner; name one for several")
        folders.append(made.folder)
    if not folders:
        raise InvalidInputError(f"there is no learner in {printable(directory)}; make one with --problem and --learner")
    found = {path.resolve().name: path for path in folders}
    for name in found:
        if not _is_text(name):
            raise InvalidInputError(f"the name of the folder {printable(name)} is not UTF-8; rename it")
    return found


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:  # bytes that Python could not read
        return False
    return True


def opener(folder: Path, made: Made | None, **options: Any) -> Opener:
    """What opens the learner in `folder`, or makes it and keeps the tables of its problem."""

    def open_learner(progress: Callable[[int], None]) -> DurableLearner:
        if made is None or made.folder != folder:
            return DurableLearner(folder, progress=progress, **options)
        with ExitStack() as stack:
            given = {"problem": made.problem, "progress": progress, **options}
            learner = stack.enter_context(DurableLearner(folder, made.learner, **given))
            Tables.of(made.problem).write(folder)
            stack.pop_all()
        return learner

    return open_learner


class Server:
    """Listens already when it is made, so that its address is known; answers once it runs."""

    def __init__(self, directory: Path, place: Place, made: Made | None = None, **options: Any) -> None:
        self.keepers = {
            name: Keeper(name, folder, opener(folder, made, **options), place.limits.waiting)
            for name, folder in learners_in(directory, made).items()
        }
        self._failures: list[Exception] = []
        config = uvicorn.Config(
            make_app(self.keepers, token=place.token, limits=place.limits, failed=self._fail),
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            http="h11",  # it limits headers, and has a request to upgrade come as it is, with its body
            h11_max_incomplete_event_size=MOST_HEADERS,
            ws="none",
            lifespan="on",
            limit_concurrency=MOST_CONNECTIONS,
            timeout_keep_alive=KEEP_ALIVE,
            timeout_graceful_shutdown=GRACE,
            ssl_certfile=place.certificate,
            ssl_keyfile=place.key,
        )
        try:
            config.load()
        except OSError as error:
            files = " and ".join(printable(file) for file in (place.certificate, place.key) if file is not None)
            words = f"{files}: {in_words(error)}; name files in PEM"
            raise InvalidInputError(f"the certificate or its key cannot be used: {words}") from error
        self._server, self._socket = uvicorn.Server(config), place.listen()
        host, port = self._socket.getsockname()[:2]
        self.address = f"{'https' if place.certificate else 'http'}://{f'[{host}]' if ':' in host else host}:{port}/"

    def _fail(self, error: Exception) -> None:
        self._failures.append(error)
        self.stop()

    def run(self) -> None:
        """Answer until a signal comes, or `stop`; then finish what is under way."""
        sys.setswitchinterval(GIVE_WAY)
        with self._socket:
            self._server.run(sockets=[self._socket])
        if self._failures:
            raise self._failures[0]

    def stop(self) -> None:
        """End soon; from any thread."""
        self._server.should_exit = True
