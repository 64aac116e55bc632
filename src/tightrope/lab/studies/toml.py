"""A study as the file that it can be read from again, everything in it spelt out."""

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from tightrope.lab.study import Study

#: What a file that we wrote begins with.
HEADING = "# A study of tightrope: go on with it, or begin it elsewhere, by `tightrope sweep` and this file.\n"


def to_toml(study: Study) -> str:
    """The file of a study, everything in it spelt out."""
    plain = msgspec.to_builtins(study)
    lines = [f"{key} = {_toml(plain[key])}" for key in plain if key not in ("grid", "records", "contents")]
    for key in ("grid", "records", "contents"):
        inner = plain[key].items() if key != "grid" else dotted(plain[key]).items()
        lines += ["", f"[{key}]", *(f"{name} = {_toml(value)}" for name, value in inner)] if inner else []
    return HEADING + "\n".join(lines) + "\n"


def dotted(grid: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """A grid by the names that options have on the command line: learner.radius_scale."""
    return {f"{kind}.{_key(option)}": values for kind, options in grid.items() for option, values in options.items()}


def _toml(value: Any) -> str:
    match value:
        case dict():
            return "{" + ", ".join(f"{_key(key)} = {_toml(inner)}" for key, inner in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(_toml, value)) + "]"
        case str():
            return _text(value)
        case bool():
            return str(value).lower()
    return repr(value)


def _key(name: str) -> str:
    return name if name.replace("_", "a").replace("-", "a").isalnum() and name.isascii() else _text(name)


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
