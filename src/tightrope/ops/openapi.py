"""The OpenAPI document of the service and a page of it, both made of the list of calls."""

import json
import re
from collections.abc import Sequence
from html import escape
from string import Template
from typing import Any

import msgspec

from tightrope import __version__
from tightrope.ops.api import Health, Names, Problem
from tightrope.ops.calls import CALLS, IN_PATH, IN_QUERY, Call
from tightrope.ops.learner import LONGEST_NAME
from tightrope.ops.page import asset, styles
from tightrope.ops.refusals import KINDS

#: Places that are about no learner: what they answer, and with what besides 200.
COMMON: dict[str, tuple[str, Any, tuple[str, ...]]] = {
    "/learners": ("The names of the learners", Names, ()),
    "/ready": ("Whether all learners can be asked and told", Health, ("not-ready", "storage")),
    "/health": ("Whether the service is there; the one place that needs no token", Health, ()),
    "/metrics": ("Counts for Prometheus", "text/plain", ()),
    "/openapi.json": ("This document", "application/json", ()),
    "/docs": ("This document, to be read", "text/html", ()),
    "/": ("The learners, live", "text/html", ()),
}

#: May happen anywhere; at /health, only a page from elsewhere is refused.
ANYWHERE = ("malformed", "no-token", "elsewhere", "too-many-requests")
AT_LEARNERS = ("unknown-learner", "too-large", "not-ready")

#: What a challenger may be called.
CHALLENGER = {"minLength": 1, "maxLength": LONGEST_NAME, "pattern": "^[^/]*$"}

#: Of a state.
NUMBER = {"type": "integer", "minimum": 0}


def document(names: Sequence[str]) -> dict[str, Any]:
    """OpenAPI 3.1, of a service of learners with these names."""
    types = [call.answers for call in CALLS] + [call.takes for call in CALLS if call.takes] + [Names, Health, Problem]
    schemas, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    schema = dict(zip(map(str, types), schemas, strict=True))
    paths: dict[str, Any] = {}
    for call in CALLS:
        paths.setdefault(call.path, {})[call.method.lower()] = _operation(call, names, schema)
    for path, (summary, answers, refusals) in COMMON.items():
        kind = answers if isinstance(answers, str) else "application/json"
        content = {kind: {"schema": schema.get(str(answers), {})}}
        expected = ("elsewhere",) if path == "/health" else (*ANYWHERE, *refusals)
        paths[path] = {"get": {"summary": summary, "responses": _responses(content, expected, schema)}}
        if path == "/health":
            paths[path]["get"]["security"] = []
    return {
        "openapi": "3.1.0",
        "info": {"title": "tightrope", "version": __version__, "description": "Learners that are asked and told."},
        "security": [{"token": []}, {"password": []}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "password": {"type": "http", "scheme": "basic", "description": "any name; the password is the token"},
            },
        },
    }


def _operation(call: Call, names: Sequence[str], schema: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"summary": call.summary}
    places = [("path", name, IN_PATH[name], True) for name in re.findall(r"{(\w+)}", call.path)]
    places += [("query", name, IN_QUERY[name], False) for name in call.query]
    special: dict[str, Any] = {"name": {"enum": list(names)}, "challenger": CHALLENGER, "number": NUMBER}
    if places:
        found["parameters"] = [
            {
                "in": where,
                "name": name,
                "description": meaning,
                "required": needed,
                "schema": {"type": "string"} | special.get(name, {}),
            }
            for where, name, meaning, needed in places
        ]
    if call.takes is not None:
        content = {"application/json": {"schema": schema[str(call.takes)]}}
        found["requestBody"] = {"required": True, "content": content}
    answers = {"application/json": {"schema": schema[str(call.answers)]}}
    found["responses"] = _responses(answers, (*ANYWHERE, *AT_LEARNERS, *call.refusals), schema)
    return found


def _responses(content: dict[str, Any], refusals: tuple[str, ...], schema: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"200": {"description": "done", "content": content}}
    problem = {"application/problem+json": {"schema": schema[str(Problem)]}}
    for kind in sorted(refusals, key=lambda kind: KINDS[kind].status):
        status, title = KINDS[kind]
        known = found.setdefault(str(status), {"description": "", "content": problem})
        known["description"] += f"{'; or ' if known['description'] else ''}{kind}: {title}"
    return found


def page(every: dict[str, Any]) -> str:
    """To be read: every call and every kind of refusal, with nothing that is not in the page."""
    calls = [
        _article(method.upper(), path, operation)
        for path, methods in every["paths"].items()
        for method, operation in methods.items()
    ]
    kinds = [
        f'<tr id="{kind}"><th scope="row"><code>{kind}</code></th><td>{status}</td><td>{escape(title)}</td></tr>'
        for kind, (status, title) in KINDS.items()
    ]
    types = [
        f"<details id={json.dumps(name)}><summary>{escape(name)}</summary><p>{escape(schema['description'])}</p>"
        f"<pre>{escape(json.dumps(schema['properties'], indent=2, ensure_ascii=False))}</pre></details>"
        for name, schema in every["components"]["schemas"].items()
    ]
    return Template(asset("docs.html")).substitute(
        styles=styles(), calls="\n".join(calls), kinds="\n".join(kinds), types="\n".join(types), version=__version__
    )


def _article(method: str, path: str, operation: dict[str, Any]) -> str:
    parameters = "".join(
        f"<li><code>{one['name']}</code>, in the {one['in']}{'' if one['required'] else ', if you like'}: "
        f"{escape(one['description'])}</li>"
        for one in operation.get("parameters", ())
    )
    body = operation.get("requestBody", {}).get("content", {})
    taken = "".join(f"<p>Takes {_type(content['schema'])}.</p>" for content in body.values())
    answered = operation["responses"]["200"]["content"]
    [(kind, content)] = answered.items()
    words = _type(content["schema"]) or escape(kind)
    return (
        f"<article><h3><code>{method} {escape(path)}</code></h3><p>{escape(operation['summary'])}.</p>"
        f"<ul>{parameters}</ul>{taken}<p>Answers {words}.</p></article>"
    )


def _type(schema: dict[str, Any]) -> str:
    """The name of a schema, as a link to it."""
    if "items" in schema:
        return f"a list of {_type(schema['items'])}"
    name = schema.get("$ref", "").rpartition("/")[2]
    return f'<a href="#{name}">{name}</a>' if name else ""
