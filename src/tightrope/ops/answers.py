"""The answers of the service as the client returns them: dictionaries, with the fields of `tightrope.ops.api`."""

from typing import Any, Literal, TypedDict


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
