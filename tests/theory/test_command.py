"""`tightrope check`: what it prints where, what it draws, and its exit codes."""

import json
from pathlib import Path

import pytest

import tightrope as tr
from tests.test_cli import invoke
from tightrope import UCPD, LayeredSpace
from tightrope.theory.check import check
from tightrope.theory.page import draw


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_check_accepts_the_name_of_a_problem() -> None:
    code, out, err = invoke("check", "media-streaming", "--episodes", "400")
    assert (code, err) == (0, "")
    assert out.startswith("media-streaming, fixed losses, T = 400 episodes, seed 0\n")
    assert "3 multipliers have a bound   holds  4, whatever the losses" in out
    assert "<- yours" in out and "What to do" not in out


def test_check_accepts_a_folder_also_if_a_budget_cannot_be_met() -> None:
    assert invoke("new", "mine")[0] == 0
    code, out, _ = invoke("check", "mine", "--episodes", "400")
    assert code == 0 and "technician  2 hours" in out and "level=0.0029" in out
    declared = Path("mine/problem.toml")
    declared.write_text(declared.read_text().replace("budget = 2", "budget = -1"))
    code, out, _ = invoke("check", "mine", "--episodes", "400")
    assert code == 1 and "The budget of 'technician' cannot be met: every policy uses 0 hours" in out
    assert invoke("run", "mine", "--episodes", "10")[0] == 2


def test_check_accepts_other_limits() -> None:
    code, out, _ = invoke("check", "edge-cloud", "--episodes", "2", "--budget", "delay=7", "--budget", "energy=3")
    assert code == 1 and "exclude each other" in " ".join(out.split())


@pytest.mark.parametrize("flag", ["--noise", "--constraints"])
@pytest.mark.parametrize("where", ["machine-cycle", "mine"])
def test_check_accepts_other_constraints(flag: str, where: str) -> None:
    """Scaled draws are up to 1.25 times their mean, so multipliers are in units that large; what changes is no law."""
    if where == "mine":
        invoke("new", "mine")
    bounds = {}
    for name in ("none", "scaled"):
        code, out, _ = invoke("check", where, "--episodes", "40", flag, name, "--json")
        told = json.loads(out)
        assert (code, told["noise"], told["drawn"]) == (0, name, True)
        bounds[name] = told["learner_units"]["constants"]["any_losses"]["B"]
    assert bounds["scaled"] == pytest.approx(1.25 * bounds["none"])
    code, out, _ = invoke("check", where, "--episodes", "40", flag, "switching")
    assert code == 1 and out.splitlines()[0].endswith(" losses, switching constraints, T = 40 episodes, seed 0")
    assert "g^t drawn from one law" in out


@pytest.mark.parametrize("name", ["budgets.png", "budgets.SVG"])
def test_check_draws_a_figure(name: str) -> None:
    code, _, err = invoke("check", "machine-cycle", "--episodes", "40", "--figure", name)
    assert (code, err) == (0, f"picture  {name}\n")
    head = Path(name).read_bytes()[:300]
    assert head.startswith(b"\x89PNG") if name.endswith("png") else b"<?xml" in head


@pytest.mark.parametrize("budget", [1.0, 5.0, 6.0, 8.0])
def test_all_text_of_a_figure_is_inside_its_panel(budget: float) -> None:
    figure = draw(check(tr.make("media-streaming", budget=budget), episodes=40))
    (axes,) = figure.axes
    inside = [words for words in axes.texts if words.get_text().startswith(("yours", "one more gains"))]
    assert len(inside) == 2
    for words in inside:
        box = axes.transAxes.inverted().transform(words.get_window_extent())
        assert box.min() >= 0.0 and box.max() <= 1.0


def test_json_with_adaptive_losses() -> None:
    code, out, err = invoke("check", "machine-cycle", "--episodes", "64", "--losses", "chaser", "--json")
    told = json.loads(out)
    assert (code, err) == (0, "playing 64 episodes\n")
    assert told["holds"] and told["windows"] == {"length": 8, "count": 8, "played_by": "ucpd"}
    assert told["level"] == UCPD(LayeredSpace.dense([1, 1], 2), budgets=[0.5], episodes=4).level


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere"], "there is no problem 'nowhere'"),
        (["machine-cycle", "--budget", "3"], "NAME=LIMIT"),
        (["machine-cycle", "--budget", "moves=many"], "NAME=LIMIT"),
        (["machine-cycle", "--budget", "fuel=3"], "no budget 'fuel'"),
        (["machine-cycle", "--budget", "moves=3", "--budget", "moves=2"], "--budget moves is given twice, 3 and 2"),
        (["machine-cycle", "--budget", "moves=7"], "budgets sum to 7"),
        (["machine-cycle", "--figure", "budgets.gif"], ".png or .svg"),
        (["machine-cycle", "--level", "2"], "level is 2.0"),
        (["machine-cycle", "--learner", "nobody"], "nobody"),
        (["machine-cycle", "--losses", "none"], "no loss sequence 'none'"),
        (["machine-cycle", "--constraints", "loud"], "there is no noise 'loud'"),
    ],
)
def test_wrong_input_is_refused(arguments: list[str], words: str) -> None:
    code, out, err = invoke("check", *arguments)
    assert (code, out) == (2, "") and words in err and err.count("\n") == 1
    assert list(Path().iterdir()) == []
