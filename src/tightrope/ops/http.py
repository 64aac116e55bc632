"""HTTP on ASGI: connections, requests, responses and routes."""

import asyncio
import random
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from time import monotonic
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

import httptools
import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tightrope.ops.api import ApiError, Role

#: An id of a request that is taken from the client; others are replaced.
REQUEST_ID = re.compile(rb"[!-~]{1,100}")

#: Seconds after which a client may try again.
RETRY_AFTER = "1"

#: What a client may still send after its request was refused as too large: seconds, and bytes.
LINGER, LINGER_BYTES = 2.0, 16 * 2**20

#: Connections at once; a process may open only so many files.
MOST_CONNECTIONS = 500

#: Seconds from the first byte of a request, or from the connection, until its headers are complete.
HEADERS_WITHIN = 10.0

#: Bytes of the URL and the headers of a request.
MOST_HEADERS = 16 * 2**10

#: Responses that are not pages contain nothing to load, and no page may frame them.
DATA_POLICY = {"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'"}

#: The parts of ASGI.
Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]

#: Headers as ASGI sends them.
Headers = tuple[tuple[bytes, bytes], ...]


def encoded(headers: Mapping[str, str]) -> Headers:
    """Return headers as ASGI sends them."""
    return tuple((name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items())


JSON = encoded({"Content-Type": "application/json", **DATA_POLICY})


class Response(NamedTuple):
    """A response."""

    body: bytes
    headers: Headers = JSON
    status: int = 200
    lingers: bool = False  #: whether to read on for a while, from a client that is still sending

    async def send(self, receive: Receive, send: Send, id: bytes) -> None:
        """Send the response to the request with this id.

        A connection that is closed with unread data is reset, and the client may lose the response. So one that
        lingers reads what arrives, up to `LINGER_BYTES` and for `LINGER` seconds, before it finishes.
        """
        size = b"%d" % len(self.body)
        headers = [*self.headers, (b"content-length", size), (b"x-request-id", id)]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": self.lingers})
        if self.lingers:
            read = 0
            with suppress(TimeoutError):
                async with asyncio.timeout(LINGER):
                    while read < LINGER_BYTES:
                        message = await receive()
                        if message["type"] != "http.request" or not message.get("more_body"):
                            break
                        read += len(message["body"])
            await send({"type": "http.response.body", "body": b""})


def json_response(value: Any) -> Response:
    """Return a value as JSON."""
    return Response(msgspec.json.encode(value))


def error_response(error: ApiError) -> Response:
    """Return an error as application/problem+json."""
    body = error.body
    again = {"Retry-After": RETRY_AFTER} if body.status in (429, 503) else {}
    headers = encoded({"Content-Type": "application/problem+json", **DATA_POLICY, **again, **error.headers})
    return Response(msgspec.json.encode(body), headers, body.status, lingers=error.kind == "too-large")


class Request:
    """A request: its headers by lower-case name, its path as it was sent, and who sends it."""

    __slots__ = ("address", "author", "headers", "id", "method", "parameters", "place", "receive", "roles", "scope")

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.scope, self.receive = scope, receive
        self.headers: dict[bytes, bytes] = dict(reversed(scope["headers"]))  # of several with one name, the first
        self.address = str(scope["client"][0]) if scope.get("client") else ""
        self.method = "GET" if scope["method"] == "HEAD" else str(scope["method"])
        self.place, self.parameters = "elsewhere", {}  # type: str, dict[str, str]
        self.author, self.roles = "", frozenset[Role]()
        given = self.headers.get(b"x-request-id", b"")
        # the system's generator would let the thread that learns go first
        self.id = given if REQUEST_ID.fullmatch(given) else b"%016x" % random.getrandbits(64)

    @property
    def path(self) -> str:
        """The path as it was sent, percent-encoded, without the query."""
        return str(self.scope["raw_path"].decode("latin-1"))

    def header(self, name: bytes) -> str | None:
        """Return a header; None without it."""
        found = self.headers.get(name)
        return None if found is None else found.decode("latin-1")

    @property
    def query(self) -> Mapping[str, str]:
        """The parameters of the query; of several with one name, the last."""
        return _query(self.scope["query_string"])

    def refuse_larger(self, most: int) -> None:
        """Raise ApiError if the request announces a body of more than `most` bytes."""
        length = self.headers.get(b"content-length", b"0")
        if length.isdigit() and int(length[:20]) > most:
            raise _too_large(most)

    async def body(self, most: int, patience: float) -> bytes:
        """Return the body; refuse it as soon as it is larger than `most` bytes, or if it takes longer than `patience`.

        Raises
        ------
        ApiError : too large, too slow, or the client hung up.
        """
        chunks, size = [], 0
        try:
            async with asyncio.timeout(patience):
                while True:
                    message = await self.receive()
                    if message["type"] == "http.disconnect":
                        raise ApiError("malformed", "the body is incomplete")
                    chunks.append(message["body"])
                    size += len(chunks[-1])
                    if size > most:
                        raise _too_large(most)
                    if not message["more_body"]:
                        return b"".join(chunks)
        except TimeoutError:
            words = f"the body was not complete after {patience:g} s"
            raise ApiError("too-slow", words, Connection="close") from None


@lru_cache(1024)  # clients ask for the same few states again and again
def _query(text: bytes) -> Mapping[str, str]:
    return MappingProxyType(dict(parse_qsl(text.decode("latin-1"), keep_blank_values=True)))


def _too_large(most: int) -> ApiError:
    return ApiError("too-large", f"the limit is {most} bytes", Connection="close")


#: Answers a request.
Handler = Callable[[Request], Response | Awaitable[Response]]


class Route(NamedTuple):
    """A path, such as /learners/{name}/act; the handler of each method, and the role that it needs, None for none."""

    path: str
    methods: Mapping[str, tuple[Role | None, Handler]]


class Routes:
    """Routes by path, segment by segment."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._tree: dict[str, Any] = {}
        for route in routes:
            node = self._tree
            for part in route.path.split("/"):
                node = node.setdefault("{}" if part.startswith("{") else part, {})
            names = [part[1:-1] for part in route.path.split("/") if part.startswith("{")]
            node["route"] = route, names

    def handler(self, request: Request) -> Handler:
        """Return the handler of a request, which gets the parameters in its path.

        Raises
        ------
        ApiError : there is no such path or method, or the client does not have the role.
        """
        node, values = self._tree, []
        for part in request.scope["path"].split("/"):
            if part in node and part != "{}":
                node = node[part]
            elif part and "{}" in node:
                node = node["{}"]
                values.append(part)
            else:
                node = {}
        if not isinstance(node.get("route"), tuple):
            raise ApiError("not-found", f"{request.scope['method']} {request.path}; see /docs")
        route, names = node["route"]
        request.place, request.parameters = route.path, dict(zip(names, values, strict=True))
        if request.method not in route.methods:
            methods = [*route.methods, *(["HEAD"] if "GET" in route.methods else [])]
            words = f"{request.scope['method']} {request.path}; see /docs"
            raise ApiError("wrong-method", words, Allow=", ".join(sorted(methods)))
        role, handler = route.methods[request.method]
        if role is not None and role not in request.roles:
            raise ApiError("no-role", f"the token {request.author} needs the role {role}")
        found: Handler = handler
        return found


class Connection(HttpToolsProtocol):
    """A connection: closed when a request does not arrive in time, or is too large or not valid.

    The time covers whatever the client sends while no request is being answered: the headers of the next one, or the
    rest of a body that was refused. Beyond `MOST_CONNECTIONS`, a new connection takes the place of the one that has
    waited longest for a whole request, body included, so that slow clients cannot keep others out.
    """

    headers_within = HEADERS_WITHIN
    most_connections = MOST_CONNECTIONS

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._deadline: asyncio.TimerHandle | None = None
        self._head: int | None = None  #: bytes of the URL and the headers, as far as they have arrived
        self._kept = 0  #: bytes of the pieces that contain nothing but these
        self._begun = 0  #: requests
        self.waiting_since = monotonic()

    @property
    def answering(self) -> bool:
        """Whether a request is being answered."""
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def waiting(self) -> bool:
        """Whether the client has to send something: a request, or the rest of its body."""
        return not self.answering or self.cycle.more_body

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the time limit; make room if there are too many connections."""
        super().connection_made(transport)
        self._limit()
        if len(self.connections) > self.most_connections:
            waiting = [one for one in self.connections if isinstance(one, Connection) and one.waiting]
            min(waiting, key=lambda one: one.waiting_since).close()

    def data_received(self, data: bytes) -> None:
        """Parse what arrives; limit the time until the rest of a request arrives."""
        self._unset_keepalive_if_required()
        alone = self._head is not None or not self.answering
        begun = self._begun + (self._head is None)
        try:
            self.parser.feed_data(data)
            if self._head is not None and alone and self._begun == begun:  # the parser keeps a header until its end
                self._kept += len(data)
                self._count(0)
        except httptools.HttpParserUpgrade as upgrade:
            self._continue(data[upgrade.args[0] :])
        except httptools.HttpParserError as error:
            self._refuse(f"the request is not valid HTTP: {error.__context__ or error}")
        else:
            self._limit()

    def _continue(self, body: bytes) -> None:
        """Answer a request that offers to upgrade the connection as if it did not, as HTTP allows.

        The parser takes what follows its headers for another protocol, so it gets the request again without the offer.
        """
        method = self.parser.get_method()
        if method == b"CONNECT":
            self._refuse("this is no proxy")
            return
        headers = [name + b": " + value for name, value in self.headers if name != b"upgrade"]
        self.parser, self._head = httptools.HttpRequestParser(self), None
        self.data_received(b"\r\n".join([b"%s %s HTTP/1.1" % (method, self.url), *headers, b"", body]))

    def _should_upgrade(self) -> bool:
        return True  # to `_continue`, without a request that is started

    def _refuse(self, words: str) -> None:
        """Close the connection; if no request is being answered, say why."""
        if not self.answering:
            refusal = error_response(ApiError("malformed", words, Connection="close"))
            fields = [*refusal.headers, (b"content-length", b"%d" % len(refusal.body))]
            head = b"".join(b"%s: %s\r\n" % field for field in (*self.server_state.default_headers, *fields))
            self.transport.write(b"HTTP/1.1 400 Bad Request\r\n" + head + b"\r\n" + refusal.body)
        self._cancel()
        self.transport.close()

    def on_message_begin(self) -> None:
        """Begin to count the bytes of the headers."""
        super().on_message_begin()
        self._head = self._kept = 0
        self._begun += 1

    def on_url(self, url: bytes) -> None:
        """Count the bytes of the URL."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count the bytes of a header."""
        self._count(len(name) + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Answer the request."""
        self._head = None
        super().on_headers_complete()

    def _count(self, size: int) -> None:
        self._head = (self._head or 0) + size
        if max(self._head, self._kept) > MOST_HEADERS:
            raise httptools.HttpParserError(f"its URL and headers have more than {MOST_HEADERS} bytes")

    def on_response_complete(self) -> None:
        """Count the time that the connection waits from now on."""
        self.waiting_since = monotonic()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the time limit."""
        self._cancel()
        super().connection_lost(exc)

    def close(self) -> None:
        """Close the connection at once; what could not be sent is dropped."""
        self._cancel()
        self.transport.abort()

    def _limit(self) -> None:
        if self.answering:
            self._cancel()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(self.headers_within, self.close)

    def _cancel(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
