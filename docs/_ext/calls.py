"""Flow charts of calls, written for Mermaid, as nested lists: they need no script and fit on a phone."""

import re

from sphinx.application import Sphinx

CHART = re.compile(r"```mermaid\n(.*?)```\n", re.DOTALL)
ARROW = re.compile(r"(\w+)(?:\[\"([^\"]*)\"\])? -->(?:\|\"([^\"]*)\"\|)? (\w+)(?:\[\"([^\"]*)\"\])?")


def listed(chart: str) -> str:
    """Return a list of Markdown: below each function those that it calls."""
    names: dict[str, str] = {}
    calls: dict[str, list[tuple[str, str]]] = {}
    for caller, caller_name, words, called, called_name in ARROW.findall(chart):
        for key, name in ((caller, caller_name), (called, called_name)):
            if name:
                function, _, file = name.partition("<br/>")
                names[key] = f"`{function}` in `{file}`"
        calls.setdefault(caller, []).append((called, words))
    lines: list[str] = []

    def show(key: str, words: str, depth: int) -> None:
        lines.append("  " * depth + f"- {names[key]}" + (f": {words}" if words else ""))
        for called, why in calls.pop(key, []):
            show(called, why, depth + 1)

    show(next(iter(calls)), "", 0)
    return "\n".join(lines) + "\n"


def rewrite(app: Sphinx, docname: str, source: list[str]) -> None:
    source[0] = CHART.sub(lambda match: listed(match[1]), source[0])


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", rewrite, priority=300)
    return {"parallel_read_safe": True}
