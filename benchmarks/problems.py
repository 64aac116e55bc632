"""The tables of docs/reference/problems.md: the size of every problem with its defaults, and its optimal values.

Losses, uses and budgets are in the problem's own units, for a whole episode. The loss is the long-run average of the
problem's default sequence. The slack (Slater) is in the learner's units.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from tightrope.errors import InvalidInputError
from tightrope.planning.hindsight import HindsightLP, best_policy, slater_slack
from tightrope.problems import PROBLEMS, make
from tightrope.problems.base import Problem
from tightrope.problems.losses import Fixed, Scenarios
from tightrope.space import FloatArray
from tightrope.theory.budgets import FRUGALITY

SIZES = ("problem", "states", "actions", "tuples", "steps", "constraints", "source")
VALUES = (
    "problem",
    "losses",
    "loss without budgets",
    "loss within them",
    "constraint",
    "least use",
    "budget",
    "use without budgets",
    "multiplier",
    "slack",
)


def long_run_loss(problem: Problem) -> FloatArray:
    """Return the long-run average of a problem's losses, (n_tuples,)."""
    if not isinstance(problem.losses, Scenarios):
        raise InvalidInputError(f"the losses of {problem.name!r} have no scenarios, so their average is unknown")
    scenarios = problem.losses.scenarios
    average: FloatArray = scenarios[0] if problem.losses.name == Fixed.name else scenarios.mean(axis=0)
    return average


def size_row(name: str, problem: Problem) -> tuple[str, ...]:
    """Return the row of a problem in the table of sizes."""
    space = problem.space
    numbers = (space.n_states, space.n_actions, space.n_tuples, space.n_layers)
    constraints = ", ".join(problem.constraint_names)
    return name, *(str(number) for number in numbers), constraints, PROBLEMS[name].source


def value_rows(name: str, problem: Problem) -> Iterator[tuple[str, ...]]:
    """Yield the rows of a problem in the table of values, one for each constraint; the first has the common values."""
    mdp, g, c = problem.mdp, problem.constraints.mean, problem.budgets
    f = long_run_loss(problem)
    alone, _ = best_policy(mdp, f)
    _, frugal = best_policy(mdp, f + FRUGALITY * g.sum(axis=0))
    within = HindsightLP(mdp, g, c).solve(f)
    lowest = np.array([best_policy(mdp, row)[0] for row in g])
    least, used, budgets = (problem.use_in_units(use) for use in (lowest, g @ mdp.occupancy(frugal), c))
    multipliers = problem.regret_in_units(within.multipliers) / problem.constraint_scales
    common = [
        name,
        problem.losses.name,
        _with_unit(problem.loss_in_units(alone, 1.0), problem.loss_unit),
        _with_unit(problem.loss_in_units(within.value, 1.0), problem.loss_unit),
    ]
    slack = slater_slack(mdp, g, c)
    for i, constraint in enumerate(problem.constraint_names):
        unit = problem.constraint_units[i] if len(problem.constraint_units) else ""
        own = [_shown(least[i]), _with_unit(budgets[i], unit), _shown(used[i]), _shown(multipliers[i])]
        yield (*common, constraint, *own, _shown(slack)) if i == 0 else (*[""] * 4, constraint, *own, "")


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def tables() -> dict[str, str]:
    """Return both tables, by their marks in the page."""
    made = {name: make(name) for name in sorted(PROBLEMS)}
    return {
        "sizes": table(SIZES, (size_row(name, problem) for name, problem in made.items())),
        "values": table(VALUES, (row for name, problem in made.items() for row in value_rows(name, problem))),
    }


def written_into(page: str) -> str:
    """Return the text of the page with new tables."""
    for mark, text in tables().items():
        before, begin, rest = page.partition(f"<!-- {mark} -->\n")
        _, end, after = rest.partition(f"<!-- end of {mark} -->")
        if not (begin and end):
            raise InvalidInputError(f"the page needs the marks <!-- {mark} --> and <!-- end of {mark} -->")
        page = f"{before}{begin}{text}\n{end}{after}"
    return page


def _with_unit(value: float, unit: str) -> str:
    return f"{_shown(value)} {unit}".rstrip()


def _shown(value: float) -> str:
    return f"{value + 0.0:.4g}"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m benchmarks.problems docs/reference/problems.md")
    page = Path(sys.argv[1])
    page.write_text(written_into(page.read_text("utf-8")), "utf-8")
