"""What is sent and answered, as JSON. Losses and uses are in the units of the problem, as in its tables."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

#: A state or an action: its number, or its name, which is text, also if it is "0". A state that has a name of its own
#: for every step ("good, step 3") can be called without ("good") where the step is known.
Called = int | str

#: One number for each move of the space (for each step of the path, if that is all the learner wants to know); or by
#: name: {"good": {"run": -100, "service": 20}, …}, every state and action. A policy: for each entry of `/policy`.
Values = list[float] | dict[str, dict[str, float]]

#: State, action, next state.
Move = Annotated[list[int], Meta(min_length=3, max_length=3, description="state, action, next state")]


class Tell(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """What came of an episode."""

    states: Annotated[list[Called], Meta(description="the path, state by state; the end may be left out")]
    actions: Annotated[list[Called], Meta(description="what was done in each of them")]
    loss: Annotated[Values | None, Meta(description="what each move cost, or would have cost")] = None
    scenario: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="in place of loss: the number of a recorded episode in the problem's table"),
    ] = None
    constraints: Annotated[
        dict[str, Values] | None,
        Meta(description="what each move used of each budget, by name; left out where the problem's tables say it"),
    ] = None


class Asked(Struct):
    """An episode to be played."""

    episode: Annotated[str, Meta(description="its id: no other episode ever has it")]


class Answered(Struct):
    """What became of an episode."""

    episode: str
    answer: Literal["learned", "given up", "already"]


class Watch(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """An episode that somebody else plays."""

    policy: Annotated[
        Values | None, Meta(description="with which; left out, all that is seen is the path that was played")
    ] = None


class Budgets(Struct, forbid_unknown_fields=True):
    """Other budgets, for all that is told from now on."""

    budgets: Annotated[dict[str, float], Meta(description="of an episode, by name; those left out stay")]


class Rule(Struct, forbid_unknown_fields=True):
    """When the safe policy is played, for one budget, in its own units."""

    most: Annotated[float, Meta(description="how far over the budget, summed over all episodes, is too far")]
    by: Annotated[
        Literal["spent", "predicted"], Meta(description="what was spent, or what is expected by the end of the horizon")
    ] = "spent"
    back: Annotated[float, Meta(description="how far over it may be to go on")] = 0.0
    horizon: Annotated[int, Meta(description="episodes, for predicted only")] = 0
    window: Annotated[int, Meta(description="episodes that a prediction looks back")] = 100


class Rules(Struct, forbid_unknown_fields=True):
    """A stop-loss, in place of the one there is. Without rules nothing stops."""

    rules: Annotated[dict[str, Rule], Meta(description="by the name of the budget")]
    safe_policy: Annotated[Values | None, Meta(description="what is played when a rule says so")] = None


class Challenger(Struct, forbid_unknown_fields=True):
    """A learner that learns from the same episodes, without playing."""

    learner: Annotated[str, Meta(description="as tightrope list has it, such as ucpd-practical")]
    episodes: Annotated[Annotated[int, Meta(ge=1)] | None, Meta(description="planned; some need no plan")] = None
    options: Annotated[dict[str, bool | int | float | str], Meta(description="parameters; ties: true or false")] = {}
    seed: Annotated[Annotated[int, Meta(ge=0)], Meta(description="if it draws random numbers")] = 0


class Standing(Struct):
    """A learner, and what it would have lost and spent, had its policy been played; sums, in own units."""

    name: str
    champion: Annotated[bool, Meta(description="whether its policy is handed out")]
    learner: dict[str, Any]
    weighed: Annotated[int, Meta(description="episodes that are weighed by importance")]
    would_have_lost: float
    would_have_spent: Annotated[dict[str, float], Meta(description="of each budget, in these episodes")]
    standard_errors: dict[str, float]
    on_paths: Annotated[int, Meta(description="episodes of which nobody knows who played them")]
    spent_on_paths: Annotated[dict[str, float], Meta(description="what was met in them")]
    uncovered: Annotated[int, Meta(description="episodes whose policy may not do all that this one may: left out")]
    failed: Annotated[str, Meta(description="why it learns no more; empty if it does")]


class Acted(Struct):
    """An action, drawn for one state."""

    state: int
    state_name: str
    action: int
    action_name: str
    probability: Annotated[float, Meta(description="with which it was drawn")]


class Spent(Struct):
    """One budget, in its own units."""

    name: str
    unit: str
    budget: Annotated[float, Meta(description="of an episode, now")]
    spent: Annotated[float, Meta(description="along all paths that were told")]
    allowed: Annotated[float, Meta(description="the budgets of those episodes")]
    share: Annotated[float | None, Meta(description="of what was allowed, how much was spent; null: some, of nothing")]
    price: Annotated[float, Meta(description="what a unit of it is worth to the learner, in price_unit")]
    price_unit: Annotated[str, Meta(description="that of the loss, per unit of the budget: euros per hour")]
    stopped: Annotated[bool, Meta(description="whether its stop-loss has the safe policy played")]


class State(Struct):
    """A learner, after the last call that was answered."""

    name: str
    event: Annotated[int, Meta(description="of the journal, the last: told, or another budget, rule or champion")]
    learner: dict[str, Any]
    feedback: Annotated[Literal["full", "bandit"], Meta(description="whether it wants to know every move, or its own")]
    asked: int
    open: int
    told: int
    given_up: int
    epoch: int
    loss: Annotated[float, Meta(description="summed over all paths that were told, in the problem's units")]
    loss_unit: str
    spending: list[Spent]
    trouble: Annotated[str, Meta(description="what went wrong and was put off; empty if nothing did")]


class Names(Struct):
    """Who is served."""

    learners: list[str]


class Episodes(Struct):
    """Those that were handed out, and are neither told nor given up."""

    open: list[str]


class Table(Struct):
    """A policy: one entry of each column for each action that a state has."""

    layer: list[int]
    state: list[int]
    action: list[int]
    probability: list[float]
    state_name: list[str]
    action_name: list[str]


class Space(Struct):
    """What `loss` and `constraints` are in the order of, if they are given as numbers."""

    states: Annotated[list[str], Meta(description="the names of the states, in layer order")]
    actions: list[str]
    layers: Annotated[list[int], Meta(description="how many states each layer has")]
    moves: Annotated[list[Move], Meta(description="all that can happen")]
    scenarios: Annotated[int, Meta(description="how many recorded losses the problem's table has")]
    budgets: list[str]


class Series(Struct):
    """How it went since the service was started: for each of some episodes, one entry for each budget."""

    told: list[int]
    use: Annotated[list[list[float]], Meta(description="in an episode, on average since the beginning of all")]
    allowed: Annotated[list[list[float]], Meta(description="in an episode, on average since the beginning of all")]
    price: Annotated[list[list[float]], Meta(description="of one unit, in the price_unit of the budget")]


class Health(Struct):
    """Somebody is there."""

    status: Literal["ok"]


class Problem(Struct, omit_defaults=True):
    """What went wrong (RFC 9457)."""

    type: Annotated[str, Meta(description="which kind, a place on the page /docs")]
    title: str
    status: int
    detail: Annotated[str, Meta(description="what was wrong with this request, and what to do about it")]
