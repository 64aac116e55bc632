"""Printed tables: every number in its column, every column under its heading."""

import numpy as np

from tightrope.lab import tables
from tightrope.lab.tables import results


def test_cells_are_aligned_and_printed_verbatim() -> None:
    long = "[red]a :smile: " + "very " * 60 + "long one"
    lines = tables.aligned(["name", "n", "what"], [("a", "7", long), ("", "1234", "")], text=["name", "what"])
    assert lines == [
        "name     n  what",
        f"a        7  {long}",
        "      1234",
    ]


def test_the_table_has_the_last_record_of_every_seed_then_mean_and_interval() -> None:
    columns = ["episode", "loss", "hindsight", "regret", "violation", "strong_violation"]
    histories = [
        {name: np.array([0.0, value]) for name, value in zip(columns, values, strict=True)}
        for values in ([100, 1234.5, 1000, 234.5, 0.25, 3], [100, 1236.5, 1000, 236.5, 0.75, 5])
    ]
    head, *rows = [line.split("  ") for line in results(100, [4, 5], {"l": histories}, {"l": {}})[:6]]
    assert [cell.strip() for cell in head if cell] == [
        "seed", "episodes", "loss", "LP value", "regret", "violation", "strong violation"
    ]  # fmt: skip
    assert [[cell.strip() for cell in row if cell.strip()] for row in rows] == [
        ["4", "100", "1234.5", "1000.0", "234.50", "0.2500", "3.0000"],
        ["5", "100", "1236.5", "1000.0", "236.50", "0.7500", "5.0000"],
        ["mean", "100", "1235.5", "1000.0", "235.50", "0.5000", "4.0000"],
        ["from", "100", "1234.5", "1000.0", "234.50", "0.2500", "3.0000"],  # of two seeds: from the one to the other
        ["to", "100", "1236.5", "1000.0", "236.50", "0.7500", "5.0000"],
    ]
    lines = results(100, [4, 5], {"l": histories}, {"l": {}})
    assert len({len(line) for line in lines[:6]}) == 1
    assert lines[7] == "from, to: 95 % bootstrap interval of the mean over seeds"
    assert any(line.startswith("violation:") and "strong violation:" in line for line in lines)


def test_the_table_of_one_seed_has_no_interval_and_nan_where_nothing_was_computed() -> None:
    columns = ["loss", "hindsight", "regret", "violation", "strong_violation"]
    history = {name: np.array([0.0, value]) for name, value in zip(columns, (-1234.56, np.nan, 2, 0.5, 3), strict=True)}
    head, row = tables.comparison({"a": [history]}, {"a": {"radius_scale": 0.25}})
    assert row.split() == ["a", "0.25", "-1234.6", "nan", "2.0000", "0.5000", "3.0000"]
    assert len(head) == len(row)


def test_the_table_of_several_learners_has_the_same_interval() -> None:
    columns = ["loss", "hindsight", "regret", "violation", "strong_violation"]
    seeds = [{name: np.array([float(value)]) for name in columns} for value in (1, 3)]
    lines = results(9, [0, 1], {"a": seeds, "b": seeds}, {"a": {}, "b": {}})
    assert lines[1].split("  ")[-1].strip() == "2.0000 [1.0000, 3.0000]"
    assert lines[4] == "mean over 2 seeds [95 % bootstrap interval of the mean over seeds]; after 9 episodes"


def test_learners_with_fewer_seeds_are_named() -> None:
    """One of the runs of the second learner failed."""
    columns = ["loss", "hindsight", "regret", "violation", "strong_violation"]
    seeds = [{name: np.array([float(value)]) for name in columns} for value in (1, 3)]
    lines = results(9, [0, 1], {"a": seeds, "b": seeds[1:]}, {"a": {}, "b": {}})
    assert lines[2].split()[2] == "3.0000"
    assert lines[4].endswith("; after 9 episodes; b over 1 of them")


def test_conditions_name_what_learners_know() -> None:
    [line] = tables.conditions(["uniform", "o-reps", "safe-baseline", "somebody's own"])
    assert line == "needs more than space and budgets: o-reps (model), safe-baseline (safe policy)"
    assert tables.conditions(["uniform"]) == []
