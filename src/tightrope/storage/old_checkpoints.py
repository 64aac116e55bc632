"""Conversion of checkpoints with older schemas to the present one.

    5   as 4; `ucpd-practical` and `ucpd-practical-known` are other learners, and those before are called -0.2
    4   as 3; the fields of a state declare the schema that introduced them (`storage.state.numbers`)
    3   state by attribute, nested objects inside; values other than numbers, texts and lists under a key for their kind
    2   state by dotted name ("counts.N"); dictionaries without a key for their kind

Schema 1 had counts of 64 bits inside an epoch and is refused.
"""

from typing import Any

from tightrope import __version__
from tightrope.errors import InvalidInputError

#: The schema that is written; a change of the format that older readers cannot read increases it.
SCHEMA = 5

#: The keys for kinds of values in schema 2.
TAGS = ("float", "array", "space", "mdp", "policy", "generator", "state")


#: Learners that schema 5 has under another name.
RENAMED = {
    "ucpd-practical": "ucpd-practical-0.2",
    "ucpd-practical-known": "ucpd-practical-known-0.2",
}


def upgraded(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document in the present schema; fields that are new since then are missing."""
    if document["schema"] in (2, 3, 4):
        learner = document["learner"]
        document = _with_state(document) | {"learner": RENAMED.get(learner, learner)}
    elif document["schema"] != SCHEMA:
        raise InvalidInputError(
            f"written by tightrope {document['tightrope']} in schema {document['schema']}; "
            f"this is tightrope {__version__}, which reads schemas 2 to {SCHEMA}"
        )
    return document


def _with_state(document: dict[str, Any]) -> dict[str, Any]:
    """Return a document of schema 2, 3 or 4 with its parameters and its state in the form of 4."""
    if document["schema"] == 2:
        return document | {
            "parameters": {name: _tagged(value) for name, value in document["parameters"].items()},
            "state": _by_attribute(document["state"]),
        }
    if document["schema"] == 3 and document["learner"] == "ucpd-practical":  # it took a step in every episode
        return document | {"state": document["state"] | {"steps": document["state"]["observed"]}}
    return document


def _tagged(value: Any) -> Any:
    match value:
        case {"dataclass": name, "fields": fields}:
            return {"dataclass": {"name": name, "fields": {key: _tagged(item) for key, item in fields.items()}}}
        case dict() if len(value) == 1 and next(iter(value)) in TAGS:
            return value
        case dict():
            return {"dict": {key: _tagged(item) for key, item in value.items()}}
        case list():
            return [_tagged(item) for item in value]
    return value


def _by_attribute(state: dict[str, Any]) -> dict[str, Any]:
    grouped: dict[str, Any] = {}
    for name, value in state.items():
        owner, _, part = name.partition(".")
        if part:
            grouped.setdefault(owner, {"state": {}})["state"][part] = value
        elif name != "_rng":  # of FPOP, which never drew again
            grouped[name] = value
    return grouped
