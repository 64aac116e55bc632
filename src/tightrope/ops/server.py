"""`tightrope serve`: learners over HTTP, with Starlette on uvicorn."""

import asyncio
import json
import logging
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import CoroutineType, MappingProxyType
from typing import Any

import msgspec

from tightrope.arguments import printable, shown
from tightrope.errors import InvalidInputError, TightropeError, UnknownEpisodeError, in_words, missing
from tightrope.ops.api import HEADERS, ApiError, Endpoint, Health, Names, Role, endpoints_of
from tightrope.ops.sqlite import JOURNAL
from tightrope.ops.tokens import Tokens, private_text

try:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import HTMLResponse, Response
    from starlette.routing import Route

    from tightrope.ops import openapi
    from tightrope.ops.auth import DATA_POLICY, Auth, Limits, PatientProtocol, error_response, is_loopback
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

#: Seconds after which a thread yields to another one, so that readers do not wait for the thread that learns.
SWITCH_INTERVAL = 0.0005

#: Seconds between two looks at what no request causes: episodes that expire, a disk that has room again.
MAINTAIN_EVERY = 5.0

#: Bytes of the headers of a request.
MOST_HEADERS = 16 * 2**10

#: Bytes of a body that are checked for duplicate keys in the event loop; larger ones in a thread.
SMALL_BODY = 2**16

#: Exceptions that are answered; all others are bugs, logged with their traceback.
EXPECTED = (
    HTTPException, msgspec.DecodeError, UnicodeDecodeError, ClientDisconnect, MemoryError, TightropeError, ApiError,
)  # fmt: skip

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
    """Where to listen, and who may connect."""

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
                f"everybody who reaches {self.host} could change the learner; give a token (--tokens, --token-file, or "
                f"the variable {VARIABLE}), or serve on 127.0.0.1"
            )
        Tokens(self.token, self.tokens)  # refuses what cannot be read
        if self.key is not None and self.key.is_file():  # the server says what else is wrong with it
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
    """Return where learners are, by name: the address of a database, a directory, or those in it."""
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
    """The endpoints of all learners, by name.

    Parameters
    ----------
    learners : by name.
    limits : of requests.
    failed : called with the error if a learner cannot be opened.
    reload : called at SIGHUP, which does not end the service.
    """

    def __init__(
        self,
        learners: Mapping[str, ServedLearner],
        limits: Limits,
        failed: Callable[[Exception], None],
        reload: Callable[[], None] = lambda: None,
    ) -> None:
        self.learners, self.limits, self._failed, self._reload = learners, limits, failed, reload
        self.metrics, self.endpoints = Metrics(learners.values()), endpoints_of(ServedLearner)
        self._document = openapi.document(self.endpoints, list(learners))
        self._docs = openapi.docs_page(self._document)

    @asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        """Open the learners while the service answers already; close them at the end."""
        with suppress(AttributeError, NotImplementedError, RuntimeError, ValueError):  # Windows, or not the main thread
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._reload)
        tasks = [asyncio.create_task(self._open()), asyncio.create_task(self._maintain())]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*(learner.close() for learner in self.learners.values()))

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

    def routes(self) -> list[Route]:
        """Return a route for each path, with all its methods."""
        by_path: dict[str, dict[str, Endpoint]] = {}
        for endpoint in self.endpoints:
            by_path.setdefault(endpoint.path, {})[endpoint.method] = endpoint
        return [
            *(
                _route(path, self._answer(methods), {name: one.role for name, one in methods.items()})
                for path, methods in by_path.items()
            ),
            _route("/learners", lambda request: _json(Names(list(self.learners)))),
            _route("/health", lambda request: _json(Health("ok")), {}),
            _route("/ready", self._ready, {}),
            _route("/metrics", lambda request: Response(self.metrics.text(), media_type=CONTENT_TYPE)),
            _route("/openapi.json", lambda request: _json(self._document)),
            _route("/docs", lambda request: HTMLResponse(self._docs, headers=PAGE_POLICY)),
            _route("/", lambda request: HTMLResponse(openapi.live_page(list(self.learners)), headers=PAGE_POLICY)),
        ]

    def _answer(self, methods: Mapping[str, Endpoint]) -> Callable[[Request], Awaitable[Response]]:
        decoders = {one.method: msgspec.json.Decoder(one.body) for one in methods.values() if one.body is not None}

        async def answer(request: Request) -> Response:
            endpoint = methods["GET" if request.method == "HEAD" else request.method]
            path, query, headers = request.path_params, request.query_params, request.headers
            self._refuse_large(headers)
            arguments: dict[str, Any] = {name: path[name] for name in endpoint.path_parameters}
            for name in endpoint.query:
                arguments[name] = query.get(name)
            for name in endpoint.headers:
                arguments[name] = headers.get(HEADERS[name])
            if endpoint.takes_author:
                arguments["author"] = request.scope.get("author", "")
            if endpoint.body is not None:
                _refuse_media_type(request)
                data = await self._body(request)
                arguments["body"] = decoders[endpoint.method].decode(data)
                if len(data) > SMALL_BODY:
                    await asyncio.to_thread(refuse_duplicate_keys, data)
                else:
                    refuse_duplicate_keys(data)
            learner = self._learner(path["name"])
            try:
                found = endpoint.function(learner, **arguments)
            except UnknownEpisodeError:
                if not await learner.catch_up():
                    raise
                found = endpoint.function(learner, **arguments)  # another replica had opened it
            return _json(await found if isinstance(found, CoroutineType) else found)

        return answer

    def _learner(self, name: str) -> ServedLearner:
        learner = self.learners.get(name)
        if learner is None:
            raise ApiError("unknown-learner", f"the learners here are {', '.join(self.learners)}")
        _refuse_unready(learner)
        return learner

    async def _body(self, request: Request) -> bytes:
        """Return the body; refuse it as soon as it is too large, whatever its header says."""
        chunks, size = [], 0
        try:
            async with asyncio.timeout(self.limits.patience):
                async for chunk in request.stream():
                    size += len(chunk)
                    if size > self.limits.body:
                        raise self._too_large()
                    chunks.append(chunk)
        except TimeoutError:
            words = f"the body was not complete after {self.limits.patience:g} s"
            raise ApiError("too-slow", words, Connection="close") from None
        return b"".join(chunks)

    def _refuse_large(self, headers: Mapping[str, str]) -> None:
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length[:20]) > self.limits.body:
            raise self._too_large()

    def _too_large(self) -> ApiError:
        return ApiError("too-large", f"the limit is {self.limits.body} bytes", Connection="close")

    def _ready(self, request: Request) -> Response:
        try:
            for learner in self.learners.values():
                _refuse_unready(learner)
                if learner.disk_error:
                    learner.retry_disk()
                    raise ApiError("storage", learner.disk_error)
        except ApiError as error:
            if request.scope["roles"]:
                raise
            raise ApiError(error.kind, "send a token to read why") from None
        return _json(Health("ok"))


def _refuse_media_type(request: Request) -> None:
    given = request.headers.get("content-type", "")
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


def _json(value: Any) -> Response:
    return Response(msgspec.json.encode(value), headers=DATA_POLICY, media_type="application/json")


def _route(
    path: str,
    answer: Callable[[Request], Awaitable[Response] | Response],
    roles: Mapping[str, Role] = MappingProxyType({"GET": "read"}),
) -> Route:
    """Return a route that needs a role for each of its methods; without roles, GET needs none."""

    async def placed(request: Request) -> Response:
        request.scope["place"] = path  # for the metrics
        role = roles.get("GET" if request.method == "HEAD" else request.method)
        if role is not None and role not in request.scope["roles"]:
            raise ApiError("no-role", f"the token {request.scope['author']} needs the role {role}")
        found = answer(request)
        return found if isinstance(found, Response) else await found

    return Route(path, placed, methods=list(roles) or ["GET"])


async def _error(request: Request, error: Exception) -> Response:
    """Return the response to an exception."""
    if isinstance(error, msgspec.ValidationError) and isinstance(error.__cause__, TightropeError):
        error = error.__cause__  # a value of the right type that a constructor refused
    if isinstance(error, HTTPException):
        kind = {404: "not-found", 405: "wrong-method"}.get(error.status_code, "malformed")
        return error_response(
            ApiError(kind, f"{request.method} {request.url.path}; see /docs", **(error.headers or {}))
        )
    if isinstance(error, msgspec.DecodeError | UnicodeDecodeError):
        return error_response(ApiError("malformed", str(error)))
    if isinstance(error, MemoryError):
        log.warning("out of memory")
        return error_response(ApiError("no-memory", "send a smaller request, or give the service more memory"))
    if isinstance(error, ClientDisconnect):
        return error_response(ApiError("malformed", "the body is incomplete"))
    return error_response(ApiError.of(error) or ApiError("failed", "see the log of the service"))


def make_app(service: Service, address: Address) -> Auth:
    """Return a service as an ASGI app."""
    app = Starlette(
        routes=service.routes(),
        exception_handlers=dict.fromkeys((*EXPECTED, Exception), _error),
        lifespan=service.lifespan,
    )
    app.router.redirect_slashes = False
    return Auth(app, Tokens(address.token, address.tokens), address.limits, service.metrics)


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
        service = Service(self.learners, address.limits, self._fail, self._reload)
        self._address, self._auth = address, make_app(service, address)
        self._config = config = uvicorn.Config(
            self._auth,
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            http=PatientProtocol,  # h11 limits the headers, and passes on the body of a request to upgrade
            headers=list(SECURITY.items()),
            h11_max_incomplete_event_size=MOST_HEADERS,
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
        self._auth.refresh()
        if self._config.ssl is not None and self._address.certificate is not None:
            try:
                self._config.ssl.load_cert_chain(self._address.certificate, self._address.key)
            except OSError as error:
                log.error("the certificate of before stays in use: %s", in_words(error))
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
