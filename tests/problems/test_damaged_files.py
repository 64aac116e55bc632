"""Every kind of damage to a problem's folder is one line that a person can act on, and exit code 2."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.problems.folders import edit, fresh_shop, invoke, refused, rewrite, write
from tightrope import InvalidInputError, load_problem, unroll
from tightrope.problems.files import charges, dynamics, reading, tables
from tightrope.problems.layout import Layout

Damage = Callable[[Path], object]

TOML, MOVES, LOSS, USES = "problem.toml", "transitions.csv", "loss.csv", "technician.csv"


def changed(name: str, *changes: str) -> Damage:
    """Old text, new text, old text, …"""
    return lambda folder: edit(folder, name, *zip(changes[::2], changes[1::2], strict=True))


def replaced(name: str, text: str | bytes) -> Damage:
    return lambda folder: (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)


def removed(name: str) -> Damage:
    return lambda folder: (folder / name).unlink()


def pipe(name: str) -> Damage:
    """Nobody will ever write to it."""
    return together(removed(name), lambda folder: os.mkfifo(folder / name))


def linked(name: str, to: str) -> Damage:
    return together(removed(name), lambda folder: (folder / name).symlink_to(to))


def substituted(name: str, *changes: str) -> Damage:
    """Regular expression, replacement, regular expression, …"""

    def change(text: str) -> str:
        for pattern, replacement in zip(changes[::2], changes[1::2], strict=True):
            assert re.search(pattern, text)
            text = re.sub(pattern, replacement, text)
        return text

    return lambda folder: rewrite(folder, name, change)


def copied(name: str, to: str) -> Damage:
    return lambda folder: write(folder, to, (folder / name).read_text("utf-8"))


def together(*damages: Damage) -> Damage:
    return lambda folder: [damage(folder) for damage in damages]


def with_column(name: str, heading: str, *cells: str) -> Damage:
    """One more column, the last: each row comes once for each of the cells."""

    def change(text: str) -> str:
        head, *rows = text.split()
        return "\n".join([f"{head},{heading}", *(f"{row},{cell}" for row in rows for cell in cells)])

    return lambda folder: rewrite(folder, name, change)


def exclusive(n_steps: int, budget: float) -> Damage:
    """Every decision uses two hours of one of two budgets."""
    return together(
        changed(USES, "good,run,0", "good,run,2", "good,service,2", "good,service,0", "worn,run,0", "worn,run,2"),
        changed(USES, "worn,service,2", "worn,service,0", "broken,repair,6", "broken,repair,2"),
        copied(USES, "idle.csv"),
        substituted("idle.csv", "(?m),2$", ",two", "(?m),0$", ",2", "(?m),two$", ",0"),
        changed(TOML, "budget = 2 ", f'budget = {budget}\n[constraints.hours]\ntable="idle.csv"\nbudget={budget} '),
        changed(TOML, "n_steps = 7", f"n_steps = {n_steps}"),
    )


DAMAGES: dict[str, tuple[Damage, str]] = {
    # the declaration
    "no declaration": (removed(TOML), "shop has no problem.toml"),
    "bad TOML": (
        changed(TOML, "n_steps = 7", "n_steps = "),
        "problem.toml is not valid TOML: Invalid value (at line 10",
    ),
    "empty declaration": (replaced(TOML, ""), "problem.toml: there is no 'n_steps'"),
    "unknown key": (
        changed(TOML, "n_steps = 7", "n_step = 7"),
        "problem.toml, line 10: a problem has no key 'n_step'; did you mean 'n_steps'?",
    ),
    "unknown key in a table": (
        changed(TOML, "bounds = [", "bound = ["),
        "problem.toml, line 17: [loss] has no key 'bound'; did you mean 'bounds'?",
    ),
    "missing key": (changed(TOML, 'start = "good"', ""), "problem.toml: there is no 'start'"),
    "text for a number": (
        changed(TOML, "n_steps = 7", 'n_steps = "7"'),
        "line 10: n_steps: expected a whole number, not text",
    ),
    "negative n_steps": (
        changed(TOML, "n_steps = 7", "n_steps = -7"),
        "line 10: n_steps: expected a whole number >= 1",
    ),
    "enormous n_steps": (
        changed(TOML, "n_steps = 7", "n_steps = 1000000"),
        "line 10: 1000000 steps, and an episode has at most 10000; use longer steps",
    ),
    "n_steps of thousands of digits": (
        changed(TOML, "n_steps = 7", f"n_steps = {'7' * 5000}"),
        "problem.toml is not valid TOML: Exceeds the limit (4300 digits)",
    ),
    "n_steps of hundreds of digits": (
        changed(TOML, "n_steps = 7", f"n_steps = {'7' * 400}"),
        "problem.toml, line 10: the number in n_steps is too large",
    ),
    "brackets without end": (
        replaced(TOML, "n_steps = " + "[" * 3000),
        "problem.toml: brackets are nested too deeply",
    ),
    "braces without end": (
        replaced(TOML, "n_steps = " + "{ a = " * 3000),
        "problem.toml: brackets are nested too deeply",
    ),
    "dots without end": (
        changed(TOML, "n_steps = 7", "n_steps = 7\n" + "a . 'b'." * 60_000 + "c = 1"),
        "problem.toml, line 11: a key with more than 50 dots; none has more than three",
    ),
    "name of a file with a null character": (
        changed(TOML, '"loss.csv"', '"loss\\u0000.csv"'),
        "shop/loss\\x00.csv is not a valid file name",
    ),
    "name of a file that is too long": (
        changed(TOML, '"loss.csv"', f'"{"loss" * 100}.csv"'),
        "loss.csv cannot be read: File name too long",
    ),
    "file below a file": (
        changed(TOML, '"loss.csv"', '"technician.csv/loss.csv"'),
        "problem.toml, line 15: shop has no file 'technician.csv/loss.csv'",
    ),
    # what is no file
    "pipe for a declaration": (pipe(TOML), "shop/problem.toml is a pipe, not a file"),
    "pipe for a table": (pipe(LOSS), "shop/loss.csv is a pipe, not a file"),
    "device for a declaration": (linked(TOML, "/dev/zero"), "shop/problem.toml is a device, not a file"),
    "device for a table": (linked(USES, "/dev/zero"), "shop/technician.csv is a device, not a file"),
    "folder for a table": (changed(TOML, '"loss.csv"', '".."'), "shop/.. is a folder, not a file"),
    "link to itself": (linked(MOVES, MOVES), "shop/transitions.csv cannot be read: Too many levels of symbolic links"),
    "unknown start": (
        changed(TOML, 'start = "good"', 'start = "goood"'),
        "line 11: start is a state that is in no row, 'goood'; did you mean 'good'?",
    ),
    "start that sums to less": (
        changed(TOML, 'start = "good"', "start = { good = 0.5, worn = 0.4 }"),
        "line 11: the probabilities of start are {'good': 0.5, 'worn': 0.4}; they should sum to 1",
    ),
    "unknown terminal state": (
        changed(TOML, 'start = "good"', 'start = "good"\nterminal = ["brokn"]'),
        "line 12: terminal is a state that is in no row, 'brokn'; did you mean 'broken'?",
    ),
    "missing file": (
        removed(LOSS),
        "problem.toml, line 15: shop has no file 'loss.csv' (known: technician.csv, transitions.csv)",
    ),
    "budget without a constraint": (
        changed(TOML, 'table = "technician.csv"', ""),
        "problem.toml, line 19: [constraints.technician] has neither table nor form; it needs one",
    ),
    "constraint without a budget": (
        changed(TOML, "budget = 2 ", "# budget = 2 "),
        "problem.toml, line 19: constraints.technician: there is no 'budget'",
    ),
    "infeasible budget": (
        changed(USES, "good,run,0", "good,run,3"),
        "problem.toml, line 23: a budget of 2 hours for 'technician' cannot be met: every policy uses at least",
    ),
    "budgets infeasible together": (
        exclusive(7, 6.5),
        "problem.toml, line 19: each budget can be met, but not all of them together",
    ),
    "budgets infeasible together in a large problem": (
        exclusive(1200, 1190),
        "problem.toml, line 19: each budget can be met, but not all of them together",
    ),
    "budget that cannot bind": (
        changed(TOML, "budget = 2 ", "budget = 43 "),
        "line 23: a budget of 43 hours for 'technician', but 7 steps use 42 at most: it can never bind",
    ),
    "budget far below nothing": (
        changed(TOML, "budget = 2 ", "budget = -43 "),
        "line 23: a budget of -43 hours for 'technician', but 7 steps use -42 at least: it cannot be met",
    ),
    "budget that is no number": (
        changed(TOML, "budget = 2 ", "budget = nan "),
        "problem.toml, line 23: nan in constraints.technician.budget; expected a finite number",
    ),
    "endless bounds": (
        changed(TOML, "[-100, 60]", "[-100, inf]"),
        "line 17: inf in loss.bounds; expected a finite number",
    ),
    "nothing to limit": (
        changed(
            USES,
            "good,service,2\nworn,run,0\nworn,service,2\nbroken,stand,0\nbroken,repair,6",
            "good,service,0\nworn,run,0\nworn,service,0\nbroken,stand,0\nbroken,repair,0",
        ),
        "technician.csv: hours is 0 everywhere",
    ),
    "unknown sequence": (
        changed(TOML, 'unit = "euros"', 'sequence = "swiching"'),
        "problem.toml, line 16: there is no loss sequence 'swiching'; did you mean 'switching'?",
    ),
    "unknown option of a sequence": (
        changed(TOML, 'unit = "euros"', 'sequence = { name = "switching", preiod = 3 }'),
        "problem.toml, line 16: the loss sequence 'switching' has no option 'preiod'; did you mean 'period'?",
    ),
    "unknown noise": (
        changed(TOML, 'start = "good"', 'start = "good"\nnoise = "loud"'),
        "problem.toml, line 12: there is no noise 'loud'",
    ),
    "bounds the wrong way round": (
        changed(TOML, "[-100, 60]", "[60, -100]"),
        "problem.toml, line 17: bounds are 60 and -100; the second should be larger",
    ),
    "one bound": (changed(TOML, "[-100, 60]", "[-100]"), "line 17: loss.bounds: expected a list of length 2, not 1"),
    "default out of bounds": (
        changed(TOML, "bounds = [-100, 60]", "bounds = [-100, 60]\ndefault = 61"),
        "problem.toml, line 18: 61 lies outside the bounds",
    ),
    # tables as such
    "empty file": (replaced(MOVES, ""), "shop/transitions.csv is empty; its first line should name its columns"),
    "heading alone": (replaced(LOSS, "state,action,loss\n"), "shop/loss.csv has a heading but no rows"),
    "wrong encoding": (
        replaced(USES, "state,action,hours\ngood,run,0\ngood,entretien général,2\n".encode("latin-1")),
        "shop/technician.csv, line 3: byte 0xe9 is not UTF-8",
    ),
    "UTF-16": (
        replaced(USES, "state,action,hours\n".encode("utf-16")),
        "technician.csv, line 1: byte 0xff is not UTF-8",
    ),
    "semicolons": (
        substituted(USES, ",", ";"),
        "shop/technician.csv, line 1: columns are separated by commas, not 'state;action;hours'",
    ),
    "missing column": (
        changed(MOVES, "state,action,next_state,probability", "state,action,next_state,chance"),
        "shop/transitions.csv, line 1, column 4: unknown column 'chance'",
    ),
    "missing value column": (
        changed(LOSS, "action,loss", "action,losses"),
        "shop/loss.csv, line 1: there is no column 'loss'",
    ),
    "extra column": (
        with_column(USES, "stpe", "1"),
        "shop/technician.csv, line 1, column 4: unknown column 'stpe'; did you mean 'step'?",
    ),
    "column twice": (
        changed(MOVES, "state,action,next_state,probability", "state,action,state,probability"),
        "shop/transitions.csv, line 1, column 3: the name 'state' occurs twice",
    ),
    "short row": (
        changed(MOVES, "good,service,good,1", "good,service,good"),
        "line 4: 3 cells where the heading has 4",
    ),
    "long row": (changed(USES, "good,service,2", "good,service,2,5"), "line 3: 4 cells where the heading has 3"),
    "open quote": (
        changed(USES, "good,service,2", 'good,"service,2'),
        "technician.csv, line 7: unexpected end of data",
    ),
    "empty cell": (
        changed(MOVES, "good,service,good,1", "good,,good,1"),
        "line 4, column 2 (action): the cell is empty",
    ),
    "empty number": (
        changed(USES, "good,service,2", "good,service,"),
        "technician.csv, line 3, column 3 (hours): empty where a number should be",
    ),
    "text in a number": (
        changed(USES, "good,service,2", "good,service,two"),
        "technician.csv, line 3, column 3 (hours): two where a number should be",
    ),
    "NaN": (
        changed(LOSS, "2,worn,run,-20", "2,worn,run,nan"),
        "loss.csv, line 10, column 4 (loss): nan where a number",
    ),
    "text in a number, after a blank line": (
        changed(USES, "good,run,0\ngood,service,2", 'good,run,0\n\n"good",service,two'),
        "technician.csv, line 4, column 3 (hours): two where a number should be",
    ),
    "absurdly large": (
        changed(LOSS, "2,worn,run,-20", "2,worn,run,-1e300"),
        "loss.csv, line 10, column 4 (loss): -1e+300 is too large; choose a larger unit",
    ),
    "infinity": (changed(LOSS, "2,worn,run,-20", "2,worn,run,inf"), "line 10, column 4 (loss): inf where a number"),
    # transitions
    "probability above one": (
        changed(MOVES, "good,run,good,0.5", "good,run,good,1.2"),
        "shop/transitions.csv, line 2, column 4 (probability): 1.2 lies outside 0 to 1",
    ),
    "negative probability": (
        changed(MOVES, "worn,run,worn,0.4", "worn,run,worn,-0.4"),
        "line 5, column 4 (probability)",
    ),
    "probabilities that do not sum to one": (
        changed(MOVES, "worn,service,worn,0.1", "worn,service,worn,0.2"),
        "line 7, column 4 (probability): the probabilities of state 'worn', action 'service' sum to 1.1 over 2 rows",
    ),
    "row twice": (
        changed(MOVES, "worn,run,worn,0.4", "worn,run,broken,0.4"),
        "line 6: the same state, action and next_state as in line 5",
    ),
    "state that leads nowhere": (
        changed(MOVES, "good,run,worn,0.5", "good,run,wornn,0.5"),
        "line 3, column 3 (next_state): state 'wornn' can be reached at step 1, but no row starts there; add one",
    ),
    "unreachable state": (
        changed(MOVES, "broken,stand,broken,1", "broken,stand,broken,1\nattic,stand,good,1"),
        "line 10, column 1 (state): state 'attic' cannot be reached from the start in 7 steps",
    ),
    "rows of a terminal state": (
        changed(TOML, 'start = "good"', 'start = "good"\nterminal = ["broken"]'),
        "transitions.csv, line 9, column 1 (state): a row starts in state 'broken', which is terminal "
        "(shop/problem.toml, line 12)",
    ),
    "start that is over": (
        together(
            changed(MOVES, "broken,stand,broken,1", "broken,stand,gone,1"),
            changed(TOML, 'start = "good"', 'start = { good = 0.5, gone = 0.5 }\nterminal = ["gone"]'),
        ),
        "problem.toml, line 11: the start state 'gone' is terminal",
    ),
    "step beyond the last": (
        with_column(MOVES, "step", "7"),
        "line 2, column 5 (step): step 7, but with n_steps = 7 the last step is 6",
    ),
    "step that is missing": (
        with_column(MOVES, "step", "0"),
        "state 'good' can be reached at step 1, but no row starts there at step 1",
    ),
    "half a step": (
        with_column(MOVES, "step", "0.5"),
        "line 2, column 5 (step): 0.5 is not a whole number of at least 0",
    ),
    # what is charged
    "unknown state": (
        changed(LOSS, "2,worn,run,-20", "2,wron,run,-20"),
        "shop/loss.csv, line 10, column 2 (state): there is no state 'wron'; did you mean 'worn'?",
    ),
    "unknown action": (
        changed(USES, "good,service,2", "good,servce,2"),
        "line 3, column 2 (action): there is no action 'servce'; did you mean 'service'?",
    ),
    "action that the state has not": (
        changed(USES, "good,service,2", "good,repair,2"),
        "technician.csv, line 3: state 'good', action 'repair' cannot happen; transitions.csv has no such row",
    ),
    "missing row": (
        changed(USES, "worn,service,2\n", ""),
        "technician.csv: there is no row for state 'worn', action 'service'; add one, or set default in "
        "[constraints.technician] of problem.toml",
    ),
    "missing row of an episode": (
        changed(LOSS, "2,worn,service,0\n", ""),
        "loss.csv: there is no row for state 'worn', action 'service' in episode 2; add one",
    ),
    "value twice": (
        changed(USES, "worn,run,0", "good,service,0"),
        "technician.csv, line 4: a second value for state 'good', action 'service' (the first is in line 3)",
    ),
    "loss out of its bounds": (
        changed(LOSS, "1,broken,repair,60", "1,broken,repair,61"),
        "loss.csv, line 7, column 4 (loss): 61 lies outside the bounds -100 to 60 (shop/problem.toml, line 17)",
    ),
    "gap between episodes": (
        substituted(LOSS, "(?m)^2,", "4,"),
        "loss.csv, line 8, column 1 (episode): episode 4, but there is no episode 2",
    ),
    "episode beyond counting": (
        changed(LOSS, "3,good,run,-60", "1e90,good,run,-60"),
        "loss.csv, line 14, column 1 (episode): 1e+90 is not a whole number of at least 1",
    ),
    "episode zero": (
        substituted(LOSS, "(?m)^1,", "0,"),
        "loss.csv, line 2, column 1 (episode): 0 is not a whole number of at least 1",
    ),
    "noise on a recorded constraint": (
        together(
            with_column(USES, "episode", "1", "2"),
            changed(TOML, 'start = "good"', 'start = "good"\nnoise = "scaled"'),
        ),
        "problem.toml, line 12: a constraint has an episode column already",
    ),
    "constraints recorded for different times": (
        together(
            copied(USES, "more.csv"),
            with_column(USES, "episode", "1", "2", "3"),
            with_column("more.csv", "episode", "1", "2"),
            changed(TOML, "budget = 2 ", 'budget = 2\n[constraints.hours]\ntable="more.csv"\nbudget=3 '),
        ),
        "problem.toml, line 19: the tables of the constraints have [2, 3] episodes",
    ),
}


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return fresh_shop(tmp_path, monkeypatch)


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_one_line_and_exit_code_2(shop: Path, damage: str) -> None:
    spoil, words = DAMAGES[damage]
    spoil(shop)
    assert words in refused(shop)


@pytest.mark.parametrize("path", ["nowhere/shop", "shop/missing"])
def test_no_folder(shop: Path, path: str) -> None:
    code, _, err = invoke("run", path)
    assert (code, err) == (2, f"tightrope: there is no folder {path}\n")


def test_the_declaration_of_a_folder_stands_for_the_folder(shop: Path) -> None:
    assert invoke("run", "shop/problem.toml", "--episodes", "3")[0] == 0


def test_a_name_of_ours_comes_before_a_folder(shop: Path) -> None:
    shop.rename("media-streaming")
    assert "media-streaming, fixed losses" in invoke("run", "media-streaming", "--episodes", "3")[1]
    assert "media-streaming, replay losses" in invoke("run", "./media-streaming", "--episodes", "4")[1]


def test_long_lists_of_names_are_cut_short(shop: Path) -> None:
    names = [f"room{i}" for i in range(40)]
    rows = [f"{a},go,{b},1" for a, b in zip(names, [*names[1:], names[0]], strict=True)]
    write(shop, MOVES, "\n".join(["state,action,next_state,probability", *rows]))
    edit(shop, TOML, ("n_steps = 7", "n_steps = 40"), ('start = "good"', 'start = "room0"'))
    write(shop, LOSS, "state,action,loss\nroom77,go,1\n")
    message = refused(shop)
    assert "there is no state 'room77'; did you mean 'room" in message
    assert "known" not in message


def deny(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file of this name can be read."""
    really = os.open

    def denied(path: str | Path, flags: int, mode: int = 0o777) -> int:
        if Path(path).name == name:
            raise PermissionError(13, "Permission denied")
        return really(path, flags, mode)

    monkeypatch.setattr(os, "open", denied)


@pytest.mark.parametrize("name", [TOML, MOVES, USES])
def test_an_unreadable_file(shop: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    deny(name, monkeypatch)
    assert f"shop/{name} cannot be read: Permission denied" in refused(shop)


def test_a_missing_file_beside_a_name_that_is_not_utf_8(shop: Path) -> None:
    (shop / LOSS).unlink()
    (shop / os.fsdecode(b"caf\xe9.csv")).touch()
    assert says(shop).endswith("shop has no file 'loss.csv' (known: technician.csv, transitions.csv)")


def test_a_missing_file_beside_many_others(shop: Path) -> None:
    for i in range(40):
        (shop / f"old{i}.csv").touch()
    edit(shop, TOML, ('"loss.csv"', '"los.csv"'))
    assert says(shop) == "shop/problem.toml, line 15: shop has no file 'los.csv'; did you mean 'loss.csv'?"


def test_what_is_not_named_is_not_read(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(shop, "diary.txt", "private")
    deny("diary.txt", monkeypatch)
    assert load_problem(shop).name == "shop"


# too much


def says(folder: Path) -> str:
    """Why a folder is refused, without the command."""
    with pytest.raises(InvalidInputError) as refusal:
        load_problem(folder)
    return str(refusal.value)


def test_a_file_that_is_too_large_is_refused_unread(shop: Path) -> None:
    for name, size, words in (
        (LOSS, 200_000_000, "shop/loss.csv has 200.0 MB, and at most 64 MB are read; leave out rows or columns"),
        (TOML, 2_000_000, "shop/problem.toml has 2.0 MB, and at most 1 MB are read; leave out rows or columns"),
    ):
        os.truncate(shop / name, size)  # with a hole: it takes no room on the disk
        assert says(shop) == words


def test_a_file_that_grows_while_it_is_read(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = (shop / TOML).stat().st_size
    monkeypatch.setattr(os, "fstat", lambda descriptor: os.stat_result((0o100644, *[0] * 9)))
    with pytest.raises(InvalidInputError, match=r"problem\.toml has .* MB"):
        reading.read_regular(shop / TOML, size - 1)
    assert len(reading.read_regular(shop / TOML, size)) == size


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
def test_too_many_lines_or_cells(shop: Path, ends: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exactly as many as are allowed will do; the heading is one, and blank ones count."""
    text = "\n" + (shop / LOSS).read_text()
    (shop / LOSS).write_bytes(text.replace("\n", ends).encode())
    monkeypatch.setattr(tables, "MOST_LINES", 20)
    monkeypatch.setattr(tables, "MOST_CELLS", 19 * 4 + 1)
    load_problem(shop)
    monkeypatch.setattr(tables, "MOST_LINES", 19)
    assert says(shop).startswith("shop/loss.csv has 20 lines, and at most 19 are read; record fewer episodes, or set a")
    monkeypatch.setattr(tables, "MOST_LINES", 20)
    monkeypatch.setattr(tables, "MOST_CELLS", 19 * 4)
    assert says(shop).startswith("shop/loss.csv has 77 cells, and at most 76 are read")


@pytest.mark.parametrize(
    "change",
    [
        together(),
        changed(TOML, 'start = "good"', "start = { good = 0.5, worn = 0.5 }"),
        together(
            substituted(MOVES, "broken,(stand|repair).*\n", ""),
            changed(TOML, 'start = "good"', 'start = "good"\nterminal = ["broken"]'),
            substituted(LOSS, ".,broken.*\n", ""),
            substituted(USES, "broken.*\n", ""),
        ),
        with_column(MOVES, "step", *map(str, range(7))),
        together(changed(MOVES, "good,run,good,0.5", "good,run,good,0", "good,run,worn,0.5", "good,run,worn,1")),
    ],
    ids=["plain", "start by lot", "terminal", "steps", "probability 0"],
)
def test_moves_are_counted_before_they_are_laid_out(
    shop: Path, change: Damage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exactly as many as are allowed will do; one more is refused before anything is laid out."""
    change(shop)
    edit(shop, TOML, ("n_steps = 7", "n_steps = 7\nallow_unreachable = true"))
    laid_out: list[int] = []

    def counted(*rows: Any, **options: Any) -> Layout:
        layout = unroll(*rows, **options)
        laid_out.append(len(layout.row_of_move) + int(layout.waiting[:-1].sum()))
        return layout

    monkeypatch.setattr(dynamics, "unroll", counted)
    load_problem(shop)
    monkeypatch.setattr(dynamics, "MOST_MOVES", laid_out[0])
    load_problem(shop)
    monkeypatch.setattr(dynamics, "MOST_MOVES", laid_out[0] - 1)
    assert f"steps have {laid_out[0]} moves, and at most {laid_out[0] - 1} are possible; lower n_steps" in says(shop)
    assert len(laid_out) == 2


def test_a_long_episode_of_few_moves_is_fine(shop: Path) -> None:
    """A chain of 300 states, met one after the other: 300 moves, not 300 times 300."""
    names = [f"s{i}" for i in range(300)]
    rows = [f"{a},go,{b},1" for a, b in zip(names, [*names[1:], "s0"], strict=True)]
    write(shop, MOVES, "\n".join(["state,action,next_state,probability", *rows]))
    write(shop, LOSS, "state,action,loss\ns0,go,1\n")
    text = (shop / TOML).read_text().partition("[constraints")[0]
    text = text.replace('"good"', '"s0"').replace("= 7", "= 300").replace("bounds", "default = 0\nbounds")
    write(shop, TOML, text)
    assert load_problem(shop).space.n_tuples == 300


def test_too_many_recorded_numbers(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    n_tuples = load_problem(shop).space.n_tuples
    monkeypatch.setattr(charges, "MOST_NUMBERS", 3 * n_tuples)
    load_problem(shop)
    monkeypatch.setattr(charges, "MOST_NUMBERS", 3 * n_tuples - 1)
    assert says(shop) == (
        f"shop/loss.csv: 3 episodes have {3 * n_tuples} numbers in the layout, and at most {3 * n_tuples - 1} fit; "
        "record fewer episodes, or lower n_steps in problem.toml"
    )
    write(shop, LOSS, "state,action,loss\ngood,run,1\n")
    edit(shop, TOML, ("[-100, 60]", "[-100, 60]\ndefault = 0"))
    with_column(USES, "episode", "1", "2")(shop)
    copied(USES, "more.csv")(shop)
    edit(shop, TOML, ("budget = 2 ", 'budget = 2\n[constraints.hours]\ntable="more.csv"\nbudget=3 '))
    assert f"technician.csv: 2 episodes have {4 * n_tuples} numbers in the layout" in says(shop)


@pytest.mark.parametrize(
    ("name", "words"), [("x" * 300, "File name too long"), ("\ud800", r"folder is '\\ud800', which is not a path")]
)
def test_a_name_that_no_folder_can_have_is_said_in_words(name: str, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words) as refusal:
        load_problem(name)
    str(refusal.value).encode()  # it can be shown
