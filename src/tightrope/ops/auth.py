"""Admission: tokens, requests of other sites' pages, the rate of requests, malformed URLs."""

import base64
import logging
from binascii import Error
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address
from time import monotonic
from typing import Literal
from urllib.parse import unquote_to_bytes, urlsplit

from tightrope.ops.api import ApiError
from tightrope.ops.http import Request
from tightrope.ops.logs import Seldom
from tightrope.ops.metrics import Metrics
from tightrope.ops.tokens import ANYBODY, Holder, Tokens

log = logging.getLogger("tightrope.service")

#: The paths that need no token; the first one is always answered.
HEALTH, READY = "/health", "/ready"

#: Seconds between two looks at whether the file of tokens has changed.
REFRESH_EVERY = 1.0

#: Wrong tokens per second that an address may send, and the most at once.
WRONG_RATE = 10.0

#: The rate is counted for so many addresses; when there are more, all counts start again.
MOST_ADDRESSES = 10_000


@dataclass(frozen=True)
class Limits:
    """Limits of the service."""

    body: int = 8 * 2**20  #: bytes of a request
    patience: float = 30.0  #: seconds until its body has arrived
    rate: float = 5000.0  #: requests per second from one address, and the most at once
    waiting: int = 250  #: requests that wait for one learner
    requests: int = 500  #: requests that are being answered


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
    """Admits requests or refuses them."""

    def __init__(
        self, tokens: Tokens, limits: Limits, metrics: Metrics, clock: Callable[[], float] = monotonic
    ) -> None:
        self.limits, self.metrics, self.clock = limits, metrics, clock
        self._tokens, self._refreshed = tokens, clock()
        self._buckets: dict[str, Bucket] = {}
        self._wrong: dict[str, Bucket] = {}
        self._seldom = Seldom()

    def admit(self, request: Request, answering: int) -> None:
        """Identify the sender of a request.

        Parameters
        ----------
        request : whose author and roles are set.
        answering : number of requests that are being answered, this one among them.

        Raises
        ------
        ApiError : the request is refused.
        """
        path, headers = request.scope["path"], request.headers
        self._refuse_other_sites(request)
        if path == HEALTH:
            return
        if answering > self.limits.requests:
            raise ApiError("busy", f"{self.limits.requests} requests are being answered")
        rate = self.limits.rate
        if not self._take(self._buckets, rate, request.address):
            raise ApiError("too-many-requests", f"the limit is {rate:g} requests per second from one address")
        if path != READY or b"authorization" in headers or not self._tokens:
            request.author, request.roles = self._holder(request.address, request.header(b"authorization") or "")
        _refuse_malformed_url(request.scope["raw_path"], request.scope["query_string"])

    def _refuse_other_sites(self, request: Request) -> None:
        """Refuse requests that a browser on this machine sends for a page of another site."""
        host, origin = request.header(b"host") or "", request.header(b"origin")
        if not self._tokens and not _names_loopback(host):
            raise ApiError("elsewhere", f"without a token, the host must be this machine; it is {host!r}")
        if origin is not None and _host(origin) != host:
            raise ApiError("elsewhere", f"a page of {origin} may not send requests to {host}")

    def _take(self, buckets: dict[str, Bucket], rate: float, address: str) -> bool:
        """Take one request from the bucket of an address; return False if it is empty."""
        now = self.clock()
        if address not in buckets:
            if len(buckets) >= MOST_ADDRESSES:
                buckets.clear()
            buckets[address] = Bucket(rate, now)
        return buckets[address].take(rate, now)

    def _holder(self, address: str, authorization: str) -> Holder:
        """Return who sends a request; refuse it without a valid token."""
        if not self._tokens:
            return ANYBODY
        if self.clock() - self._refreshed >= REFRESH_EVERY:
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
        before = self._seldom.due(address, self.clock())
        if before is not None:
            words = f"expired token {expired}" if expired else "wrong token"
            log.warning(words, extra={"fields": {"before": before}})
        if not self._take(self._wrong, WRONG_RATE, address):
            raise ApiError("too-many-requests", f"the limit is {WRONG_RATE:g} wrong tokens per second from one address")

    def refresh(self) -> None:
        """Read the tokens again if their file has changed."""
        self._refreshed = self.clock()
        if self._tokens.refresh():
            if self._tokens.trouble:
                log.error("the previous tokens stay valid: %s", self._tokens.trouble)
            else:
                log.warning("the tokens were read again")
        self.metrics.tokens_trouble = bool(self._tokens.trouble)


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


@lru_cache(1024)
def _refuse_malformed_url(path: bytes, query: bytes) -> None:
    """Refuse %2F, which a client may take for a separator, and bytes that are not UTF-8."""
    if b"%2f" in path.lower():
        raise ApiError("malformed", "the URL contains %2F; no name contains a /")
    try:
        unquote_to_bytes(path + b"?" + query).decode()
    except UnicodeDecodeError:
        raise ApiError("malformed", "the percent-encoded bytes of the URL are not UTF-8") from None


def _host(url: str, part: Literal["netloc", "hostname"] = "netloc") -> str | None:
    """Return the host of a URL, with its port or without; None if the URL is invalid."""
    try:
        found: str | None = getattr(urlsplit(url), part)
    except ValueError:
        return None
    return found
