"""The code blocks of a page: found, run in order, and shown with what they print and draw.

All blocks of a page share one namespace and one folder. Comments steer them, which readers of the page do not see:

    <!-- not run: WHY -->       before a block that is not run
    <!-- figure: TEXT -->       after a Python block that draws: the alternative text of its figure

`python` blocks are run here, `sh` blocks by bash. `console` blocks show a session: lines after `$ ` are commands, the
others what they print. Other languages are shown and not run.

The tutorials are also written as notebooks, and on the site their blocks are followed by what they print and draw, each
figure in the colours of the light and of the dark theme.
"""

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LANGUAGES = ("python", "sh", "console")
FENCE = re.compile(
    r"(?:^<!-- not run: (?P<why>[^>]*?) -->\n)?^```(?P<language>\w*)[^\n]*\n(?P<code>.*?)^```\n"
    r"(?P<after>\n*<!-- figure: (?P<alt>[^>]*?) -->\n)?",
    re.MULTILINE | re.DOTALL,
)
#: The first cell of a notebook. A kernel need not have the commands of its environment on its path.
SETUP = """\
%pip install --quiet tightrope
import os, sys
os.environ["PATH"] = os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]
"""
#: Colours of text and lines of a figure.
INKS = {"light": "#24292f", "dark": "#d0d7de"}


@dataclass(frozen=True)
class Block:
    language: str
    code: str
    why_not: str  #: why it is not run; "" if it is
    alt: str  #: the alternative text of its figure; "" if it draws none
    line: int

    @property
    def runs(self) -> bool:
        return self.language in LANGUAGES and not self.why_not


def blocks(text: str) -> Iterator[tuple[re.Match[str], Block]]:
    """Yield the code blocks of a page in Markdown, with where they are."""
    for match in FENCE.finditer(text):
        line = text.count("\n", 0, match.start("code")) + 1
        why, alt = (" ".join((match[group] or "").split()) for group in ("why", "alt"))
        yield match, Block(match["language"], match["code"], why, alt, line)


class Session:
    """Runs blocks one after another, in one namespace and one folder."""

    def __init__(self, folder: Path, page: str) -> None:
        self.folder, self.page = folder, page
        self.names: dict[str, Any] = {"__name__": "__main__"}

    def run(self, block: Block) -> str:
        """Return what the block prints; an error names the page and the line."""
        return self.python(block) if block.language == "python" else self.shell(block)

    def python(self, block: Block) -> str:
        import matplotlib as mpl

        mpl.use("Agg")
        code = "\n" * (block.line - 1) + block.code
        with contextlib.chdir(self.folder), contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(code, self.page, "exec"), self.names)
        return printed.getvalue()

    def shell(self, block: Block) -> str:
        commands = block.code
        if block.language == "console":
            commands = "\n".join(line[2:] for line in block.code.splitlines() if line.startswith("$ "))
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", commands],
            cwd=self.folder, env={**os.environ, "PATH": path, "COLUMNS": "110"}, capture_output=True, text=True,
        )  # fmt: skip
        if done.returncode and block.language == "sh":  # a console block shows the error
            raise RuntimeError(
                f"{self.page}, line {block.line}: exit code {done.returncode}\n{commands}\n{done.stderr}"
            )
        return done.stdout


def save_figures(folder: Path, name: str) -> list[str]:
    """Write every open figure in both themes, close them, and return their names without theme."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt
    from matplotlib.axes import Axes
    from matplotlib.text import Text

    names = []
    for number in plt.get_fignums():
        figure = plt.figure(number)
        names.append(f"{name}-{len(names)}" if names else name)
        for theme, ink in INKS.items():
            for text in figure.findobj(Text):
                text.set_color(ink)
            for axes in figure.findobj(Axes):
                axes.patch.set_alpha(0)
                axes.tick_params(color=ink, labelcolor=ink)
                for spine in axes.spines.values():
                    spine.set_edgecolor(ink)
            for legend in [*figure.legends, *(one for axes in figure.axes if (one := axes.get_legend()))]:
                legend.get_frame().set_alpha(0)
            folder.mkdir(parents=True, exist_ok=True)
            with mpl.rc_context({"svg.hashsalt": names[-1]}):
                figure.savefig(folder / f"{names[-1]}-{theme}.svg", transparent=True, metadata={"Date": None})
        plt.close(figure)
    return names


def played(text: str, page: str, folder: Path, to_folder: str) -> str:
    """Return a page with the output and the figures of its blocks. Figures go to `folder`: `to_folder`, from it."""
    parts, end = [], 0
    with tempfile.TemporaryDirectory() as place:
        session = Session(Path(place), page)
        for match, block in blocks(text):
            if not block.runs:
                continue
            printed = session.run(block)
            drawn = save_figures(folder, f"{Path(page).stem}-{block.line}")
            if bool(drawn) != bool(block.alt):
                raise RuntimeError(
                    f"{page}, line {block.line}: a block that draws is followed by <!-- figure: TEXT -->"
                )
            parts.append(text[end : match.end()])
            end = match.end()
            if printed.strip() and block.language != "console":
                parts.append(f"\n```{{code-block}} text\n:class: output\n\n{printed.rstrip()}\n```\n")
            for name in drawn:
                parts += [
                    f"\n```{{image}} {to_folder}/{name}-{theme}.svg\n:alt: {block.alt}\n:class: only-{theme}\n```\n"
                    for theme in INKS
                ]
    return "".join([*parts, text[end:]])


def notebook(text: str) -> str:
    """Return a page as a Jupyter notebook that needs nothing but `pip install tightrope`."""
    cells: list[dict[str, Any]] = [_code(SETUP)]
    end = 0
    for match, block in blocks(text):
        cells += _prose(text[end : match.start()])
        end = match.end()
        if block.language == "python" and block.runs:
            cells.append(_code(block.code))
        elif block.language == "sh" and block.runs:
            cells.append(_code("%%bash\n" + block.code))
        else:
            cells += _prose(match[0])
    cells += _prose(text[end:])
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    content = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _code(code: str) -> dict[str, Any]:
    lines = code.rstrip("\n").splitlines(keepends=True)
    return {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": lines}


def _prose(text: str) -> list[dict[str, Any]]:
    """Return a cell of Markdown without comments and directives, and without links to other pages."""
    text = re.sub(r"<!--.*?-->|^(```+|:::+)\{.*?^\1$", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"!?\[([^\]]*)\]\((?!https?:)[^)]*\)(\{[^}]*\})?", r"\1", text).strip()
    return [{"cell_type": "markdown", "metadata": {}, "source": text.splitlines(keepends=True)}] if text else []


def setup(app: Any) -> dict[str, bool]:
    source = Path(app.srcdir)

    def write_notebooks(app: Any) -> None:
        folder = source / "tutorials" / "notebooks"
        folder.mkdir(exist_ok=True)
        for page in sorted((source / "tutorials").glob("*.md")):
            if page.stem != "index":
                (folder / f"{page.stem}.ipynb").write_text(notebook(page.read_text("utf-8")), "utf-8")

    def play(app: Any, docname: str, text: list[str]) -> None:
        if docname.startswith("tutorials/") and docname != "tutorials/index":
            text[0] = played(text[0], f"{docname}.md", source / "figures" / "drawn", "../figures/drawn")

    app.connect("builder-inited", write_notebooks)
    app.connect("source-read", play, priority=400)  # before links are rewritten
    return {"parallel_read_safe": True}
