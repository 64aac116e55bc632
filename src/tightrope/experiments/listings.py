"""What can be asked for by name, as tables."""

from collections.abc import Callable, Mapping

from tightrope.experiments.tables import aligned
from tightrope.learners import LEARNERS, LearnerBase
from tightrope.problems import PROBLEMS
from tightrope.problems.constraints import CONSTRAINTS
from tightrope.problems.losses import LOSSES


def problems() -> list[str]:
    """Every problem: its size at the defaults, what it is, where it is from."""
    rows = [
        (name, str(entry.states), str(entry.steps), str(entry.constraints), entry.summary, entry.source)
        for name, entry in sorted(PROBLEMS.items())
    ]
    headings = ("problem", "states", "steps", "budgets", "what it is", "source")
    return aligned(headings, rows, text=("problem", "what it is", "source"))


def learners() -> list[str]:
    """Every learner: what it is shown and told, what it does and where, who published it, whose constants it has."""
    rows = [
        (name, kind.feedback, _told(kind), kind.summary().removesuffix("."), _published(kind), _constants(kind))
        for name, kind in sorted(LEARNERS.items())
    ]
    headings = ("learner", "feedback", "is told", "what it does", "method", "constants")
    return aligned(headings, rows, text=headings)


def makers(made: Mapping[str, Callable[..., object]]) -> list[str]:
    """Every name of a registry, and the first line of what its maker says about itself."""
    rows = [(name, (make.__doc__ or "").strip().partition("\n")[0].removesuffix(".")) for name, make in made.items()]
    headings = ("name", "what it is")
    return aligned(headings, sorted(rows), text=headings)


def names(kind: str) -> list[str]:
    """All that can be asked for of a kind."""
    registries: dict[str, Mapping[str, object]]
    registries = {"problems": PROBLEMS, "learners": LEARNERS, "losses": LOSSES, "noises": CONSTRAINTS}
    return sorted(registries[kind])


def listing(kind: str) -> list[str]:
    """The table of "problems", "learners", "losses" or "noises"."""
    if kind == "problems":
        return problems()
    if kind == "learners":
        return learners()
    return makers(LOSSES if kind == "losses" else CONSTRAINTS)


def _told(learner: type[LearnerBase]) -> str:
    return ", ".join(need.replace("_", " ") for need in learner.needs if need != "rng")


def _constants(learner: type[LearnerBase]) -> str:
    return "" if learner.constants == "none" else learner.constants


def _published(learner: type[LearnerBase]) -> str:
    """By whom, where and when; of several publications the first."""
    authors, _, title = learner.reference.partition("); ")[0].removesuffix(")").partition(": ")
    names = authors.split(", ")
    who = f"{names[0]} et al." if len(names) > 2 else " & ".join(names)
    return f"{who} ({title.rpartition('(')[2]})" if title else ""
