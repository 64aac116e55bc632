"""Admission: the token, requests of other sites' pages, the rate of requests, and malformed URLs.

Every request passes here first.
"""

import asyncio
import base64
import hmac
from binascii import Error
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from ipaddress import ip_address
from time import monotonic, perf_counter
from typing import Literal
from urllib.parse import unquote_to_bytes, urlsplit

import msgspec
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tightrope.ops.api import ApiError
from tightrope.ops.metrics import Metrics

#: The path that needs no token.
OPEN = "/health"

#: The rate is counted for so many addresses; when there are more, all counts start again.
MOST_ADDRESSES = 10_000

#: Seconds after which a client may try again.
RETRY_AFTER = "1"


#: What a client may still send after its request was refused as too large: seconds, and bytes.
LINGER, LINGER_BYTES = 2.0, 16 * 2**20

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
        self, app: ASGIApp, token: str | None, limits: Limits, metrics: Metrics, clock: Callable[[], float] = monotonic
    ) -> None:
        self.app, self.limits, self.metrics, self._clock = app, limits, metrics, clock
        self._digest = None if token is None else sha256(token.encode()).digest()
        self._buckets: dict[str, Bucket] = {}
        self._answering = 0  #: requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer or refuse a request, and count it."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        began, status = perf_counter(), 500

        async def counting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        self._answering += 1
        try:
            try:
                self._admit(scope)
            except ApiError as error:
                return await error_response(error)(scope, receive, counting)
            await self.app(scope, receive, counting)
        finally:
            self._answering -= 1
            self.metrics.count(scope.get("place", "elsewhere"), scope["method"], status, perf_counter() - began)

    def _admit(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        if "transfer-encoding" in headers and "content-length" in headers:  # a proxy may see another end of the body
            words = "both Transfer-Encoding and Content-Length are given; send one of them"
            raise ApiError("malformed", words, Connection="close")
        self._refuse_other_sites(headers)
        if scope["path"] == OPEN:
            return
        if self._answering > self.limits.requests:
            raise ApiError("busy", f"{self.limits.requests} requests are being answered")
        self._refuse_too_many(scope)
        if self._digest is not None and not self._has_token(headers.get("authorization", "")):
            raise ApiError(
                "no-token",
                "send the header 'Authorization: Bearer TOKEN'; in a browser, the password is the token",
                **{"WWW-Authenticate": 'Basic realm="tightrope"'},
            )
        _refuse_malformed_url(scope)

    def _refuse_other_sites(self, headers: Headers) -> None:
        """Refuse a page of another site, open in a browser here, that sends requests in the name of its reader."""
        host = headers.get("host", "")
        if self._digest is None and not is_loopback(_host(f"//{host}", "hostname") or ""):
            raise ApiError("elsewhere", f"without a token, the host must be this machine; it is {host!r}")
        origin = headers.get("origin")
        if origin is not None and _host(origin) != host:
            raise ApiError("elsewhere", f"a page of {origin} may not send requests to {host}")

    def _refuse_too_many(self, scope: Scope) -> None:
        rate, now = self.limits.rate, self._clock()
        address = scope["client"][0] if scope.get("client") else ""
        if address not in self._buckets:
            if len(self._buckets) >= MOST_ADDRESSES:
                self._buckets.clear()
            self._buckets[address] = Bucket(rate, now)
        if not self._buckets[address].take(rate, now):
            raise ApiError("too-many-requests", f"the limit is {rate:g} requests per second from one address")

    def _has_token(self, authorization: str) -> bool:
        """Return whether a header has the token. How long that takes does not depend on what is wrong with it."""
        scheme, _, given = authorization.partition(" ")
        token = given.strip().encode(errors="replace")
        if scheme.lower() == "basic":
            try:
                _, _, token = base64.b64decode(token, validate=True).partition(b":")
            except (Error, ValueError):
                return False
        elif scheme.lower() != "bearer":
            return False
        return self._digest is not None and hmac.compare_digest(sha256(token).digest(), self._digest)


@lru_cache(256)  # clients send the same few hosts again and again
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
