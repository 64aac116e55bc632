"""Figures for a paper: as wide as they say, one of each kind, the same every time."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from tests.lab.report.folders import LIMIT, write_study
from tightrope import Results
from tightrope.lab.report import figures_of
from tightrope.lab.report.figures import TWO_COLUMNS, draw, write_figures
from tightrope.lab.tables import band

NAMES = ("regret", "violation", "strong_violation", "use_delay", "multiplier_norm", "epoch", "all")


def test_every_figure_is_written_one_and_two_columns_wide(tmp_path: Path) -> None:
    write_study(tmp_path, n_seeds=2)
    paths = write_figures(tmp_path, "png")
    assert paths == [tmp_path / "figures" / f"1_{name}.png" for name in NAMES]
    assert [imread(path).shape[1] for path in paths] == [1020] * 6 + [2100]  # 300 dots an inch


@pytest.mark.parametrize("form", ["svg", "pdf"])
def test_the_same_study_gives_the_same_file(tmp_path: Path, form: str) -> None:
    write_study(tmp_path, learners=("$x$ <b>", "\x00"), n_seeds=2)
    before = [path.read_bytes() for path in write_figures(tmp_path, form)]
    assert [path.read_bytes() for path in write_figures(tmp_path, form)] == before


def test_lines_are_means_and_limits_are_drawn(tmp_path: Path) -> None:
    write_study(tmp_path)
    [section] = Results.read(tmp_path).sections
    sheet = draw(section, figures_of(section), TWO_COLUMNS)
    regret, use = sheet.axes[0], sheet.axes[3]
    for line, curve in zip(regret.lines, section.curves, strict=False):
        np.testing.assert_array_equal(line.get_ydata(), band(curve.values("regret", section.episodes)).mean)
    assert np.asarray(use.lines[-1].get_ydata()).tolist() == [LIMIT, LIMIT]
    assert [text.get_text() for text in sheet.legends[0].get_texts()] == [curve.label for curve in section.curves]
