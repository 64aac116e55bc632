"""The content of the page: the numbers of the table, and names that cannot inject markup."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.lab.report.folders import LIMIT, write_study
from tightrope import InvalidInputError
from tightrope.lab.report import content, page
from tightrope.lab.tables import band

HOSTILE = '</script><script>alert("1")</script> $title ${x} & \u2028 <b>\'"'


class Found(HTMLParser):
    """Which elements there are, and what is in the one with the content."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.content = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.elements and self.elements[-1][1].get("id") == "content":
            self.content += data


def embedded(text: str) -> Any:
    return json.loads(Found(text).content)


def test_numbers_are_those_of_the_table(tmp_path: Path) -> None:
    table = write_study(tmp_path)
    [section] = embedded(page(content(tmp_path)))["sections"]
    learners, episodes = np.array(table["learner"]), np.array(table["episode"])
    assert section["episodes"] == np.unique(episodes).tolist() and section["horizon"] == 10_000
    columns = ["regret", "violation", "strong_violation", "use_delay", "multiplier_norm", "epoch"]
    assert len(section["figures"]) == len(columns)
    for column, figure in zip(columns, section["figures"], strict=True):
        for k, learner in enumerate(["ucpd-practical", "ucpd", "uniform"]):
            of_learner = learners == learner
            values = np.array(table[column], dtype=float)[of_learner].reshape(4, -1)
            if column == "use_delay":
                values = values / episodes[of_learner].astype(float).reshape(4, -1)
            curve = figure["curves"][k]
            np.testing.assert_allclose(curve["mean"], values.mean(axis=0), rtol=1e-5)
            np.testing.assert_allclose([curve["low"], curve["high"]], band(values)[1:], rtol=1e-5)
            np.testing.assert_allclose(curve["last"], values[:, -1], rtol=1e-5)
    assert section["figures"][3]["limit"] == LIMIT and section["figures"][3]["unit"] == "hops"
    assert [curve["settings"]["radius_scale"] for curve in section["curves"]] == pytest.approx([0.1, 0.2, 0.3])


def test_episodes_are_exact(tmp_path: Path) -> None:
    table = write_study(tmp_path, learners=("ucpd",), n_seeds=1, episodes=12_345_678)
    assert content(tmp_path)["sections"][0]["episodes"] == table["episode"]


def test_without_a_table_the_histories_are_read(tmp_path: Path) -> None:
    write_study(tmp_path / "with")
    write_study(tmp_path / "without", table=False)
    assert content(tmp_path / "with")["sections"] == content(tmp_path / "without")["sections"]


def test_progress_counts_runs_by_status(tmp_path: Path) -> None:
    write_study(tmp_path, learners=("ucpd",), n_seeds=3)
    for run, status in (("run-0-1", "running"), ("run-0-2", "failed")):
        report = json.loads((tmp_path / "runs" / run / "run.json").read_text())
        (tmp_path / "runs" / run / "run.json").write_text(json.dumps(report | {"status": status, "words": "too bad"}))
    (tmp_path / "runs" / "run-0-1" / "progress").write_bytes(b"%16d" % 123)
    found = content(tmp_path, live=True)["progress"]
    assert found == {"finished": 1, "running": {"run-0-1": 123}, "failed": {"run-0-2": "too bad"}}


def test_runs_under_other_conditions_have_a_section_of_their_own(tmp_path: Path) -> None:
    write_study(tmp_path, learners=("ucpd",))
    write_study(tmp_path / "other", learners=("ucpd",), problem="grid", prefix="other")
    text = (tmp_path / "other" / "table.csv").read_text().partition("\n")[2]
    (tmp_path / "table.csv").write_text((tmp_path / "table.csv").read_text() + text)
    titles = [section["title"] for section in content(tmp_path)["sections"]]
    assert titles == ["edge-cloud, switching losses", "grid, switching losses"]


def test_options_that_differ_tell_curves_apart(tmp_path: Path) -> None:
    write_study(tmp_path, learners=("ucpd", "ucpd"))  # the first with a radius_scale
    [section] = content(tmp_path)["sections"]
    assert [curve["label"] for curve in section["curves"]] == ["ucpd radius_scale=0.1", "ucpd"]


def test_names_cannot_inject_markup(tmp_path: Path) -> None:
    folder = tmp_path / "<img src=x onerror=alert(1)> $title"
    write_study(folder, learners=(HOSTILE,), problem=HOSTILE, budget=HOSTILE)
    write_study(tmp_path / "harmless")
    text, plain = page(content(folder)), page(content(tmp_path / "harmless"))
    assert [tag for tag, _ in Found(text).elements] == [tag for tag, _ in Found(plain).elements]  # nothing was added
    [section] = embedded(text)["sections"]
    assert section["curves"][0]["label"] == HOSTILE and HOSTILE in section["title"]


def test_the_page_makes_no_requests(tmp_path: Path) -> None:
    write_study(tmp_path)
    text = page(content(tmp_path))
    for tag, attributes in Found(text).elements:
        for name in ("src", "href", "action"):
            assert (attributes.get(name) or "data:").startswith("data:"), (tag, attributes)
    assert not re.search(r"@import|url\((?!data:)", text)
    assert "Copyright (c) 2022 Leon Sorokin" in text  # the library goes with its licence
    assert "default-src 'none'" in text and "connect-src 'none'" in text


def test_ten_learners_of_twenty_seeds_fit_into_two_megabytes(tmp_path: Path) -> None:
    write_study(tmp_path, learners=tuple(f"learner {k}" for k in range(10)), n_seeds=20)
    assert len(page(content(tmp_path)).encode()) < 2_000_000


def test_a_folder_without_a_study_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"holds no table\.csv"):
        content(tmp_path)
    (tmp_path / "table.csv").write_text("run,problem,learner,seed\n")
    with pytest.raises(InvalidInputError, match="no column 'episode'"):
        content(tmp_path)
