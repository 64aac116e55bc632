"""What is around runs, for `fuzz.api`: the theorem's numbers, pictures, and studies, with arguments that are right."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import tightrope as tr
from tightrope.lab.plan import planned
from tightrope.lab.runner import folder_name
from tightrope.lab.study import Study, StudyFile, to_toml, with_values
from tightrope.theory.page import draw, facts

#: A callable and arguments with which it answers.
Case = tuple[Callable[..., Any], dict[str, Any]]

#: Episodes of a play: whoever asks for many has to wait.
EPISODES = 9


def of_theory(p: dict[str, Any]) -> dict[str, Case]:
    """Assumptions, constants, bounds, and what they come to."""
    problem, mdp = p["problem"], p["mdp"]
    loss, use = problem.losses.begin(np.random.default_rng(0)).loss(1), problem.constraints.mean[0]
    name = problem.constraint_names[0]
    frontier = tr.theory.frontier(mdp, loss, use, 10.0)
    budget = float(frontier.use.max()) + 0.5
    return {
        "theory.check": (
            checked,
            {"problem": problem, "episodes": EPISODES, "seed": 0, "level": 0.01, "learner": "ucpd", "points": 3,
             "progress": lambda done: None},
        ),
        "theory.constants": (tr.theory.constants, {"problem": problem}),
        "theory.bounds": (
            tr.theory.bounds,
            {"problem": problem, "episodes": 100, "level": 0.01, "alpha": 1.0, "V": 1.0, "mixing": 0.1,
             "known": tr.theory.constants(problem)},
        ),
        "theory.Constants.from_slack": (tr.theory.Constants.from_slack, {"slack": 0.1, "gap": 4.0}),
        "theory.conflict": (tr.theory.conflict, {"problem": problem}),
        "theory.with_budgets": (tr.theory.with_budgets, {"problem": problem, "budgets": {name: 0.1}}),
        "theory.with_budgets one": (
            lambda budget: tr.theory.with_budgets(problem, {name: budget}), {"budget": 0.1},
        ),
        "theory.budget_curve": (
            tr.theory.budget_curve, {"problem": problem, "loss": loss, "constraint": 0, "points": 3},
        ),
        "theory.frontier": (tr.theory.frontier, {"mdp": mdp, "loss": loss, "use": use, "most": 10.0}),
        "Frontier.dual": (frontier.dual, {"price": 1.0, "budget": budget}),
        "Frontier.multipliers": (frontier.multipliers, {"budget": budget}),
        "Frontier.vartheta": (frontier.vartheta, {"budget": budget, "sigma": 0.1}),
        "theory.measure": (
            tr.theory.measure, {"problem": problem, "learner": "ucpd", "episodes": 3, "seed": 0, "records": 2},
        ),
    }  # fmt: skip


def of_pictures(p: dict[str, Any]) -> dict[str, Case]:
    """Pictures of histories, drawn to the end."""
    history, problem = p["history"], p["problem"]
    columns = dict(history)
    return {
        "plot_comparison": (
            lambda **given: drawn(tr.plot_comparison(**given)),
            {"histories": {"a": [history, history], "b": [history]}, "problem": problem, "title": "a title"},
        ),
        "plot_comparison of one": (
            lambda histories: drawn(tr.plot_comparison({"a": histories})),
            {"histories": [history]},
        ),
        "history.plot": (lambda problem: drawn(history.plot(problem)), {"problem": problem}),
        "history.plot of columns": (
            lambda settings, **given: drawn(tr.History(columns | given, settings).plot()),
            {"settings": {"problem": "p", "learner": "l"}} | columns,
        ),
        "history in a notebook": (
            lambda settings, **given: tr.History(columns | given, settings)._repr_html_(),
            {"settings": {"learner": "l"}} | columns,
        ),
    }


def of_studies() -> dict[str, Case]:
    """Studies from files, and from Python."""
    study = Study(problems=["random"], learners=["ucpd"], episodes=3)
    return {
        "StudyFile": (lambda path: StudyFile(tr.arguments.file_path(path, "path")), {"path": "nowhere"}),
        "with_values": (lambda text: with_values(study, [tr.arguments.text(text, "--set")]), {"text": "learner.V=1,2"}),
        "Study": (
            lambda **given: planned(tr.Study(**given).checked()),
            {"problems": ["random"], "learners": "uniform", "losses": ["fixed"], "noises": "none", "episodes": 3,
             "grid": {"problem": {"seed": [1, 2]}}, "seeds": (0, 1), "records": {"count": 3}, "contents": {}},
        ),
        "Results.read": (lambda folder: tr.Results.read(folder, live=True), {"folder": "."}),
        "a study": (
            from_file,
            {"problems": ["random"], "learners": ["ucpd", {"name": "uniform"}], "losses": ["fixed"], "noises": ["none"],
             "grid": {"learner": {"V": [1.0, 2.0]}}, "episodes": [3], "seeds": 2,
             "records": {"count": 3, "spacing": "log", "regret": "never"}},
        ),
    }  # fmt: skip


def checked(**given: Any) -> str:
    """A check, as page, as plain data and as picture."""
    found = tr.theory.check(**given)
    facts(found)
    drawn(draw(found))
    return repr(found)


def drawn(figure: Any) -> Any:
    """What is wrong with a picture may show only then."""
    figure.canvas.draw()
    return figure


def from_file(**given: Any) -> Any:
    """What TOML can say of a study, as a file, and its runs."""
    path = Path("study.toml")
    path.write_text("".join(f"{key} = {toml(value)}\n" for key, value in given.items()), encoding="utf-8")
    study = StudyFile(path).study
    to_toml(study), folder_name(study)
    return planned(study)


def toml(value: Any, depth: int = 200) -> str:
    """A value as TOML, or as whatever it is shown as; one that holds itself ends somewhere."""
    if isinstance(value, dict) and depth:
        return "{" + ", ".join(f"{key} = {toml(inner, depth - 1)}" for key, inner in value.items()) + "}"
    if isinstance(value, list) and depth:
        return "[" + ", ".join(toml(inner, depth - 1) for inner in value) + "]"
    return tr.arguments.shown(value)
