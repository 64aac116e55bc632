"""Who is let in, how often, and to where: the token, pages from elsewhere, requests per second, addresses that can be
read. Everything passes here.
"""

import base64
import hmac
from binascii import Error
from collections.abc import Callable
from functools import lru_cache
from hashlib import sha256
from ipaddress import ip_address
from time import monotonic, perf_counter
from typing import Literal
from urllib.parse import unquote_to_bytes, urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tightrope.ops.limits import Limits
from tightrope.ops.metrics import Metrics
from tightrope.ops.refusals import Refusal, answer

#: What answers whoever comes.
OPEN = "/health"

#: Of so many addresses it is remembered how much they asked; when there are more, all begin anew.
MOST_ADDRESSES = 10_000


class Bucket:
    """Requests that an address has left: `rate` more every second, at most `rate`."""

    def __init__(self, rate: float, now: float) -> None:
        self.left, self.seen = rate, now

    def take(self, rate: float, now: float) -> bool:
        """Whether there was one."""
        self.left, self.seen = min(rate, self.left + rate * (now - self.seen)), now
        if self.left < 1:
            return False
        self.left -= 1
        return True


class Gate:
    """The outermost part of the app."""

    def __init__(
        self, app: ASGIApp, token: str | None, limits: Limits, metrics: Metrics, clock: Callable[[], float] = monotonic
    ) -> None:
        self.app, self.limits, self.metrics, self._clock = app, limits, metrics, clock
        self._digest = None if token is None else sha256(token.encode()).digest()
        self._buckets: dict[str, Bucket] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, refuse, and count."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        began, status = perf_counter(), 500

        async def counting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            try:
                self._admit(scope)
            except Refusal as refusal:
                return await answer(refusal)(scope, receive, counting)
            await self.app(scope, receive, counting)
        finally:
            self.metrics.count(scope.get("place", "elsewhere"), scope["method"], status, perf_counter() - began)

    def _admit(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        self._refuse_elsewhere(headers)
        if scope["path"] == OPEN:
            return
        self._refuse_many(scope)
        if self._digest is not None and not self._knows(headers.get("authorization", "")):
            raise Refusal(
                "no-token",
                "send the header 'Authorization: Bearer TOKEN'; a browser asks for a password, which is the token",
                **{"WWW-Authenticate": 'Basic realm="tightrope"'},
            )
        _refuse_unreadable(scope)

    def _refuse_elsewhere(self, headers: Headers) -> None:
        """A page from elsewhere that is open in a browser here must not ask for anything in its owner's name."""
        host = headers.get("host", "")
        if self._digest is None and not is_loopback(_place(f"//{host}", "hostname") or ""):
            raise Refusal("elsewhere", f"the host {host!r} is no name of this machine, and there is no token")
        origin = headers.get("origin")
        if origin is not None and _place(origin) != host:
            raise Refusal("elsewhere", f"a page of {origin} may not ask here")

    def _refuse_many(self, scope: Scope) -> None:
        rate, now = self.limits.rate, self._clock()
        address = scope["client"][0] if scope.get("client") else ""
        if address not in self._buckets:
            if len(self._buckets) >= MOST_ADDRESSES:
                self._buckets.clear()
            self._buckets[address] = Bucket(rate, now)
        if not self._buckets[address].take(rate, now):
            raise Refusal("too-many-requests", f"one address may make {rate:g} requests a second")

    def _knows(self, authorization: str) -> bool:
        """Whether this is the token; how long it takes to say no does not depend on what was wrong."""
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


@lru_cache(256)  # names come from clients, the same ones again and again
def is_loopback(host: str) -> bool:
    """Whether this is a name of this machine that leads nowhere else."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _refuse_unreadable(scope: Scope) -> None:
    """Whoever decodes an address takes %2F for a step down, and bytes that are no text for text."""
    path = scope["raw_path"]
    if b"%2f" in path.lower():
        raise Refusal("malformed", "there is a / (%2F) in a name; no name here has one")
    try:
        unquote_to_bytes(path + b"?" + scope["query_string"]).decode()
    except UnicodeDecodeError:
        raise Refusal("malformed", "what is percent-encoded in the address is not UTF-8") from None


def _place(url: str, part: Literal["netloc", "hostname"] = "netloc") -> str | None:
    """The host in it, with its port or without; None if there is no such address."""
    try:
        found: str | None = getattr(urlsplit(url), part)
    except ValueError:
        return None
    return found
