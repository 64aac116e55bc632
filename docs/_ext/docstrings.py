"""Docstrings as reStructuredText.

The docstrings of this package are plain text: `code` in backticks, blocks that stand further to the right, and letters
such as |A| or θ* that mean nothing to a parser. This module escapes those letters and marks the blocks as literal.
"""

import re
from itertools import pairwise
from typing import Any

from sphinx.application import Sphinx

ITEM = re.compile(r" *(?:[-*] |\d+\. |>>> |\.\.\. )")


def escape(line: str) -> str:
    """Return `line` with everything outside backticks escaped that reStructuredText would read as markup."""
    line = re.sub(r"(?<![`\w/])docs/([\w/-]+)\.md", r":doc:`/\1`", line)
    parts = re.split(r"(``[^`]*``|(?::doc:)?`[^`\n]*`)", line)
    return "".join(
        part
        if part.endswith("`") and part.startswith(("`", ":doc:"))
        else re.sub(r"([*|\\])|(?<=\w)(_)(?!\w)", r"\\\1\2", part)
        for part in parts
    )


def indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def plain_to_rst(text: str) -> str:
    """Return the plain text of a module's docstring, without sections, as reStructuredText."""
    blocks: list[str] = []
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        lines = block.splitlines()
        blocks += _literal(lines) if all(indent(line) >= 2 for line in lines) else _paragraphs(lines)
    return "\n\n".join(blocks) + "\n"


def _literal(lines: list[str]) -> list[str]:
    margin = min(indent(line) for line in lines)
    return [".. code-block:: text\n\n" + "\n".join(f"   {line[margin:]}" for line in lines)]


def _paragraphs(lines: list[str]) -> list[str]:
    """Split lines into paragraphs, items of lists and the blocks that hang below them."""
    parts: list[list[str]] = []
    for line in lines:
        if not parts or re.match(r"(?:- |\d+\. )", line):
            parts.append([line])
        elif indent(line) and not re.match(r"(?:- |\d+\. )", parts[-1][0]):
            if indent(parts[-1][0]):
                parts[-1].append(line)
            else:
                parts.append([line])
        else:
            parts[-1].append(line)
    found = []
    for part in parts:
        if indent(part[0]):
            found += _literal(part)
        else:
            first, *rest = (escape(line.strip()) for line in part)
            hang = re.match(r"(?:- |\d+\. )", first)
            found.append("\n".join([first, *(" " * (hang.end() if hang else 0) + line for line in rest)]))
    return found


def described(line: str, following: str) -> list[str]:
    """Split "name : what it is" of a section, which napoleon would take for a type, into a name and its text.

    "name : int" is a name and a type if the next line begins a sentence.
    """
    match = re.fullmatch(r"(\*{0,2}\w+(?:, \*{0,2}\w+)*) : (.+)", line)
    if not match:
        return [line]
    if len(match[2].split()) <= 5 and match[2][-1] not in ".;:," and re.match(r' {4}["`(]?[A-Z]', following):
        return [line]
    return [match[1], f"    {match[2]}"]


def process(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Escape letters, and put blank lines where a list or a block begins or ends."""
    if what == "module":
        lines[:] = plain_to_rst("\n".join(lines)).splitlines()
        return
    lines[:] = [one for line, following in pairwise([*lines, ""]) for one in described(line, following)]
    done: list[str] = []
    code = False
    for line in lines:
        previous = done[-1] if done else ""
        if line.strip().startswith(">>>") or (code and line.strip()):
            code = True
            done.append(line)
            continue
        code = False
        if previous.strip() and line.strip() and not line.startswith((".. ", ":")):
            deeper = indent(line) - indent(previous)
            starts = ITEM.match(line) and not ITEM.match(previous)
            if (starts and deeper >= 0 and not re.match(r" *:", previous)) or (deeper < 0 and not ITEM.match(line)):
                done.append("")
        done.append(escape(line))
    lines[:] = done


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", process, priority=400)  # before napoleon
    return {"parallel_read_safe": True}
