"""What pages are made of: style sheets, scripts, and content that no browser takes for anything else."""

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

ASSETS = files("tightrope.report") / "assets"

#: In the order in which they are put into a page; the library first.
STYLES = ("uPlot-1.6.32.min.css", "page.css")
SCRIPTS = ("uPlot-1.6.32.min.js", "elements.js", "charts.js", "tables.js", "policies.js", "figures.js")
LICENCE = "uPlot-1.6.32.LICENSE"  # to be kept with every copy

#: As JSON and JavaScript read them, and HTML does not.
HARMLESS = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


def as_json(content: Mapping[str, Any]) -> str:
    """As short as it can be; characters that are half of one, as names of files may hold, are escaped."""
    return json.dumps(content, separators=(",", ":"), allow_nan=False)


def asset(name: str) -> str:
    """One of the files."""
    return (ASSETS / name).read_text("utf-8")
