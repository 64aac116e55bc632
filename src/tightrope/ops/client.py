"""The client of the service. It needs only the standard library; docs/how-to/service.md shows the same with curl."""

import json
import ssl
import time
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

from tightrope.arguments import printable
from tightrope.errors import InvalidInputError

#: Seconds between two attempts.
PAUSE = 0.2


class ServiceError(Exception):
    """An error that the service returned, or that the client found (status 0).

    Attributes
    ----------
    kind : such as "conflict"; /docs of the service lists them. The client itself raises "no-answer" if no answer came
        in time (a request that was sent may have been carried out: send it again), and "untrusted" if the certificate
        of the service is not trusted (nothing was sent).
    status : of the HTTP response.
    problem : the body of the response.
    tries : number of attempts.

    Example
    -------
    >>> ServiceError(409, {"type": "/docs#conflict", "title": "the episode was closed before"}).kind
    'conflict'
    """

    def __init__(self, status: int, problem: dict[str, Any]) -> None:
        words = [str(problem[part]) for part in ("title", "detail") if problem.get(part)]
        super().__init__(": ".join(words) or f"status {status}")
        self.status, self.problem = status, problem
        self.kind = str(problem.get("type", "")).rpartition("#")[2]
        self.tries = 1


class Client:
    """A learner of a service.

    A request that fails is sent again for `patience` seconds, while the service does not answer or answers 503. That is
    harmless, because the same outcome counts once. An episode whose id did not arrive stays open.

    Parameters
    ----------
    address : the URL of the service.
    learner : the name of the learner.
    token : of the service, if it has one.
    patience : seconds.
    certificate : a PEM file to trust in place of those that this machine trusts.

    Example
    -------
    >>> workshop = Client("http://127.0.0.1:8000", "workshop")
    >>> episode = workshop.ask()  # doctest: +SKIP
    >>> workshop.tell(episode, states, actions, loss=loss)  # doctest: +SKIP
    'learned'
    """

    def __init__(
        self, address: str, learner: str, token: str | None = None, patience: float = 30.0,
        certificate: str | Path | None = None,
    ) -> None:  # fmt: skip
        self._address = address.rstrip("/")
        self._base = f"{self._address}/learners/{quote(learner, safe='')}"
        self._headers = {"Content-Type": "application/json"} | _authorization(token)
        self._patience = patience
        self._context = None if certificate is None else _trusting(certificate)

    def ask(self) -> str:
        """Open an episode, and return its id."""
        return str(self._send("/ask", {})["episode"])

    def act(self, state: int | str, episode: str | None = None) -> Any:
        """Draw an action for a state, by number or name, from the policy of an open episode."""
        return self._get("/act", **{"state" if isinstance(state, str) else "number": state}, episode=episode)

    def tell(self, episode: str, states: list[Any], actions: list[Any], **outcome: Any) -> str:
        """Send the outcome of an episode; return "learned" or "already".

        `outcome` is `loss` or `scenario`, and `constraints` if the tables of the problem do not contain them.
        """
        body = {"states": states, "actions": actions, **outcome}
        return str(self._send(f"/episodes/{quote(episode, safe='')}/tell", body)["answer"])

    def give_up(self, episode: str) -> str:
        """Close an episode without an outcome; return "given up" or "already"."""
        return str(self._send(f"/episodes/{quote(episode, safe='')}/give-up", {})["answer"])

    def episodes(self) -> list[str]:
        """Return the ids of the open episodes."""
        return list(self._get("/episodes")["open"])

    def state(self) -> Any:
        """Return a summary of the learner."""
        return self._get("/state")

    def policy(self, episode: str | None = None) -> Any:
        """Return a policy as a table: columns for pandas or polars."""
        return self._get("/policy", episode=episode)

    def watch(self, policy: Any = None) -> str:
        """Open an episode that somebody else plays, and return its id. The policy is given as in `stop_loss`."""
        return str(self._send("/watch", {"policy": policy})["episode"])

    def set_budgets(self, budgets: dict[str, float] | None = None, /, **named: float) -> Any:
        """Change budgets by name, in their own units: `{"technician": 3}`, or `technician=3`."""
        return self._send("/budgets", {"budgets": {**(budgets or {}), **named}}, "PUT")

    def rules(self) -> Any:
        """Return the stop-loss rules and the safe policy, as `stop_loss` takes them."""
        return self._get("/stop-loss")

    def stop_loss(self, rules: dict[str, dict[str, Any]], safe_policy: Any = None) -> Any:
        """Replace the stop-loss rules: `{"technician": {"most": 10}}`; without rules nothing stops.

        The safe policy is given by name, `{"good": {"run": 0.9, "service": 0.1}, …}`, or as numbers as in `policy`.
        """
        return self._send("/stop-loss", {"rules": rules, "safe_policy": safe_policy}, "PUT")

    def challengers(self) -> Any:
        """Return all learners, and what each would have spent."""
        return self._get("/challengers")

    def challenge(self, name: str, learner: str, **options: Any) -> Any:
        """Add a challenger; `options` are `episodes`, `options` and `seed`."""
        return self._send(f"/challengers/{quote(name, safe='')}", {"learner": learner, **options}, "PUT")

    def promote(self, name: str) -> Any:
        """Make a challenger the champion."""
        return self._send(f"/challengers/{quote(name, safe='')}/promote", {})

    def dismiss(self, name: str) -> Any:
        """Remove a challenger."""
        try:
            return self._send(f"/challengers/{quote(name, safe='')}", None, "DELETE")
        except ServiceError as error:
            if error.kind != "unknown-challenger" or error.tries == 1:
                raise
            return self.challengers()  # the attempt before removed it, and its answer was lost

    def _get(self, path: str, **query: Any) -> Any:
        given = {name: value for name, value in query.items() if value is not None}
        return self._answer(Request(f"{self._base}{path}?{urlencode(given)}", headers=self._headers))

    def _send(self, path: str, body: dict[str, Any] | None, method: str = "POST") -> Any:
        data = None if body is None else json.dumps(body).encode()
        return self._answer(Request(self._base + path, data, self._headers, method=method))

    def _answer(self, request: Request) -> Any:
        """Send a request until it is answered, or `patience` seconds have passed."""
        until, tries, sent = time.monotonic() + self._patience, 0, False
        while True:
            tries += 1
            try:
                return self._once(request)
            except ServiceError as error:
                error.tries = tries
                if error.status != 503 or time.monotonic() >= until:
                    raise
            except (OSError, HTTPException) as error:
                reason = error.reason if isinstance(error, URLError) else error
                sent = sent or reason is error or isinstance(reason, TimeoutError)
                if isinstance(reason, ssl.SSLCertVerificationError):
                    raise ServiceError(0, self._untrusted(reason)) from error
                if time.monotonic() >= until:
                    raise ServiceError(0, self._no_answer(reason, sent and request.get_method() != "GET")) from error
            time.sleep(PAUSE)

    def _no_answer(self, reason: object, sent: bool) -> dict[str, Any]:
        again = "; the request may have been carried out: send it again" if sent else ""
        if isinstance(reason, TimeoutError):
            words = f"no answer in {self._patience:g} s{again}, or with more patience"
        else:
            said = getattr(reason, "strerror", None) or reason
            words = f"no service answers at {self._address}: {said}{again}; check that it is running"
        return {"type": "#no-answer", "detail": words}

    def _untrusted(self, reason: ssl.SSLCertVerificationError) -> dict[str, Any]:
        said, remedy = reason.verify_message.rstrip("."), "pass certificate=FILE, one that is valid for this address"
        return {
            "type": "#untrusted",
            "detail": f"the certificate of {self._address} is not trusted: {said}; {remedy}",
        }

    def _once(self, request: Request) -> Any:
        try:
            with urlopen(request, timeout=self._patience or None, context=self._context) as answer:
                return json.load(answer)
        except HTTPError as error:
            with error:
                raise ServiceError(error.code, _problem(error)) from None


def _authorization(token: str | None) -> dict[str, str]:
    given = (token or "").strip()  # a file ends in a newline
    if not (given.isascii() and given.isprintable()):
        raise InvalidInputError("the token must be one line of printable ASCII; pass the token of the service")
    return {"Authorization": f"Bearer {given}"} if given else {}


def _trusting(certificate: str | Path) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=certificate)
    except OSError as error:
        words = f"{printable(certificate)}: {error.strerror or error}"
        raise InvalidInputError(f"the certificate cannot be used: {words}; pass a PEM file") from error


def _problem(error: HTTPError) -> dict[str, Any]:
    try:
        return dict(json.load(error))
    except ValueError:  # the answer of a proxy
        return {}
