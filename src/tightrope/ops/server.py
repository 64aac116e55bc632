"""`tightrope serve`: learners over HTTP, on uvicorn."""

import asyncio
import json
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from types import CoroutineType
from typing import Any

import msgspec

from tightrope.arguments import printable, shown
from tightrope.errors import InvalidInputError, TightropeError, UnknownEpisodeError, in_words, missing
from tightrope.ops.api import HEADERS, ApiError, Endpoint, Health, Names, Role, endpoints_of
from tightrope.ops.logs import REQUEST, Seldom
from tightrope.ops.sqlite import JOURNAL
from tightrope.ops.tokens import Tokens, private_text

try:
    import uvicorn

    from tightrope.ops import openapi
    from tightrope.ops.auth import HEALTH, READY, Auth, Limits, is_loopback
    from tightrope.ops.http import (
        Connection,
        Handler,
        Receive,
        Request,
        Response,
        Route,
        Routes,
        Scope,
        Send,
        encoded,
        error_response,
        json_response,
    )
    from tightrope.ops.metrics import CONTENT_TYPE, Metrics
    from tightrope.ops.served_learner import NewLearner as NewLearner
    from tightrope.ops.served_learner import ServedLearner
except ImportError as error:
    raise missing(str(error.name), "service") from error

log = logging.getLogger("tightrope.service")

#: The environment variable with the token, if no file is given.
VARIABLE = "TIGHTROPE_TOKEN"

#: Seconds that requests may take after a signal, and that an idle connection is kept.
GRACE, KEEP_ALIVE = 10, 30

#: Seconds after which a thread gives way to another one, so that readers need not wait for the thread that learns.
SWITCH_INTERVAL = 0.0005

#: Seconds between two checks of what no request causes: episodes that expire, a disk that has room again.
MAINTAIN_EVERY = 5.0

#: Bytes of a body that are checked for duplicate keys in the event loop; larger ones in a thread.
SMALL_BODY = 2**16

#: Headers of every response.
SECURITY = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}

#: The pages contain their scripts and styles; they may send requests to this service only, and no page may frame them.
PAGE_POLICY = {
    "Content-Security-Policy": "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}


@dataclass(frozen=True)
class Address:
    """Where a service listens, with its tokens and limits."""

    host: str = "127.0.0.1"
    port: int = 0
    token: str | None = None  #: with all roles
    tokens: Path | None = None  #: a file of tokens (`tightrope.ops.tokens`)
    certificate: Path | None = None
    key: Path | None = None
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if not self.guarded and not self.loopback:
            raise InvalidInputError(
                f"anybody who can reach {self.host} could change the learner; give a token (--tokens, --token-file, or "
                f"the variable {VARIABLE}), or serve on 127.0.0.1"
            )
        Tokens(self.token, self.tokens)  # refuses a file that cannot be read
        if self.key is not None and self.key.is_file():  # other errors are raised by the server
            private_text(self.key, "the key")
        if self.key is not None and self.certificate is None:
            raise InvalidInputError("a key needs its certificate; pass both")

    @property
    def guarded(self) -> bool:
        """Whether requests need a token."""
        return self.token is not None or self.tokens is not None

    @property
    def loopback(self) -> bool:
        """Whether only this machine can connect."""
        return is_loopback(self.host)

    def listen(self) -> socket.socket:
        """Return a bound socket, so that its port is known."""
        try:
            family, _, _, _, address = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)[0]
            return socket.create_server(address[:2], family=family)
        except (OSError, OverflowError, UnicodeError) as error:
            raise InvalidInputError(
                f"cannot serve at {self.host}, port {self.port}: {error}; choose another address or port"
            ) from error


def token_of(file: Path | None) -> str | None:
    """Return the token from a file, or from the environment; None if there is none."""
    if file is None:
        found = os.environ.get(VARIABLE)
        return None if found is None else found.strip()  # a shell may leave a newline
    return private_text(file, "the token").strip()


def learners_at(place: Path | str, new: NewLearner | None) -> Mapping[str, Path | str]:
    """Return the places of learners, by name: a database, one directory, or the directories in it."""
    if isinstance(place, Path):
        return _learners_in(place, new)
    from tightrope.ops.postgres import Address as Database

    address = place if new is None else str(new.place)
    return {Database.read(address).name: address}


def _learners_in(directory: Path, new: NewLearner | None) -> dict[str, Path]:
    folders = [directory] if (directory / JOURNAL).is_file() else []
    if not folders and directory.is_dir():
        folders = sorted(path for path in directory.iterdir() if (path / JOURNAL).is_file())
    if new is not None and new.place not in folders:
        if directory in folders:
            raise InvalidInputError(
                f"{printable(directory)} is the directory of one learner; choose another one to serve several"
            )
        folders.append(Path(new.place))
    if not folders:
        raise InvalidInputError(f"there is no learner in {printable(directory)}; make one with --problem and --learner")
    found = {path.resolve().name: path for path in folders}
    for name in found:
        if any("\ud800" <= character <= "\udfff" for character in name):  # Python's escape for other bytes
            raise InvalidInputError(f"the name of the folder {printable(name)} is not UTF-8; rename it")
    return found


class Service:
    """An ASGI app: the endpoints of all learners, by name.

    Parameters
    ----------
    learners : by name.
    address : with the tokens and the limits of requests.
    failed : called with the error if a learner cannot be opened.
    reload : called at SIGHUP, which does not end the service.
    """

    def __init__(
        self,
        learners: Mapping[str, ServedLearner],
        address: Address,
        failed: Callable[[Exception], None],
        reload: Callable[[], None] = lambda: None,
    ) -> None:
        self.learners, self.limits, self._failed, self._reload = learners, address.limits, failed, reload
        self.metrics = Metrics(learners.values())
        self.auth = Auth(Tokens(address.token, address.tokens), address.limits, self.metrics)
        self._endpoints = endpoints_of(ServedLearner)
        self._document = openapi.document(self._endpoints, list(learners))
        self._docs = openapi.docs_page(self._document).encode()
        self.routes = self._made_routes()
        self._handlers, self._seldom = Routes(self.routes), Seldom()
        self._answering = 0  #: requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, count it and log it."""
        if scope["type"] == "lifespan":
            return await self._live(receive, send)
        began, status, request = perf_counter(), 500, Request(scope, receive)
        fields = {"request": request.id.decode(), "address": request.address}
        fields |= {"method": scope["method"], "path": request.path}
        REQUEST.set(fields)
        self._answering += 1
        try:
            try:
                self.auth.admit(request, self._answering)
                fields["author"] = request.author
                found = self._handlers.handler(request)(request)
                response = found if isinstance(found, Response) else await found
            except Exception as error:
                response = error_response(_error(error))
            status = response.status
            await response.send(receive, send, request.id)
        finally:
            self._answering -= 1
            seconds = perf_counter() - began
            self.metrics.count(request.place, scope["method"], status, seconds)
            self._log(request, status, seconds)

    def _log(self, request: Request, status: int, seconds: float) -> None:
        """Log a request; one that failed as a warning, of which each address causes one per second at most."""
        level, before = logging.INFO, 0
        if status >= 500 and request.path not in (HEALTH, READY):
            found = self._seldom.due((request.address, status), self.auth.clock())
            if found is not None:
                level, before = logging.WARNING, found
        if log.isEnabledFor(level):
            more = {"before": before} if status >= 500 else {}
            log.log(level, "answered", extra={"fields": {"status": status, "seconds": round(seconds, 6), **more}})

    async def _live(self, receive: Receive, send: Send) -> None:
        """Open the learners while the service answers already; close them at the end."""
        with suppress(AttributeError, NotImplementedError, RuntimeError, ValueError):  # Windows, or not the main thread
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._reload)
        await receive()
        tasks = [asyncio.create_task(self._open()), asyncio.create_task(self._maintain())]
        await send({"type": "lifespan.startup.complete"})
        await receive()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*(learner.close() for learner in self.learners.values()))
        await send({"type": "lifespan.shutdown.complete"})

    async def _open(self) -> None:
        for learner in self.learners.values():
            try:
                await learner.open()
            except Exception as error:
                self._failed(error)

    async def _maintain(self) -> None:
        while True:
            await asyncio.sleep(MAINTAIN_EVERY)
            for learner in self.learners.values():
                if learner.ready:
                    await learner.maintain()

    def _made_routes(self) -> list[Route]:
        """Return a route for each path, with all its methods."""
        by_path: dict[str, dict[str, tuple[Role | None, Handler]]] = {}
        for endpoint in self._endpoints:
            by_path.setdefault(endpoint.path, {})[endpoint.method] = endpoint.role, self._handler(endpoint)
        pages = encoded({"Content-Type": "text/html; charset=utf-8", **PAGE_POLICY})
        text = encoded({"Content-Type": CONTENT_TYPE})
        common: dict[str, tuple[Role | None, Handler]] = {
            "/learners": ("read", lambda request: json_response(Names(list(self.learners)))),
            HEALTH: (None, lambda request: json_response(Health("ok"))),
            READY: (None, self._ready),
            "/metrics": ("read", lambda request: Response(self.metrics.text(), text)),
            "/openapi.json": ("read", lambda request: json_response(self._document)),
            "/docs": ("read", lambda request: Response(self._docs, pages)),
            "/": ("read", lambda request: Response(openapi.live_page(list(self.learners)).encode(), pages)),
        }
        by_path |= {path: {"GET": found} for path, found in common.items()}
        return [Route(path, methods) for path, methods in by_path.items()]

    def _handler(self, endpoint: Endpoint) -> Handler:
        """Return the handler of an endpoint: it collects the arguments, calls the method, and encodes the result."""
        decode = None if endpoint.body is None else msgspec.json.Decoder(endpoint.body).decode
        headers = {name: HEADERS[name].lower().encode() for name in endpoint.headers}

        async def answer(request: Request) -> Response:
            request.refuse_larger(self.limits.body)
            arguments: dict[str, Any] = {name: request.parameters[name] for name in endpoint.path_parameters}
            query = request.query if endpoint.query else {}
            arguments |= {name: query.get(name) for name in endpoint.query}
            arguments |= {name: request.header(header) for name, header in headers.items()}
            if endpoint.takes_author:
                arguments["author"] = request.author
            if decode is not None:
                arguments["body"] = await self._decoded(request, decode)
            learner = self._learner(request)
            try:
                found = endpoint.function(learner, **arguments)
                return json_response(await found if isinstance(found, CoroutineType) else found)
            except UnknownEpisodeError:
                if not await learner.catch_up():
                    raise
                found = endpoint.function(learner, **arguments)  # another replica had opened it
                return json_response(await found if isinstance(found, CoroutineType) else found)

        return answer

    async def _decoded(self, request: Request, decode: Callable[[bytes], Any]) -> Any:
        """Return the body of a request, which must be JSON without duplicate keys."""
        _refuse_media_type(request)
        data = await request.body(self.limits.body, self.limits.patience)
        found = decode(data)
        if len(data) > SMALL_BODY:
            await asyncio.to_thread(refuse_duplicate_keys, data)
        else:
            refuse_duplicate_keys(data)
        return found

    def _learner(self, request: Request) -> ServedLearner:
        learner = self.learners.get(request.parameters["name"])
        if learner is None:
            raise ApiError("unknown-learner", f"the learners here are {', '.join(self.learners)}")
        _refuse_unready(learner)
        return learner

    def _ready(self, request: Request) -> Response:
        try:
            for learner in self.learners.values():
                _refuse_unready(learner)
                if learner.disk_error:
                    learner.retry_disk()
                    raise ApiError("storage", learner.disk_error)
        except ApiError as error:
            if request.roles:
                raise
            raise ApiError(error.kind, "send a token to read why") from None
        return json_response(Health("ok"))


def _refuse_media_type(request: Request) -> None:
    given = request.header(b"content-type") or ""
    if given.partition(";")[0].strip().lower() != "application/json":
        what = f"it is {given!r}" if given else "it is missing"
        raise ApiError("wrong-type", f"the header Content-Type must be application/json; {what}", Connection="close")


def refuse_duplicate_keys(data: bytes) -> None:
    """Raise ApiError if an object in valid JSON has a key twice: parsers disagree about which value counts."""

    def check(pairs: list[tuple[str, Any]]) -> None:
        keys = set[str]()
        for key, _ in pairs:
            if key in keys:
                raise ApiError("malformed", f"the key {shown(key)} appears twice in one object; send it once")
            keys.add(key)

    json.loads(data, object_pairs_hook=check, parse_int=float)  # an int of many digits is refused by Python


def _refuse_unready(learner: ServedLearner) -> None:
    if not learner.ready:
        raise ApiError("not-ready", f"{learner.name} is being opened or closed")


def _error(error: Exception) -> ApiError:
    """Return the error that is sent for an exception; a bug is logged with its traceback."""
    if isinstance(error, msgspec.ValidationError) and isinstance(error.__cause__, TightropeError):
        error = error.__cause__  # a value of the right type that a constructor refused
    if isinstance(error, msgspec.DecodeError | UnicodeDecodeError):
        return ApiError("malformed", str(error))
    if isinstance(error, MemoryError):
        log.warning("out of memory")
        return ApiError("no-memory", "send a smaller request, or give the service more memory")
    found = ApiError.of(error)
    if found is None:
        log.error("an internal error", exc_info=error)
    return found or ApiError("failed", "see the log of the service")


class Server:
    """A service that listens from the start, so that its address is known, and answers once it runs.

    Parameters
    ----------
    place : the directory of one learner, or with a directory for each of several; or the address of a database.
    address : where to listen.
    new : a learner to create.
    options : of `DurableLearner`.
    """

    def __init__(self, place: Path | str, address: Address, new: NewLearner | None = None, **options: Any) -> None:
        waiting, created = address.limits.waiting, None if new is None else new.place
        self.learners = {
            name: ServedLearner(name, found, waiting, new if found == created else None, **options)
            for name, found in learners_at(place, new).items()
        }
        self._failures: list[Exception] = []
        self._address = address
        self.service = Service(self.learners, address, self._fail, self._reload)
        self._config = config = uvicorn.Config(
            self.service,
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            http=Connection,
            headers=list(SECURITY.items()),
            ws="none",
            lifespan="on",
            timeout_keep_alive=KEEP_ALIVE,
            timeout_graceful_shutdown=GRACE,
            ssl_certfile=address.certificate,
            ssl_keyfile=address.key,
        )
        try:
            config.load()
        except OSError as error:
            given = " and ".join(printable(file) for file in (address.certificate, address.key) if file is not None)
            words = f"{given}: {in_words(error)}; pass PEM files"
            raise InvalidInputError(f"the certificate or its key cannot be used: {words}") from error
        self._server, self._socket = uvicorn.Server(config), address.listen()
        host, port = self._socket.getsockname()[:2]
        scheme = "https" if address.certificate else "http"
        self.address = f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}/"

    def _reload(self) -> None:
        """Read the tokens and the certificate again; new connections get the new one."""
        self.service.auth.refresh()
        if self._config.ssl is not None and self._address.certificate is not None:
            try:
                self._config.ssl.load_cert_chain(self._address.certificate, self._address.key)
            except OSError as error:
                log.error("the previous certificate stays in use: %s", in_words(error))
            else:
                log.warning("the certificate was read again")

    def _fail(self, error: Exception) -> None:
        self._failures.append(error)
        self.stop()

    def run(self) -> None:
        """Answer until a signal or `stop`; then finish the requests in progress.

        Raises the error of a learner that could not be opened.
        """
        sys.setswitchinterval(SWITCH_INTERVAL)
        with self._socket:
            self._server.run(sockets=[self._socket])
        if self._failures:
            raise self._failures[0]

    def stop(self) -> None:
        """Stop soon; may be called from any thread."""
        self._server.should_exit = True
