"""Problems in folders: the example runs, and what a folder says is so."""

import os
import re
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tightrope as tr
from tests.problems.folders import edit, fresh_shop, invoke, refused, write
from tightrope import load_problem, solve_cmdp
from tightrope.lab.history import describe_units, in_units
from tightrope.planning.hindsight import best_policy
from tightrope.problems.files import charges, load_with_digest, write_example
from tightrope.problems.files import tables as tables_module


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return fresh_shop(tmp_path, monkeypatch)


# the example


def test_new_writes_an_example_that_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = invoke("new", "my/shop")
    assert code == 0
    assert sorted(out.split()) == [
        f"my/shop/{n}" for n in ("loss.csv", "problem.toml", "technician.csv", "transitions.csv")
    ]
    assert "tightrope run my/shop" in err
    code, out, _ = invoke("run", "my/shop", "--episodes", "20")
    assert code == 0
    assert "shop, replay losses, learners ucpd-practical, ucpd" in out
    assert "technician, of 2 hours" in out
    assert "in euros; violations in hours" in out
    assert Path("runs/shop-ucpd-practical+ucpd-T20-seed0/table.csv").is_file()


def test_new_leaves_what_is_there_alone(shop: Path) -> None:
    edit(shop, "problem.toml", ("n_steps = 7", "n_steps = 9"))
    code, out, err = invoke("new", "shop")
    assert (code, out) == (2, "")
    assert err == "tightrope: shop is there already; choose a name that is not\n"
    assert "n_steps = 9" in (shop / "problem.toml").read_text()


def test_new_where_no_folder_can_be(shop: Path) -> None:
    code, _, err = invoke("new", "shop/problem.toml/inside")
    assert code == 2
    assert "cannot make the folder" in err


def test_new_with_a_name_that_is_not_utf_8(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = invoke("new", os.fsdecode(b"caf\xe9"))
    assert (code, out) == (2, "")
    assert err == "tightrope: b'caf\\xe9' is not UTF-8; choose a name that is\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "name", ["two\nlines", "two\rlines", "tab\tbed", "bell\x07", "{brace}", "héhé", "no\u2028break"]
)
def test_new_with_an_unusual_name_writes_what_can_be_read(tmp_path: Path, name: str) -> None:
    write_example(tmp_path / name)
    assert load_problem(tmp_path / name).name == name
    text = (tmp_path / name / "problem.toml").read_text("utf-8")
    assert tomllib.loads(text)["n_steps"] == 7
    assert (f"tightrope run {tmp_path / name}\n" in text) == name.isprintable()


def test_a_folder_whose_name_is_not_utf_8_has_one_that_is(shop: Path) -> None:
    odd = shop.rename(os.fsdecode(b"caf\xe9"))
    assert load_problem(odd).name == "caf\\xe9"


def test_the_budget_of_the_example_binds(shop: Path) -> None:
    problem = load_problem(shop)
    loss = problem.losses.begin(np.random.default_rng(0)).loss(1)
    free, policy = best_policy(problem.mdp, loss)
    used = problem.use_in_units(problem.constraints.mean @ problem.mdp.occupancy(policy))
    bound = solve_cmdp(problem.mdp, loss, problem.constraints.mean, problem.budgets)
    assert used[0] > problem.use_in_units(problem.budgets)[0] == 2.0
    assert problem.loss_in_units(free, 1.0) == pytest.approx(-452.003, abs=1e-3)
    assert problem.loss_in_units(bound.value, 1.0) == pytest.approx(-367.158, abs=1e-3)


# what a folder says is so


def test_the_example_by_hand(shop: Path) -> None:
    """Every tuple's loss, in euros, hours and probability, straight from the tables."""
    problem = tr.load_problem(shop)
    probability = {
        ("good", "run"): {"good": 0.5, "worn": 0.5},
        ("good", "service"): {"good": 1.0},
        ("worn", "run"): {"worn": 0.4, "broken": 0.6},
        ("worn", "service"): {"good": 0.9, "worn": 0.1},
        ("broken", "stand"): {"broken": 1.0},
        ("broken", "repair"): {"good": 0.8, "broken": 0.2},
    }
    week2 = {"run": {"good": -30, "worn": -20}, "service": {"good": 0, "worn": 0}, "stand": {"broken": 10}}
    week2 |= {"repair": {"broken": 40}}
    hours = {"run": 0, "service": 2, "stand": 0, "repair": 6}
    assert problem.name == "shop"
    assert problem.loss_unit == "euros"
    assert (problem.constraint_names, tuple(problem.constraint_units)) == (("technician",), ("hours",))
    assert problem.space.n_layers == 7
    play = problem.losses.begin(np.random.default_rng(0))
    weeks = [problem.loss_scale * play.loss(t) + problem.loss_offset for t in range(1, 6)]
    np.testing.assert_allclose(weeks[3], weeks[0])  # after the last recorded week, from the beginning
    uses = problem.constraint_scales[0] * problem.constraints.mean[0]
    last = problem.space.n_states - 1
    for j, (s, a, s_next) in enumerate(problem.space.tuples.tolist()):
        state, action = problem.state_name(s).partition(",")[0], problem.action_name(a)
        assert weeks[1][j] == pytest.approx(week2[action][state])
        assert uses[j] == pytest.approx(hours[action])
        if s_next != last:
            to = problem.state_name(s_next).partition(",")[0]
            assert problem.mdp.transitions[j] == probability[state, action][to]


def test_a_table_may_depend_on_everything(shop: Path) -> None:
    """A random start, a terminal state, losses by next_state and step, a default, two constraints in one table."""
    write(
        shop,
        "problem.toml",
        """
        name = "walk"
        n_steps = 2
        start = { a = 0.25, b = 0.75 }
        terminal = ["done"]
        transitions = "moves.csv"
        [loss]
        table = "moves.csv"
        bounds = [1, 9]
        default = 5
        [constraints.left]
        table = "uses.csv"
        bounds = [-1, 1]
        budget = 0.5
        [constraints.right]
        table = "uses.csv"
        bounds = [-4, 2]
        default = 0
        budget = 3
        """,
    )
    moves = "state,action,next_state,step,probability,loss\n"
    for step in (0, 1):
        for state in "ab":
            other = "b" if state == "a" else "a"
            loss = 1 + step + (state == "b")
            moves += f"{state},go,{other},{step},0.6,{loss}\n{state},go,done,{step},0.4,{loss + 5}\n"
    write(shop, "moves.csv", moves)
    write(shop, "uses.csv", "state,action,left,right\na,go,1,2\nb,go,-0.5,-4\n")
    problem = load_problem(shop)
    assert problem.name == "walk"
    assert problem.space.layer_sizes == (1, 2, 3, 1)  # lot; a, b; a, b, done; end
    assert problem.state_names[:3] == ("start", "a, step 0", "b, step 0")
    f = problem.loss_scale * problem.losses.begin(np.random.default_rng(0)).loss(1) + problem.loss_offset
    g = problem.constraint_scales[:, None] * problem.constraints.mean
    by_name = {problem.tuple_name(j): (f[j], *g[:, j]) for j in range(problem.space.n_tuples)}
    expected = {
        "start → go → a, step 0": (0, 0, 0),
        "a, step 0 → go → b, step 1": (1, 1, 2),
        "a, step 0 → go → done, step 1": (6, 1, 2),
        "b, step 0 → go → a, step 1": (2, -0.5, -4),
        "b, step 1 → go → end": (0.6 * 3 + 0.4 * 8, -0.5, -4),
        "done, step 1 → go → end": (0, 0, 0),
    }
    for name, values in expected.items():
        assert by_name[name] == pytest.approx(values, abs=1e-12), name
    assert np.abs(problem.constraints.mean).max(axis=1).sum() <= 1 + 1e-12
    np.testing.assert_allclose(problem.use_in_units(problem.budgets), [0.5, 3])


def test_recorded_constraints_are_drawn_episode_by_episode(shop: Path) -> None:
    hours = (shop / "technician.csv").read_text().splitlines()
    rows = ["episode," + hours[0]]
    rows += [
        f"{t},{line.rpartition(',')[0]},{t * float(line.rpartition(',')[2])}" for t in (1, 2) for line in hours[1:]
    ]
    write(shop, "technician.csv", "\n".join(rows))
    problem = load_problem(shop)
    plain = {0.0, 2.0, 6.0}
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(20):
        drawn = problem.constraint_scales[0] * problem.constraints.sample(rng)[0]
        factor = 2 if drawn.max() > 6.5 else 1
        seen.add(factor)
        assert set(np.round(drawn / factor, 9)) == plain
    assert seen == {1, 2}
    assert problem.constraint_scales[0] * problem.constraints.mean[0].max() == pytest.approx(9)


def test_episodes_are_laid_out_together_as_one_by_one(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two at a time, all at once, and each in a file of its own: the same bits. Rows come in any order; some lack."""
    rng = np.random.default_rng(4)
    pairs = [line.rpartition(",")[0] for line in (shop / "technician.csv").read_text().split()[1:]]
    rows = [(t, pair, round(rng.uniform(-100, 60), 3)) for t in range(1, 8) for pair in pairs if rng.random() < 0.8]
    rng.shuffle(rows)
    heading = "state,action,loss"
    write(shop, "loss.csv", "\n".join([f"episode,{heading}", *(f"{t},{pair},{f}" for t, pair, f in rows)]))
    edit(shop, "problem.toml", ("[-100, 60]", "[-100, 60]\ndefault = 7"))

    def losses(n: int) -> list[bytes]:
        play = load_problem(shop).losses.begin(np.random.default_rng(0))
        return [np.array(play.loss(t)).tobytes() for t in range(1, n + 1)]

    together = losses(7)
    monkeypatch.setattr(charges, "AT_ONCE", 2 * len(load_problem(shop).space.tuples) + 60)
    assert losses(7) == together
    for t in range(1, 8):
        write(shop, "loss.csv", "\n".join([heading, *(f"{pair},{f}" for at, pair, f in rows if at == t)]))
        assert losses(1) == [together[t - 1]]


# what was read


def test_the_digest_is_of_what_was_read(shop: Path) -> None:
    """Every byte of every table, in a folder below or beside; not what lies there unread, nor where it all lies."""
    Path("shared").mkdir()
    (shop / "below").mkdir()
    (shop / "loss.csv").rename(shop / "below" / "loss.csv")
    (shop / "technician.csv").rename("shared/technician.csv")
    edit(shop, "problem.toml", ('"loss.csv"', '"below/loss.csv"'), ('"technician.csv"', '"../shared/technician.csv"'))
    problem, plain = load_with_digest(shop)
    assert problem.name == "shop"
    assert load_with_digest(shop)[1] == plain == load_with_digest(shop, losses="drifting")[1]
    write(shop, "notes.txt", "nobody reads this")
    (shop / "below" / "old.csv").touch()
    assert load_with_digest(shop.absolute())[1] == plain
    Path("else").mkdir()
    shutil.copytree("shop", "else/where")
    shutil.copytree("shared", "else/shared")
    assert load_with_digest("else/where")[1] == plain
    seen = {plain}
    for name in ("problem.toml", "transitions.csv", "below/loss.csv", "../shared/technician.csv"):
        (shop / name).write_bytes((shop / name).read_bytes() + b"\n")
        seen.add(load_with_digest(shop)[1])
    assert len(seen) == 5


def test_bytes_that_move_from_one_table_to_the_next_are_a_change(shop: Path) -> None:
    loss, uses = (shop / "loss.csv").read_text(), (shop / "technician.csv").read_text()
    digests = set()
    for k in range(3):
        write(shop, "loss.csv", loss + "\n" * k)
        write(shop, "technician.csv", "\n" * (2 - k) + uses)
        digests.add(load_with_digest(shop)[1])
    assert len(digests) == 3


def test_losses_may_be_chosen(shop: Path) -> None:
    assert load_problem(shop).losses.name == "replay"
    assert load_problem(shop, losses="drifting").losses.name == "drifting"
    edit(shop, "problem.toml", ('unit = "euros"', 'unit = "euros"\nsequence = { name = "switching", period = 7 }'))
    assert repr(load_problem(shop).losses) == "Switching(3 scenarios, period=7, phases=3)"
    code, out, _ = invoke("run", "shop", "--episodes", "5", "--losses", "bursts")
    assert code == 0
    assert "shop, bursts losses" in out


def test_noise_may_be_chosen(shop: Path) -> None:
    edit(shop, "problem.toml", ('start = "good"', 'start = "good"\nnoise = { name = "scaled", spread = 0.5 }'))
    problem = load_problem(shop)
    assert problem.constraint_scales[0] == pytest.approx(9)  # 6 hours, and half as much again
    assert not np.array_equal(problem.constraints.sample(np.random.default_rng(0)), problem.constraints.mean)
    quiet = load_problem(shop, noise="none")  # whatever the folder says
    np.testing.assert_array_equal(quiet.constraints.sample(np.random.default_rng(0)), quiet.constraints.mean)
    with pytest.raises(tr.InvalidInputError, match=r"^there is no noise 'loud'"):
        load_problem(shop, noise="loud")


def test_unreachable_states_are_dropped_when_that_is_allowed(shop: Path) -> None:
    plain = load_problem(shop)
    edit(shop, "transitions.csv", ("worn,run,worn,0.4", "attic,stand,attic,1\nworn,run,worn,0.4"))
    edit(shop, "problem.toml", ('start = "good"', 'start = "good"\nallow_unreachable = true'))
    assert load_problem(shop).space.layer_sizes == plain.space.layer_sizes


def test_defaults_fill_what_a_table_leaves_out(shop: Path) -> None:
    edit(shop, "technician.csv", ("worn,service,2\n", ""), ("broken,repair,6\n", ""))
    edit(shop, "problem.toml", ("budget = 2 ", "default = 7\nbudget = 2 "))
    problem = load_problem(shop)
    uses = problem.constraint_scales[0] * problem.constraints.mean[0]
    by_name = {problem.tuple_name(j): float(uses[j]) for j in range(problem.space.n_tuples)}
    assert by_name["worn, step 1 → service → good, step 2"] == pytest.approx(7)
    assert by_name["good, step 1 → service → good, step 2"] == pytest.approx(2)
    assert problem.constraint_scales[0] == pytest.approx(7)  # the most that a move can use


def test_a_row_of_probability_0_counts_as_absent(shop: Path) -> None:
    plain = load_problem(shop)
    edit(shop, "transitions.csv", ("good,service,good,1\n", "good,service,good,1\ngood,service,attic,0\n"))
    assert load_problem(shop).space.layer_sizes == plain.space.layer_sizes


def n_laws(folder: Path) -> int:
    """How many laws there are to learn."""
    ties = load_problem(folder).ties
    assert ties is not None
    return len(np.unique(ties.law[ties.space.successors_per_pair > 1]))


def alike(folder: Path) -> list[str]:
    """The rows of the example, but servicing succeeds as often as repairing does."""
    return (folder / "transitions.csv").read_text().replace("0.9", "0.8").replace("0.1", "0.2").split()


def name_outcomes(folder: Path, **names: str) -> None:
    """A column outcome, empty but for the lines given."""
    rows = alike(folder)
    outcome = ["outcome"] + [names.get(f"line_{i}", "") for i in range(2, len(rows) + 1)]
    write(folder, "transitions.csv", "\n".join(f"{row},{cell}" for row, cell in zip(rows, outcome, strict=True)))


def test_what_does_not_depend_on_the_step_is_tied(shop: Path) -> None:
    assert n_laws(shop) == 4


def test_rows_of_one_outcome_share_a_law(shop: Path) -> None:
    name_outcomes(shop, line_7="fixed", line_8="not", line_10="fixed", line_11="not")
    assert n_laws(shop) == 3


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ({"line_11": ""}, "state 'worn', action 'service' (line 7) and state 'broken', action 'repair' (line 10) are"),
        ({"line_8": "fixed"}, "state 'worn', action 'service' (line 7): two of its successors are tied"),
        (
            {"line_2": "not", "line_3": "fixed"},
            "state 'good', action 'run' (line 3) are tied, but their probabilities are 0.8 and 0.5",
        ),
    ],
)
def test_outcomes_that_cannot_be_the_same(shop: Path, names: dict[str, str], words: str) -> None:
    name_outcomes(shop, **{"line_7": "fixed", "line_8": "not", "line_10": "fixed", "line_11": "not"} | names)
    error = refused(shop)
    assert error.startswith("tightrope: shop/transitions.csv, column 5 (outcome): ")
    assert words in error


def test_laws_may_be_shared_between_steps(shop: Path) -> None:
    """Rows for every step, which are nevertheless the same outcomes."""
    head, *rows = alike(shop)
    edit(shop, "problem.toml", ("n_steps = 7", "n_steps = 7\nallow_unreachable = true"))
    lines = [f"{row},{k},{row.replace(',', ' ')}" for k in range(7) for row in rows]
    write(shop, "transitions.csv", "\n".join([f"{head},step,outcome", *lines]))
    assert n_laws(shop) == 4
    write(shop, "transitions.csv", "\n".join([f"{head},step", *(line.rsplit(",", 1)[0] for line in lines)]))
    assert load_problem(shop).ties is None


def test_a_start_with_six_digits_is_near_enough(shop: Path) -> None:
    edit(shop, "problem.toml", ('start = "good"', "start = { good = 0.333333, worn = 0.666666 }"))
    problem = load_problem(shop)
    assert problem.mdp.transitions[:2] == pytest.approx([1 / 3, 2 / 3], abs=1e-6)


def test_no_constraints_at_all(shop: Path) -> None:
    text = (shop / "problem.toml").read_text().partition("[constraints.technician]")[0]
    write(shop, "problem.toml", text)
    problem = load_problem(shop)
    assert problem.budgets.shape == (0,)
    assert invoke("run", "shop", "--episodes", "5")[0] == 0


def test_probabilities_with_six_digits_are_near_enough(shop: Path) -> None:
    edit(shop, "transitions.csv", ("good,run,good,0.5\n", "good,run,good,0.499999\n"))
    P = load_problem(shop).mdp.transitions
    assert P[0] == pytest.approx(0.499999 / 0.999999, abs=1e-12)


@pytest.mark.parametrize("name", ["transitions.csv", "loss.csv", "technician.csv", "problem.toml"])
@pytest.mark.parametrize(
    "rewrite",
    [
        lambda text: "\ufeff" + text,
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text + "\n\n",
        lambda text: text if "#" in text else text.replace(",", " , "),
        lambda text: text if "#" in text else re.sub("(?m)^(.*?),", r'"\1",', text),
    ],
    ids=["byte-order mark", "CRLF", "blank lines", "spaces", "quotes"],
)
def test_what_spreadsheets_and_editors_do_is_fine(shop: Path, name: str, rewrite: Callable[[str], str]) -> None:
    plain = load_problem(shop)
    (shop / name).write_bytes(rewrite((shop / name).read_text()).encode())
    again = load_problem(shop)
    np.testing.assert_array_equal(again.mdp.transitions, plain.mdp.transitions)
    np.testing.assert_array_equal(again.constraints.mean, plain.constraints.mean)


def test_parquet_is_as_good_as_csv(shop: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    plain = load_problem(shop)
    for name in ("transitions", "loss", "technician"):
        header, *rows = [line.split(",") for line in (shop / f"{name}.csv").read_text().split()]
        columns: dict[str, list[object]] = {}
        for column, cells in zip(header, zip(*rows, strict=True), strict=True):
            kind: Callable[[str], object] = {"episode": int, "probability": float, "loss": float}.get(column, str)
            columns[column] = [kind(cell) for cell in cells]
        pyarrow.parquet.write_table(pyarrow.table(columns), shop / f"{name}.parquet")
        edit(shop, "problem.toml", (f'"{name}.csv"', f'"{name}.parquet"'))
        (shop / f"{name}.csv").unlink()
    again = load_problem(shop)
    np.testing.assert_array_equal(again.mdp.transitions, plain.mdp.transitions)
    np.testing.assert_array_equal(
        again.losses.begin(np.random.default_rng(0)).loss(2), plain.losses.begin(np.random.default_rng(0)).loss(2)
    )
    flags = pyarrow.table({"state": ["good"], "action": ["run"], "loss": [True]})
    pyarrow.parquet.write_table(flags, shop / "loss.parquet")
    assert "loss.parquet, row 1, column 3 (loss): True where a number should be" in refused(shop)
    write(shop, "loss.parquet", "state,action,loss\n")
    assert "loss.parquet is not a Parquet file" in refused(shop)
    pyarrow.parquet.write_table(
        pyarrow.table({"state": ["good", "nowhere"], "action": ["run", "run"], "loss": [1, 2]}), shop / "loss.parquet"
    )
    assert "loss.parquet, row 2, column 1 (state): there is no state 'nowhere'" in refused(shop)


def test_parquet_that_claims_too_much_is_refused_unread(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few kilobytes can hold a million equal rows, and one text a thousand times."""
    import pyarrow
    import pyarrow.parquet

    edit(shop, "problem.toml", ('"loss.csv"', '"loss.parquet"'))
    rows: dict[str, list[Any]] = {"state": ["good"], "action": ["run"], "loss": [1.0]}

    def written(columns: dict[str, Any]) -> str:
        pyarrow.parquet.write_table(pyarrow.table(columns), shop / "loss.parquet")
        return refused(shop)

    assert "loss.parquet has 1000001 rows, and at most 1000000 are read" in written(
        {name: pyarrow.array(column * 1_000_001) for name, column in rows.items()}
    )
    assert "loss.parquet, column 3 (loss): list<element: int64>; a column holds names or numbers" in written(
        {**rows, "loss": [[1]]}
    )
    assert "loss.parquet, column 1 (state): binary; a column" in written({**rows, "state": [b"good"]})
    assert "loss.parquet has no rows" in written({name: pyarrow.array([], "string") for name in rows})
    assert "unknown column 'lost'" in written({**rows, "lost": [1]})
    assert "loss.parquet, row 1, column 1 (state): the cell is empty" in written({**rows, "state": [None]})
    long = "x" * 100_000
    text = written({"state": [long] * 5000, "action": ["run"] * 5000, "loss": [1.0] * 5000})
    assert f"there is no state '{long[:100]}" in text
    assert len(text) < 1000
    cells = tables_module._cells(pyarrow.chunked_array([pyarrow.array([long, None, long]).dictionary_encode()]))
    assert cells[0] is cells[2]
    assert cells[1] is None


def test_parquet_without_its_package(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    write(shop, "loss.parquet", "")
    edit(shop, "problem.toml", ('"loss.csv"', '"loss.parquet"'))
    assert "pip install 'tightrope[parquet]'" in refused(shop)


def test_results_come_back_in_the_units_of_the_files(shop: Path) -> None:
    """The same problem in euros and hours, and in cents and minutes."""
    euros = load_problem(shop)
    in_euros = in_units(euros, tr.run(euros, episodes=30))
    edit(shop, "problem.toml", ("[-100, 60]", "[-10000, 6000]"), ("budget = 2 ", "budget = 120 "))
    for name, factor in (("loss.csv", 100), ("technician.csv", 60)):
        header, *rows = (shop / name).read_text().split()
        scaled = [f"{row.rpartition(',')[0]},{factor * float(row.rpartition(',')[2])}" for row in rows]
        write(shop, name, "\n".join([header, *scaled]))
    cents = load_problem(shop)
    in_cents = in_units(cents, tr.run(cents, episodes=30))
    for column in ("loss", "hindsight", "regret"):
        np.testing.assert_allclose(in_cents[column], 100 * in_euros[column], rtol=1e-6, atol=1e-6)
    for column in ("violation", "strong_violation"):
        np.testing.assert_allclose(in_cents[column], 60 * in_euros[column], rtol=1e-6, atol=1e-6)


def test_a_loss_in_units_grows_with_every_episode(shop: Path) -> None:
    """The best week within the budget, -367.158 euros, over and over."""
    problem = load_problem(shop, losses="fixed")
    history = in_units(problem, tr.run(problem, episodes=30))
    np.testing.assert_allclose(history["hindsight"], -367.1584 * history["episode"], rtol=1e-6)
    np.testing.assert_allclose(history["loss"] - history["hindsight"], history["regret"], atol=1e-6)


def test_budgets_with_different_scales_have_no_common_unit(shop: Path) -> None:
    write(shop, "walks.csv", (shop / "technician.csv").read_text().replace("hours", "walks"))
    edit(
        shop, "problem.toml", ("budget = 2", 'budget = 2 # hours\n[constraints.walks]\ntable = "walks.csv"\nbudget = 9')
    )
    edit(shop, "walks.csv", ("broken,repair,6", "broken,repair,9"))
    problem = load_problem(shop)
    raw = tr.run(problem, episodes=5, regret="never")
    np.testing.assert_array_equal(in_units(problem, raw)["violation"], raw["violation"])
    assert "differ" in describe_units(problem)
