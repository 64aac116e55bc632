"""What the service refuses, and how it says so: application/problem+json, with a type for each kind (RFC 9457)."""

from typing import NamedTuple

import msgspec
from starlette.responses import Response

from tightrope.errors import (
    ConflictError,
    ConvergenceError,
    InvalidInputError,
    StorageError,
    TooManyOpenError,
    UnknownEpisodeError,
)
from tightrope.ops.api import Problem


class Kind(NamedTuple):
    """A kind of refusal."""

    status: int
    title: str


KINDS = {
    "malformed": Kind(400, "the request is not what this place understands"),
    "no-token": Kind(401, "the token is missing or wrong"),
    "elsewhere": Kind(403, "the request was made by a page from elsewhere"),
    "not-found": Kind(404, "there is nothing at this place"),
    "unknown-learner": Kind(404, "no learner of this name is served"),
    "unknown-episode": Kind(404, "no such episode was handed out, or nothing is remembered of it"),
    "unknown-challenger": Kind(404, "no learner of this name learns here"),
    "wrong-method": Kind(405, "this place answers other methods"),
    "too-slow": Kind(408, "the body did not arrive in time"),
    "conflict": Kind(409, "the episode was settled otherwise, or its policy is none to learn by; nothing was changed"),
    "name-taken": Kind(409, "another learner has this name; nothing was changed"),
    "too-large": Kind(413, "the body is larger than is taken"),
    "refused": Kind(422, "what was told or wanted makes no sense; nothing was changed"),
    "cannot-learn": Kind(422, "the learner could not learn from the episode, which stays open; nothing was changed"),
    "too-many-requests": Kind(429, "more requests than are answered; come back later"),
    "too-many-open": Kind(429, "as many episodes are open as may be; tell or give up some"),
    "failed": Kind(500, "an error of ours; nothing was acknowledged"),
    "not-ready": Kind(503, "the learners are being opened, or let go of; come back later"),
    "busy": Kind(503, "too many requests wait for this learner; come back later"),
    "storage": Kind(503, "the directory could not be written or read; nothing was acknowledged"),
}

#: How errors of ours are called here, the more special ones first.
OF_ERRORS: dict[type[Exception], str] = {
    UnknownEpisodeError: "unknown-episode",
    ConflictError: "conflict",
    TooManyOpenError: "too-many-open",
    InvalidInputError: "refused",
    ConvergenceError: "cannot-learn",
    StorageError: "storage",
}

#: Seconds after which whoever is told to come back may.
LATER = "1"


class Refusal(Exception):
    """A request that is not answered as it was meant."""

    def __init__(self, kind: str, detail: str, **headers: str) -> None:
        super().__init__(detail)
        self.kind, self.detail, self.headers = kind, detail, headers


def refusal_of(error: Exception) -> Refusal | None:
    """How an error of ours is called; None for a bug."""
    if isinstance(error, Refusal):
        return error
    for type_, kind in OF_ERRORS.items():
        if isinstance(error, type_):
            return Refusal(kind, str(error))
    return None


def answer(refusal: Refusal) -> Response:
    """As it is sent."""
    status, title = KINDS[refusal.kind]
    headers = {"Cache-Control": "no-store"} | ({"Retry-After": LATER} if status in (429, 503) else {}) | refusal.headers
    said = Problem(f"/docs#{refusal.kind}", title, status, refusal.detail)
    return Response(msgspec.json.encode(said), status, headers, "application/problem+json")
