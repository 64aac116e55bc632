"""Sphinx configuration: `sphinx-build -W docs build/site`, offline.

Pages are Markdown (MyST). The API reference comes from the docstrings, the command-line reference from the commands,
the gallery from the registries of problems and learners, the drawings from docs/figures, and the output of tutorials
from running them.
"""

import sys
from pathlib import Path

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS / "_ext"))

from annotations import mapping  # noqa: E402

import tightrope  # noqa: E402

project = "tightrope"
author = "the tightrope developers"
copyright = "the tightrope developers, MIT licence"
version = release = tightrope.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "docstrings",
    "annotations",
    "calls",
    "links",
    "generated",
    "drawing",
    "examples",
    "formulas",
    "tables",
]
exclude_patterns = ["_ext", "inventories", "_static", "_templates", "figures", "images"]
templates_path = ["_templates"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}

myst_enable_extensions = ["attrs_block", "attrs_inline", "colon_fence", "deflist"]
myst_heading_anchors = 4

default_role = "literal"
autosummary_generate = True
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_typehints_format = "short"
intersphinx_mapping = mapping(DOCS / "inventories" / "compiled")
autodoc_default_options = {"members": True}
napoleon_google_docstring = False
napoleon_use_rtype = False

html_theme = "furo"
html_title = f"tightrope {release}"
html_static_path = ["_static"]
html_favicon = "_static/icon.svg"
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_scaled_image_link = False  # a figure scrolls on a phone, see site.css
html_theme_options = {
    "top_of_page_buttons": [],
    "light_css_variables": {"color-brand-primary": "#0b5c8a", "color-brand-content": "#0b5c8a"},
    "dark_css_variables": {"color-brand-primary": "#6bb8e6", "color-brand-content": "#6bb8e6"},
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
