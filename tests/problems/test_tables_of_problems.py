"""The page about the problems is true: its tables are computed again, its lists are whole, its example runs."""

import re
from pathlib import Path

import numpy as np
import pytest

from benchmarks import problems as overview
from tests.problems.suite import NAMES, make_or_skip
from tests.problems.twin import scenarios
from tightrope import InvalidInputError, make
from tightrope.arguments import options_of
from tightrope.problems import PROBLEMS
from tightrope.problems.constraints import CHANGING, NOISES
from tightrope.problems.losses import LOSSES

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "problems.md").read_text("utf-8")


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def table(mark: str) -> list[list[str]]:
    """The rows that stand in the page under this mark, header first."""
    [block] = re.findall(rf"<!-- {mark} -->\n(.*?)\n<!-- end of {mark} -->", PAGE, flags=re.DOTALL)
    header, _, *rows = block.splitlines()
    return [cells(header), *(cells(row) for row in rows)]


def assert_same_cell(shown: str, expected: str) -> None:
    """Words are equal, numbers are up to the digits that are shown."""
    (value, *unit), (other, *other_unit) = shown.split(maxsplit=1) or [""], expected.split(maxsplit=1) or [""]
    assert unit == other_unit
    try:
        assert float(value) == pytest.approx(float(other), rel=2e-3, abs=1e-6)
    except ValueError:
        assert value == other


def test_every_problem_stands_in_both_tables() -> None:
    for mark, header in (("sizes", overview.SIZES), ("values", overview.VALUES)):
        first, *rows = table(mark)
        assert first == list(header)
        assert [row[0] for row in rows if row[0]] == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_sizes_are_so(name: str) -> None:
    [row] = [row for row in table("sizes") if row[0] == name]
    assert row == list(overview.size_row(name, make_or_skip(name)))


@pytest.mark.parametrize("name", NAMES)
def test_the_table_of_values_is_up_to_date(name: str) -> None:
    rows = table("values")
    start = [row[0] for row in rows].index(name)
    for i, expected in enumerate(overview.value_rows(name, make_or_skip(name))):
        for shown, cell in zip(rows[start + i], expected, strict=True):
            assert_same_cell(shown, cell)


def test_budgets_bind_and_can_be_met_in_the_page() -> None:
    _, *rows = table("values")
    for row in rows:
        least, budget, multiplier = (float(row[column].split()[0]) for column in (5, 6, 8))
        assert least < budget
        assert multiplier > 0.01
        if row[0]:
            alone, within, slack = (float(row[column].split()[0]) for column in (2, 3, 9))
            assert alone < within
            assert slack > 0


@pytest.mark.parametrize(
    ("heading", "known"), [("Losses", LOSSES), ("Constraints", NOISES), ("Constraints that change", CHANGING)]
)
def test_names_and_options_in_the_lists_are_whole(heading: str, known: dict[str, object]) -> None:
    section = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    listed = {cells(line)[0].strip("`"): cells(line)[2] for line in section.splitlines() if line.startswith("| `")}
    assert set(listed) == set(known)
    for name, options in listed.items():
        maker = known[name]
        assert callable(maker)
        defaults = options_of(maker)
        assert re.findall(r"`(\w+)`", options) == list(defaults)
        for option, number in re.findall(r"`(\w+)` ([\d.]+)", options):
            assert float(number) == defaults[option]


def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    [example] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(example, "problems.md", "exec"), {})
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "{'0': 0.5, '1': 0.5}"
    assert lines[-1] == "16.0 minutes"


def test_tables_are_written_between_their_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overview, "PROBLEMS", {"machine-cycle": PROBLEMS["machine-cycle"]})
    page = "before\n<!-- sizes -->\nold\n<!-- end of sizes -->\n<!-- values -->\n<!-- end of values -->\nafter"
    written = overview.written_into(page)
    assert written.startswith("before\n<!-- sizes -->\n| problem | states |")
    assert (
        "| machine-cycle | fixed | -4 | -2 | moves | 0 | 3 | 6 | 0.6667 | 3 |\n<!-- end of values -->\nafter" in written
    )
    assert "old" not in written
    assert overview.written_into(written) == written
    with pytest.raises(InvalidInputError, match="the page needs the marks <!-- sizes -->"):
        overview.written_into("nothing")


def test_the_long_run_is_the_first_scenario_or_the_mean_of_all() -> None:
    fixed, switching = make("machine-cycle"), make("machine-cycle", losses="switching")
    np.testing.assert_array_equal(overview.long_run_loss(fixed), scenarios(fixed)[0])
    np.testing.assert_allclose(overview.long_run_loss(switching), scenarios(fixed).sum(axis=0) / 3)
