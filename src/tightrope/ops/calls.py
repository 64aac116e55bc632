"""What can be asked of the service: one list, out of which the routes, the OpenAPI document and its page are made."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import msgspec
from starlette.requests import Request

from tightrope.ops import api as messages
from tightrope.ops import operating
from tightrope.ops.inputs import digits
from tightrope.ops.refusals import Refusal
from tightrope.ops.served_learner import Keeper

#: Answers a request about a learner.
Answer = Callable[[Keeper, Request, Any], Awaitable[Any] | Any]

#: Parameters of a place: their names, and what they mean.
IN_PATH = {"name": "of the learner", "episode": "the id that ask handed out", "challenger": "a name without /"}
IN_QUERY = {
    "state": "its name; or its number, refused where another state is called so",
    "number": "in place of state: its number",
    "episode": "an open episode, whose policy is meant; without one, what would be handed out now",
}


@dataclass(frozen=True)
class Call:
    """A place, a method, and what happens there."""

    method: str
    path: str
    summary: str
    answers: type
    answer: Answer
    takes: type | None = None  #: the body
    query: tuple[str, ...] = ()  #: parameters
    refusals: tuple[str, ...] = ()


def _query(request: Request, name: str) -> str | None:
    return request.query_params.get(name)


def _act(keeper: Keeper, request: Request, body: None) -> messages.Acted:
    state, number, episode = (_query(request, name) for name in ("state", "number", "episode"))
    if state is not None and number is None:
        return keeper.act(keeper.reader.written(state), episode)
    found = digits(number or "")
    if state is not None or found is None:
        raise Refusal("malformed", "one parameter says which state: state=…, or number=…, in digits")
    return keeper.act(found, episode)


def _id(request: Request) -> str:
    return str(request.path_params["episode"])


def _challenger(request: Request) -> str:
    return str(request.path_params["challenger"])


LEARNER = "/learners/{name}"

#: Of whatever has a body, and of whatever changes something.
BODY, CHANGE = ("too-slow", "refused"), ("busy", "storage")

#: About one learner.
CALLS = (
    Call(
        "POST", f"{LEARNER}/ask", "Hand out an episode", messages.Asked, lambda keeper, request, body: keeper.ask(),
        refusals=("too-many-open", *CHANGE),
    ),
    Call(
        "GET", f"{LEARNER}/act", "Draw an action for one state", messages.Acted, _act,
        query=("state", "number", "episode"), refusals=("refused", "unknown-episode"),
    ),
    Call(
        "POST", f"{LEARNER}/episodes/{{episode}}/tell", "Learn what came of an episode", messages.Answered,
        lambda keeper, request, body: keeper.tell(_id(request), body), takes=messages.Tell,
        refusals=(*BODY, "unknown-episode", "conflict", "cannot-learn", *CHANGE),
    ),
    Call(
        "POST", f"{LEARNER}/episodes/{{episode}}/give-up", "Say that nobody will tell of an episode",
        messages.Answered, lambda keeper, request, body: keeper.give_up(_id(request)),
        refusals=("unknown-episode", "conflict", *CHANGE),
    ),
    Call(
        "GET", f"{LEARNER}/episodes", "Which episodes are open", messages.Episodes,
        lambda keeper, request, body: messages.Episodes(list(keeper.open)),
    ),
    Call(
        "GET", f"{LEARNER}/policy", "A policy, as a table", messages.Table,
        lambda keeper, request, body: keeper.table(_query(request, "episode")),
        query=("episode",), refusals=("unknown-episode",),
    ),
    Call(
        "GET", f"{LEARNER}/spending", "What was spent of each budget, in its own units", list[messages.Spent],
        lambda keeper, request, body: keeper.spending(),
    ),
    Call(
        "GET", f"{LEARNER}/state", "A learner in short", messages.State, lambda keeper, request, body: keeper.state()
    ),
    Call(
        "GET", f"{LEARNER}/series", "How it went since the service was started", messages.Series,
        lambda keeper, request, body: keeper.series,
    ),
    Call(
        "GET", f"{LEARNER}/space", "States, actions and moves", messages.Space,
        lambda keeper, request, body: keeper.space(),
    ),
    Call(
        "POST", f"{LEARNER}/watch", "Hand out an episode that somebody else plays", messages.Asked,
        lambda keeper, request, body: operating.watch(keeper, body), takes=messages.Watch,
        refusals=(*BODY, "too-many-open", *CHANGE),
    ),
    Call(
        "PUT", f"{LEARNER}/budgets", "Change budgets for all that is told from now on", list[messages.Spent],
        lambda keeper, request, body: operating.set_budgets(keeper, body), takes=messages.Budgets,
        refusals=(*BODY, *CHANGE),
    ),
    Call(
        "GET", f"{LEARNER}/stop-loss", "When the safe policy is played", messages.Rules,
        lambda keeper, request, body: operating.rules_of(keeper),
    ),
    Call(
        "PUT", f"{LEARNER}/stop-loss", "Say when the safe policy is played", messages.Rules,
        lambda keeper, request, body: operating.set_rules(keeper, body), takes=messages.Rules,
        refusals=(*BODY, *CHANGE),
    ),
    Call(
        "GET", f"{LEARNER}/challengers", "All that learn, and what each would have spent", list[messages.Standing],
        lambda keeper, request, body: operating.standings(keeper),
    ),
    Call(
        "PUT", f"{LEARNER}/challengers/{{challenger}}", "Add a learner that learns without playing",
        list[messages.Standing],
        lambda keeper, request, body: operating.challenge(keeper, _challenger(request), body),
        takes=messages.Challenger, refusals=(*BODY, "name-taken", *CHANGE),
    ),
    Call(
        "DELETE", f"{LEARNER}/challengers/{{challenger}}", "Forget a challenger", list[messages.Standing],
        lambda keeper, request, body: operating.dismiss(keeper, _challenger(request)),
        refusals=("unknown-challenger", "refused", *CHANGE),
    ),
    Call(
        "POST", f"{LEARNER}/challengers/{{challenger}}/promote", "Hand out the policy of this one from now on",
        list[messages.Standing],
        lambda keeper, request, body: operating.promote(keeper, _challenger(request)),
        refusals=("unknown-challenger", "refused", *CHANGE),
    ),
)  # fmt: skip

DECODERS: dict[type, msgspec.json.Decoder[Any]] = {
    call.takes: msgspec.json.Decoder(call.takes) for call in CALLS if call.takes is not None
}
