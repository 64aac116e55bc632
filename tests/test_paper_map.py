"""docs/reference/paper-map.md: its names exist, every learner is on it, every citation has its row."""

import re
from pathlib import Path

import tightrope
from tightrope.learners import LEARNERS
from tightrope.problems import PROBLEMS

MAP = (Path(__file__).parent.parent / "docs" / "reference" / "paper-map.md").read_text("utf-8")
PAPER, _, SINCE = MAP.partition("## Our own methods")

#: What sections 1 and 2 of the paper cite, by its keys.
CITED = [
    "abbasi2019exploration",
    "abbasi2019politex",
    "achiam2017constrained",
    "agarwal2019optimality",
    "altman1999constrained",
    "azar2017minimax",
    "baxter2000direct",
    "bhandari2019global",
    "cai2019provably",
    "chow2017risk",
    "ding2020provably",
    "dong2019q",
    "efroni2020exploration",
    "efroni2020optimistic",
    "even2009online",
    "fazel2018global",
    "fox1966markov",
    "fruit2018efficient",
    "jaksch2010near",
    "jin2018q",
    "jin2019learning",
    "kakade2002natural",
    "konda2000actor",
    "le2019batch",
    "lillicrap2015continuous",
    "liu2019neural",
    "neely2012dynamic",
    "neu2010online",
    "neu2012adversarial",
    "ouyang2017learning",
    "rosenberg2019online",
    "rosenberg2019onlineb",
    "schulman2015trust",
    "schulman2017proximal",
    "sutton2018reinforcement",
    "urgaonkar2015dynamic",
    "wang2015dynamic",
    "wang2019neural",
    "wei2018online",
    "wei2019model",
    "williams1992simple",
    "yu2009markov",
    "zhang2019regret",
    "zheng2020constrained",
    "zimin2013online",
]


def rows(text: str) -> list[list[str]]:
    """The cells of every row of its tables, without heads and rules."""
    found = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:2] == "| "]
    return [row for row in found if row[0] not in ("cited as", "learner")]


def test_every_citation_has_one_row() -> None:
    assert sorted(row[0] for row in rows(PAPER)) == CITED


def test_every_name_exists() -> None:
    for name in re.findall(r"`([^`]+)`", MAP.partition("\n## ")[2]):
        known = name in LEARNERS or name in PROBLEMS or name == "inequalities"
        assert known or hasattr(tightrope, name.removeprefix("tightrope.")), name


def test_every_learner_is_on_it_and_a_reason_stands_where_none_is() -> None:
    here = {name for row in (*rows(PAPER), *rows(SINCE)) for name in re.findall(r"`([a-z0-9.-]+)`", " ".join(row))}
    assert set(LEARNERS) - here == set()
    for row in rows(PAPER):
        names = re.findall(r"`([a-z0-9.-]+)`", row[2])
        assert any(name in LEARNERS for name in names) or len(row[2].split()) > 2, row
