"""A check of a whole problem: its numbers by hand and by other solvers, its page, and what is said about what fails."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tightrope as tr
from tests.conftest import FloatArray
from tests.problems.suite import NAMES, make_or_skip
from tests.theory.explicit import lp_slack, lp_value
from tests.theory.test_budgets import problem_of
from tests.theory.test_frontier import fork
from tightrope import InvalidInputError, Policy, run
from tightrope.problems.files import write_example
from tightrope.problems.losses import Adversary
from tightrope.problems.losses.oblivious import Blind
from tightrope.theory import check, conflict, with_budgets
from tightrope.theory.page import WIDTH, facts, remedies


def test_a_check_agrees_with_numbers_by_hand() -> None:
    """Two ways: f = −1 and a use of 1, or f = 1 and none. Of a budget of 1/4 a quarter goes the first; more gains 2."""
    problem = problem_of(fork(2), np.array([-1.0, 1.0]), np.array([[1.0, 0.0]]), np.array([0.25]))
    found = check(problem, episodes=16)
    assert found.holds and found.feasible and found.bounded and found.slater
    assert found.slack.slack == pytest.approx(0.25)
    np.testing.assert_allclose(found.slack.policy.probabilities, [0.0, 1.0], atol=1e-12)
    assert found.multipliers is not None and found.constants_here is not None and found.constants_exact is not None
    np.testing.assert_allclose(found.multipliers.values, [[2.0]])
    assert found.multipliers.gap == pytest.approx(0.5)  # 1 − (1 − 2/4)
    assert found.constants == tr.theory.Constants(slack=0.25, B=8.0, sigma=0.125, vartheta=32.0)
    assert (found.constants_here.B, found.constants_here.vartheta) == pytest.approx((2.0, 8.0))
    assert (found.constants_exact.B, found.constants_exact.vartheta) == pytest.approx((2.0, 0.0), abs=1e-9)
    assert found.windows.length == 4 and found.windows.count == 4 and len(found.windows.losses) == 1
    assert found.least_episodes == 4 and found.largest_level == pytest.approx(1 / (4 + 8 / 0.125))
    [curve] = found.curves
    assert curve.yours is not None
    assert (curve.budgets[curve.yours], curve.losses[curve.yours]) == pytest.approx((0.25, 0.5))
    np.testing.assert_allclose(curve.multipliers[1:-1], 2.0)
    np.testing.assert_allclose(curve.losses, 1 - 2 * curve.budgets)


@pytest.mark.parametrize("name", NAMES)
def test_the_page_of_every_problem(name: str) -> None:
    found = check(make_or_skip(name), episodes=100, points=2)
    lines = repr(found).splitlines()
    assert found.holds == found.drawn and all(len(line) <= WIDTH for line in lines), max(lines, key=len)
    assert ("FAILS" in repr(found)) == (name == "mannor-game") and "nan" not in repr(found)
    assert sum("<- yours" in line for line in lines) == len(found.problem.budgets) == len(found.curves)
    # the default level is admissible from a slack of a sixth of the steps on
    admissible = found.slack.slack >= found.problem.space.n_layers / 6
    assert any("A level of 0.01 is outside" in remedy for remedy in remedies(found)) == (not admissible)
    assert found.constants is not None and found.constants_here is not None
    for here in filter(None, (found.constants_here, found.constants_exact)):
        assert here.B <= found.constants.B and here.vartheta <= found.constants.vartheta
    if found.constants_exact:
        assert found.constants_exact.B <= found.constants_here.B + 1e-9
        assert found.constants_exact.vartheta <= found.constants_here.vartheta + 1e-9


def test_constraints_that_change_are_outside_of_the_theorem() -> None:
    problem = tr.make("machine-cycle", noise="switching")
    found = check(problem, episodes=100, points=2)
    assert found.feasible and found.bounded and found.slater and not found.holds and not found.drawn
    assert "g^t drawn from one law       FAILS" in repr(found)
    [words] = [remedy for remedy in remedies(found) if "law" in remedy]
    assert "says nothing about them" in words
    assert all(len(line) <= WIDTH for line in repr(found).splitlines())
    assert facts(found)["drawn"] is False
    assert found.largest_constraints == pytest.approx(1.0)  # in dear times; the mean has two thirds of that
    with pytest.raises(InvalidInputError, match="drawn independently from one law; these change"):
        tr.theory.bounds(problem, episodes=100)


@pytest.mark.parametrize("name", ["machine-cycle", "media-streaming", "autonomous-driving"])
def test_numbers_by_programs_written_out(name: str) -> None:
    """Slack, least use, values and multipliers, by HiGHS over all tuples; multipliers by finite differences."""
    problem = tr.make(name, losses="switching")
    mdp, g, c = problem.mdp, problem.constraints.mean, problem.budgets
    found = check(problem, episodes=1600)
    none = np.empty((0, mdp.space.n_tuples))
    assert found.slack.slack == pytest.approx(lp_slack(mdp, g, c), abs=1e-7)
    np.testing.assert_allclose(found.least, [lp_value(mdp, row, none, np.empty(0)) for row in g], atol=1e-7)
    assert found.windows.count == 40 and found.multipliers is not None
    np.testing.assert_allclose(
        found.windows.losses[0],
        np.mean([problem.losses.begin(np.random.default_rng()).loss(t) for t in range(1, 41)], 0),
    )
    h = 1e-4
    for f, multipliers in list(zip(found.windows.losses, found.multipliers.values, strict=True))[:2]:
        for i, price in enumerate(multipliers):
            less, more = (lp_value(mdp, f, g, c + h * step * (np.arange(len(c)) == i)) for step in (-1, 1))
            value = lp_value(mdp, f, g, c)
            assert (value - more) / h - 1e-3 <= price <= (less - value) / h + 1e-3


def test_adaptive_losses_are_those_of_a_run() -> None:
    problem, charged = tr.make("media-streaming", losses="chaser"), []

    class Spy:
        name = "spy"

        def begin(self, rng: np.random.Generator) -> Adversary:
            play = problem.losses.begin(rng)

            class Play:
                def loss(self, episode: int) -> FloatArray:
                    charged.append(play.loss(episode))
                    return charged[-1]

                def watch(self, policy: Policy) -> None:
                    play.watch(policy)

            charged.clear()
            return Play()

    run(replace(problem, losses=Spy()), "ucpd", episodes=100, seed=3, regret="never")
    seen = check(problem, episodes=100, seed=3, learner="ucpd").windows
    np.testing.assert_allclose(seen.losses, np.mean(np.reshape(charged, (10, 10, -1)), axis=1), atol=1e-12)
    np.testing.assert_allclose(seen.average, np.mean(charged, axis=0), atol=1e-12)
    assert seen.learner == "ucpd"


def test_budgets_that_exclude_each_other() -> None:
    problem = with_budgets(tr.make("edge-cloud"), {"delay": 7.0, "energy": 3.0})
    found = check(problem, episodes=100, points=2)
    assert not (found.holds or found.feasible or found.slater) and found.bounded
    assert found.conflict is not None and found.conflict.members == (0, 1)
    assert "'delay' and 'energy' exclude each other" in "\n".join(remedies(found))
    assert found.constants is None and found.multipliers is None and found.largest_level is None
    # each raised as far as is said is enough, by a little less is not
    for i, scale in enumerate(problem.constraint_scales):
        name, enough = problem.constraint_names[i], float(found.conflict.enough[i] * scale)
        assert conflict(with_budgets(problem, {name: enough * 1.0001})) is None
        assert conflict(with_budgets(problem, {name: enough * 0.9999})) is not None


def test_budgets_that_can_only_just_be_met() -> None:
    found = check(with_budgets(tr.make("media-streaming"), {"fast steps": 0.0}), episodes=400)
    assert found.feasible and not found.slater and not found.holds
    assert "no policy leaves slack in fast steps" in "\n".join(remedies(found))


def test_losses_and_constraints_out_of_bounds_are_found() -> None:
    problem = tr.make("media-streaming")

    class Growing(Blind):
        name = "growing"

        def begin(self, rng: np.random.Generator) -> "Growing":
            return self

        def loss(self, episode: int) -> FloatArray:
            return np.full(problem.space.n_tuples, 1.5 if episode == 7 else 1.0)

    class Dear:
        mean = problem.constraints.mean

        def sample(self, rng: np.random.Generator) -> FloatArray:
            return 2 * rng.integers(2) * self.mean

    dear = check(replace(problem, constraints=Dear()), episodes=20)
    assert not dear.bounded and dear.largest_constraints == 2.0 and not dear.holds
    assert "use_bounds" in "\n".join(remedies(dear))
    growing = check(replace(problem, losses=Growing()), episodes=20)
    assert not growing.bounded and (growing.windows.largest, growing.windows.worst) == (1.5, 7)
    assert "The loss of episode 7 reaches 1.5" in "\n".join(remedies(growing))


def test_too_few_episodes_and_too_large_a_level() -> None:
    found = check(tr.make("media-streaming"), episodes=50, level=0.1)
    assert found.holds
    few, level = remedies(found)
    assert "|S||A| = 112" in few
    assert "level=0.027" in level and "at once: fast steps 26.67" in level  # 16 · 10 / (1/0.1 − 4)
    [level] = remedies(check(tr.make("media-streaming"), episodes=112, level=0.3))
    assert "raise the budgets" not in level  # there are none that allow it


def test_facts_are_plain_and_those_of_the_page() -> None:
    found = check(with_budgets(tr.make("media-streaming"), {"fast steps": -1.0}), episodes=400)
    told = facts(found)
    own, scaled = told["own_units"], told["learner_units"]
    assert told["holds"] is False and own["conflict"]["budgets"] == ["fast steps"]
    assert scaled["slack"] == pytest.approx(-1.0) and own["budgets"][0]["slack"] == pytest.approx(-1.0)
    assert own["curves"][0]["multipliers"][0] is None  # no bound
    assert all(math.isfinite(share) for _, _, share in told["safest_policy"])


def test_the_page_has_the_bounds_of_the_learners_that_have_some() -> None:
    problem, T = tr.make("media-streaming"), 400
    found = check(problem, episodes=T, level=0.02)
    inside = tr.theory.bounds_inside(problem, episodes=T, level=0.02)
    assert found.bounds["ucpd-inside"] == inside
    assert found.bounds["ucpd"] == tr.theory.bounds(problem, episodes=T, level=0.02)
    [row] = [line for line in repr(found).splitlines() if line.startswith("strong violation")]
    value, anyway = inside["strong_violation"].value, inside["strong_violation"].trivial
    assert row.split() == ["strong", "violation", "no", "bound", f"{value:.4g}", f"{anyway:.4g}"]
    assert facts(found)["learner_units"]["bounds"]["ucpd-inside"]["regret"]["failure"] == pytest.approx(0.06)
    tight = check(with_budgets(problem, {"fast steps": found.least[0] * problem.constraint_scales[0]}), episodes=T)
    assert list(tight.bounds) == ["ucpd-inside"]  # Slater's condition fails
    assert math.isfinite(tight.bounds["ucpd-inside"]["regret"].value)
    assert not check(tr.make("mannor-game"), episodes=T).bounds


def test_the_page_is_in_own_units_and_json_names_its_units(tmp_path: Path) -> None:
    """A budget of 2 hours: a policy that never calls the technician spares them all, each worth what the page says."""
    write_example(tmp_path / "mine")
    problem = tr.load_problem(tmp_path / "mine")
    found = check(problem, episodes=400)
    told = facts(found)
    scale = float(problem.constraint_scales[0])
    assert scale != 1.0
    [budget], scaled = told["own_units"]["budgets"], told["learner_units"]
    assert (budget["name"], budget["unit"], budget["limit"], budget["slack"]) == ("technician", "hours", 2, 2)
    assert scaled["slack"] == pytest.approx(2 / scale) and scaled["budgets"] == [pytest.approx(2 / scale)]
    prices = np.array(scaled["multipliers"])[:, 0] * problem.loss_scale / scale
    assert budget["multipliers"] == pytest.approx(prices)
    text = repr(found)
    assert "spare: technician 2 hours\n" in text
    needed = 16 * problem.space.n_layers / (1 / 0.01 - 4) * scale
    assert f"at once: technician {needed:.4g} hours." in " ".join(text.split())


def test_wrong_arguments_are_refused() -> None:
    problem = tr.make("machine-cycle")
    for wrong in ({"episodes": 0}, {"seed": -1}, {"level": 0.0}, {"level": 1.0}, {"learner": "nobody"}):
        with pytest.raises(InvalidInputError):
            check(problem, **wrong)
    with pytest.raises(InvalidInputError):
        check(3)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="did you mean 'machine-cycle'"):
        check("machine-cycel")
    assert check("machine-cycle", episodes=50).problem.name == "machine-cycle"
