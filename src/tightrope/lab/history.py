"""The history of a run: columns over the recorded episodes, in the learner's units or in the problem's own."""

import re
from collections.abc import Iterator, KeysView, Mapping
from html import escape
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from tightrope.arguments import instance, text, unknown
from tightrope.arguments.arrays import floats
from tightrope.errors import InvalidInputError, UnknownColumnError
from tightrope.lab.metrics import ALWAYS, COLUMNS, WHOLE
from tightrope.problems.base import Problem
from tightrope.space import FloatArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure


#: Prefixes of the columns of a constraint: use of its budget, and by how much that exceeds it.
USE = "use_"
VIOLATION = "violation_"


def use_columns(problem: Problem, prefix: str = USE) -> list[str]:
    """Return the column names of the uses of the budgets, in the order of the constraints, or with another prefix."""
    return [prefix + re.sub(r"\W+", "_", name) for name in problem.constraint_names]


class Budget(msgspec.Struct, frozen=True):
    """A budget for tables, figures and files: its column, name, unit, and limit per episode, in its own units."""

    column: str
    name: str
    unit: str
    limit: float

    def __str__(self) -> str:
        return f"{self.name}, of {self.limit:.4g} {self.unit}".rstrip()


def budgets_of(problem: Problem) -> list[Budget]:
    """Return the budgets of a problem, in their own units."""
    units = problem.constraint_units or [""] * len(problem.budgets)
    limits = problem.use_in_units(problem.budgets).tolist()
    return [Budget(*row) for row in zip(use_columns(problem), problem.constraint_names, units, limits, strict=True)]


class History(Mapping[str, FloatArray]):
    """Columns over the recorded episodes: a mapping from names to arrays (n_records,), cumulative up to each record.

    loss              Σ <f^τ, θ̄^τ>
    hindsight         the smallest Σ <f^τ, θ> of a fixed policy that meets the budgets in expectation
    regret            loss − hindsight
    violation         ‖[Σ (g^τ(θ̄^τ) − c)]_+‖₂: episodes below budget offset others
    strong_violation  Σ ‖[g(θ̄^τ) − c]_+‖₂, g the mean: without offsets
    multiplier_norm   ‖Q(t)‖₂, and epoch, ℓ(t), while the episode was played
    use_…             Σ g_i^τ(θ̄^τ), one for each constraint, by its name: use of its budget
    violation_…       [Σ (g_i^τ(θ̄^τ) − c_i)]_+, likewise: by how much that exceeds the budget

    Where constraints change, hindsight is for budgets that are met on average over the episodes so far (NaN if no fixed
    policy does), strong_violation is with g^τ in place of the mean, and there are

    hindsight_always  the smallest Σ <f^τ, θ> of a fixed policy that meets the budgets in every episode
    regret_always     loss − hindsight_always

    `tightrope.theory.measure` adds more. `settings` holds the parameters of the learner and of the run.

    Examples
    --------
    >>> import tightrope as tr
    >>> history = tr.run("media-streaming", "uniform", episodes=10)
    >>> len(history["regret"]), history.settings["learner"]
    (10, 'uniform')
    """

    def __init__(self, columns: Mapping[str, FloatArray], settings: Mapping[str, float | str]) -> None:
        instance(columns, "columns", Mapping)  # type: ignore[type-abstract]
        needed = [name for name, column in COLUMNS.items() if not column.optional]
        for name in needed:
            if name not in columns:
                raise InvalidInputError(f"columns has no {name!r}; a history has {', '.join(needed)}")
        order = [name for name in COLUMNS if name in columns]
        order += [name for name in columns if text(name, "a column") not in COLUMNS]
        self._columns = {name: floats(columns[name], name, ("n",)) for name in order}
        n = len(self._columns["episode"])
        for name, column in self._columns.items():
            if len(column) != n:
                raise InvalidInputError(f"{name} has {len(column)} records; it must have as many as episode, {n}")
        self.settings = dict(instance(settings, "settings", Mapping))  # type: ignore[type-abstract]

    def __getitem__(self, name: str) -> FloatArray:
        try:
            return self._columns[name]
        except (KeyError, TypeError):
            raise UnknownColumnError(str(unknown("the history has no column", name, self._columns))) from None

    def keys(self) -> KeysView[str]:
        """The names of the columns; unlike the view of `Mapping`, it prints them."""
        return self._columns.keys()

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __repr__(self) -> str:
        last = ", ".join(f"{name} {value:.6g}" for name, value in self._last().items())
        return f"History({len(self['episode'])} records; last: {last or 'none'})"

    def _last(self) -> dict[str, float]:
        """Return the last record by column; empty if there is none."""
        return {name: float(column[-1]) for name, column in self.items() if len(column)}

    def _repr_html_(self) -> str:
        """For notebooks: the last record and the settings."""
        named = {name: COLUMNS[name].heading if name in COLUMNS else name for name in self}
        last = {named[name]: f"{value:.6g}" for name, value in self._last().items()}
        rows = "".join(
            f"<tr><th style='text-align: left'>{escape(str(name))}</th><td>{escape(str(value))}</td></tr>"
            for name, value in (last | self.settings).items()
        )
        return f"<table><caption>the last of {len(self['episode'])} records</caption>{rows}</table>"

    def table(self, problem: Problem | None = None) -> dict[str, list[Any]]:
        """Columns with a row for each record, for `pandas.DataFrame` or `polars.DataFrame`.

        The first columns are problem, learner and seed, so that tables of several runs can be concatenated.

        Parameters
        ----------
        problem : converts everything to the problem's own units.
        """
        columns = self if problem is None else in_units(instance(problem, "problem", Problem), self)
        which = {name: self.settings[name] for name in ("problem", "learner", "seed") if name in self.settings}
        rows = len(self["episode"])
        return {name: [value] * rows for name, value in which.items()} | {
            name: column.astype(np.int64 if name in WHOLE else np.float64).tolist() for name, column in columns.items()
        }

    def plot(self, problem: Problem | None = None) -> "Figure":
        """Draw regret and violation against the episode; with the problem, in its own units and with its budgets."""
        from tightrope.lab.figures import plot_comparison

        words = [str(self.settings[name]) for name in ("problem", "learner") if name in self.settings]
        return plot_comparison({words[-1] if words else "": [self]}, problem, title=" · ".join(words))


def in_units(problem: Problem, history: History) -> History:
    """Return a history in the problem's own units.

    Losses and regret get the unit of the losses, uses and violations that of their budget. The violation over all
    constraints has a unit only if all constraints have the same scale; otherwise it is not converted.

    Raises
    ------
    InvalidInputError : if the history is not of this problem.
    """
    columns, known = dict(history), COLUMNS | ALWAYS
    scale = violation_scale(problem)
    for name in columns.keys() & known.keys():
        match known[name].unit:
            case "loss":
                columns[name] = problem.loss_in_units(columns[name], columns["episode"])
            case "regret":
                columns[name] = problem.regret_in_units(columns[name])
            case "violation":
                columns[name] = columns[name] * scale
    for prefix in (USE, VIOLATION):
        for name, scale in zip(use_columns(problem, prefix), problem.constraint_scales, strict=True):
            if name not in columns:
                raise InvalidInputError(f"the history is not of {problem.name!r}: it has no column {name!r}")
            columns[name] = columns[name] * scale
    return History(columns, history.settings)


def violation_scale(problem: Problem) -> float:
    """Return a violation of 1 in the unit of the budgets if all have the same scale; otherwise 1."""
    scales = np.unique(problem.constraint_scales)
    return float(scales[0]) if len(scales) == 1 else 1.0


def describe_units(problem: Problem) -> str:
    """Return the units of `in_units` as one line; empty if the problem has none."""
    parts = []
    if problem.loss_unit:
        parts.append(f"loss, LP value and regret in {problem.loss_unit}")
    units = {unit for unit in problem.constraint_units if unit}
    if len(np.unique(problem.constraint_scales)) > 1:
        parts.append("violations in shares of what each budget's use was scaled to, since the budgets' units differ")
    elif len(units) == 1:
        parts.append(f"violations in {units.pop()}")
    return "; ".join(parts)
