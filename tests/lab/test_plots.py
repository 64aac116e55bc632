"""Figures from Python, and histories in notebooks."""

import numpy as np
import pytest
from matplotlib.lines import Line2D

import tightrope as tr
from tests.conftest import FloatArray
from tightrope import History, InvalidInputError
from tightrope.lab.metrics import COLUMNS

PROBLEM = tr.make("media-streaming")


def history(factor: float, **settings: float | str) -> History:
    episodes = np.array([1.0, 10.0, 100.0])
    columns = dict.fromkeys((*COLUMNS, "use_fast_steps", "violation_fast_steps"), factor * episodes)
    return History(columns | {"episode": episodes}, settings)


def drawn(line: Line2D) -> FloatArray:
    return np.asarray(line.get_ydata(), dtype=np.float64)


def test_comparison_draws_the_mean_of_each_learner() -> None:
    figure = tr.plot_comparison({"a": [history(1), history(3)], "b": [history(5), history(5)]}, title="two")
    assert len(figure.axes) == 3
    for axes in figure.axes:
        a, b = axes.lines[:2]
        np.testing.assert_allclose(drawn(a), [2, 20, 200])
        np.testing.assert_allclose(drawn(b), [5, 50, 500])


def test_with_the_problem_numbers_have_its_units_and_budgets_their_limits() -> None:
    figure = tr.plot_comparison({"a": [history(1)], "b": [history(2)]}, PROBLEM)
    assert len(figure.axes) == 4
    use, regret = figure.axes[0], figure.axes[1]
    [limit] = PROBLEM.use_in_units(PROBLEM.budgets)
    assert limit in [drawn(line)[0] for line in use.lines]
    np.testing.assert_allclose(drawn(regret.lines[0]), PROBLEM.regret_in_units(history(1)["regret"]))


def test_a_history_draws_itself() -> None:
    figure = history(1, problem="media-streaming", learner="ucpd").plot()
    assert figure.texts[0].get_text() == "media-streaming · ucpd"
    assert len(history(1).plot(PROBLEM).axes) == 3


def test_notebooks_show_the_last_record_and_the_settings() -> None:
    shown = history(2, learner="<b>ucpd</b>", V=3.0)._repr_html_()
    assert "<th style='text-align: left'>regret</th><td>200</td>" in shown
    assert "&lt;b&gt;ucpd&lt;/b&gt;" in shown and "the last of 3 records" in shown


def test_runs_of_another_problem_are_refused() -> None:
    with pytest.raises(tr.InvalidInputError, match="is not of 'edge-cloud': it has no column 'use_delay'"):
        history(1).plot(tr.make("edge-cloud"))


@pytest.mark.parametrize("wrong", [None, {}, {"a": []}, {"a": [1]}, {1: [history(1)]}, {"a": history(1)}])
def test_plot_comparison_refuses_other_arguments(wrong: object) -> None:
    with pytest.raises(tr.InvalidInputError):
        tr.plot_comparison(wrong)  # type: ignore[arg-type]


def test_a_history_without_records_cannot_be_drawn() -> None:
    empty = History(dict.fromkeys(COLUMNS, np.zeros(0)), {})
    with pytest.raises(tr.InvalidInputError, match="without records"):
        empty.plot()


def test_a_history_without_records_still_shows_itself() -> None:
    empty = History(dict.fromkeys(COLUMNS, np.zeros(0)), {"learner": "nobody"})
    assert repr(empty) == "History(0 records; last: none)"
    assert "the last of 0 records" in empty._repr_html_()
    assert "nobody" in empty._repr_html_()


def test_columns_of_a_history_are_equally_long() -> None:
    columns = dict.fromkeys(COLUMNS, np.zeros(2)) | {"regret": np.zeros(3)}
    with pytest.raises(InvalidInputError, match="regret has 3 records; it must have as many as episode, 2"):
        History(columns, {})


@pytest.mark.parametrize("wrong", [0.0, -1.0, np.nan, np.inf])
def test_records_before_episode_1_are_refused(wrong: float) -> None:
    columns = dict.fromkeys(COLUMNS, np.ones(2)) | {"episode": np.array([1.0, wrong])}
    with pytest.raises(InvalidInputError, match="a record before episode 1, or without an episode"):
        History(columns, {}).plot()
