"""The site names everything that is public, and the examples of its gallery run."""

import importlib
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tightrope
from tightrope.learners import LEARNERS
from tightrope.problems import PROBLEMS

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture
def gallery(monkeypatch: pytest.MonkeyPatch) -> Any:
    pytest.importorskip("sphinx")
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    yield importlib.import_module("gallery")
    for name in ("gallery", "docstrings"):
        sys.modules.pop(name, None)


@pytest.fixture
def extension(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Import a module of docs/_ext."""
    pytest.importorskip("sphinx")
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    return importlib.import_module


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("θ^{t-1} + Σ_i Q_i(t-1) g_i^{t-1}", "θ<t-1> + Σ[i] Q[i](t-1) g[i]<t-1>"),
        ("θ̄^t_i, [x]_+, Σ_s' δ_t²", "θ̄<t>[i], [x][+], Σ[s'] δ[t]²"),
        ("10^5 and e^400", "10<5> and e<400>"),
        (
            "n_tuples, make_learner, (I, n_tuples), __init__, a/_b",
            "n_tuples, make_learner, (I, n_tuples), __init__, a/_b",
        ),
    ],
)
def test_formulas_in_text_get_scripts(text: str, shown: str, extension: Any) -> None:
    marks = {"superscript": "<{}>", "subscript": "[{}]", "#text": "{}"}
    nodes = extension("formulas").typeset(text)
    assert "".join(marks[node.tagname].format(node.astext()) for node in nodes) == shown


def test_a_flow_chart_is_a_list_of_calls(extension: Any) -> None:
    chart = """flowchart LR
    a["run<br/>run.py"] --> b["step<br/>run.py"]
    b -->|"f^t"| c["loss<br/>losses.py"]
    a --> d["done<br/>run.py"]
"""
    assert extension("calls").listed(chart).splitlines() == [
        "- `run` in `run.py`", "  - `step` in `run.py`", "    - `loss` in `losses.py`: f^t", "  - `done` in `run.py`",
    ]  # fmt: skip


def test_annotations_are_written_as_users_know_them(extension: Any) -> None:
    readable = extension("annotations").readable
    array = "~numpy.ndarray[tuple[~typing.Any, ...], ~numpy.dtype[~numpy.float64]]"
    assert readable(f"{array} | None") == "~numpy.ndarray | None"
    assert readable("dict[str, ~tightrope.lab.history.History]") == "dict[str, ~tightrope.History]"
    assert readable("tightrope.lab.study.Grid") == "~tightrope.lab.study.Grid"
    assert readable("~typing.Annotated[list[dict[str, int]], msgspec.Meta(min_length=1)]") == "list[dict[str, int]]"
    annotations = extension("annotations")
    assert readable(f"{annotations.ARRAY_LIKE} | None") == "~numpy.typing.ArrayLike | None"


def test_inventories_lead_to_the_pages_that_they_list(extension: Any) -> None:
    annotations = extension("annotations")
    from sphinx.util.inventory import InventoryFile

    for name, url in annotations.SITES.items():
        listed = (annotations.INVENTORIES / f"{name}.txt").read_text("utf-8").splitlines()
        assert listed == sorted(set(listed))
        found = InventoryFile.loads(annotations.compiled(name), uri=url)
        pages = [f"{url}/{line.split()[2]}" for line in listed]
        assert sorted(item.uri for role in found.data.values() for item in role.values()) == sorted(pages)


def test_the_api_reference_lists_every_public_name() -> None:
    page = (DOCS / "reference" / "python-api.rst").read_text("utf-8")
    listed = re.findall(r"^   (\w+)$", page, re.MULTILINE) + re.findall(r"automodule:: tightrope\.(\w+)", page)
    assert sorted(listed) == sorted(set(dir(tightrope)) - {"__version__"})


@pytest.mark.parametrize("folder", ["tutorials", "how-to", "explanation", "reference"])
def test_every_page_of_a_folder_is_in_its_table_of_contents(folder: str) -> None:
    index = (DOCS / folder / "index.md").read_text("utf-8")
    pages = {page.stem for page in (DOCS / folder).glob("*.md")} - {"index"}
    assert pages - set(re.findall(r"^[\w-]+$", index, re.MULTILINE)) == set()
    links = {Path(link).stem for link in re.findall(r"\]\((?!\.\.)([^)#]+)", index)}
    assert pages - links == set()


def test_the_ribbons_of_a_problem_are_as_wide_as_their_moves_are_likely(extension: Any) -> None:
    extension("drawing")  # which puts the figures on the path
    from matplotlib.figure import Figure

    problems = importlib.import_module("figures.problems")
    space, _, theta, used = problems.occupancies("machine-cycle")
    axes = Figure().subplots()
    problems.flow(axes, space, theta, used, "light")
    [ribbons] = axes.collections
    corners = np.array([path.vertices for path in ribbons.get_paths()])
    drawn = theta[theta > problems.LEAST]
    np.testing.assert_allclose(corners[:, 0, 1] - corners[:, 7, 1], drawn)
    np.testing.assert_allclose(corners[:, 3, 1] - corners[:, 4, 1], drawn)
    for step in range(space.n_layers):  # no two ribbons overlap where they begin
        begin = corners[corners[:, 0, 0] == step]
        begin = begin[np.argsort(begin[:, 0, 1])]
        assert (begin[1:, 7, 1] >= begin[:-1, 0, 1] - 1e-9).all()


def run_example(page: str) -> None:
    [block] = re.findall(r"\.\. code-block:: python\n\n((?:   .*\n|\n)+?)(?=\S)", page)
    exec(compile(re.sub(r"(?m)^   ", "", block), "gallery", "exec"), {})


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_example_of_a_problem_runs(name: str, gallery: Any, capsys: pytest.CaptureFixture[str]) -> None:
    run_example(gallery.problem_page(name))
    assert len(capsys.readouterr().out.splitlines()) >= 2


@pytest.mark.parametrize("name", LEARNERS)
def test_the_example_of_a_learner_runs(name: str, gallery: Any, capsys: pytest.CaptureFixture[str]) -> None:
    run_example(gallery.learner_page(name))
    assert capsys.readouterr().out.strip()
