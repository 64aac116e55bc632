"""Forms in a folder: the battery of the documentation, and what is refused."""

import re
from pathlib import Path

import numpy as np
import pytest

from tests.problems.folders import refused
from tightrope import InvalidInputError, load_problem

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "your-own-problem.md").read_text("utf-8")
TOML = next(block for block in re.findall(r"```toml\n(.*?)```", PAGE, flags=re.DOTALL) if "battery" in block)

MOVES = {"charge": 1, "hold": 0, "discharge": -1}
ENERGY = {"charge": 5.0, "hold": 0.0, "discharge": -4.5}
LEVELS, STEPS, DAYS = 14, 24, 400
PAIRS = [(level, action) for level in range(LEVELS) for action in MOVES if 0 <= level + MOVES[action] < LEVELS]


def prices(days: int) -> np.ndarray:
    return np.random.default_rng(5).normal(0.1, 0.1, (days, STEPS)).clip(-0.5, 0.8).round(4)


def battery(folder: Path, days: int = 3, toml: str = TOML) -> Path:
    folder.mkdir()
    (folder / "problem.toml").write_text(toml, "utf-8")
    moves = "".join(f"{level},{action},{level + MOVES[action]},1\n" for level, action in PAIRS)
    (folder / "transitions.csv").write_text(f"state,action,next_state,probability\n{moves}")
    rows = "".join(f"{d + 1},{k},{price}\n" for (d, k), price in np.ndenumerate(prices(days)))
    (folder / "price.csv").write_text(f"episode,step,price\n{rows}")
    return folder


def test_the_battery_takes_30_lines_and_equals_its_384000_rows(tmp_path: Path) -> None:
    assert len(TOML.splitlines()) <= 30
    small = load_problem(battery(tmp_path / "small", DAYS))
    rows = [
        f"{d + 1},{k},{level},{action},{price * ENERGY[action]:.17g}\n"
        for (d, k), price in np.ndenumerate(prices(DAYS))
        for level, action in PAIRS
    ]
    assert len(rows) == 384_000
    toml = re.sub(r"\[tables\].*?(?=\[loss\])", "", TOML, flags=re.DOTALL)
    toml = toml.replace('form = "price[episode, step] * energy[action]"', 'table = "loss.csv"')
    toml = toml.replace('form = "wear[action]"', 'table = "wear.csv"')
    folder = battery(tmp_path / "large", 1, toml)
    (folder / "loss.csv").write_text("episode,step,state,action,loss\n" + "".join(rows))
    wear = "".join(f"{level},{action},{5 * (action == 'discharge')}\n" for level, action in PAIRS)
    (folder / "wear.csv").write_text(f"state,action,discharged\n{wear}")
    large = load_problem(folder)
    assert len(small.losses.scenarios) == DAYS  # type: ignore[attr-defined]
    np.testing.assert_allclose(small.losses.scenarios, large.losses.scenarios, atol=1e-12)  # type: ignore[attr-defined]
    np.testing.assert_allclose(small.constraints.mean, large.constraints.mean, atol=1e-12)
    np.testing.assert_allclose(small.budgets, large.budgets)
    assert (small.losses.name, small.loss_unit, small.ties) == (large.losses.name, large.loss_unit, large.ties)


def test_tables_may_be_columns_of_one_file_lists_and_names(tmp_path: Path) -> None:
    toml = TOML.replace('price = "price.csv"', 'price = { file = "market.csv", column = "eur" }\nload = "market.csv"')
    toml = toml.replace(
        'energy[action]"', 'energy[action] + 0.01 * load[step, episode] + peak[step] * full[next_state]"'
    )
    peak, full = [0] * 20 + [1] * 4, ", ".join(f'"{level}" = {level / 100}' for level in range(LEVELS))
    toml = toml.replace("[loss]", f"peak = {peak}\nfull = {{ {full} }}\n[loss]")
    folder = battery(tmp_path / "b", toml=toml)
    price = prices(3)
    rows = "".join(f"{d + 1},{k},{p},{d + k}\n" for (d, k), p in np.ndenumerate(price))
    (folder / "market.csv").write_text(f"episode,step,eur,load\n{rows}")
    problem = load_problem(folder)
    scenarios = problem.losses.scenarios * problem.loss_scale + problem.loss_offset  # type: ignore[attr-defined]
    checked = 0
    for j, (s, a, _) in enumerate(problem.space.tuples.tolist()):
        level, step = map(int, re.fullmatch(r"(\d+), step (\d+)", problem.state_name(s)).groups())  # type: ignore[union-attr]
        action = problem.action_name(a)
        then = level + MOVES[action]
        for day in range(3):
            expected = price[day, step] * ENERGY[action] + 0.01 * (day + step) + peak[step] * then / 100
            assert scenarios[day, j] == pytest.approx(expected)
            checked += 1
    assert checked == 3 * problem.space.n_tuples


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("* energy[action]", "energy[action]", "problem.toml, line 12: the form .*, column 22: 'energy' where"),
        ("* energy[action]", "* energi[action]", r"line 12: \[tables\] has no table 'energi'; did you mean 'energy'"),
        ("* energy[action]", "", r"line 8: no form uses the table energy; remove it"),
        ('form = "wear[action]"', "", r"\[constraints.discharged\] has neither table nor form"),
        ('form = "wear[action]"', 'form = "wear[action]"\ntable = "price.csv"', "has both table and form"),
        ("budget = 15", "budget = 15\ndefault = 0", "has a form, which takes no default"),
        (
            "energy[action]",
            "energy[action, state]",
            r"line 8: numbers by name for a table over action, state; numbers by name are",
        ),
        ("charge = 5, hold", "load = 5, hold", r"line 8: there is no action 'load'"),
        ("charge = 5, hold = 0", "charge = 5", r"line 8: energy has no value for action 'hold'; add it"),
        ("charge = 5, hold", "charge = true, hold", "line 8: True where a number should be"),
        ("bounds = [-4, 4]", "bounds = [-1, 1]", r"is -?\d\S+ at state '\d+', action '.*' in episode \d, outside"),
        ("bounds = [-4, 4]", "bounds = [4, -4]", "the second should be larger"),
        ('"price.csv"', '"prices.csv"', "has no file 'prices.csv'"),
        ('"price.csv"', '{ file = "price.csv", colum = "x" }', r"\[tables.price\] has no key 'colum'"),
        ('"price.csv"', "3", "line 7: price is 3; expected a file, numbers by name, or a list of numbers"),
        ('"price.csv"', "[1, 2]", "a list of numbers for a table over episode, step"),
        ('form = "wear[action]"', 'form = "0 * wear[action]"', r"0 \* wear\[action\] is 0 everywhere"),
    ],
)
def test_damage_to_a_form_is_one_line(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert old in TOML
    folder = battery(tmp_path / "b", toml=TOML.replace(old, new, 1))
    with pytest.raises(InvalidInputError, match=words):
        load_problem(folder)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("episode,step,price\n", "episode,price\n", "line 1: there is no column 'step'"),
        ("episode,step,price\n", "episode,step,cost\n", "line 1: there is no column 'price'"),
        ("\n1,0,", "\n1,24,", "line 2, column 2 .step.: step 24, but with n_steps = 24 the last step is 23"),
        ("\n1,1,", "\n1,0,", "line 3: a second value for the same episode, step .the first is in line 2"),
        ("\n3,23,", "\n4,23,", "price has no value for episode 3, step 23; add it"),
        ("\n1,0,", "\n0,0,", "0 is not a whole number of at least 1"),
        ("\n1,0,", "\n1,0,x", "line 2, column 3 .price."),
    ],
)
def test_damage_to_a_table_of_a_form_is_one_line(tmp_path: Path, old: str, new: str, words: str) -> None:
    folder = battery(tmp_path / "b")
    text = (folder / "price.csv").read_text()
    (folder / "price.csv").write_text(text.replace(old, new, 1))
    with pytest.raises(InvalidInputError, match=words):
        load_problem(folder)


def test_a_form_in_a_folder_is_refused_like_any_other_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    battery(tmp_path / "shop", toml=TOML.replace("energy[action]", "energy"))
    monkeypatch.chdir(tmp_path)
    assert "column 30: the axes of energy" in refused(tmp_path / "shop")
