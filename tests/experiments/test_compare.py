"""Several learners under the same conditions."""

from functools import partial

import numpy as np
import pytest

import tightrope as tr
from tests.learners.problems import problem_with
from tightrope.experiments import tables

PROBLEM = problem_with(1)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_each_is_the_run_that_it_is_alone(n_jobs: int) -> None:
    compared = tr.compare(PROBLEM, ["o-reps", "uniform"], episodes=30, seeds=[3, 5], n_jobs=n_jobs, records=4)
    assert list(compared) == ["o-reps", "uniform"]
    for name, histories in compared.items():
        for seed, history in zip((3, 5), histories, strict=True):
            alone = tr.run(PROBLEM, name, episodes=30, seed=seed, records=4)
            assert history.settings == alone.settings
            for column in alone:
                np.testing.assert_array_equal(history[column], alone[column])


def test_learners_by_labels_of_ones_own() -> None:
    narrow = partial(tr.make_learner, "ucpd", radius_scale=0.1)
    compared = tr.compare(PROBLEM, {"wide": partial(tr.make_learner, "ucpd"), "narrow": narrow}, episodes=30)
    assert {label: history.settings["radius_scale"] for label, [history] in compared.items()} == {
        "wide": 1.0,
        "narrow": 0.1,
    }
    assert compared["wide"][0]["loss"][-1] != compared["narrow"][0]["loss"][-1]


def test_wrong_names_are_refused_before_anything_is_played() -> None:
    with pytest.raises(tr.InvalidInputError, match="'nobody'"):
        tr.compare(PROBLEM, ["ucpd", "nobody"], episodes=10**9)
    with pytest.raises(tr.InvalidInputError, match="seeds"):
        tr.compare(PROBLEM, ["ucpd"], episodes=10, seeds=0)


def test_the_table_of_one_seed_has_no_error_and_what_was_not_computed_is_nan() -> None:
    columns = ["loss", "hindsight", "regret", "violation", "strong_violation"]
    history = {name: np.array([0.0, value]) for name, value in zip(columns, (-1234.56, np.nan, 2, 0.5, 3), strict=True)}
    head, row = tables.comparison({"a": [history]}, {"a": {"radius_scale": 0.25}})
    assert row.split() == ["a", "0.25", "-1234.6", "nan", "2.0000", "0.5000", "3.0000"]
    assert len(head) == len(row)


def test_conditions_name_who_was_told_what() -> None:
    [line] = tables.conditions(["uniform", "o-reps", "safe-baseline", "somebody's own"])
    assert line == "told more than space and budgets: o-reps (model), safe-baseline (safe policy)"
    assert tables.conditions(["uniform"]) == []
