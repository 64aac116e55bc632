"""Figures show what the histories hold: no sign, zero or name is hidden."""

import itertools
import xml.dom.minidom
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from scipy.optimize import isotonic_regression

from tests.conftest import FloatArray
from tightrope import InvalidInputError
from tightrope.lab import figures
from tightrope.lab.history import Budget

EPISODES = np.array([1.0, 2.0, 5.0, 10.0, 100.0, 1000.0])


def history(**columns: FloatArray) -> dict[str, FloatArray]:
    """A history that grows like √T, with the columns given put in."""
    root = np.sqrt(EPISODES)
    return {
        "episode": EPISODES,
        "regret": 3 * root,
        "violation": root,
        "strong_violation": 2 * root,
    } | columns


def texts(figure: Figure) -> str:
    return "\n".join(text.get_text() for text in figure.findobj(Text))


def line(axes: Axes, colour: str) -> FloatArray:
    """The values of the line of that colour."""
    [found] = [one for one in axes.lines if one.get_color() == colour and len(np.atleast_1d(one.get_ydata())) > 1]
    return np.asarray(found.get_ydata())


@pytest.mark.parametrize(("numbers", "words"), [((2, 2), "mean of 2 seeds"), ((3, 1, 2), "mean of 1 to 3 seeds")])
def test_the_title_says_how_many_seeds_a_line_averages(numbers: tuple[int, ...], words: str) -> None:
    figure = figures.draw({f"learner {k}": [history()] * n for k, n in enumerate(numbers)}, title="some failed")
    assert words in texts(figure)


def test_lines_are_the_means_over_seeds_and_bands_the_range() -> None:
    runs = [history(regret=k * EPISODES) for k in (1.0, 2.0, 6.0)]
    figure = figures.draw({"ucpd": runs}, title="three seeds")
    left, right = figure.axes
    np.testing.assert_allclose(line(left, figures.COLOURS["regret"]), 3 * EPISODES)
    np.testing.assert_allclose(line(right, figures.COLOURS["violation"]), runs[0]["violation"])
    np.testing.assert_allclose(line(right, figures.COLOURS["strong_violation"]), runs[0]["strong_violation"])
    band = np.asarray(left.collections[0].get_paths()[0].vertices)
    at_the_end = band[band[:, 0] == 1000.0, 1]
    assert at_the_end.min() == 1000.0
    assert at_the_end.max() == 6000.0
    words = texts(figure)
    for expected in (
        "three seeds",
        "mean of 3 seeds",
        "regret",
        "violation",
        "strong violation",
        "√T",
        "3\u2009000",
    ):
        assert expected in words


def test_positive_values_are_on_a_log_axis_and_the_reference_has_slope_one_half() -> None:
    left, right = figures.draw({"ucpd": [history()]}, title="").axes
    for axes in (left, right):
        assert axes.get_xscale() == axes.get_yscale() == "log"
        [reference] = [one for one in axes.lines if one.get_color() == figures.MUTED]
        slopes = np.diff(np.log(np.asarray(reference.get_ydata()))) / np.diff(np.log(np.asarray(reference.get_xdata())))
        np.testing.assert_allclose(slopes, 0.5)


@pytest.mark.parametrize(
    ("regret", "note"),
    [
        (np.array([-5.0, -2.0, 0.0, 3.0, 50.0, 100.0]), "linear between −1 and 1"),
        (np.array([0.0, 1.0, 2.0, 3.0, 50.0, 100.0]), "linear between 0 and 1"),
        (np.array([-0.1, 0.1, 0.2, 0.3, 0.3, 0.4]), "linear between −0.01 and 0.01"),
        (-EPISODES, "linear between −1 and 1"),
        (0 * EPISODES, "linear between 0 and 1"),
    ],
)
def test_zero_and_negative_values_are_shown_and_the_axis_says_so(regret: FloatArray, note: str) -> None:
    figure = figures.draw({"ucpd": [history(regret=regret)]}, title="")
    left, right = figure.axes
    assert left.get_yscale() == "symlog"
    assert right.get_yscale() == "log"
    np.testing.assert_array_equal(line(left, figures.COLOURS["regret"]), regret)
    low, high = left.get_ylim()
    assert low <= regret.min() <= regret.max() < high
    assert note in texts(figure)


def test_missing_values_are_left_out_and_the_panel_says_so() -> None:
    some = np.where(EPISODES < 10, np.nan, EPISODES)
    left, _ = figures.draw({"ucpd": [history(regret=some), history()]}, title="").axes
    assert len(line(left, figures.COLOURS["regret"])) == 3
    figure = figures.draw({"ucpd": [history(regret=np.full(6, np.nan))]}, title="")
    assert "not computed" in texts(figure)
    assert not figure.axes[0].lines


def test_several_learners_have_a_colour_and_a_label_each_in_three_panels() -> None:
    runs = {"ucpd": [history()], "uniform": [history(regret=EPISODES)]}
    figure = figures.draw(runs, title="")
    for axes, column in zip(figure.axes, ("regret", "violation", "strong_violation"), strict=True):
        np.testing.assert_array_equal(line(axes, figures.PALETTE[0]), runs["ucpd"][0][column])
        np.testing.assert_array_equal(line(axes, figures.PALETTE[1]), runs["uniform"][0][column])
        labels = [text.get_text() for text in axes.texts]
        assert f"ucpd  {figures.grouped(runs['ucpd'][0][column][-1])}" in labels
    assert {"Regret", "Violation", "Strong violation"} <= set(texts(figure).splitlines())


@pytest.mark.parametrize("n_budgets", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("learners", [["ucpd"], ["ucpd", "uniform"]])
def test_panels_of_budgets_come_first(learners: list[str], n_budgets: int) -> None:
    names = [f"use_{i}" for i in range(n_budgets)]
    runs = {name: [history(**{use: (2.0 + i) * EPISODES for i, use in enumerate(names)})] for name in learners}
    budgets = [Budget(use, use, "hours", 1.0) for use in names]
    figure = figures.draw(runs, title="", budgets=budgets)
    heads = [axes.texts[-2].get_text() for axes in figure.axes]
    assert heads[:n_budgets] == [f"Use of {use}" for use in names]
    assert heads[n_budgets] == "Regret"
    for i, axes in enumerate(figure.axes[:n_budgets]):
        np.testing.assert_array_equal(line(axes, figures.PALETTE[0]), np.full(len(EPISODES), 2.0 + i))
    rows = {round(axes.get_position().y0, 6) for axes in figure.axes}
    columns = {round(axes.get_position().x0, 6) for axes in figure.axes}
    assert len(rows) * len(columns) - len(figure.axes) < len(columns)  # no row is empty
    assert len(columns) == len(figure.axes) / 2 or len(figure.axes) != 4  # nor does one stand alone below three


def test_twenty_learners_have_different_styles_and_labels_do_not_overlap() -> None:
    runs = {f"learner {k}": [history(regret=(1 + 0.01 * k) * EPISODES)] for k in range(20)}
    figure = figures.draw(runs, title="")
    figure.canvas.draw()
    lines = [one for one in figure.axes[0].lines if np.size(one.get_xdata()) == len(EPISODES)]
    looks = {(one.get_color(), str(getattr(one, "_dash_pattern"))) for one in lines}  # noqa: B009
    assert len(looks) == len(lines) == 20
    for axes in figure.axes:
        boxes = [text.get_window_extent() for text in axes.texts if "learner" in text.get_text()]
        assert len(boxes) == 20
        heights = sorted((box.y0, box.y1) for box in boxes)
        assert all(below[1] <= above[0] + 1 for below, above in itertools.pairwise(heights))


@pytest.mark.parametrize(
    "names", [["ucpd-practical radius_scale=0.1", "shifted-bandit-uc-o-reps"], ["ucpd"], ["a", "b"]]
)
def test_labels_have_room_beside_their_panel(names: list[str]) -> None:
    """However long: up to the numbers of the next panel, or the edge."""
    budgets = [Budget("use_customers_turned_away", "customers turned away", "", 1.0)]
    run = history(regret=-100 * EPISODES, use_customers_turned_away=1e5 * EPISODES)
    figure = figures.draw({name: [run] for name in names}, title="", budgets=budgets)
    figure.canvas.draw()
    edges = [axes.yaxis.get_tightbbox().x0 for axes in figure.axes] + [figure.bbox.x1]  # type: ignore[union-attr]
    for axes in figure.axes:
        labels = [text for text in axes.texts if getattr(text, "xyann", None) == (9, 0)]
        end = min(edge for edge in edges if edge > axes.bbox.x1)
        assert labels and all(label.get_window_extent().x1 <= end for label in labels)


@pytest.mark.parametrize("episodes", [1, 2, 3])
def test_very_short_runs_can_be_drawn(tmp_path: Path, episodes: int) -> None:
    short = {name: column[:episodes] for name, column in history().items()}
    paths = figures.save(figures.draw({"ucpd": [short]}, title="short"), tmp_path, "picture")
    assert all(path.stat().st_size > 1000 for path in paths)


def test_saved_figures_are_reproducible_and_leave_no_temporary_files(tmp_path: Path) -> None:
    before = dict(mpl.rcParams)
    for name in ("one", "two"):
        figures.save(figures.draw({"ucpd": [history(), history()]}, title="same"), tmp_path, name)
    assert dict(mpl.rcParams) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.png", "one.svg", "two.png", "two.svg"]
    for kind, start in (("png", b"\x89PNG"), ("svg", b"<?xml")):
        first, second = ((tmp_path / f"{name}.{kind}").read_bytes() for name in ("one", "two"))
        assert first == second
        assert first.startswith(start)


def test_runs_recorded_at_different_episodes_are_refused() -> None:
    other = history(episode=EPISODES + 1)
    with pytest.raises(InvalidInputError, match="different episodes"):
        figures.draw({"ucpd": [history(), other]}, title="")
    with pytest.raises(InvalidInputError, match="no run"):
        figures.draw({}, title="")


@given(st.lists(st.floats(0, 1), min_size=1, max_size=7))
def test_labels_keep_their_order_their_distance_and_the_panel(heights: list[float]) -> None:
    placed = figures.spread(sorted(heights), gap=0.125)
    assert all(b - a >= 0.125 - 1e-12 for a, b in itertools.pairwise(placed))
    assert placed[0] >= 0
    assert placed[-1] <= 1 + 1e-12


@given(st.lists(st.floats(0, 1), min_size=1, max_size=5))
def test_labels_that_do_not_overlap_stay_where_they_are(heights: list[float]) -> None:
    apart = np.sort(heights) / 2 + 0.125 * np.arange(len(heights))
    np.testing.assert_allclose(figures.spread(apart, gap=0.125), apart, atol=1e-12)


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=12))
def test_the_nearest_ascending_sequence_agrees_with_scipy(values: list[float]) -> None:
    expected = isotonic_regression(values).x
    np.testing.assert_allclose(figures.nearest_ascending(np.array(values)), expected, atol=1e-12)


def test_overlapping_labels_move_as_little_as_possible() -> None:
    np.testing.assert_allclose(figures.spread([0.5, 0.5], gap=0.2), [0.4, 0.6])
    np.testing.assert_allclose(figures.spread([0.1, 0.5, 0.5, 0.5], gap=0.2), [0.1, 0.3, 0.5, 0.7])


@pytest.mark.parametrize(("n_letters", "size"), [(20, 13.0), (110, None), (1000, 7.0)])
def test_a_long_title_is_set_smaller_until_it_fits(n_letters: int, size: float | None) -> None:
    figure = figures.draw({"ucpd": [history()]}, title="n" * n_letters)
    title, below = figure.texts
    points = float(title.get_fontsize())
    assert below.get_text().startswith("totals")
    if size is not None:
        assert points == size
    else:
        assert 7.0 < points < 13.0
        right = figure.transFigure.inverted().transform(title.get_window_extent())[1, 0]
        assert 0.95 < right < 0.985


@pytest.mark.parametrize(
    ("value", "text"),
    [(20000, "20\u2009000"), (-1234.4, "−1\u2009234"), (0, "0"), (3.14159, "3.14"), (99.94, "99.9")],
)
def test_thousands_are_grouped_by_thin_spaces(value: float, text: str) -> None:
    assert figures.grouped(value) == text


@pytest.mark.parametrize(
    "name", ["cost $x_{$ y", r"\frac{$", "caf\udce9", "a\0b", "\x1b[31m", "a\nb", "日本", "a -- b"]
)
def test_names_are_drawn_as_they_are(name: str, tmp_path: Path) -> None:
    use = Budget("use_it", name, name, 1.0)
    runs = [history(use_it=EPISODES)]
    figure = figures.draw({name: runs, "other": runs}, title=name, budgets=[use])
    if name.isprintable():
        assert texts(figure).count(name) > 5
    figures.save(figure, tmp_path, "picture")
    xml.dom.minidom.parse(str(tmp_path / "picture.svg"))
