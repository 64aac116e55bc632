"""The HTTP API: the types that are sent as JSON, the kinds of errors, and how a method becomes an endpoint.

Losses and uses are in the units of the problem, as in its tables.
"""

import re
from collections.abc import Callable
from inspect import getdoc, signature
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, get_args, get_type_hints

from msgspec import Meta, Struct

from tightrope.errors import (
    ConflictError,
    ConvergenceError,
    InvalidInputError,
    StorageError,
    TooManyOpenError,
    UnknownEpisodeError,
)
from tightrope.ops.state import StopLoss
from tightrope.ops.status import Spending

#: A state or an action: its number, or its name, which is always text, even if it is "0". A state with a name for each
#: step ("good, step 3") may be called without the step ("good") where the step is known.
Name = int | str

#: One number for each move of the space, or for each step of the path if the learner sees only that; or by name, for
#: every state and action: {"good": {"run": -100, "service": 20}, …}. For a policy: one number for each row of /policy.
Values = list[float] | dict[str, dict[str, float]]

Move = Annotated[list[int], Meta(min_length=3, max_length=3, description="state, action, next state")]


class Tell(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The outcome of an episode."""

    states: Annotated[list[Name], Meta(description="the path, state by state; the final state may be left out")]
    actions: Annotated[list[Name], Meta(description="the action taken in each state")]
    loss: Annotated[Values | None, Meta(description="what each move cost, or would have cost")] = None
    scenario: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="in place of loss: the number of a recorded episode in the problem's table"),
    ] = None
    constraints: Annotated[
        dict[str, Values] | None,
        Meta(description="what each move used of each budget, by name; left out if the problem's tables contain it"),
    ] = None


class Asked(Struct):
    """An episode that was opened."""

    episode: Annotated[str, Meta(description="its id, which no other episode has")]


class Answered(Struct):
    """The result of closing an episode."""

    episode: str
    answer: Literal["learned", "given up", "already"]


class Watch(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """An episode that somebody else plays."""

    policy: Annotated[Values | None, Meta(description="the policy that plays it, if it is known")] = None


class Budgets(Struct, forbid_unknown_fields=True):
    """Budgets of all episodes that are told from now on."""

    budgets: Annotated[dict[str, float], Meta(description="for an episode, by name; the others stay as they are")]


class Rules(Struct, forbid_unknown_fields=True):
    """The stop-loss rules. Without rules nothing stops."""

    rules: Annotated[dict[str, StopLoss], Meta(description="by the name of the budget")]
    safe_policy: Annotated[Values | None, Meta(description="the policy to play while a rule stops the learner")] = None


class Challenger(Struct, forbid_unknown_fields=True):
    """A learner that learns from the same episodes without playing."""

    learner: Annotated[str, Meta(description="a name that `tightrope list learners` shows, such as ucpd-practical")]
    episodes: Annotated[
        Annotated[int, Meta(ge=1)] | None, Meta(description="the number planned; some learners need none")
    ] = None
    options: Annotated[dict[str, bool | int | float | str], Meta(description="parameters; ties: true or false")] = {}
    seed: Annotated[Annotated[int, Meta(ge=0)], Meta(description="of its random numbers")] = 0


class Standing(Struct):
    """A learner, and what it would have lost and spent if its policy had been played; sums in their own units."""

    name: str
    champion: Annotated[bool, Meta(description="whether its policy is played")]
    learner: dict[str, Any]
    weighed: Annotated[int, Meta(description="episodes estimated by importance")]
    would_have_lost: float
    would_have_spent: Annotated[dict[str, float], Meta(description="of each budget, in these episodes")]
    standard_errors: dict[str, float]
    on_paths: Annotated[int, Meta(description="episodes played by an unknown policy")]
    spent_on_paths: Annotated[dict[str, float], Meta(description="what was spent in them")]
    uncovered: Annotated[
        int, Meta(description="episodes left out: their policy does not take all actions that this one may take")
    ]
    failed: Annotated[str, Meta(description="why it learns no more; empty while it does")]


class Acted(Struct):
    """An action, drawn for a state."""

    state: int
    state_name: str
    action: int
    action_name: str
    probability: Annotated[float, Meta(description="with which it was drawn")]


class State(Struct):
    """The state of a learner after the last call that was answered."""

    name: str
    event: Annotated[int, Meta(description="the number of the last event in the journal")]
    learner: dict[str, Any]
    feedback: Annotated[Literal["full", "bandit"], Meta(description="whether it learns from all moves, or its path")]
    asked: int
    open: int
    told: int
    given_up: int
    expired: Annotated[int, Meta(description="given up because they were open too long, since the service was started")]
    retracted: Annotated[int, Meta(description="episodes that were told and retracted")]
    left_out: Annotated[int, Meta(description="episodes that were told, and that the corrected learner cannot learn")]
    epoch: int
    loss: Annotated[float, Meta(description="summed over all paths that were told, in the problem's units")]
    loss_unit: str
    spending: list[Spending]
    trouble: Annotated[str, Meta(description="the last error of the disk; empty if there is none")]
    correcting: Annotated[bool, Meta(description="whether a correction is in progress")]


class Names(Struct):
    """The learners that are served."""

    learners: list[str]


class Episodes(Struct):
    """The episodes that are open, oldest first."""

    open: list[str]
    since: Annotated[list[float], Meta(description="when each was opened, in seconds since 1970; 0 if it is not known")]


class Table(Struct):
    """A policy: columns with one row for each action of each state."""

    layer: list[int]
    state: list[int]
    action: list[int]
    probability: list[float]
    state_name: list[str]
    action_name: list[str]


class Space(Struct):
    """The order of `loss` and `constraints` if they are given as numbers."""

    states: Annotated[list[str], Meta(description="the names of the states, layer by layer")]
    actions: list[str]
    layers: Annotated[list[int], Meta(description="the number of states of each layer")]
    moves: Annotated[list[Move], Meta(description="all that can happen")]
    scenarios: Annotated[int, Meta(description="the number of recorded losses in the problem's table")]
    budgets: list[str]


class Series(Struct):
    """The history since the service was started: columns with one row for some of the episodes."""

    told: list[int]
    use: Annotated[list[list[float]], Meta(description="of each budget per episode, averaged since the beginning")]
    allowed: Annotated[list[list[float]], Meta(description="of each budget per episode, averaged since the beginning")]
    price: Annotated[list[list[float]], Meta(description="of a unit of each budget, in its price_unit")]


class Health(Struct):
    """The service is running."""

    status: Literal["ok"]


class ErrorBody(Struct, omit_defaults=True):
    """An error (RFC 9457)."""

    type: Annotated[str, Meta(description="the kind of error, an anchor on the page /docs")]
    title: str
    status: int
    detail: Annotated[str, Meta(description="what is wrong with this request, and what to do about it")]


class Kind(NamedTuple):
    """A kind of error."""

    status: int
    title: str


KINDS = {
    "malformed": Kind(400, "the request is not valid for this endpoint"),
    "no-token": Kind(401, "the token is missing or wrong"),
    "elsewhere": Kind(403, "the request comes from a page of another site"),
    "no-role": Kind(403, "the token does not have the role that this endpoint needs"),
    "not-found": Kind(404, "there is no such endpoint"),
    "unknown-learner": Kind(404, "no learner of this name is served"),
    "unknown-episode": Kind(404, "there is no such episode, or it is no longer remembered"),
    "unknown-challenger": Kind(404, "there is no challenger of this name"),
    "wrong-method": Kind(405, "the endpoint has other methods"),
    "too-slow": Kind(408, "the body did not arrive in time"),
    "conflict": Kind(409, "the episode was closed with another outcome, or the learner cannot learn from its policy"),
    "name-taken": Kind(409, "another learner has this name"),
    "too-large": Kind(413, "the body is larger than the limit"),
    "wrong-type": Kind(415, "the body is not declared as JSON"),
    "refused": Kind(422, "the request cannot be carried out as it is; nothing was changed"),
    "cannot-learn": Kind(422, "the learner could not learn from the episode, which stays open; nothing was changed"),
    "too-many-requests": Kind(429, "too many requests from this address; try again later"),
    "too-many-open": Kind(429, "too many episodes are open; tell or give up some"),
    "failed": Kind(500, "an internal error; nothing was acknowledged"),
    "not-ready": Kind(503, "the learner is being opened or closed; try again later"),
    "busy": Kind(503, "too many requests are being answered, or wait for this learner; try again later"),
    "no-memory": Kind(503, "the service ran out of memory; nothing was acknowledged"),
    "storage": Kind(503, "the directory could not be read or written; nothing was acknowledged"),
}

#: The kinds of our exceptions, subclasses first.
KIND_OF: dict[type[Exception], str] = {
    UnknownEpisodeError: "unknown-episode",
    ConflictError: "conflict",
    TooManyOpenError: "too-many-open",
    InvalidInputError: "refused",
    ConvergenceError: "cannot-learn",
    StorageError: "storage",
}


class ApiError(Exception):
    """An error to be sent to the client, of one of `KINDS`."""

    def __init__(self, kind: str, detail: str, **headers: str) -> None:
        super().__init__(detail)
        self.kind, self.detail, self.headers = kind, detail, headers

    @classmethod
    def of(cls, error: Exception) -> "ApiError | None":
        """Return the error for the client; None for a bug."""
        if isinstance(error, ApiError):
            return error
        return next((cls(kind, str(error)) for type_, kind in KIND_OF.items() if isinstance(error, type_)), None)

    @property
    def body(self) -> ErrorBody:
        """What is sent."""
        status, title = KINDS[self.kind]
        return ErrorBody(f"/docs#{self.kind}", title, status, self.detail)


#: What the holder of a token may do: read, draw actions and open episodes, report outcomes, change the learners.
Role = Literal["read", "act", "tell", "operate"]

ROLES: tuple[Role, ...] = get_args(Role)


class Endpoint(NamedTuple):
    """A method of a served learner that answers requests."""

    method: str
    path: str
    role: Role
    function: Callable[..., Any]
    summary: str
    path_parameters: tuple[str, ...]  #: without the name of the learner
    query: tuple[str, ...]
    headers: tuple[str, ...]
    takes_author: bool
    body: Any  #: the type of the request body, None without one
    result: Any  #: the type of the response
    errors: tuple[str, ...]


LEARNER = "/learners/{name}"

#: Parameters that are sent as headers.
HEADERS = {"key": "Idempotency-Key"}

#: What such a header may contain.
KEY = r"^[!-~]{1,100}$"

#: Errors of requests with a body, and of requests that change a learner.
WITH_BODY, CHANGE = ("too-slow", "wrong-type", "refused"), ("storage",)

Method = TypeVar("Method", bound=Callable[..., Any])


def endpoint(method: str, path: str, *errors: str, role: Role = "operate") -> Callable[[Method], Method]:
    """Make a method of `ServedLearner` an endpoint below /learners/{name}, with these kinds of errors.

    A request needs a token with the role. Parameters in the path are taken from it, `body` is decoded from JSON,
    `author` is the name of the token, those in `HEADERS` are headers, and all others are optional query parameters. The
    type of the response is that of the result.
    """

    def mark(function: Method) -> Method:
        function.endpoint = method, LEARNER + path, role, errors  # type: ignore[attr-defined]
        return function

    return mark


def endpoints_of(cls: type) -> list[Endpoint]:
    """Return the endpoints of a class, in the order of their definition."""
    return [_endpoint(function) for function in vars(cls).values() if hasattr(function, "endpoint")]


def _endpoint(function: Any) -> Endpoint:
    method, path, role, errors = function.endpoint
    hints = get_type_hints(function, include_extras=True)
    parameters = [name for name in signature(function).parameters if name != "self"]
    names = [name for name in parameters if name not in ("body", "author")]
    in_path = tuple(name for name in re.findall(r"{(\w+)}", path) if name in names)
    return Endpoint(
        method=method,
        path=path,
        role=role,
        function=function,
        summary=(getdoc(function) or "").partition("\n")[0].rstrip("."),
        path_parameters=in_path,
        query=tuple(name for name in names if name not in (*in_path, *HEADERS)),
        headers=tuple(name for name in names if name in HEADERS),
        takes_author="author" in parameters,
        body=hints.get("body"),
        result=hints["return"],
        errors=errors,
    )
