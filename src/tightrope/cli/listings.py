"""Tables of learners, problems, losses and noises, and of their options."""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tightrope.arguments import options_of, unknown
from tightrope.lab.history import budgets_of
from tightrope.lab.tables import aligned
from tightrope.learners import LEARNERS, LearnerBase
from tightrope.learners.registry import options_of as options_of_learner
from tightrope.problems import PROBLEMS, make
from tightrope.problems.constraints import CONSTRAINTS
from tightrope.problems.losses import LOSSES

#: The kinds that can be listed, and the singular of each.
KINDS = {"problems": "problem", "learners": "learner", "losses": "loss sequence", "noises": "constraint law"}

REGISTRIES: dict[str, Mapping[str, Any]] = {
    "problems": PROBLEMS,
    "learners": LEARNERS,
    "losses": LOSSES,
    "noises": CONSTRAINTS,
}

#: The meaning of the parameters that most learners share.
SHARED = {
    "ties": "whether to pool the counts of pairs that the problem declares to have the same dynamics",
    "renewal": "the confidence sets are renewed when a count has grown by this share",
}

#: A line of a docstring that describes parameters: "    name, other : what they are".
DESCRIBED = re.compile(r"^ *(\w+(?:, \w+)*) : (.*(?:\n(?! *\w+(?:, \w+)* : ).+)*)", re.MULTILINE)


def names(kind: str) -> list[str]:
    """All names of "problems", "learners", "losses" or "noises"."""
    return sorted(REGISTRIES[kind])


def listing(kind: str) -> list[str]:
    """The table of all names of a kind, with one line about each."""
    if kind == "problems":
        return _problems()
    if kind == "learners":
        return _learners()
    return _makers(REGISTRIES[kind])


def details(kind: str, name: str) -> list[str]:
    """Return the description of one name, and its options with their defaults."""
    if name not in REGISTRIES[kind]:
        raise unknown(f"there is no {KINDS[kind]}", name, REGISTRIES[kind])
    if kind == "problems":
        return _problem(name)
    if kind == "learners":
        return _learner(LEARNERS[name])
    maker = REGISTRIES[kind][name]
    key = "losses" if kind == "losses" else "noise"
    rows = [(option, _default(default)) for option, default in options_of(maker).items()]
    return [f"{name}: {_first_line(maker)}", "", *_options(("option", "default"), rows, f"{key}.OPTION=VALUE")]


def _problems() -> list[str]:
    """Every problem: its size at the defaults, what it is, where it is from."""
    rows = [
        (name, str(entry.states), str(entry.steps), str(entry.constraints), entry.summary, entry.source)
        for name, entry in sorted(PROBLEMS.items())
    ]
    headings = ("problem", "states", "steps", "budgets", "what it is", "source")
    return aligned(headings, rows, text=("problem", "what it is", "source"))


def _learners() -> list[str]:
    """Every learner: its feedback, what it is given, what it does, its publication, the source of its constants."""
    rows = [
        (name, kind.feedback, _given(kind), kind.summary().removesuffix("."), _published(kind), _constants(kind))
        for name, kind in sorted(LEARNERS.items())
    ]
    headings = ("learner", "feedback", "is told", "what it does", "method", "constants")
    return aligned(headings, rows, text=headings)


def _makers(made: Mapping[str, Callable[..., object]]) -> list[str]:
    """Every name of a registry with the first line of its maker's docstring."""
    headings = ("name", "what it is")
    return aligned(headings, sorted((name, _first_line(maker)) for name, maker in made.items()), text=headings)


def _problem(name: str) -> list[str]:
    """A problem: its size, its budgets, its options."""
    entry, problem = PROBLEMS[name], make(name)
    budgets = [(budget.name, f"{budget.limit:g} {budget.unit}".rstrip()) for budget in budgets_of(problem)]
    rows = [(option, _default(default)) for option, default in entry.options.items()]
    return [
        f"{name}: {entry.summary} ({entry.source})",
        f"{entry.states} states, {entry.steps} steps, {problem.space.n_actions} actions",
        "",
        *aligned(("budget", "limit of an episode"), budgets, text=("budget", "limit of an episode")),
        "change a limit with: --budget NAME=LIMIT",
        "",
        *_options(("option", "default"), rows, "problem.OPTION=VALUE"),
    ]


def _learner(learner: type[LearnerBase]) -> list[str]:
    """A learner: what it observes and is given, its publication, its options."""
    facts = {
        "feedback": learner.feedback,
        "is told": _given(learner) or "space and budgets only",
        "method": learner.reference,
        "constants": _constants(learner) or "none",
    }
    return [
        f"{learner.name}: {learner.summary().removesuffix('.')}",
        *aligned(("", " "), facts.items(), text=("", " "))[1:],
        "",
        *_options(("option", "default", "what it is"), learner_options(learner), "learner.OPTION=VALUE"),
    ]


def learner_options(learner: type[LearnerBase]) -> list[tuple[str, str, str]]:
    """Every option of a learner: its name, its default, what it is."""
    defaults = inspect.signature(learner).parameters
    meanings = _meanings(learner)
    return [
        (option, _default_of(learner, option, defaults[option].default), meanings.get(option, SHARED.get(option, "")))
        for option in options_of_learner(learner)
        if option in defaults
    ]


def _options(headings: tuple[str, ...], rows: Sequence[tuple[str, ...]], example: str) -> list[str]:
    """The table of options, and how to set one."""
    if not rows:
        return ["it has no options"]
    return [*aligned(headings, rows, text=headings), f"set an option with: --set {example}"]


def _default(value: object) -> str:
    if value is inspect.Parameter.empty:
        return "required"
    return "none" if value is None else str(value)


def _default_of(learner: type[LearnerBase], option: str, value: object) -> str:
    """The default of a learner's option; None stands for the published value, which depends on the problem."""
    if option == "ties":
        return str(getattr(learner, "ties_by_default", False)).lower()
    return "published" if value is None else _default(value)


def _meanings(learner: type[LearnerBase]) -> dict[str, str]:
    """What the docstring of a learner says about each parameter; "as in `UCPD`" is looked up there."""
    classes = {kind.__name__: kind for kind in LEARNERS.values()}
    found: dict[str, str] = {}
    for described, words in DESCRIBED.findall(inspect.getdoc(learner) or ""):
        text = " ".join(words.split()).removesuffix(".")
        [elsewhere] = re.findall(r"^as in `(\w+)`", text) or [""]
        others = _meanings(classes[elsewhere]) if elsewhere in classes and classes[elsewhere] is not learner else {}
        for name in described.split(", "):
            if not elsewhere or name in others:
                found[name] = others.get(name, text)
    return found


def _first_line(maker: Callable[..., object]) -> str:
    return (maker.__doc__ or "").strip().partition("\n")[0].removesuffix(".")


def _given(learner: type[LearnerBase]) -> str:
    return ", ".join(need.replace("_", " ") for need in learner.needs if need != "rng")


def _constants(learner: type[LearnerBase]) -> str:
    return "" if learner.constants == "none" else learner.constants


def _published(learner: type[LearnerBase]) -> str:
    """Authors, venue and year; of several publications the first."""
    authors, _, title = learner.reference.partition("); ")[0].removesuffix(")").partition(": ")
    names = authors.split(", ")
    who = f"{names[0]} et al." if len(names) > 2 else " & ".join(names)
    return f"{who} ({title.rpartition('(')[2]})" if title else ""
