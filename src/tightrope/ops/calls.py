"""The calls of the client, as values: what is sent, and how the answer is read. `tightrope.ops.client` sends them."""

import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import quote, urlencode

from tightrope.ops.answers import Acted, Rules, Spending, Standing, State, Table

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Call(Generic[Answer]):
    """A request below /learners/{name}."""

    method: str
    path: str
    read: Callable[[Any], Answer]  #: from the decoded body of the response
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


def _as_it_is(answer: Any) -> Any:
    return answer


def _get(path: str, read: Callable[[Any], Answer], **query: Any) -> Call[Answer]:
    given = {name: value for name, value in query.items() if value is not None}
    return Call("GET", f"{path}?{urlencode(given)}" if given else path, read)


def _send(
    path: str, read: Callable[[Any], Answer], body: Mapping[str, Any], method: str = "POST", **headers: str
) -> Call[Answer]:
    return Call(method, path, read, json.dumps(body).encode(), headers)


def _episode(answer: Any) -> str:
    return str(answer["episode"])


def _answer(answer: Any) -> str:
    return str(answer["answer"])


def _open(answer: Any) -> list[str]:
    return list(answer["open"])


def ask(key: str | None) -> Call[str]:
    """Open an episode. Attempts of one call have the same key, so that they open one episode."""
    return _send("/ask", _episode, {}, **{"Idempotency-Key": key or secrets.token_hex(16)})


def act(state: int | str, episode: str | None) -> Call[Acted]:
    """Draw an action for a state, by number or name."""
    return _get("/act", _as_it_is, **{"state" if isinstance(state, str) else "number": state}, episode=episode)


def tell(episode: str, states: list[Any], actions: list[Any], outcome: Mapping[str, Any]) -> Call[str]:
    """Report the outcome of an episode."""
    body = {"states": states, "actions": actions, **outcome}
    return _send(f"/episodes/{quote(episode, safe='')}/tell", _answer, body)


def give_up(episode: str) -> Call[str]:
    """Close an episode without an outcome."""
    return _send(f"/episodes/{quote(episode, safe='')}/give-up", _answer, {})


def episodes() -> Call[list[str]]:
    """List the open episodes."""
    return _get("/episodes", _open)


def state() -> Call[State]:
    """Summarise the learner."""
    return _get("/state", _as_it_is)


def policy(episode: str | None) -> Call[Table]:
    """Return a policy."""
    return _get("/policy", _as_it_is, episode=episode)


def watch(policy: Any) -> Call[str]:
    """Open an episode that somebody else plays."""
    return _send("/watch", _episode, {"policy": policy})


def set_budgets(budgets: Mapping[str, float]) -> Call[list[Spending]]:
    """Change budgets by name."""
    return _send("/budgets", _as_it_is, {"budgets": dict(budgets)}, "PUT")


def rules() -> Call[Rules]:
    """Return the stop-loss rules."""
    return _get("/stop-loss", _as_it_is)


def stop_loss(rules: Mapping[str, Mapping[str, Any]], safe_policy: Any) -> Call[Rules]:
    """Replace the stop-loss rules."""
    return _send("/stop-loss", _as_it_is, {"rules": rules, "safe_policy": safe_policy}, "PUT")


def challengers() -> Call[list[Standing]]:
    """Return all learners."""
    return _get("/challengers", _as_it_is)


def challenge(name: str, learner: str, options: Mapping[str, Any]) -> Call[list[Standing]]:
    """Add a challenger."""
    return _send(f"/challengers/{quote(name, safe='')}", _as_it_is, {"learner": learner, **options}, "PUT")


def promote(name: str) -> Call[list[Standing]]:
    """Make a challenger the champion."""
    return _send(f"/challengers/{quote(name, safe='')}/promote", _as_it_is, {})


def dismiss(name: str) -> Call[list[Standing]]:
    """Remove a challenger."""
    return Call("DELETE", f"/challengers/{quote(name, safe='')}", _as_it_is)
