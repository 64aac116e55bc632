"""A metric is added in one place: an entry in `COLUMNS`."""

from pathlib import Path

import numpy as np
import pytest

import tightrope as tr
from tightrope.lab.history import in_units
from tightrope.lab.metrics import COLUMNS, Column


@pytest.fixture
def worst_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register the largest excess of any budget, without the cut at zero, as a metric."""
    column = Column("worst", "largest excess", lambda at: float(at.account.over.max()), "violation", shown=True)
    monkeypatch.setitem(COLUMNS, "worst_use", column)


def test_a_new_metric_is_in_histories_files_and_units(worst_use: None, tmp_path: Path) -> None:
    problem = tr.make("edge-cloud")
    history = tr.run(problem, "uniform", episodes=30)
    over = np.stack([history["use_delay"], history["use_energy"]]) - np.outer(problem.budgets, history["episode"])
    np.testing.assert_allclose(history["worst_use"], over.max(axis=0), rtol=1e-12, atol=1e-12)
    scale = in_units(problem, history)["violation"][-1] / history["violation"][-1]
    assert in_units(problem, history)["worst_use"][-1] == pytest.approx(scale * history["worst_use"][-1])
    tr.Study(problems=["edge-cloud"], learners=["uniform"], episodes=30, seeds=1).run(tmp_path / "study")
    heading = next((tmp_path / "study").glob("runs/*/history.csv")).read_text().splitlines()[0]
    assert "worst_use" in heading.split(",")


def test_a_history_of_an_earlier_version_lacks_it(worst_use: None) -> None:
    history = tr.run("media-streaming", "uniform", episodes=10)
    older = tr.History({name: column for name, column in history.items() if name != "worst_use"}, history.settings)
    assert "worst_use" not in older and list(older) == [name for name in history if name != "worst_use"]
