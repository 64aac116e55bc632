"""The directive `drawing`: a figure of docs/figures, in the colours of the light and of the dark theme.

Every figure is drawn at build time, twice, into docs/figures/drawn. `figures.FIGURES` lists them.
"""

import os
import sys
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

DOCS = Path(__file__).parents[1]
sys.path[:0] = [str(DOCS), str(DOCS.parent)]

from figures import FIGURES, THEMES, draw  # noqa: E402

DRAWN = DOCS / "figures" / "drawn"


class Drawing(SphinxDirective):
    """`.. drawing:: NAME` with `:alt:`, the alternative text."""

    required_arguments = 1
    option_spec = {"alt": directives.unchanged_required, "width": directives.length_or_percentage_or_unitless}  # noqa: RUF012

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        if name not in FIGURES:
            raise self.error(f"there is no figure {name}; docs/figures has {', '.join(sorted(FIGURES))}")
        if "alt" not in self.options:
            raise self.error(f"the figure {name} has no alternative text (:alt:)")
        draw(name, DRAWN)
        here = (DOCS / self.env.docname).parent
        found: list[nodes.Node] = []
        for theme in THEMES:
            uri = Path(os.path.relpath(DRAWN / f"{name}-{theme}.svg", here)).as_posix()
            image = nodes.image(uri=uri, alt=" ".join(self.options["alt"].split()), classes=[f"only-{theme}"])
            image["width"] = self.options.get("width", "100%")
            found.append(image)
        return found


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("drawing", Drawing)
    return {"parallel_read_safe": False}
