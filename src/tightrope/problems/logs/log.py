"""A log: recorded episodes, one row per step, of any policy.

Columns, all of which may have other names:

    episode      the episode of the row, a name or a number
    step         0, 1, 2, … within the episode, or 1, 2, 3, …; if missing, the order of the rows
    state        the state before the step: one column or several, names or numbers in bins
    action       the action taken
    next_state   the state after the step; if missing, the state of the next row
    loss         the loss of the step
    probability  the probability of the action under the policy that was played; optional, for importance weighting
    …            one column for each budget: the use of the step

Errors name the row. Problems that can be repaired are repaired and listed in `Log.notes`. Episodes with missing steps
are left out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightrope.arguments import file_path, printable, unknown
from tightrope.arguments.arrays import floats
from tightrope.errors import InvalidInputError
from tightrope.problems.files.reading import read_regular
from tightrope.problems.files.tables import MOST_BYTES, Table, read_table
from tightrope.problems.layout import Indices
from tightrope.space import FloatArray, LayeredSpace

#: The columns of a log, besides those of budgets.
ROLES = ("episode", "step", "state", "action", "next_state", "loss", "probability")

#: The columns that are required.
NEEDED = ("episode", "state", "action", "loss")

#: The most rows that a note lists.
SHOWN = 5

#: If fewer than this share of the episodes have the largest length, they are reported as too long, not the others as
#: short.
FEW_WHOLE = 0.05

#: The name of the last state of an episode if it was not recorded.
END = "end"

#: The name of the state in which an episode waits that ended early.
OVER = "done"

#: The name of a column, or of several whose cells are joined to one name.
Column = str | Sequence[str]

Names = NDArray[np.object_]


@dataclass(frozen=True, kw_only=True, eq=False)
class Log:
    """Recorded episodes, complete and sorted by episode and step; `read_log` makes one.

    Attributes
    ----------
    episode, step : (n_rows,) whole numbers from 0.
    state, action, next_state : (n_rows,) names.
    loss : (n_rows,) the loss of each step.
    uses : (n_budgets, n_rows) what each step used of each budget.
    budgets : the names of the budgets.
    probability : (n_rows,) the probability with which the action was chosen, or None.
    n_steps : the length of the longest episode.
    n_left_out : the number of episodes that were left out because steps are missing.
    ends_known : whether the last next_state of an episode was recorded.
    notes : what was repaired and left out, with the rows.

    Examples
    --------
    >>> log = read_log({"episode": [1, 1], "state": ["a", "b"], "action": ["go", "go"], "loss": [2, 1]})
    >>> log.n_episodes, log.n_steps, log.state.tolist()
    (1, 2, ['a', 'b'])
    """

    episode: Indices  # (n_rows,) from 0
    step: Indices  # (n_rows,) from 0
    state: Names  # (n_rows,)
    action: Names  # (n_rows,)
    next_state: Names  # (n_rows,)
    loss: FloatArray  # (n_rows,)
    uses: FloatArray  # (n_budgets, n_rows)
    budgets: tuple[str, ...]
    probability: FloatArray | None  # (n_rows,)
    place: Sequence[str]  # (n_rows,) the place of each row: "line 17"
    n_steps: int  # of the longest episode
    n_left_out: int  # episodes with missing steps
    ends_known: bool  # whether the last next_state of an episode was recorded
    notes: tuple[str, ...]  # what was repaired and left out, with rows

    @property
    def n_episodes(self) -> int:
        """The number of complete episodes."""
        return int(self.episode[-1]) + 1

    @property
    def first(self) -> Indices:
        """(n_episodes + 1,) the first row of each episode, and the number of rows."""
        return np.append(np.flatnonzero(np.diff(self.episode, prepend=-1)), len(self.episode))

    def paths(self, space: LayeredSpace) -> list[Indices]:
        """Return the tuples of every episode in the space of a problem that was estimated from this log.

        States are found by the name "NAME, step K", or by NAME. An episode that ended early waits in "done, step K".

        Returns
        -------
        list : for each episode, (L,) the indices of its tuples.

        Raises
        ------
        InvalidInputError : with the row, if the space does not have a state, an action or a move of the log.
        """
        numbers, actions = _state_numbers(space), {name: a for a, name in enumerate(space.action_names)}
        ends = pairwise(self.first.tolist())
        return [self._path(space, numbers, actions, first, last) for first, last in ends]

    def _path(
        self, space: LayeredSpace, numbers: Mapping[str, int], actions: Mapping[str, int], first: int, last: int
    ) -> Indices:
        begins = int(space.n_layers > self.n_steps)  # the draw of a random start is a step of its own
        states, chosen = [0][:begins], [0][:begins]
        for row in range(first, last):
            state, step = str(self.state[row]), int(self.step[row])
            states.append(_number(numbers, state, step, self.place[row]))
            if self.action[row] not in actions:
                raise unknown(f"{self.place[row]}: there is no action", self.action[row], actions)
            chosen.append(actions[str(self.action[row])])
        for step in range(last - first, space.n_layers - begins):  # the episode has ended, and waits
            states.append(_number(numbers, OVER, step, self.place[last - 1]))
            chosen.append(0)
        try:
            return space.path([*states, space.n_states - 1], chosen)
        except InvalidInputError as error:
            where = f"{self.place[first]} to {self.place[last - 1]}"
            raise InvalidInputError(f"{where}: this episode cannot happen in the problem: {error}") from error

    def __repr__(self) -> str:
        shown = f", {self.n_left_out} left out" if self.n_left_out else ""
        return f"Log({self.n_episodes} episodes of up to {self.n_steps} steps{shown}, budgets {list(self.budgets)})"


def _state_numbers(space: LayeredSpace) -> dict[str, int]:
    if not space.state_names or not space.action_names:
        raise InvalidInputError(
            "the states and actions of this space have no names, which a log needs; use the space of the problem: "
            "problem.space"
        )
    return {name: s for s, name in enumerate(space.state_names)}


def _number(numbers: Mapping[str, int], state: str, step: int, place: str) -> int:
    for name in (f"{state}, step {step}", state):
        if name in numbers:
            return numbers[name]
    raise unknown(f"{place}: at step {step} there is no state", state, numbers)


def read_log(
    source: str | PathLike[str] | Mapping[str, Any] | Log | Any,
    *,
    budgets: Sequence[str] = (),
    columns: Mapping[str, Column] | None = None,
    bins: Mapping[str, Sequence[float]] | None = None,
) -> Log:
    """Read a log of recorded episodes.

    Parameters
    ----------
    source : a CSV or Parquet file, a data frame, a dict of columns, or a `Log`, which is returned as given.
    budgets : the names of the budgets; each has a column.
    columns : other names of columns, for those of `ROLES` and of the budgets. State and next_state may have several
        columns, whose cells are joined to one name.
    bins : edges, ascending, for each column of states or actions that contains numbers; k edges make k + 1 bins.
        The edges of a column of states also apply to the column of next states.

    Returns
    -------
    Log : the complete episodes; `notes` lists what was repaired or left out.

    Raises
    ------
    InvalidInputError : with the row, for a missing column, an empty cell, a cell that is not a number, a step that is
        not whole, two rows that contradict each other, a probability outside (0, 1], or if no episode is complete.

    Examples
    --------
    >>> log = read_log({"episode": [1, 1], "state": ["a", "b"], "action": ["go", "go"], "loss": [2, 1]})
    >>> log, log.loss.tolist()
    (Log(1 episodes of up to 2 steps, budgets []), [2.0, 1.0])
    """
    if isinstance(budgets, str):
        raise InvalidInputError(f"budgets is {budgets!r}; expected a list of names: [{budgets!r}]")
    if isinstance(source, Log):
        if budgets and tuple(budgets) != source.budgets:
            raise InvalidInputError(f"the log has the budgets {list(source.budgets)}, not {list(budgets)}")
        return source
    return _Reader(_table(source), tuple(budgets), dict(columns or {}), dict(bins or {})).log()


def _table(source: Any) -> Table:
    if isinstance(source, str | PathLike):
        path = Path(file_path(source, "log"))
        try:
            data = read_regular(path, MOST_BYTES)
        except OSError as error:
            raise InvalidInputError(f"{printable(path)} cannot be read: {error.strerror or error}") from error
        return read_table(path, data, (), None)
    given = source.to_dict("list") if hasattr(source, "to_dict") and not isinstance(source, Mapping) else source
    if not isinstance(given, Mapping):
        raise InvalidInputError("a log is a file, a data frame, or a dict of columns")
    columns = {str(name): list(cells) for name, cells in given.items()}
    if len({len(cells) for cells in columns.values()}) != 1 or not next(iter(columns.values())):
        sizes = {name: len(cells) for name, cells in columns.items()}
        raise InvalidInputError(f"the columns of the log have {sizes} rows; all need equally many, and at least one")
    return Table(Path("the log"), columns, None)


class _Reader:
    """Converts a table to a log."""

    def __init__(
        self, table: Table, budgets: tuple[str, ...], columns: dict[str, Column], bins: dict[str, Sequence[float]]
    ) -> None:
        self.table, self.budgets, self.bins, self.notes = table, budgets, bins, list[str]()
        for budget in budgets:
            if budget in ROLES or budgets.count(budget) > 1:
                raise InvalidInputError(f"{budget!r} cannot be the name of a budget: the log has such a column already")
        for role in columns:
            if role not in (*ROLES, *budgets):
                raise unknown("a log has no column", role, (*ROLES, *budgets))
        self.columns: dict[str, tuple[str, ...]] = {}
        for role in (*ROLES, *budgets):
            given = columns.get(role, role)
            names = (given,) if isinstance(given, str) else tuple(given)
            needed = role in NEEDED or role in budgets or role in columns
            missing = [name for name in names if name not in table.columns]
            if not missing:
                self.columns[role] = names
            elif needed:
                raise InvalidInputError(
                    f"{table.path}: there is no column {missing[0]!r} for {role}; the file has "
                    f"{', '.join(table.columns)}; name the right one in columns"
                )
        for here, then in zip(self.columns["state"], self.columns.get("next_state", ()), strict=False):
            if here in bins:
                bins.setdefault(then, bins[here])  # state and next_state need the same names
        used = {name for names in self.columns.values() for name in names}
        for column, edges in bins.items():
            if column not in used:
                raise unknown(f"{table.path}: bins are for a column that is not used,", column, used)
            given_edges = floats(edges, f"the edges of {column}", ("n_edges",))
            if not len(given_edges) or not (np.diff(given_edges) > 0).all():
                raise InvalidInputError(f"the edges of {column} are {list(edges)}; they should ascend")

    def log(self) -> Log:
        """Return the log of the table."""
        table = self.table
        episode = np.array(table.names(self.columns["episode"][0]), dtype=object)
        _, number = _numbered(episode)
        step = self._steps(number)
        loss = table.numbers(self.columns["loss"][0])
        uses = np.array([table.numbers(self.columns[budget][0]) for budget in self.budgets]).reshape(-1, len(table))
        chance = table.numbers(self.columns["probability"][0]) if "probability" in self.columns else None
        if chance is not None:
            for row in np.flatnonzero(~((chance > 0) & (chance <= 1)))[:1].tolist():
                raise InvalidInputError(
                    f"{table.where(row, self.columns['probability'][0])}: {chance[row]:g} is not a probability of the "
                    "action taken, which is above 0 and at most 1"
                )
        state, action = self._names("state"), self._names("action")
        then = self._names("next_state") if "next_state" in self.columns else None

        order = np.lexsort((step, number))
        late = order < np.maximum.accumulate(order)
        if late.any():
            self.notes.append(f"{_count(int(late.sum()), 'row')} out of order, and sorted{self._rows(order[late])}.")
        order = self._without_twins(order, number, step, state, action, then, loss, uses)
        number, step, state, action, loss = number[order], step[order], state[order], action[order], loss[order]
        uses, chance = uses[:, order], None if chance is None else chance[order]
        step = self._from_zero(number, step, order)
        then, ends_known = self._successors(number, state, then, order)
        keep, n_steps, n_left_out = self._whole(number, step, state, then, order, ends_known)
        if not keep.any():
            raise InvalidInputError(f"{table.path}: no episode is complete. " + " ".join(self.notes))
        _, again = _numbered(number[keep])
        self._note_similar((state[keep], order[keep]), (action[keep], order[keep]))
        return Log(
            episode=again,
            step=step[keep],
            state=state[keep],
            action=action[keep],
            next_state=then[keep],
            loss=loss[keep],
            uses=uses[:, keep],
            budgets=self.budgets,
            probability=None if chance is None else chance[keep],
            place=[self._place(int(row)) for row in order[keep]],
            n_steps=n_steps,
            n_left_out=n_left_out,
            ends_known=ends_known,
            notes=tuple(self.notes),
        )

    def _place(self, row: int) -> str:
        return f"{self.table.path}, {self.table.place(row)}"

    def _rows(self, rows: Indices) -> str:
        """Return the first few rows as text: " (lines 3, 17 and 4 more)"."""
        if not len(rows):
            return ""
        word = "row" if self.table.lines is None else "line"
        numbers = [self.table.place(int(row)).split()[1] for row in rows[:SHOWN]]
        more = f" and {len(rows) - SHOWN} more" if len(rows) > SHOWN else ""
        return f" ({word}{'s' * (len(rows) > 1)} {', '.join(numbers)}{more})"

    def _names(self, role: str) -> Names:
        """Return the cells of the columns of a role, joined to one name per row; numbers with edges by their bin."""
        parts = [
            self._binned(column) if column in self.bins else self.table.names(column) for column in self.columns[role]
        ]
        several = len(parts) > 1
        heads = [name.removeprefix("next_") for name in self.columns[role]]
        names = [
            ", ".join(f"{h} {p}" if several else p for h, p in zip(heads, cells, strict=True))
            for cells in zip(*parts, strict=True)
        ]
        return np.array(names, dtype=object)

    def _binned(self, column: str) -> list[str]:
        edges = [float(edge) for edge in self.bins[column]]
        inner = [f"{low:g} to {high:g}" for low, high in pairwise(edges)]
        labels = [f"below {edges[0]:g}", *inner, f"{edges[-1]:g} and more"]
        return [labels[k] for k in np.searchsorted(edges, self.table.numbers(column), side="right").tolist()]

    def _steps(self, number: Indices) -> Indices:
        if "step" in self.columns:
            return self.table.whole_numbers(self.columns["step"][0], at_least=0)
        # the order of the rows within each episode
        order = np.argsort(number, kind="stable")
        first = np.flatnonzero(np.diff(number[order], prepend=-1))
        step = np.empty(len(number), dtype=np.int64)
        step[order] = np.arange(len(number)) - np.repeat(first, np.diff(np.append(first, len(number))))
        return step

    def _without_twins(self, order: Indices, number: Indices, step: Indices, *values: Any) -> Indices:
        """Return the order without repeated rows; rows that contradict each other are refused."""
        same = (np.diff(number[order]) == 0) & (np.diff(step[order]) == 0)
        twins = np.flatnonzero(same) + 1
        for i in twins.tolist():
            row, before = int(order[i]), int(order[i - 1])
            for value in values:
                if value is not None and not np.array_equal(value[..., row], value[..., before]):
                    raise InvalidInputError(
                        f"{self._place(max(row, before))}: another row for the same episode and step has other values "
                        f"({self.table.place(min(row, before))}); delete one"
                    )
        if len(twins):
            self.notes.append(f"{_count(len(twins), 'row')} occurred twice, counted once{self._rows(order[twins])}.")
        return np.delete(order, twins)

    def _from_zero(self, number: Indices, step: Indices, order: Indices) -> Indices:
        """Return the steps, counted from 0."""
        first = np.flatnonzero(np.diff(number, prepend=-1))
        if step.min() >= 1 and (step[first] == 1).mean() > 0.5:
            self.notes.append("Steps count from 1 in the log, and from 0 in the problem.")
            return step - 1
        return step

    def _successors(self, number: Indices, state: Names, then: Names | None, order: Indices) -> tuple[Names, bool]:
        if then is not None:
            return then[order], True
        followed = np.append(np.diff(number) == 0, False)
        successor = np.append(state[1:], END)
        successor[~followed] = END
        return successor, False

    def _whole(
        self, number: Indices, step: Indices, state: Names, then: Names, order: Indices, ends_known: bool
    ) -> tuple[NDArray[np.bool_], int, int]:
        """Return which rows belong to complete episodes, their largest number of steps.

        The number of incomplete ones.
        """
        first = np.flatnonzero(np.diff(number, prepend=-1))
        last = np.append(first[1:], len(number)) - 1
        follows = np.append(np.diff(number) == 0, False)
        gap = np.zeros(len(number), dtype=bool)
        gap[first] = step[first] != 0
        gap[1:] |= follows[:-1] & (np.diff(step) != 1)
        broken = np.zeros(len(number), dtype=bool)
        broken[:-1] = follows[:-1] & (then[:-1] != state[1:]) & ~gap[1:]
        bad = np.zeros(int(number.max()) + 1, dtype=bool)
        for mark, words in (
            (gap, "a step is missing, before the row"),
            (broken, "next_state is not the state of the next row"),
        ):
            rows = np.flatnonzero(mark)
            if len(rows):
                episodes = np.unique(number[rows])
                bad[episodes] = True
                self.notes.append(
                    f"Left out: {_count(len(episodes), 'episode')} in which {words}{self._rows(order[rows])}."
                )
        good = ~bad[number]
        n_steps = int(step[good].max(initial=-1)) + 1
        begins = set(state[good].tolist())
        short = [k for k in last.tolist() if good[k] and step[k] < n_steps - 1]
        cut = [k for k in short if then[k] in begins]
        if cut:
            longest = order[np.flatnonzero(good & (step == n_steps - 1))]
            if len(cut) > len(longest) and len(longest) < FEW_WHOLE * int(good[last].sum()):
                raise InvalidInputError(
                    f"{self.table.path}: {len(cut)} episodes{self._rows(order[cut])} have fewer than {n_steps} steps "
                    f"and end in states where others continue; {len(longest)} have {n_steps}{self._rows(longest)}. If "
                    "those are too long by mistake, correct or delete them; else record all episodes to the same step"
                )
            bad[number[cut]] = True
            self.notes.append(
                f"Left out: {_count(len(cut), 'episode')} with fewer than {n_steps} steps, cut short in a state where "
                f"others continue{self._rows(order[cut])}."
            )
        over = [k for k in short if then[k] not in begins]
        if over and not ends_known:
            self.notes.append(
                f"{_count(len(over), 'episode')} with fewer than {n_steps} steps count as complete"
                f"{self._rows(order[over])}; without next_state it is unknown whether they were cut short."
            )
        return ~bad[number], n_steps, int(bad.sum())

    def _note_similar(self, *columns: tuple[Names, Indices]) -> None:
        for column, rows in columns:
            seen: dict[str, str] = {}
            for name in dict.fromkeys(column.tolist()):
                other = seen.setdefault("".join(name.lower().split()), name)
                if other != name:
                    where = self._rows(rows[np.flatnonzero(column == name)])
                    self.notes.append(f"{other!r} and {name!r}{where} are two names; if they are one, make them equal.")


def _numbered(names: NDArray[Any]) -> tuple[list[Any], Indices]:
    """Return the distinct names in order of appearance, and the number of each entry."""
    numbers: dict[Any, int] = {}
    index = np.array([numbers.setdefault(name, len(numbers)) for name in names.tolist()], dtype=np.int64)
    return list(numbers), index


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'s' * (n != 1)}"
