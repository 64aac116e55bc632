"""The live page, in the look of the report: what is being spent, at which prices, what would be done in each state."""

from collections.abc import Sequence
from importlib.resources import files
from string import Template

from tightrope import __version__
from tightrope.report.parts import HARMLESS, LICENCE, SCRIPTS, STYLES, as_json
from tightrope.report.parts import asset as of_report

ASSETS = files("tightrope.service") / "assets"


def page(names: Sequence[str]) -> str:
    """A page that asks this service, and nobody else, for what is new."""
    return Template(asset("live.html")).substitute(
        styles=styles(),
        scripts="\n".join([*map(of_report, SCRIPTS), asset("live.js")]),
        licence=of_report(LICENCE),
        content=as_json({"learners": list(names), "version": __version__}).translate(HARMLESS),
    )


def styles() -> str:
    """Of the report."""
    return "\n".join([*map(of_report, STYLES), asset("live.css")])


def asset(name: str) -> str:
    """One of our own."""
    return (ASSETS / name).read_text("utf-8")
