"""The calls of the client, as values: what is sent, and how the answer is read. `tightrope.ops.client` sends them.

Answers are dictionaries, with the fields of `tightrope.ops.api`.
"""

import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypedDict, TypeVar
from urllib.parse import quote, urlencode

Answer = TypeVar("Answer")


class Acted(TypedDict):
    """An action, drawn for a state."""

    state: int
    state_name: str
    action: int
    action_name: str
    probability: float


class Spending(TypedDict):
    """One budget, in its own units."""

    name: str
    unit: str
    budget: float
    spent: float
    allowed: float
    share: float | None
    price: float
    price_unit: str
    stopped: bool


class State(TypedDict):
    """A summary of a learner."""

    name: str
    event: int
    learner: dict[str, Any]
    feedback: Literal["full", "bandit"]
    asked: int
    open: int
    told: int
    given_up: int
    expired: int
    retracted: int
    left_out: int
    epoch: int
    loss: float
    loss_unit: str
    spending: list[Spending]
    trouble: str
    correcting: bool


class Table(TypedDict):
    """A policy: columns for pandas or polars."""

    layer: list[int]
    state: list[int]
    action: list[int]
    probability: list[float]
    state_name: list[str]
    action_name: list[str]


class Rules(TypedDict):
    """The stop-loss rules by the name of the budget, and the safe policy."""

    rules: dict[str, dict[str, Any]]
    safe_policy: list[float] | dict[str, dict[str, float]] | None


class Standing(TypedDict):
    """A learner, and what it would have lost and spent if its policy had been played."""

    name: str
    champion: bool
    learner: dict[str, Any]
    weighed: int
    would_have_lost: float
    would_have_spent: dict[str, float]
    standard_errors: dict[str, float]
    on_paths: int
    spent_on_paths: dict[str, float]
    uncovered: int
    failed: str


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
