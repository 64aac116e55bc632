"""The clients of the service, on httpx: one for threads, one for asyncio. They send the calls of `tightrope.ops.calls`.

docs/how-to/service.md shows the same with curl.
"""

import asyncio
import socket
import ssl
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlsplit
from weakref import finalize

from tightrope.arguments import printable
from tightrope.errors import InvalidInputError, missing
from tightrope.ops import calls
from tightrope.ops.calls import Acted, Answer, Call, Rules, Spending, Standing, State, Table

try:
    import httpx
except ImportError as error:
    raise missing("httpx", "service") from error

#: Seconds between two attempts.
PAUSE = 0.2

#: Seconds that an idle connection is kept: less than the service keeps it.
KEEP_ALIVE = 20.0

#: Seconds that the service may take to show that it speaks TLS.
PROBE = 5.0


class ServiceError(Exception):
    """An error that the service returned, or that the client found (status 0).

    Attributes
    ----------
    kind : such as "conflict"; /docs of the service lists them. The client itself raises "no-answer" if no answer came
        in time (a request that was sent may have been carried out: send it again), "untrusted" if the certificate of
        the service is not trusted, and "wrong-scheme" if only one side speaks TLS (nothing was sent).
    status : of the HTTP response.
    problem : the body of the response.
    tries : number of attempts.

    Example
    -------
    >>> ServiceError(409, {"type": "/docs#conflict", "title": "the episode was closed before"}).kind
    'conflict'
    """

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        words = [str(problem[part]) for part in ("title", "detail") if problem.get(part)]
        super().__init__(": ".join(words) or f"status {status}")
        self.status, self.problem = status, dict(problem)
        self.kind = str(problem.get("type", "")).rpartition("#")[2]
        self.tries = 1


class _Service:
    """The address of a service, how to connect, and what its errors mean; the same for both clients."""

    def __init__(
        self, address: str, learner: str, token: str | None, patience: float, certificate: str | Path | None
    ) -> None:
        self.address, self.patience = address.rstrip("/"), patience
        self.base = f"{self.address}/learners/{quote(learner, safe='')}"
        self.options: dict[str, Any] = {
            "headers": {"Content-Type": "application/json"} | _authorization(token),
            "timeout": patience or None,
            "limits": httpx.Limits(keepalive_expiry=KEEP_ALIVE),
            "verify": _trusting(certificate) if self.address.startswith("https:") or certificate else False,
        }

    def read(self, call: Call[Answer], response: httpx.Response) -> Answer:
        """Return the answer in a response; raise ServiceError if it is an error."""
        try:
            body = response.json()
        except ValueError:  # a proxy may answer something else
            body = {}
        if not response.is_success:
            raise ServiceError(response.status_code, body if isinstance(body, dict) else {})
        return call.read(body)

    def no_answer(self, error: Exception, *, again: bool) -> ServiceError:
        """Return the error when time is up; `again` if the request may have been carried out."""
        words = "; the request may have been carried out: send it again" if again else ""
        if isinstance(error, httpx.TimeoutException):
            words = f"no answer in {self.patience:g} s{words}, or with more patience"
        else:
            words = f"no service answers at {self.address}: {_said(error)}{words}; check that it is running"
        return ServiceError(0, {"type": "#no-answer", "detail": words})

    def refusal(self, error: Exception, tries: int) -> ServiceError | None:
        """Return the error if another attempt is useless: an untrusted certificate, or TLS on one side only."""
        found = _tls_error(error)
        if isinstance(found, ssl.SSLCertVerificationError):
            said = found.verify_message.rstrip(".")
            words = f"the certificate of {self.address} is not trusted: {said}; "
            words += "pass certificate=FILE, one that is valid for this address"
            return ServiceError(0, {"type": "#untrusted", "detail": words})
        if found is not None and found.reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE"):
            words = f"the service at {self.address} does not speak TLS; use http://"
        elif tries > 1 and isinstance(error, httpx.ReadError | httpx.RemoteProtocolError) and self._speaks_tls():
            words = f"the service at {self.address} speaks TLS; use https://"
        else:
            return None
        return ServiceError(0, {"type": "#wrong-scheme", "detail": words})

    def _speaks_tls(self) -> bool:
        parts = urlsplit(self.address)
        if parts.scheme != "http" or parts.hostname is None:
            return False
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # nothing is sent
        try:
            with socket.create_connection((parts.hostname, parts.port or 80), PROBE) as connection:
                context.wrap_socket(connection, server_hostname=parts.hostname).close()
        except OSError:
            return False
        return True


class _Attempts:
    """The attempts of one call."""

    def __init__(self, service: _Service, call: Call[Any]) -> None:
        self._service, self._call = service, call
        self._until, self._tries, self._sent = time.monotonic() + service.patience, 0, False

    def failed(self, error: ServiceError | httpx.TransportError) -> None:
        """Raise the error that the caller gets, unless another attempt may help."""
        self._tries += 1
        late = time.monotonic() >= self._until
        if isinstance(error, ServiceError):
            error.tries = self._tries
            if error.status != 503 or late:
                raise error
            return
        refusal = self._service.refusal(error, self._tries)
        if refusal is not None:
            raise refusal from error
        self._sent = self._sent or not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
        if late:
            raise self._service.no_answer(error, again=self._sent and self._call.method != "GET") from error


class Client:
    """A learner of a service.

    A request that fails is sent again for `patience` seconds, while the service does not answer or answers 503. That is
    harmless, because the same outcome counts once and all attempts of `ask` open one episode. Connections are reused;
    several threads may share a client.

    Parameters
    ----------
    address : the URL of the service.
    learner : the name of the learner.
    token : of the service, if it has one.
    patience : seconds.
    certificate : a PEM file to trust in place of those that this machine trusts.

    Example
    -------
    >>> with Client("http://127.0.0.1:8000", "workshop") as workshop:  # doctest: +SKIP
    ...     episode = workshop.ask()
    ...     workshop.tell(episode, states, actions, loss=loss)
    'learned'
    """

    def __init__(
        self, address: str, learner: str, token: str | None = None, patience: float = 30.0,
        certificate: str | Path | None = None,
    ) -> None:  # fmt: skip
        self._service = _Service(address, learner, token, patience, certificate)
        self._http = httpx.Client(**self._service.options)
        self._close = finalize(self, self._http.close)

    def ask(self, key: str | None = None) -> str:
        """Open an episode, and return its id.

        Call again with the same `key`, of your choice, to get the same episode as long as it is open.
        """
        return self._send(calls.ask(key))

    def act(self, state: int | str, episode: str | None = None) -> Acted:
        """Draw an action for a state, by number or name, from the policy of an open episode."""
        return self._send(calls.act(state, episode))

    def tell(self, episode: str, states: list[Any], actions: list[Any], **outcome: Any) -> str:
        """Send the outcome of an episode; return "learned" or "already".

        `outcome` is `loss` or `scenario`, and `constraints` if the tables of the problem do not contain them.
        """
        return self._send(calls.tell(episode, states, actions, outcome))

    def give_up(self, episode: str) -> str:
        """Close an episode without an outcome; return "given up" or "already"."""
        return self._send(calls.give_up(episode))

    def episodes(self) -> list[str]:
        """Return the ids of the open episodes."""
        return self._send(calls.episodes())

    def state(self) -> State:
        """Return a summary of the learner."""
        return self._send(calls.state())

    def policy(self, episode: str | None = None) -> Table:
        """Return a policy as a table: columns for pandas or polars."""
        return self._send(calls.policy(episode))

    def watch(self, policy: Any = None) -> str:
        """Open an episode that somebody else plays, and return its id. The policy is given as in `stop_loss`."""
        return self._send(calls.watch(policy))

    def set_budgets(self, budgets: Mapping[str, float] | None = None, /, **named: float) -> list[Spending]:
        """Change budgets by name, in their own units: `{"technician": 3}`, or `technician=3`."""
        return self._send(calls.set_budgets({**(budgets or {}), **named}))

    def rules(self) -> Rules:
        """Return the stop-loss rules and the safe policy, as `stop_loss` takes them."""
        return self._send(calls.rules())

    def stop_loss(self, rules: Mapping[str, Mapping[str, Any]], safe_policy: Any = None) -> Rules:
        """Replace the stop-loss rules: `{"technician": {"most": 10}}`; without rules nothing stops.

        The safe policy is given by name, `{"good": {"run": 0.9, "service": 0.1}, …}`, or as numbers as in `policy`.
        """
        return self._send(calls.stop_loss(rules, safe_policy))

    def challengers(self) -> list[Standing]:
        """Return all learners, and what each would have spent."""
        return self._send(calls.challengers())

    def challenge(self, name: str, learner: str, **options: Any) -> list[Standing]:
        """Add a challenger; `options` are `episodes`, `options` and `seed`."""
        return self._send(calls.challenge(name, learner, options))

    def promote(self, name: str) -> list[Standing]:
        """Make a challenger the champion."""
        return self._send(calls.promote(name))

    def dismiss(self, name: str) -> list[Standing]:
        """Remove a challenger."""
        try:
            return self._send(calls.dismiss(name))
        except ServiceError as error:
            if not _was_removed(error):
                raise
            return self.challengers()

    def _send(self, call: Call[Answer]) -> Answer:
        """Send a call until it is answered, or `patience` seconds have passed."""
        attempts, url = _Attempts(self._service, call), self._service.base + call.path
        while True:
            try:
                response = self._http.request(call.method, url, content=call.body, headers=dict(call.headers))
                return self._service.read(call, response)
            except (httpx.TransportError, ServiceError) as error:
                attempts.failed(error)
            time.sleep(PAUSE)

    def close(self) -> None:
        """Close the connections."""
        self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class AsyncClient:
    """A learner of a service, for asyncio: the methods of `Client`, to be awaited.

    Example
    -------
    >>> async def play(address):
    ...     async with AsyncClient(address, "workshop") as workshop:
    ...         episode = await workshop.ask()
    ...         return await workshop.give_up(episode)
    """

    def __init__(
        self, address: str, learner: str, token: str | None = None, patience: float = 30.0,
        certificate: str | Path | None = None,
    ) -> None:  # fmt: skip
        self._service = _Service(address, learner, token, patience, certificate)
        self._http = httpx.AsyncClient(**self._service.options)

    async def ask(self, key: str | None = None) -> str:
        """Open an episode, and return its id."""
        return await self._send(calls.ask(key))

    async def act(self, state: int | str, episode: str | None = None) -> Acted:
        """Draw an action for a state."""
        return await self._send(calls.act(state, episode))

    async def tell(self, episode: str, states: list[Any], actions: list[Any], **outcome: Any) -> str:
        """Send the outcome of an episode; return "learned" or "already"."""
        return await self._send(calls.tell(episode, states, actions, outcome))

    async def give_up(self, episode: str) -> str:
        """Close an episode without an outcome; return "given up" or "already"."""
        return await self._send(calls.give_up(episode))

    async def episodes(self) -> list[str]:
        """Return the ids of the open episodes."""
        return await self._send(calls.episodes())

    async def state(self) -> State:
        """Return a summary of the learner."""
        return await self._send(calls.state())

    async def policy(self, episode: str | None = None) -> Table:
        """Return a policy as a table."""
        return await self._send(calls.policy(episode))

    async def watch(self, policy: Any = None) -> str:
        """Open an episode that somebody else plays, and return its id."""
        return await self._send(calls.watch(policy))

    async def set_budgets(self, budgets: Mapping[str, float] | None = None, /, **named: float) -> list[Spending]:
        """Change budgets by name, in their own units."""
        return await self._send(calls.set_budgets({**(budgets or {}), **named}))

    async def rules(self) -> Rules:
        """Return the stop-loss rules and the safe policy."""
        return await self._send(calls.rules())

    async def stop_loss(self, rules: Mapping[str, Mapping[str, Any]], safe_policy: Any = None) -> Rules:
        """Replace the stop-loss rules."""
        return await self._send(calls.stop_loss(rules, safe_policy))

    async def challengers(self) -> list[Standing]:
        """Return all learners, and what each would have spent."""
        return await self._send(calls.challengers())

    async def challenge(self, name: str, learner: str, **options: Any) -> list[Standing]:
        """Add a challenger."""
        return await self._send(calls.challenge(name, learner, options))

    async def promote(self, name: str) -> list[Standing]:
        """Make a challenger the champion."""
        return await self._send(calls.promote(name))

    async def dismiss(self, name: str) -> list[Standing]:
        """Remove a challenger."""
        try:
            return await self._send(calls.dismiss(name))
        except ServiceError as error:
            if not _was_removed(error):
                raise
            return await self.challengers()

    async def _send(self, call: Call[Answer]) -> Answer:
        attempts, url = _Attempts(self._service, call), self._service.base + call.path
        while True:
            try:
                response = await self._http.request(call.method, url, content=call.body, headers=dict(call.headers))
                return self._service.read(call, response)
            except (httpx.TransportError, ServiceError) as error:
                await asyncio.to_thread(attempts.failed, error)  # it may connect, to find out about TLS
            await asyncio.sleep(PAUSE)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()


def _was_removed(error: ServiceError) -> bool:
    """Return whether an earlier attempt, whose answer was lost, removed the challenger."""
    return error.kind == "unknown-challenger" and error.tries > 1


def _authorization(token: str | None) -> dict[str, str]:
    given = (token or "").strip()  # a file ends in a newline
    if not (given.isascii() and given.isprintable()):
        raise InvalidInputError("the token must be one line of printable ASCII; pass the token of the service")
    return {"Authorization": f"Bearer {given}"} if given else {}


def _trusting(certificate: str | Path | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=certificate)
    except OSError as error:
        words = f"{printable(certificate)}: {error.strerror or error}"
        raise InvalidInputError(f"the certificate cannot be used: {words}; pass a PEM file") from error


def _tls_error(error: BaseException) -> ssl.SSLError | None:
    """Return the error of TLS that caused another one."""
    found: BaseException | None = error
    while found is not None and not isinstance(found, ssl.SSLError):
        found = found.__cause__ or found.__context__
    return found


def _said(error: BaseException) -> str:
    """Return the message of the system for an error."""
    found: BaseException | None = error
    while found is not None and not isinstance(found, OSError):
        found = found.__cause__ or found.__context__
    return str((found.strerror if isinstance(found, OSError) else None) or error)
