"""What a directory was made with: kept to show it, and to refuse a learner that was made otherwise."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tightrope import __version__
from tightrope.arguments import texts
from tightrope.errors import InvalidInputError
from tightrope.learners.base import LearnerBase
from tightrope.ops.arrays import digest_of_row
from tightrope.ops.journal import FORMAT
from tightrope.ops.status import BudgetUnits
from tightrope.space import LayeredSpace


def facts_of(learner: LearnerBase, units: BudgetUnits, problem: Any) -> dict[str, Any]:
    """All that is kept."""
    return {
        "format": FORMAT,
        "tightrope": __version__,
        "learner": learner.settings,
        "budgets": learner.budgets.tolist(),
        "space": _digest(learner.space),
        "problem": str(getattr(problem, "name", "")),
        "units": asdict(units),
        "states": texts(getattr(problem, "state_names", ()), "problem.state_names"),
        "actions": texts(getattr(problem, "action_names", ()), "problem.action_names"),
    }


def refuse_other(facts: dict[str, Any], learner: LearnerBase | None, folder: Path) -> None:
    """Refuse a learner that was made otherwise than the one that is here, and say in what."""
    if learner is None:
        return
    if words := difference(facts["learner"], learner.settings):
        raise InvalidInputError(
            f"the learner in {folder} was made with {words}; leave it out to go on with what is there, or choose "
            "another directory"
        )
    for name, mine, its in (
        ("budgets", learner.budgets.tolist(), facts["budgets"]),
        ("space", _digest(learner.space), facts["space"]),
    ):
        if mine != its:
            raise InvalidInputError(
                f"the learner in {folder} was made with another {name}; leave it out to go on with what is there, or "
                "choose another directory"
            )


def difference(here: Mapping[str, Any], given: Mapping[str, Any]) -> str:
    """The first setting in which a learner that is given is not the one that is here; "" if they are the same."""
    for name in {**here, **given}:
        if here.get(name) != given.get(name):
            return f"{name} = {here.get(name)!r}, the one given with {given.get(name)!r}"
    return ""


def _digest(space: LayeredSpace) -> str:
    return digest_of_row(repr(space.layer_sizes), space.n_actions, space.tuples.astype("<i8").tobytes()).hex()
