"""Formulas in text: `θ^{t-1}` and `Q_i` get a superscript and a subscript, and indented blocks are formulas.

Pages are also read as plain text, so formulas are written with the letters that they have. Code is left alone.
"""

import re
from collections.abc import Iterator

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.ext.autosummary import autosummary_table  # a comment to other writers
from sphinx.transforms.post_transforms import SphinxPostTransform

SCRIPT = re.compile(r"([\^_])(?:\{([^{}]+)\}|([^\W\d_]['′]?|[-−]?\d+|[*+∞])(?![^\W_²³]))")
#: What a subscript hangs on: one letter, perhaps with an accent, a bracket, an operator, or another script.
BASE = re.compile(r"(?:(?<!\w)(?:[^\W\d_]|\d+)|[^\w\s.`'\"/-])[\u0300-\u036f]*(?:[\^_](?:\{[^{}]+\}|[^\W_]+|\*))*\Z")
#: Pages about names, not formulas.
LEFT_ALONE = ("reference/command-line", "reference/changelog", "reference/contributing")


def typeset(text: str) -> Iterator[nodes.Node]:
    """Yield the text with its superscripts and subscripts as nodes."""
    end = 0
    for match in SCRIPT.finditer(text):
        if not BASE.search(text[: match.start()]):
            continue
        if text[end : match.start()]:
            yield nodes.Text(text[end : match.start()])
        kind = nodes.superscript if match[1] == "^" else nodes.subscript
        yield kind("", match[2] or match[3])
        end = match.end()
    if text[end:]:
        yield nodes.Text(text[end:])


class Formulas(SphinxPostTransform):
    """Typesets the text of a page."""

    default_priority = 700
    formats = ("html",)

    def run(self, **kwargs: object) -> None:
        docname = self.env.docname
        if docname in LEFT_ALONE:
            return
        if docname.startswith("explanation/"):
            for block in list(self.document.findall(nodes.literal_block)):
                if block.get("language", "none") in ("none", "default"):
                    lines = nodes.inline("", "", *typeset(block.astext()))
                    block.replace_self(nodes.container("", nodes.paragraph("", "", lines), classes=["formula"]))
        for text in list(self.document.findall(nodes.Text)):
            parents = (nodes.literal, nodes.literal_block, nodes.raw, nodes.superscript, nodes.subscript, nodes.comment)
            above, inside = text.parent, False
            while above is not None and not inside:
                inside = isinstance(above, parents) and not isinstance(above, autosummary_table)
                above = above.parent
            if not inside and SCRIPT.search(str(text)):
                text.parent.replace(text, list(typeset(str(text))))


def no_emphasis(app: Sphinx, docname: str, source: list[str]) -> None:
    """Write [x]_+ as [x]₊: Markdown takes two such underscores for emphasis."""
    source[0] = source[0].replace("]_+", "]₊")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", no_emphasis)
    app.add_post_transform(Formulas)
    return {"parallel_read_safe": True}
