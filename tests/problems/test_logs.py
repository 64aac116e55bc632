"""From a log to a problem: what is estimated, what is mended, what is refused, each with its rows."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

import tightrope as tr
from benchmarks.logged import regret
from tests.problems.recorded import LOSS, Columns, laws, recorded, written
from tightrope import InvalidInputError, load_problem, read_log
from tightrope.learners.shared.counting import CountingLearner
from tightrope.problems.logs.estimate import log_of, write_from_log

BUDGETS = {"hours": 2.0}


def small() -> Columns:
    """Two whole episodes of three steps."""
    return {
        "episode": ["a", "a", "a", "b", "b", "b"],
        "step": [0, 1, 2, 0, 1, 2],
        "state": ["low", "high", "high", "low", "low", "high"],
        "action": ["up", "stay", "stay", "up", "up", "stay"],
        "next_state": ["high", "high", "low", "low", "high", "high"],
        "loss": [3.0, 1.0, 2.0, 5.0, 4.0, 1.0],
        "hours": [1, 0, 0, 1, 1, 0],
    }


def test_frequencies_and_means_are_those_of_the_log() -> None:
    problem = tr.Problem.from_log(small(), budgets={"hours": 1.5}, name="mine", units={"loss": "euros", "hours": "h"})
    space = problem.space
    assert (problem.name, problem.loss_unit, problem.constraint_units) == ("mine", "euros", ("h",))
    found = {problem.tuple_name(j): (p, problem.loss_scale * f + problem.loss_offset) for j, (p, f) in enumerate(
        zip(problem.mdp.transitions, problem.losses.begin(np.random.default_rng(0)).loss(1), strict=True)
    )}  # fmt: skip
    assert found["low, step 0 → up → high, step 1"] == pytest.approx((2 / 3, 4.0))
    assert found["low, step 0 → up → low, step 1"] == pytest.approx((1 / 3, 4.0))
    assert found["high, step 1 → stay → low, step 2"] == pytest.approx((1 / 3, 4 / 3))
    np.testing.assert_allclose(problem.use_in_units(problem.constraints.mean.T)[space.n_tuples - 1], [0.0])
    assert problem.ties is not None and problem.ties.n_laws < space.n_pairs
    [words] = [words for words in problem.warnings if "never tried" in words]
    assert words.startswith("2 of 4 pairs of a state and an action (50%) were never tried and are unknown")
    assert "'stay' in 'low', 'up' in 'high'" in words


def test_by_step_gives_every_step_its_own_laws() -> None:
    problem = tr.Problem.from_log(small(), budgets={"hours": 1.5}, by_step=True)
    first = {problem.tuple_name(j): float(p) for j, p in enumerate(problem.mdp.transitions)}
    assert first["low, step 0 → up → high, step 1"] == 0.5
    assert first["low, step 1 → up → high, step 2"] == 1.0
    assert problem.ties is None


@pytest.mark.parametrize("by_step", [False, True])
def test_a_folder_from_a_log_is_the_same_problem(tmp_path: Path, by_step: bool) -> None:
    path = written(recorded(60, seed=1), tmp_path / "log.csv")
    how: dict[str, Any] = {"budgets": BUDGETS, "by_step": by_step, "units": {"loss": "euros"}}
    problem = tr.Problem.from_log(path, **how)
    files, _ = write_from_log(tmp_path / "mine", path, **how)
    assert [file.name for file in files] == ["problem.toml", "transitions.csv", "costs.csv", "log.csv"]
    other = load_problem(tmp_path / "mine")
    assert other.space == problem.space and other.state_names == problem.state_names
    np.testing.assert_allclose(other.mdp.transitions, problem.mdp.transitions)
    np.testing.assert_allclose(other.constraints.mean, problem.constraints.mean)
    for one, two in zip(*(p.losses.begin(np.random.default_rng(0)).loss(1) for p in (problem, other)), strict=True):
        assert one == pytest.approx(two)
    np.testing.assert_allclose(other.budgets, problem.budgets)
    assert other.warnings == problem.warnings and other.ties == problem.ties
    log = log_of(tmp_path / "mine")
    assert log.n_episodes == 60 and log.notes == ()
    np.testing.assert_array_equal(log.loss, read_log(path, budgets=("hours",)).loss)


def test_a_problem_from_many_episodes_is_near_the_truth(tmp_path: Path) -> None:
    problem = tr.Problem.from_log(recorded(3000, seed=2), budgets=BUDGETS)
    law = laws()
    for j, (s, a, s_next) in enumerate(problem.space.tuples.tolist()):
        state, action = problem.state_name(s).partition(",")[0], problem.action_name(a)
        if s_next < problem.space.n_states - 1:
            names, chances = law[state, action]
            expected = chances[names.index(problem.state_name(s_next).partition(",")[0])]
            assert problem.mdp.transitions[j] == pytest.approx(expected, abs=0.03)
        mean = problem.loss_scale * problem.losses.begin(np.random.default_rng(0)).loss(1)[j] + problem.loss_offset
        assert mean == pytest.approx(LOSS[state, action], abs=0.2)


def test_files_frames_dicts_and_parquet_are_alike(tmp_path: Path) -> None:
    columns = recorded(20, seed=3)
    frame = pandas.DataFrame(columns)
    frame.to_parquet(tmp_path / "log.parquet")
    logs = [read_log(source, budgets=("hours",)) for source in (
        columns, frame, written(columns, tmp_path / "log.csv"), tmp_path / "log.parquet"
    )]  # fmt: skip
    for log in logs[1:]:
        np.testing.assert_array_equal(log.loss, logs[0].loss)
        np.testing.assert_array_equal(log.state, logs[0].state)
        assert log.n_episodes == 20 and log.probability is not None
    assert read_log(logs[0], budgets=("hours",)) is logs[0]
    with pytest.raises(InvalidInputError, match=r"has the budgets \['hours'\], not \['euros'\]"):
        read_log(logs[0], budgets=("euros",))
    assert "Log(20 episodes of up to 7 steps" in repr(logs[0])


def test_columns_may_have_other_names_and_numbers_bins() -> None:
    columns = {
        "day": [1, 1, 2, 2],
        "soc": [0.05, 0.35, 0.2, 0.9],
        "plugged": ["yes", "yes", "no", "yes"],
        "kW": [11, 0, 3.7, 0],
        "cost": [1.0, 0.5, 0.2, 0.1],
        "extra": [0, 0, 0, 0],
    }
    log = read_log(
        columns,
        columns={"episode": "day", "state": ["soc", "plugged"], "action": "kW", "loss": "cost"},
        bins={"soc": [0.2, 0.4], "kW": [1, 5]},
    )
    assert log.state.tolist() == [
        "soc below 0.2, plugged yes", "soc 0.2 to 0.4, plugged yes",
        "soc 0.2 to 0.4, plugged no", "soc 0.4 and more, plugged yes",
    ]  # fmt: skip
    assert log.action.tolist() == ["5 and more", "below 1", "1 to 5", "below 1"]
    assert log.step.tolist() == [0, 1, 0, 1]
    assert log.next_state.tolist() == [log.state[1], "end", log.state[3], "end"]


# Ten kinds of damage and more. What is done to a log of small(), and what is said.

Damage = Callable[[Columns], object]


def put(name: str, row: int, value: object) -> Damage:
    return lambda columns: columns[name].__setitem__(row, value)


def insert(row: int, like: int, **cells: object) -> Damage:
    def change(columns: Columns) -> None:
        for name, cells_ in columns.items():
            cells_.insert(row, cells.get(name, cells_[like]))

    return change


def drop(row: int) -> Damage:
    return lambda columns: [cells.pop(row) for cells in columns.values()]


REFUSED: dict[str, tuple[Damage, str]] = {
    "column missing": (lambda c: c.pop("action"), "there is no column 'action' for action"),
    "budget missing": (lambda c: c.pop("hours"), "there is no column 'hours' for hours"),
    "empty state": (put("state", 2, ""), r"line 4, column 3 \(state\): the cell is empty"),
    "loss is a word": (put("loss", 1, "dear"), r"line 3, column 6 \(loss\): dear where a number should be"),
    "loss is not a number": (put("loss", 1, "nan"), r"line 3, column 6 \(loss\): nan where a number should be"),
    "use is infinite": (put("hours", 5, "inf"), r"line 7, column 7 \(hours\): inf where a number should be"),
    "half a step": (put("step", 1, 0.5), r"line 3, column 2 \(step\): 0.5 is not a whole number"),
    "two rows that contradict": (insert(3, 2, loss=9.0), "line 5: another row for the same episode and step .*line 4"),
    "no whole episode": (lambda c: [put("step", 1, 7)(c), put("next_state", 3, "x")(c)], "no episode is complete"),
}

MENDED: dict[str, tuple[Damage, str, int]] = {
    "row twice": (insert(3, 2), r"1 row occurred twice, counted once \(line 5\)", 2),
    "rows out of order": (
        lambda c: c.update({name: cells[::-1] for name, cells in c.items()}),
        r"4 rows out of order, and sorted",
        2,
    ),
    "steps from 1": (lambda c: c.update(step=[k + 1 for k in c["step"]]), "Steps count from 1 in the log", 2),
    "step missing": (drop(1), r"1 episode in which a step is missing, before the row \(line 3\)", 1),
    "chain broken": (put("next_state", 3, "high"), r"next_state is not the state of the next row \(line 5\)", 1),
    "cut short": (
        drop(5),
        r"1 episode with fewer than 3 steps, cut short in a state where others continue \(line 6\)",
        1,
    ),
    "two spellings": (put("action", 5, "Stay"), r"'stay' and 'Stay' \(line 7\) are two names", 2),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_damage_is_refused_with_its_row(tmp_path: Path, kind: str) -> None:
    damage, words = REFUSED[kind]
    columns = small()
    damage(columns)
    with pytest.raises(InvalidInputError, match=words):
        read_log(written(columns, tmp_path / "log.csv"), budgets=("hours",))


@pytest.mark.parametrize("kind", MENDED)
def test_damage_is_mended_and_noted_with_its_row(tmp_path: Path, kind: str) -> None:
    damage, words, whole = MENDED[kind]
    columns = small()
    damage(columns)
    log = read_log(written(columns, tmp_path / "log.csv"), budgets=("hours",))
    assert re.search(words, " ".join(log.notes)), log.notes
    assert (log.n_episodes, log.n_left_out) == (whole, 2 - whole)
    assert log.step.tolist() == [0, 1, 2] * whole
    problem = tr.Problem.from_log(log, budgets={"hours": 1.0}, by_step=True)
    assert set(log.notes) <= set(problem.warnings)


def test_more_damage_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"probability\): 1.5 is not a probability"):
        read_log({**small(), "probability": [0.5, 0.5, 1.5, 1, 1, 1]}, budgets=("hours",))
    with pytest.raises(InvalidInputError, match="line 3: 6 cells where the heading has 7"):
        text = written(small(), tmp_path / "log.csv").read_text()
        (tmp_path / "log.csv").write_text(text.replace("a,1,high,stay,high,1.0,0", "a,1,high,stay,high,1.0"))
        read_log(tmp_path / "log.csv", budgets=("hours",))
    with pytest.raises(InvalidInputError, match=r"nowhere\.csv cannot be read"):
        read_log(tmp_path / "nowhere.csv")
    with pytest.raises(InvalidInputError, match="a log has no column 'reward'"):
        read_log(small(), columns={"reward": "loss"})
    with pytest.raises(InvalidInputError, match="bins are for a column that is not used, 'lose'"):
        read_log(small(), bins={"lose": [1]})
    with pytest.raises(InvalidInputError, match=r"the edges of loss are .*; they should ascend"):
        read_log(small(), bins={"loss": [2, 1]})
    with pytest.raises(InvalidInputError, match="'loss' cannot be the name of a budget"):
        read_log(small(), budgets=("loss",))
    with pytest.raises(InvalidInputError, match="a log is a file, a data frame, or a dict of columns"):
        read_log(3)
    with pytest.raises(InvalidInputError, match="all need equally many"):
        read_log({"state": [1], "loss": []})


def test_a_state_that_only_ends_episodes_is_unknown_unless_it_is_terminal() -> None:
    columns = small()
    columns["next_state"][5] = "broken"
    words = "row 6: .broken. was only seen at the end of episodes, so its actions are unknown, but .* at step 2"
    with pytest.raises(InvalidInputError, match=words):
        tr.Problem.from_log(columns, budgets={"hours": 1})
    over = tr.Problem.from_log(columns, budgets={"hours": 1}, terminal=["broken"])
    assert "An episode ends in 'broken'." in over.warnings
    assert "done, step 2" in over.state_names
    apart = tr.Problem.from_log(columns, budgets={"hours": 1}, by_step=True)
    assert not any("broken" in name for name in apart.state_names)


def test_episodes_that_are_over_sooner_make_a_terminal_state() -> None:
    columns = small()
    for name, cells in columns.items():
        columns[name] = cells[:5]
    columns["next_state"][4] = "broken"
    problem = tr.Problem.from_log(columns, budgets={"hours": 1})
    assert "An episode ends in 'broken'." in problem.warnings
    [whole, short] = read_log(columns, budgets=("hours",)).paths(problem.space)
    names = [problem.state_name(int(s)) for s in problem.space.trajectory(short)[0]]
    assert names == ["low, step 0", "low, step 1", "done, step 2", "end"]
    assert len(whole) == 3


def test_without_next_state_the_end_is_unknown() -> None:
    columns = small()
    del columns["next_state"]
    columns["action"][2] = "rest"
    with pytest.raises(InvalidInputError, match="row 3: 'rest' in 'high' was only seen at the end of episodes"):
        tr.Problem.from_log(columns, budgets={"hours": 1})
    assert tr.Problem.from_log(columns, budgets={"hours": 1}, by_step=True).space.n_layers == 3


def test_starts_are_by_lot() -> None:
    columns = small()
    columns["state"][0] = "high"
    problem = tr.Problem.from_log(columns, budgets={"hours": 1.0})
    assert problem.space.n_layers == 4 and problem.state_name(0) == "start"
    np.testing.assert_allclose(problem.mdp.transitions[:2], 0.5)
    paths = read_log(columns, budgets=("hours",)).paths(problem.space)
    assert {int(path[0]) for path in paths} == {0, 1}


def test_what_differs_between_steps_is_noted() -> None:
    columns = recorded(200, seed=4)
    assert not any("between steps" in words for words in tr.Problem.from_log(columns, budgets=BUDGETS).warnings)
    dearer = {**columns, "loss": [loss + 5 * step for loss, step in zip(columns["loss"], columns["step"], strict=True)]}
    warnings = tr.Problem.from_log(dearer, budgets=BUDGETS).warnings
    assert any("losses of a pair differ between steps" in words for words in warnings)
    stuck = {name: list(cells) for name, cells in columns.items()}
    for row, step in enumerate(columns["step"]):
        if step == 0:  # on the first day a machine that runs never wears
            stuck["action"][row], stuck["next_state"][row] = "run", "good"
        if step == 1:
            stuck["state"][row] = "good"
            stuck["action"][row], stuck["next_state"][row] = "run", columns["next_state"][row]
    assert any(
        "next states of a pair differ between steps" in words
        for words in tr.Problem.from_log(stuck, budgets=BUDGETS).warnings
    )


def test_bounds_and_names_are_checked() -> None:
    with pytest.raises(InvalidInputError, match="row 4: a loss of 5 is outside the bounds 0 to 4"):
        tr.Problem.from_log(small(), budgets={"hours": 1}, bounds={"loss": (0, 4)})
    with pytest.raises(InvalidInputError, match=r"row 1: a use of 1 is outside the bounds 0 to 0\.5"):
        tr.Problem.from_log(small(), budgets={"hours": 1}, bounds={"hours": (0, 0.5)})
    with pytest.raises(InvalidInputError, match="there is no budget 'euros'"):
        tr.Problem.from_log(small(), budgets={"hours": 1}, units={"euros": "x"})
    with pytest.raises(InvalidInputError, match="terminal has a state that is not in the log, 'lost'"):
        tr.Problem.from_log(small(), budgets={"hours": 1}, terminal=["lost"])
    with pytest.raises(InvalidInputError, match="the uses of 'hours' are all 0 in the log; drop this budget"):
        tr.Problem.from_log({**small(), "hours": [0] * 6}, budgets={"hours": 1})
    wide = tr.Problem.from_log(small(), budgets={"hours": 1}, bounds={"loss": (-10, 10), "hours": (0, 4)})
    assert (wide.loss_scale, wide.loss_offset) == (10, 0)


def test_paths_are_refused_where_the_space_does_not_have_them() -> None:
    log, problem = read_log(small(), budgets=("hours",)), tr.Problem.from_log(small(), budgets={"hours": 1})
    with pytest.raises(InvalidInputError, match="have no names, which a log needs"):
        log.paths(tr.LayeredSpace.dense([1, 2, 2, 1], 2))
    other = read_log({**small(), "action": ["down"] * 6}, budgets=("hours",))
    with pytest.raises(InvalidInputError, match="row 1: there is no action 'down'"):
        other.paths(problem.space)
    other = read_log({**small(), "state": ["high", "high", "high", "low", "low", "high"]}, budgets=("hours",))
    with pytest.raises(InvalidInputError, match="at step 0 there is no state 'high'"):
        other.paths(problem.space)


def test_one_episode_that_is_too_long_does_not_leave_out_all_others() -> None:
    columns = recorded(60, seed=1)
    for name, cells in columns.items():
        cells.append({"step": 7, "state": columns["next_state"][-1]}.get(name, cells[-1]))
    with pytest.raises(InvalidInputError, match=r"have fewer than 8 steps .* 1 have 8 \(row 421\)"):
        read_log(columns, budgets=("hours",))


def test_a_state_called_like_the_one_that_waits_is_refused_where_episodes_are_over() -> None:
    columns: Columns = {
        "episode": [1, 1, 2],
        "step": [0, 1, 0],
        "state": ["a", "done", "a"],
        "action": ["go", "go", "go"],
        "next_state": ["done", "lost", "lost"],
        "loss": [1.0, 2.0, 1.0],
    }
    with pytest.raises(InvalidInputError, match="row 2: a step begins in the state 'done'"):
        tr.Problem.from_log(columns, budgets={})


def test_names_of_budgets_are_a_list() -> None:
    with pytest.raises(InvalidInputError, match="expected a list of names"):
        read_log(recorded(2, seed=1), budgets="hours")


def test_a_learner_learns_from_a_log_that_was_read() -> None:
    learner = tr.make_learner("ucpd-practical", tr.Problem.from_log(recorded(60, seed=1), budgets={"hours": 2}))
    assert isinstance(learner, CountingLearner)
    with pytest.raises(InvalidInputError, match="expected a Log"):
        learner.learn_from("weeks.csv")  # type: ignore[arg-type]


def test_the_bins_of_a_state_hold_for_the_next_state_too() -> None:
    columns: Columns = {
        "episode": [1, 1],
        "level": [5.0, 15.0],
        "next_level": [15.0, 4.0],
        "action": ["up", "down"],
        "loss": [1.0, 2.0],
    }
    names = {"state": "level", "next_state": "next_level"}
    log = read_log(columns, columns=names, bins={"level": [10.0]})
    assert log.next_state.tolist() == ["10 and more", "below 10"]


def test_a_learner_that_knows_a_log_loses_less() -> None:
    """A smaller edition of python -m benchmarks.logged."""
    problem = tr.make("inventory")
    without, knowing = (sum(regret(problem, logged, seed=seed, played=300) for seed in range(4)) for logged in (0, 200))
    assert knowing < without
