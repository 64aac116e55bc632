"""Admission: tokens, requests of other sites' pages, the rate of requests, malformed URLs, slow connections.

Every connection and every request passes here first.
"""

import asyncio
import base64
import logging
import random
import re
from binascii import Error
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address
from time import monotonic, perf_counter
from typing import Any, Literal
from urllib.parse import unquote_to_bytes, urlsplit

import msgspec
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from tightrope.ops.api import ApiError
from tightrope.ops.logs import REQUEST, Seldom
from tightrope.ops.metrics import Metrics
from tightrope.ops.tokens import ANYBODY, Holder, Tokens

log = logging.getLogger("tightrope.service")

#: The path that is always answered, and the one that needs no token either.
HEALTH, READY = "/health", "/ready"

#: Seconds between two looks at whether the file of tokens has changed.
REFRESH_EVERY = 1.0

#: Wrong tokens that an address may send per second, and at once.
WRONG_RATE = 10.0

#: An id of a request that is taken from the client; others are replaced.
REQUEST_ID = re.compile(r"[!-~]{1,100}")

#: The rate is counted for so many addresses; when there are more, all counts start again.
MOST_ADDRESSES = 10_000

#: Seconds after which a client may try again.
RETRY_AFTER = "1"

#: What a client may still send after its request was refused as too large: seconds, and bytes.
LINGER, LINGER_BYTES = 2.0, 16 * 2**20

#: Connections at once; a process may open only so many files.
MOST_CONNECTIONS = 500

#: Seconds from the first byte of a request, or from the connection, until its headers are complete.
HEADERS_WITHIN = 10.0

#: Responses that are not pages contain nothing to load, and no page may frame them.
DATA_POLICY = {"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'"}


@dataclass(frozen=True)
class Limits:
    """Limits of the service."""

    body: int = 8 * 2**20  #: bytes of a request
    patience: float = 30.0  #: seconds until its body has arrived
    rate: float = 5000.0  #: requests per second from one address, on average, and at once
    waiting: int = 250  #: requests that wait for one learner
    requests: int = 500  #: requests that are being answered


def error_response(error: ApiError) -> Response:
    """Return an error as application/problem+json."""
    body = error.body
    headers = DATA_POLICY | ({"Retry-After": RETRY_AFTER} if body.status in (429, 503) else {}) | error.headers
    kind = LingeringResponse if error.kind == "too-large" else Response
    return kind(msgspec.json.encode(body), body.status, headers, "application/problem+json")


class LingeringResponse(Response):
    """A response to a client that is still sending: it reads on for a while, so that the client can read the response.

    A connection closed with unread data is reset, and the client may lose the response.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response, read what arrives up to `LINGER_BYTES` and for `LINGER` seconds, and finish."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": True})
        read = 0
        with suppress(TimeoutError):
            async with asyncio.timeout(LINGER):
                while read < LINGER_BYTES:
                    message = await receive()
                    if message["type"] != "http.request" or not message.get("more_body"):
                        break
                    read += len(message["body"])
        await send({"type": "http.response.body", "body": b""})


class PatientProtocol(H11Protocol):
    """Closes a connection whose request does not arrive in time.

    The time covers whatever the client sends while no request is being answered: the headers of the next one, or the
    rest of a body that was refused. Beyond `MOST_CONNECTIONS`, a new connection takes the place of the one that has
    waited longest for a whole request, body included, so that slow clients cannot keep others out.
    """

    headers_within = HEADERS_WITHIN
    most_connections = MOST_CONNECTIONS

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._deadline: asyncio.TimerHandle | None = None
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
            waiting = [one for one in self.connections if isinstance(one, PatientProtocol) and one.waiting]
            min(waiting, key=lambda one: one.waiting_since).close()

    def data_received(self, data: bytes) -> None:
        """Pass the data on; limit the time until the rest of a request arrives."""
        super().data_received(data)
        self._limit()

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


class Bucket:
    """A token bucket: the requests that an address may make now. It gains `rate` per second, up to `rate`."""

    def __init__(self, rate: float, now: float) -> None:
        self.left, self.seen = rate, now

    def take(self, rate: float, now: float) -> bool:
        """Take one request; return False if the bucket is empty."""
        self.left, self.seen = min(rate, self.left + rate * (now - self.seen)), now
        if self.left < 1:
            return False
        self.left -= 1
        return True


class Auth:
    """Middleware that refuses requests, and counts all of them."""

    def __init__(
        self, app: ASGIApp, tokens: Tokens, limits: Limits, metrics: Metrics, clock: Callable[[], float] = monotonic
    ) -> None:
        self.app, self.limits, self.metrics, self._clock = app, limits, metrics, clock
        self._tokens, self._refreshed = tokens, clock()
        self._buckets: dict[str, Bucket] = {}
        self._wrong: dict[str, Bucket] = {}
        self._seldom = Seldom()
        self._answering = 0  #: requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer or refuse a request, and count it."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        headers = dict(reversed(scope["headers"]))  # of several with one name, the first one counts
        began, status, id = perf_counter(), 500, _request_id(headers)
        about = {"request": id, "address": _address(scope), "method": scope["method"], "path": _path(scope)}
        REQUEST.set(about)

        async def counting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"].append((b"x-request-id", id.encode()))
            await send(message)

        self._answering += 1
        try:
            try:
                self._admit(scope, headers)
                about["author"] = scope["author"]
            except ApiError as error:
                return await error_response(error)(scope, receive, counting)
            await self.app(scope, receive, counting)
        finally:
            self._answering -= 1
            seconds = perf_counter() - began
            self.metrics.count(scope.get("place", "elsewhere"), scope["method"], status, seconds)
            self._log(scope, status, seconds)

    def _log(self, scope: Scope, status: int, seconds: float) -> None:
        """Log a request; one that failed as a warning, of which each address causes one per second at most."""
        level, fields = logging.INFO, {"status": status, "seconds": round(seconds, 6)}
        if status >= 500 and scope["path"] not in (HEALTH, READY):
            before = self._seldom.due((_address(scope), status), self._clock())
            level, fields["before"] = (logging.INFO, 0) if before is None else (logging.WARNING, before)
        log.log(level, "answered", extra={"fields": fields})

    def _admit(self, scope: Scope, headers: Mapping[bytes, bytes]) -> None:
        if b"transfer-encoding" in headers and b"content-length" in headers:  # a proxy may see another end of the body
            words = "both Transfer-Encoding and Content-Length are given; send one of them"
            raise ApiError("malformed", words, Connection="close")
        self._refuse_other_sites(headers)
        scope["author"], scope["roles"] = Holder("", frozenset())
        if scope["path"] == HEALTH:
            return
        if self._answering > self.limits.requests:
            raise ApiError("busy", f"{self.limits.requests} requests are being answered")
        self._refuse_too_many(scope)
        if scope["path"] != READY or b"authorization" in headers or not self._tokens:
            authorization = headers.get(b"authorization", b"").decode("latin-1")
            scope["author"], scope["roles"] = self._holder(_address(scope), authorization)
        _refuse_malformed_url(scope)

    def _refuse_other_sites(self, headers: Mapping[bytes, bytes]) -> None:
        """Refuse a page of another site, open in a browser here, that sends requests in the name of its reader."""
        host = headers.get(b"host", b"").decode("latin-1")
        if not self._tokens and not _names_loopback(host):
            raise ApiError("elsewhere", f"without a token, the host must be this machine; it is {host!r}")
        origin = headers.get(b"origin", b"").decode("latin-1")
        if b"origin" in headers and _host(origin) != host:
            raise ApiError("elsewhere", f"a page of {origin} may not send requests to {host}")

    def _refuse_too_many(self, scope: Scope) -> None:
        rate = self.limits.rate
        if not self._take(self._buckets, rate, _address(scope)):
            raise ApiError("too-many-requests", f"the limit is {rate:g} requests per second from one address")

    def _take(self, buckets: dict[str, Bucket], rate: float, address: str) -> bool:
        """Take one request from the bucket of an address; return False if it is empty."""
        now = self._clock()
        if address not in buckets:
            if len(buckets) >= MOST_ADDRESSES:
                buckets.clear()
            buckets[address] = Bucket(rate, now)
        return buckets[address].take(rate, now)

    def _holder(self, address: str, authorization: str) -> Holder:
        """Return who sends a request; refuse it without a valid token."""
        if not self._tokens:
            return ANYBODY
        if self._clock() - self._refreshed >= REFRESH_EVERY:
            self.refresh()
        secret = _secret(authorization)
        token = None if secret is None else self._tokens.find(secret)
        if token is not None and not token.expired:
            return Holder(token.name, frozenset(token.roles))
        words = "send the header 'Authorization: Bearer TOKEN'; in a browser, the password is the token"
        if authorization:
            self._refuse_many_wrong(address, "" if token is None else token.name)
            words = "the token has expired" if token is not None else f"the token is not known here; {words}"
        raise ApiError("no-token", words, **{"WWW-Authenticate": 'Basic realm="tightrope"'})

    def _refuse_many_wrong(self, address: str, expired: str) -> None:
        """Log a wrong token or an expired one; refuse an address that has sent too many."""
        self.metrics.count_wrong_token()
        before = self._seldom.due((address, "wrong"), self._clock())
        if before is not None:
            words = f"expired token {expired}" if expired else "wrong token"
            log.warning(words, extra={"fields": {"before": before}})
        if not self._take(self._wrong, WRONG_RATE, address):
            raise ApiError("too-many-requests", f"the limit is {WRONG_RATE:g} wrong tokens per second from one address")

    def refresh(self) -> None:
        """Read the tokens again if their file has changed."""
        self._refreshed = self._clock()
        if self._tokens.refresh():
            if self._tokens.trouble:
                log.error("the tokens of before stay valid: %s", self._tokens.trouble)
            else:
                log.warning("the tokens were read again")
        self.metrics.tokens_trouble = bool(self._tokens.trouble)


def _address(scope: Scope) -> str:
    return str(scope["client"][0]) if scope.get("client") else ""


def _path(scope: Scope) -> str:
    """Return the path as it was sent, percent-encoded, without the query."""
    return str(scope["raw_path"].decode("latin-1"))


def _request_id(headers: Mapping[bytes, bytes]) -> str:
    given = headers.get(b"x-request-id", b"").decode("latin-1")
    if given and REQUEST_ID.fullmatch(given):
        return given
    return f"{random.getrandbits(64):016x}"  # the system's generator would let the thread that learns go first


def _secret(authorization: str) -> bytes | None:
    """Return the token in a header; None if it has none."""
    scheme, _, given = authorization.partition(" ")
    token = given.strip().encode(errors="replace")
    if scheme.lower() == "basic":
        try:
            return base64.b64decode(token, validate=True).partition(b":")[2]
        except (Error, ValueError):
            return None
    return token if scheme.lower() == "bearer" else None


@lru_cache(256)  # clients send the same few hosts again and again
def _names_loopback(header: str) -> bool:
    """Return whether the header Host, which may contain a port, can only be this machine."""
    return is_loopback(_host(f"//{header}", "hostname") or "")


def is_loopback(host: str) -> bool:
    """Return whether a host can only be this machine."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _refuse_malformed_url(scope: Scope) -> None:
    """Refuse %2F, which a router would take for a separator, and bytes that are not UTF-8."""
    path = scope["raw_path"]
    if b"%2f" in path.lower():
        raise ApiError("malformed", "the URL contains %2F; no name contains a /")
    try:
        unquote_to_bytes(path + b"?" + scope["query_string"]).decode()
    except UnicodeDecodeError:
        raise ApiError("malformed", "the percent-encoded bytes of the URL are not UTF-8") from None


def _host(url: str, part: Literal["netloc", "hostname"] = "netloc") -> str | None:
    """Return the host of a URL, with its port or without; None if the URL is invalid."""
    try:
        found: str | None = getattr(urlsplit(url), part)
    except ValueError:
        return None
    return found
