"""A client of few lines, with nothing but the standard library. The same in curl: docs/service.md."""

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

#: Seconds between two tries.
PAUSE = 0.2


class ServiceError(Exception):
    """What the service refused: `kind` is the end of its type, such as "conflict".

    With status 0 it is the client that says so. "no-answer": nobody answered in time, and if something was sent, nobody
    knows what was done with it. "untrusted": the certificate of who answers is not trusted; nothing was sent.
    """

    def __init__(self, status: int, problem: dict[str, Any]) -> None:
        said = [str(problem[part]) for part in ("title", "detail") if problem.get(part)]
        super().__init__(": ".join(said) or f"status {status}")
        self.status, self.problem = status, problem
        self.kind = str(problem.get("type", "")).rpartition("#")[2]
        self.tries = 1  #: how often it was asked until this was answered


class Client:
    """One learner of a service.

    Twice is once, so what fails is tried again for `patience` seconds: while nobody answers, or who answers asks to
    come back later (503). An episode that was asked for and never arrived stays open. `certificate` is a file (PEM)
    to trust in place of what this machine trusts, such as the one that the service was started with.
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
        """The id of an episode to be played."""
        return str(self._send("/ask", {})["episode"])

    def act(self, state: int | str, episode: str | None = None) -> Any:
        """An action for a state, by number or by name, drawn from the policy of an open episode."""
        return self._get("/act", **{"state" if isinstance(state, str) else "number": state}, episode=episode)

    def tell(self, episode: str, states: list[Any], actions: list[Any], **told: Any) -> str:
        """What came of it; `told` is loss or scenario, and constraints. Answers "learned" or "already"."""
        body = {"states": states, "actions": actions, **told}
        return str(self._send(f"/episodes/{quote(episode, safe='')}/tell", body)["answer"])

    def give_up(self, episode: str) -> str:
        """Nobody will tell of it."""
        return str(self._send(f"/episodes/{quote(episode, safe='')}/give-up", {})["answer"])

    def episodes(self) -> list[str]:
        """The ids of those that are open: handed out, and neither told nor given up."""
        return list(self._get("/episodes")["open"])

    def state(self) -> Any:
        """The learner in short."""
        return self._get("/state")

    def policy(self, episode: str | None = None) -> Any:
        """A policy as a table: columns for pandas or polars."""
        return self._get("/policy", episode=episode)

    def watch(self, policy: Any = None) -> str:
        """The id of an episode that somebody else plays, with this policy, as `policy` has it or by name."""
        return str(self._send("/watch", {"policy": policy})["episode"])

    def set_budgets(self, budgets: dict[str, float] | None = None, /, **named: float) -> Any:
        """Change these, by name, in their own units: `{"technician": 3}`, or `technician=3`."""
        return self._send("/budgets", {"budgets": {**(budgets or {}), **named}}, "PUT")

    def rules(self) -> Any:
        """When the safe policy is played, and what it is, as `stop_loss` takes them."""
        return self._get("/stop-loss")

    def stop_loss(self, rules: dict[str, dict[str, Any]], safe_policy: Any = None) -> Any:
        """Have the safe policy played whenever a rule says so: `{"technician": {"most": 10}}`; none: nothing stops."""
        return self._send("/stop-loss", {"rules": rules, "safe_policy": safe_policy}, "PUT")

    def challengers(self) -> Any:
        """All that learn, and what each would have spent."""
        return self._get("/challengers")

    def challenge(self, name: str, learner: str, **told: Any) -> Any:
        """Another learner on the same stream; `told` is episodes, options and seed."""
        return self._send(f"/challengers/{quote(name, safe='')}", {"learner": learner, **told}, "PUT")

    def promote(self, name: str) -> Any:
        """From now on its policy is handed out."""
        return self._send(f"/challengers/{quote(name, safe='')}/promote", {})

    def dismiss(self, name: str) -> Any:
        """Forget it."""
        try:
            return self._send(f"/challengers/{quote(name, safe='')}", None, "DELETE")
        except ServiceError as refusal:
            if refusal.kind != "unknown-challenger" or refusal.tries == 1:
                raise
            return self.challengers()  # it was forgotten, and the answer lost

    def _get(self, place: str, **query: Any) -> Any:
        given = {name: value for name, value in query.items() if value is not None}
        return self._answer(Request(f"{self._base}{place}?{urlencode(given)}", headers=self._headers))

    def _send(self, place: str, body: dict[str, Any] | None, method: str = "POST") -> Any:
        data = None if body is None else json.dumps(body).encode()
        return self._answer(Request(self._base + place, data, self._headers, method=method))

    def _answer(self, request: Request) -> Any:
        until, tries, sent = time.monotonic() + self._patience, 0, False
        while True:
            tries += 1
            try:
                return self._once(request)
            except ServiceError as refusal:
                refusal.tries = tries
                if refusal.status != 503 or time.monotonic() >= until:
                    raise
            except (OSError, HTTPException) as error:  # nobody, or nobody any more
                reason = error.reason if isinstance(error, URLError) else error
                sent = sent or reason is error or isinstance(reason, TimeoutError)
                if isinstance(reason, ssl.SSLCertVerificationError):
                    raise ServiceError(0, self._untrusted(reason)) from error
                if time.monotonic() >= until:
                    raise ServiceError(0, self._no_answer(reason, sent and request.get_method() != "GET")) from error
            time.sleep(PAUSE)

    def _no_answer(self, reason: object, changes: bool) -> dict[str, Any]:
        again = "; what was sent may have been taken over: send it again" if changes else ""
        if isinstance(reason, TimeoutError):
            said = f"no answer in {self._patience:g} s{again}, or give more patience"
        else:
            words = getattr(reason, "strerror", None) or reason
            said = f"nobody answers at {self._address}: {words}{again}; see whether the service runs there"
        return {"type": "#no-answer", "detail": said}

    def _untrusted(self, reason: ssl.SSLCertVerificationError) -> dict[str, Any]:
        words, remedy = reason.verify_message.rstrip("."), "give certificate=FILE, one that is made for this address"
        said = f"the certificate of {self._address} is not trusted: {words}; {remedy}"
        return {"type": "#untrusted", "detail": said}

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
        raise InvalidInputError("the token must be one line of printable ASCII; give what the service was given")
    return {"Authorization": f"Bearer {given}"} if given else {}


def _trusting(certificate: str | Path) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=certificate)
    except OSError as error:
        words = f"{printable(certificate)}: {error.strerror or error}"
        raise InvalidInputError(f"the certificate cannot be used: {words}; name a file in PEM") from error


def _problem(error: HTTPError) -> dict[str, Any]:
    try:
        return dict(json.load(error))
    except ValueError:  # somebody else's refusal, such as a proxy's
        return {}
