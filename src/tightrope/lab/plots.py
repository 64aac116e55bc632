"""Pictures of histories from Python, in the problem's own units where the problem is given."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from tightrope.arguments import LARGEST, instance, listed, text
from tightrope.errors import InvalidInputError
from tightrope.lab.figures import draw
from tightrope.lab.history import History, budgets_of, in_units, use_columns
from tightrope.problems.base import Problem


def plot_comparison(
    histories: Mapping[str, Sequence[History]], problem: Problem | None = None, *, title: str = ""
) -> Figure:
    """Draw what `compare` returns: of each learner the mean over seeds, with its bootstrap interval.

    With the `problem`, numbers are in its own units, and what was used of each budget stands against its limit.
    """
    named = dict(instance(histories, "histories", Mapping))  # type: ignore[type-abstract]
    runs = {text(name, "a learner"): listed(of_seeds, f"histories[{name!r}]") for name, of_seeds in named.items()}
    for name, of_seeds in runs.items():
        for history in of_seeds:
            episodes = instance(history, f"histories[{name!r}]", History)["episode"]
            if not len(episodes):
                raise InvalidInputError(f"histories[{name!r}] has a history without records")
            if not ((episodes >= 1) & (episodes <= LARGEST)).all():
                raise InvalidInputError(f"histories[{name!r}] has records before episode 1, or of none")
    if problem is None:
        return draw(runs, title=text(title, "title"))
    for column in use_columns(instance(problem, "problem", Problem)):
        for name, of_seeds in runs.items():
            if any(column not in history for history in of_seeds):
                raise InvalidInputError(f"histories[{name!r}] are no runs of {problem.name!r}: they have no {column!r}")
    own = {name: [in_units(problem, history) for history in of_seeds] for name, of_seeds in runs.items()}
    return draw(own, title=text(title, "title") or problem.name, budgets=budgets_of(problem))
