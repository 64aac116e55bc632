"""`tightrope inspect` shows what a directory contains, and what is damaged."""

import csv
import json
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.durable.stories import WORLD, fresh, one_more, opened
from tightrope import DurableLearner, InvalidInputError, KLBall
from tightrope.cli.commands import app
from tightrope.errors import StorageError
from tightrope.ops import formats, inspection, snapshots, sqlite
from tightrope.ops.inspection import as_json, inspect, page, widths_of
from tightrope.ops.status import BudgetUnits


class Named:
    name = "somewhere"
    constraint_names = ("delay", "energy")
    constraint_scales = (10.0, 1.0)
    constraint_units = ("hops", "")
    loss_scale = 40.0
    loss_unit = "euros"
    state_names = tuple(f"s{k}" for k in range(WORLD.space.n_states))
    action_names = ("left", "stay", "right")


def directory(folder: Path) -> Path:
    with opened(folder, fresh(), problem=Named(), snapshot_every=4) as learner:
        for _ in range(10):
            one_more(learner)
        learner.ask()
        learner.give_up(learner.ask().id)
    return folder / "it"


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["inspect", *map(str, arguments)])
    return result.exit_code, result.output


def test_budgets_are_changed_by_name_in_their_own_units(tmp_path: Path) -> None:
    with opened(tmp_path, fresh(), problem=Named()) as learner:
        before = learner.status.budgets
        learner.set_budgets({"delay": 5.0})  # hops; 10 of them are 1 in the units of the learner
        assert learner.status.budgets.tolist() == [0.5, before[1]]
        assert learner.status.spending[0].budget == 5.0
        wrong: Any
        for wrong, words in (({"dely": 5.0}, "did you mean 'delay'"), ({"delay": "5"}, "the budget delay is '5'")):
            with pytest.raises(InvalidInputError, match=words):
                learner.set_budgets(wrong)
        assert learner.status.event == 1


def test_inspect_accepts_a_path_above_the_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = directory(tmp_path)
    monkeypatch.chdir("/")
    assert inspect(Path("..") / found.relative_to("/")).damage == ()  # there is nothing above the root


def test_inspect_ignores_files_that_are_pruned_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path, fresh(), snapshot_every=1) as learner:
        one_more(learner)

        def meanwhile(folder: Path, pattern: str) -> list[Path]:
            found = list(glob(folder, pattern))
            monkeypatch.undo()
            for _ in range(3):
                one_more(learner)
            assert not any(path.exists() for path in found)
            return found

        glob = Path.glob
        monkeypatch.setattr(Path, "glob", meanwhile)
        assert inspect(tmp_path / "it").damage == ()


def test_a_directory_that_is_being_created_is_not_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process ends before the tables exist, or before the first snapshot."""

    class Ended(BaseException):
        pass

    def ended(*given: object) -> None:
        raise Ended

    for place, name in ((sqlite.SQLite, "_refuse_other_schema"), (snapshots, "write")):
        with monkeypatch.context() as patch, pytest.raises(Ended):
            patch.setattr(place, name, ended)
            if name != "write":
                patch.setattr(sqlite, "SCHEMA", "SELECT 1;")
            opened(tmp_path, fresh())
        code, said = run(tmp_path / "it")
        assert (code, "it contains no learner yet; pass one to create it" in said) == (2, True)
    with opened(tmp_path, fresh()) as learner:
        one_more(learner)
    assert inspect(tmp_path / "it").damage == ()


def test_the_schema_is_created_in_one_transaction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch, pytest.raises(StorageError):
        patch.setattr(sqlite, "SCHEMA", f"{formats.SCHEMA} SELECT nothing FROM nowhere;")
        opened(tmp_path, fresh())
    with sqlite3.connect(tmp_path / "it" / sqlite.JOURNAL) as sql:
        assert sql.execute("SELECT name FROM sqlite_schema").fetchall() == []


def test_an_emptied_journal_is_damaged(tmp_path: Path) -> None:
    found = directory(tmp_path)
    (found / sqlite.JOURNAL).write_bytes(b"")
    assert inspect(found).damage


def test_snapshots_that_are_pruned_meanwhile_are_not_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []
    with opened(tmp_path, fresh(), snapshot_every=2) as learner:

        def damaged(*at: Any) -> list[str]:
            looks.append(learner.status.told)
            for _ in range(6 if len(looks) < 4 else 0):  # both recorded snapshots are pruned
                one_more(learner)
            return found(*at)

        found = inspection._damage
        one_more(learner)
        monkeypatch.setattr(inspection, "_damage", damaged)
        assert inspect(tmp_path / "it").damage == ()
        assert len(looks) == 4


def test_inspect_agrees_with_the_status_of_the_learner(tmp_path: Path) -> None:
    folder = directory(tmp_path)
    found = inspect(folder)
    with DurableLearner(folder) as learner:
        status = learner.status
        assert found.damage == ()
        assert found.status is not None
        assert found.status.spending == status.spending
        assert np.array_equal(found.status.policy.probabilities, status.policy.probabilities)
        while_open = inspect(folder)  # while the learner is open
        assert while_open.damage == ()
    numbers = as_json(found)
    counts = {name: numbers[name] for name in ("asked", "told", "open", "given_up", "event")}
    assert counts == {"asked": 12, "told": 10, "open": 1, "given_up": 1, "event": 10}
    assert (found.growth.events, found.growth.since_snapshot) == (6, 2)
    lines = "\n".join(page(found))
    for words in ("10 told, 1 open, 1 given up", "delay", "hops", "ucpd-practical", "KLBall", "intact: every row"):
        assert words in lines


def test_prices_are_in_units_of_the_loss_for_every_loss_weight(tmp_path: Path) -> None:
    with opened(tmp_path, fresh("ucpd", V=8.0), problem=Named()) as learner:
        assert [one.price for one in learner.status.spending] == [0.0, 0.0]
        learner.challenge("doubtful", fresh("ucpd", V=16.0))
        one_more(learner)
        for one, prices in (
            (learner._state.learner, [3.0, 0.5]),
            (learner._state.entrants["doubtful"].learner, [6.0, 1.0]),
        ):
            one.state = replace(one.state, multipliers=np.array(prices))
        for champion in ("doubtful", "ucpd"):  # twice the loss weight and the multipliers: the same price
            learner.promote(champion)
            delay, energy = learner.status.spending
            assert (delay.price, delay.price_unit) == (1.5, "euros per hop")  # 3/8 · 40/10
            assert (energy.price, energy.price_unit) == (2.5, "euros")  # 0.5/8 · 40
        learner.snapshot()
    assert "1.5 euros per hop" in run(tmp_path / "it")[1]
    with opened(tmp_path / "plain", fresh("ucpd")) as learner:
        assert [one.price_unit for one in learner.status.spending] == ["", ""]


@pytest.mark.parametrize(
    ("loss_unit", "unit", "price_unit"),
    [("euros", "hours", "euros per hour"), ("", "kWh", "per kWh"), ("money", "ms", "money per ms"), ("", "", "")],
)
def test_units_of_prices(loss_unit: str, unit: str, price_unit: str) -> None:
    assert BudgetUnits(("it",), (1.0,), (unit,), 1.0, loss_unit).price_units == (price_unit,)


def test_the_inspect_command(tmp_path: Path) -> None:
    folder, table = directory(tmp_path), tmp_path / "policy.csv"
    code, output = run(folder, "--policy", table)
    assert code == 0, output
    code, output = run(folder, "--json")
    assert (code, json.loads(output)["whole"]) == (0, True)
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    with DurableLearner(folder) as learner:
        assert [float(row["probability"]) for row in rows] == learner.policy.probabilities.tolist()
    assert (rows[0]["layer"], rows[0]["state_name"], rows[0]["action_name"]) == ("0", "s0", "left")
    assert run(tmp_path)[0] == 2
    assert run(folder, "--policy", tmp_path / "policy.txt")[0] == 2


@pytest.mark.parametrize("what", ["journal", "older snapshot", "newer snapshot", "episode", "policy", "event"])
def test_inspect_reports_damage(tmp_path: Path, what: str) -> None:
    folder = directory(tmp_path)
    newest = sorted(folder.glob("snapshot-*"))
    if what == "journal":
        data = bytearray((folder / "journal.sqlite").read_bytes())
        data[4096:8192] = bytes(4096)
        (folder / "journal.sqlite").write_bytes(data)
    elif what.endswith("snapshot"):
        path = newest[what == "newer snapshot"]
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
    else:
        import sqlite3

        change = {
            "episode": "UPDATE episodes SET fate = 'open' WHERE number = 3",
            "policy": "UPDATE arrays SET numbers = zeroblob(112)",
            "event": "UPDATE events SET body = zeroblob(length(body)) WHERE seq = 7",
        }[what]
        with sqlite3.connect(folder / "journal.sqlite") as sql:
            sql.execute(change)
    code, output = run(folder)
    assert (code, "DAMAGED" in output) == (1, True)
    code, output = run(folder, "--json")
    assert (code, json.loads(output)["whole"]) == (1, False)


def test_widths_are_those_of_the_confidence_set() -> None:
    learner = fresh()
    wide = widths_of(learner)
    assert wide is not None
    assert (wide.kind, wide.pairs, wide.free) == ("KLBall", WORLD.space.n_pairs, WORLD.space.n_pairs)
    center = 1 / WORLD.space.expand_to_tuples(WORLD.space.successors_per_pair)
    ball = KLBall(center, np.arange(WORLD.space.n_pairs) / 10)
    wide = widths_of(fresh(confidence=lambda space, N, M: ball))
    single = WORLD.space.successors_per_pair == 1
    bound = (np.arange(WORLD.space.n_pairs) / 10)[~single]
    assert wide is not None
    assert (wide.free, wide.least, wide.median, wide.most) == (single.sum(), bound[0], np.median(bound), bound[-1])
    assert widths_of(fresh("uniform")) is None
