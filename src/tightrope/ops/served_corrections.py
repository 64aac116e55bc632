"""The endpoints of corrections, as methods of `ServedLearner`.

A correction runs in a thread of its own, while other requests are answered from the old policies. It continues if the
client hangs up.
"""

import asyncio
from collections.abc import Callable
from typing import Annotated, Any, Protocol

from msgspec import Meta, Struct

from tightrope.errors import StorageError
from tightrope.ops.api import CHANGE, WITH_BODY, Tell, endpoint
from tightrope.ops.corrections import Correction
from tightrope.ops.inputs import Translator
from tightrope.ops.learner import DurableLearner
from tightrope.ops.rebuilding import Effect
from tightrope.ops.status import Spending

Reason = Annotated[str, Meta(description="recorded with the correction")]
DryRun = Annotated[bool, Meta(description="return the effect, and change nothing")]
Seconds = Annotated[Annotated[float, Meta(ge=0)] | None, Meta(description="in seconds since 1970")]


class Served(Protocol):
    """What the endpoints need of a `ServedLearner`."""

    learner: DurableLearner
    translator: Translator
    disk_error: str

    async def change(self, function: Callable[..., Any], *arguments: Any) -> Any: ...


class Retract(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Outcomes to retract: those that meet all conditions."""

    episodes: Annotated[list[str] | None, Meta(description="ids")] = None
    since: Seconds = None
    until: Seconds = None
    told_by: Annotated[str | None, Meta(description="the author who told them")] = None
    reason: Reason = ""
    dry_run: DryRun = False


class Amend(Tell, forbid_unknown_fields=True, omit_defaults=True):
    """The outcome that an episode is to have instead."""

    reason: Reason = ""
    dry_run: DryRun = False


class Undo(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """How to undo a correction."""

    reason: Reason = ""
    dry_run: DryRun = False


class Corrected(Struct):
    """The effect of a correction."""

    event: Annotated[int, Meta(description="the number of its event in the journal; 0 in a dry run")]
    episodes: Annotated[list[int], Meta(description="numbers of its episodes, with which their ids begin")]
    left_out: Annotated[list[int], Meta(description="episodes that the corrected learner cannot learn")]
    told_before: int
    told: int
    spending_before: list[Spending]
    spending: list[Spending]


class Corrections(Struct):
    """All corrections, oldest first."""

    corrections: list[Correction]
    in_progress: bool


@endpoint("GET", "/corrections", role="read")
async def corrections(self: Served) -> Corrections:
    """List the corrections."""
    return Corrections(list(await self.change(self.learner.corrections)), self.learner.correcting)


@endpoint("POST", "/retract", *WITH_BODY, "unknown-episode", "conflict", *CHANGE)
async def retract(self: Served, body: Retract, author: str) -> Corrected:
    """Retract outcomes: the learner becomes one that never learned them."""
    conditions: dict[str, Any] = {name: getattr(body, name) for name in ("episodes", "since", "until", "told_by")}
    recorded = _recorded(body, author)
    return await _corrected(self, lambda: self.learner.retract(**conditions, **recorded))


@endpoint("POST", "/episodes/{episode}/amend", *WITH_BODY, "unknown-episode", "conflict", *CHANGE)
async def amend(self: Served, episode: str, body: Amend, author: str) -> Corrected:
    """Replace the outcome of an episode that was told."""

    def amended() -> Effect:
        outcome = self.translator.outcome(body)
        return self.learner.amend(episode, **outcome, **_recorded(body, author))

    return await _corrected(self, amended)


@endpoint("POST", "/corrections/{event}/undo", *WITH_BODY, "conflict", *CHANGE)
async def undo(self: Served, event: str, body: Undo, author: str) -> Corrected:
    """Undo a correction."""
    number = int(event) if event.isascii() and event.isdecimal() and len(event) < 16 else 0
    return await _corrected(self, lambda: self.learner.undo(max(number, 1), **_recorded(body, author)))


def _recorded(body: Retract | Amend | Undo, author: str) -> dict[str, Any]:
    return {"reason": body.reason, "dry_run": body.dry_run, "author": author or None}


async def _corrected(self: Served, correct: Callable[[], Effect]) -> Corrected:
    try:
        effect = await asyncio.to_thread(correct)
    except StorageError as error:
        self.disk_error = str(error)
        raise
    await self.change(lambda: None)  # publishes the corrected learner
    before, after = effect.before, effect.after
    return Corrected(
        effect.event,
        list(effect.episodes),
        list(effect.left_out),
        before.told,
        after.told,
        list(before.spending),
        list(after.spending),
    )
