"""The OpenAPI document, generated from the endpoints and their types; its page at /docs, and the live page at /."""

import json
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

import msgspec

from tightrope import __version__
from tightrope.lab.report import STYLES, whole_page
from tightrope.lab.report import asset as report_asset
from tightrope.ops.api import HEADERS, KEY, KINDS, Endpoint, ErrorBody, Health, Names
from tightrope.ops.engine import LONGEST_NAME

#: Endpoints that are not about one learner: summary, type of the response, and errors.
COMMON: dict[str, tuple[str, Any, tuple[str, ...]]] = {
    "/learners": ("List the learners", Names, ()),
    "/ready": (
        "Return whether all learners are open and can be written; needs no token, but tells why only to one",
        Health,
        ("not-ready", "storage"),
    ),
    "/health": ("Return whether the service is running; needs no token", Health, ()),
    "/metrics": ("Return metrics for Prometheus", "text/plain", ()),
    "/openapi.json": ("Return this document", "application/json", ()),
    "/docs": ("Return this document as a page", "text/html", ()),
    "/": ("Return a page that follows the learners", "text/html", ()),
}

SECURITY: list[dict[str, list[str]]] = [{"token": []}, {"password": []}]

#: Errors of all endpoints but /health, and of those below /learners/{name}.
EVERYWHERE = ("malformed", "no-token", "no-role", "elsewhere", "too-many-requests", "busy", "no-memory")
OF_LEARNERS = ("unknown-learner", "too-large", "not-ready")

#: Descriptions of parameters in the path, and in the query.
IN_PATH = {
    "name": "the learner",
    "episode": "the id of the episode",
    "challenger": "a name without /",
    "event": "the number of the event of a correction",
}
IN_QUERY = {
    "state": "the name of a state; or its number, unless another state has that name",
    "number": "in place of state: its number",
    "episode": "an open episode, whose policy is meant; without it, the policy that ask returns now",
}

IN_HEADER = {
    "key": "chosen by the client for this call; sent again with the same key, because its answer was lost, it returns "
    "the same episode as long as that is open"
}


def document(endpoints: Sequence[Endpoint], names: Sequence[str]) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of a service of learners with these names."""
    types = [Names, Health, ErrorBody, *(one.result for one in endpoints), *(one.body for one in endpoints if one.body)]
    found, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    schemas = dict(zip(map(str, types), found, strict=True))
    paths: dict[str, Any] = {}
    for one in endpoints:
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one, names, schemas)
    for path, (summary, result, errors) in COMMON.items():
        kind = result if isinstance(result, str) else "application/json"
        expected = ("malformed", "elsewhere") if path == "/health" else (*EVERYWHERE, *errors)
        content = {kind: {"schema": schemas.get(str(result), {})}}
        paths[path] = {"get": {"summary": summary, "responses": _responses(content, expected, schemas)}}
    paths["/health"]["get"]["security"] = []
    paths["/ready"]["get"]["security"] = [{}, *SECURITY]
    return {
        "openapi": "3.1.0",
        "info": {"title": "tightrope", "version": __version__, "description": "Learners over HTTP."},
        "security": SECURITY,
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "password": {"type": "http", "scheme": "basic", "description": "any name; the password is the token"},
            },
        },
    }


def _operation(one: Endpoint, names: Sequence[str], schemas: dict[str, Any]) -> dict[str, Any]:
    special: dict[str, Any] = {
        "name": {"enum": list(names)},
        "challenger": {"minLength": 1, "maxLength": LONGEST_NAME, "pattern": "^[^/]*$"},
        "number": {"type": "integer", "minimum": 0},
        "key": {"pattern": KEY},
    }
    parameters = [("path", name, IN_PATH[name]) for name in ("name", *one.path_parameters)]
    parameters += [("query", name, IN_QUERY[name]) for name in one.query]
    parameters += [("header", name, IN_HEADER[name]) for name in one.headers]
    operation: dict[str, Any] = {
        "summary": one.summary,
        "x-role": one.role,
        "parameters": [
            {
                "in": where,
                "name": HEADERS.get(name, name),
                "description": description,
                "required": where == "path",
                "schema": {"type": "string"} | special.get(name, {}),
            }
            for where, name, description in parameters
        ],
    }
    if one.body is not None:
        content = {"application/json": {"schema": schemas[str(one.body)]}}
        operation["requestBody"] = {"required": True, "content": content}
    result = {"application/json": {"schema": schemas[str(one.result)]}}
    operation["responses"] = _responses(result, (*EVERYWHERE, *OF_LEARNERS, *one.errors), schemas)
    return operation


def _responses(content: dict[str, Any], errors: Sequence[str], schemas: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"200": {"description": "done", "content": content}}
    error_content = {"application/problem+json": {"schema": schemas[str(ErrorBody)]}}
    for kind in sorted(errors, key=lambda kind: KINDS[kind].status):
        status, title = KINDS[kind]
        response = found.setdefault(str(status), {"description": "", "content": error_content})
        response["description"] += f"{'; or ' if response['description'] else ''}{kind}: {title}"
    return found


def docs_page(document: dict[str, Any]) -> str:
    """Return the document as a page that loads nothing else."""
    calls = [
        _article(method.upper(), path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    kinds = [
        f'<tr id="{kind}"><th scope="row"><code>{kind}</code></th><td>{status}</td><td>{escape(title)}</td></tr>'
        for kind, (status, title) in KINDS.items()
    ]
    types = [
        f"<details id={json.dumps(name)}><summary>{escape(name)}</summary><p>{escape(schema['description'])}</p>"
        f"<pre>{escape(json.dumps(schema['properties'], indent=2, ensure_ascii=False))}</pre></details>"
        for name, schema in document["components"]["schemas"].items()
    ]
    styles = "\n".join([*map(report_asset, STYLES), _asset("docs.css")])
    return Template(_asset("docs.html")).substitute(
        styles=styles, calls="\n".join(calls), kinds="\n".join(kinds), types="\n".join(types), version=__version__
    )


def _article(method: str, path: str, operation: dict[str, Any]) -> str:
    parameters = "".join(
        f"<li><code>{one['name']}</code>, in the {one['in']}{'' if one['required'] else ', optional'}: "
        f"{escape(one['description'])}</li>"
        for one in operation.get("parameters", ())
    )
    body = operation.get("requestBody", {}).get("content", {})
    takes = "".join(f"<p>Takes {_link(content['schema'])}.</p>" for content in body.values())
    [(kind, content)] = operation["responses"]["200"]["content"].items()
    return (
        f"<article><h3><code>{method} {escape(path)}</code></h3><p>{escape(operation['summary'])}.</p>"
        f"<ul>{parameters}</ul>{takes}<p>Returns {_link(content['schema']) or escape(kind)}.</p></article>"
    )


def _link(schema: dict[str, Any]) -> str:
    """Return the name of a schema, as a link to it."""
    if "items" in schema:
        return f"a list of {_link(schema['items'])}"
    name = schema.get("$ref", "").rpartition("/")[2]
    return f'<a href="#{name}">{name}</a>' if name else ""


def live_page(names: Sequence[str]) -> str:
    """Return the page that follows these learners. It sends requests to this service only."""
    content = {"learners": sorted(names), "version": __version__}
    return whole_page("Live", content, _asset("live.js"), live=True)


def _asset(name: str) -> str:
    return (files("tightrope.ops") / "assets" / name).read_text("utf-8")
