"""The live page, in the look of the report: what is being spent, at which prices, what would be done in each state."""

from collections.abc import Sequence
from importlib.resources import files

from tightrope import __version__
from tightrope.lab.report.page import STYLES, whole_page
from tightrope.lab.report.page import asset as of_report

ASSETS = files("tightrope.service") / "assets"


def page(names: Sequence[str]) -> str:
    """A page that asks this service, and nobody else, for what is new."""
    content = {"learners": sorted(names), "version": __version__}
    return whole_page("Live", content, asset("live.js"), live=True)


def styles() -> str:
    """Of the report, and what the page of calls needs besides."""
    return "\n".join([*map(of_report, STYLES), asset("docs.css")])


def asset(name: str) -> str:
    """One of our own."""
    return (ASSETS / name).read_text("utf-8")
