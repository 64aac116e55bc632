"""A client of few lines, with nothing but the standard library. The same in curl: docs/service.md."""

import json
import time
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

#: Seconds between two tries.
PAUSE = 0.2


class ServiceError(Exception):
    """What the service refused: `kind` is the end of its type, such as "conflict".

    "no-answer", with status 0: it was there and did not answer in time, so that nobody knows what it did.
    """

    def __init__(self, status: int, problem: dict[str, Any]) -> None:
        super().__init__(problem.get("detail", f"status {status}"))
        self.status, self.problem = status, problem
        self.kind = str(problem.get("type", "")).rpartition("#")[2]
        self.tries = 1  #: how often it was asked until this was answered


class Client:
    """One learner of a service.

    Twice is once, so what fails is tried again for `patience` seconds: while nobody answers, or who answers asks to
    come back later (503). An episode that was asked for and never arrived stays open.
    """

    def __init__(self, address: str, learner: str, token: str | None = None, patience: float = 30.0) -> None:
        self._base = f"{address.rstrip('/')}/learners/{quote(learner, safe='')}"
        self._headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        self._patience = patience

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
        until, tries = time.monotonic() + self._patience, 0
        while True:
            tries += 1
            try:
                return self._once(request)
            except ServiceError as refusal:
                refusal.tries = tries
                if refusal.status != 503 or time.monotonic() >= until:
                    raise
            except (URLError, HTTPException, ConnectionError, TimeoutError) as error:  # nobody, or nobody any more
                if time.monotonic() >= until:
                    if TimeoutError in (type(error), type(getattr(error, "reason", None))):
                        raise ServiceError(0, self._no_answer(request)) from error
                    raise
            time.sleep(PAUSE)

    def _no_answer(self, request: Request) -> dict[str, Any]:
        again = "" if request.get_method() == "GET" else "; what was sent may have been taken over: send it again"
        return {"type": "#no-answer", "detail": f"no answer in {self._patience:g} s{again}, or give more patience"}

    def _once(self, request: Request) -> Any:
        try:
            with urlopen(request, timeout=self._patience or None) as answer:
                return json.load(answer)
        except HTTPError as error:
            with error:
                raise ServiceError(error.code, _problem(error)) from None


def _problem(error: HTTPError) -> dict[str, Any]:
    try:
        return dict(json.load(error))
    except ValueError:  # somebody else's refusal, such as a proxy's
        return {}
