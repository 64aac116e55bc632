"""The files that go with a release agree with the package."""

import re
from pathlib import Path

import tightrope
from tightrope.learners import LEARNERS

ROOT = Path(__file__).parents[1]
PAPER = (ROOT / "paper" / "paper.md").read_text("utf-8")


def test_the_citation_names_the_version_and_its_date() -> None:
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    version = re.search(r"(?m)^version: (.+)$", citation)
    date = re.search(r'(?m)^date-released: "(.+)"$', citation)
    assert version and version[1] == tightrope.__version__
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    heading = f"- {date[1]}" if date else "(unreleased)"
    assert f"## [{tightrope.__version__}] {heading}\n" in changelog


def test_the_paper_cites_what_is_in_its_bibliography() -> None:
    entries = re.findall(r"(?m)^@\w+\{(\w+),$", (ROOT / "paper" / "paper.bib").read_text("utf-8"))
    assert set(re.findall(r"(?<!\w)@([a-z]\w+)", PAPER)) == set(entries)


def test_the_paper_and_the_features_count_the_learners() -> None:
    others = re.search(r"and (\d+) other learners", PAPER)
    assert others and int(others[1]) == len(LEARNERS) - 2
    features = (ROOT / "docs" / "reference" / "features.md").read_text("utf-8")
    others = re.search(r"and (\d+) others, with every method", features)
    assert others and int(others[1]) == len(LEARNERS) - 5  # five are named


def test_classifiers_name_the_versions_of_python_that_are_tried() -> None:
    default = re.search(r"@:-([\d. ]+)\}", (ROOT / ".ci" / "pythons").read_text("utf-8"))
    named = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text("utf-8"))
    assert default and set(named) <= set(default[1].split())
