"""Losses or uses of every move of a layout: from one table, or from a form that combines several.

The columns of a table are state, action and the value. With a column next_state or step, the value depends on it. With
a column episode (1, 2, … without gaps), the table has one recorded function for each episode.
"""

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightrope.arguments import unknown
from tightrope.errors import InvalidInputError
from tightrope.problems.factors import Factors, Form, parse
from tightrope.problems.files.declaration import Charged, Toml
from tightrope.problems.files.dynamics import Dynamics, not_known
from tightrope.problems.files.tables import LARGEST_WHOLE, Table
from tightrope.problems.layout import Indices
from tightrope.space import FloatArray

#: The columns that identify a move; the first two are required.
MOVE = ("state", "action", "next_state", "step")

#: The most numbers that the recorded losses, or all recorded constraints, may have in the layout: with intermediate
#: arrays they fit into a gigabyte, and take seconds.
MOST_NUMBERS = 10_000_000

#: A default that is used for a larger share of all entries causes a warning.
MUCH = 0.05

#: The number of entries that are laid out at once, to keep intermediate arrays small.
AT_ONCE = 1_000_000


class Charges:
    """The losses or uses of a table; `part` of the declaration, under `keys`, describes how to read it."""

    def __init__(self, toml: Toml, table: Table, dynamics: Dynamics, part: Charged, *keys: str) -> None:
        self.toml, self.table, self.dynamics, self.part, self.keys = toml, table, dynamics, part, keys
        self.column = part.column or keys[-1]
        self.values = table.numbers(self.column)
        self._check_bounds()
        self.columns = [name for name in MOVE if name in table.columns]
        self.moves = self._moves()
        self.codes = self._codes(*self.moves.T)
        self._check_moves()
        self.has_episodes = "episode" in table.columns
        once = np.ones(len(table), dtype=np.int64)
        self.episodes = table.whole_numbers("episode", at_least=1) if self.has_episodes else once
        self._check_episodes()
        self.n_episodes = int(self.episodes.max())
        self.what = f"{table.path}: {self.column}"
        self._n_defaults = 0
        default = 0.0 if part.default is None else part.default
        self.largest = float(np.abs([*self.values, default]).max())

    def lay_out(self) -> FloatArray:
        """Return the values, (n_episodes, n_tuples), in the units of the table."""
        layout = self.dynamics.layout
        self.check_size(self.n_episodes * layout.space.n_tuples)
        order = np.lexsort((self.codes, self.episodes))
        laid_out = np.empty((self.n_episodes, layout.space.n_tuples))
        many = max(1, AT_ONCE // len(layout.row_of_move))
        rows = np.split(order, np.flatnonzero(np.diff(self.episodes[order])) + 1)
        for k in range(0, self.n_episodes, many):
            laid_out[k : k + many] = layout.lay_out(partial(self._charged, rows[k : k + many]))
        return laid_out

    def warnings(self) -> list[str]:
        """Return a warning if the default was used for many moves, which may merely not have been recorded."""
        share = self._n_defaults / (self.n_episodes * len(self.dynamics.layout.row_of_move))
        if share <= MUCH:
            return []
        return [
            f"{self.table.path.name} has no row for {share:.0%} of the possible moves, which get default = "
            f"{self.part.default:g} of [{'.'.join(self.keys)}]. If these moves were merely not recorded, the results "
            "mean nothing: build the problem from the record with tightrope new NAME --from-log FILE."
        ]

    def check_size(self, n_numbers: int) -> None:
        """Raise InvalidInputError if the layout has more numbers than fit into memory."""
        if n_numbers > MOST_NUMBERS:
            raise InvalidInputError(
                f"{self.table.path}: {self.n_episodes} episodes have {n_numbers} numbers in the layout, and at most "
                f"{MOST_NUMBERS} fit; record fewer episodes, or lower n_steps in {self.toml.path.name}"
            )

    def _charged(
        self, rows_of_episodes: list[Indices], state: Indices, action: Indices, next_state: Indices, step: Indices
    ) -> FloatArray:
        """Return the values of moves in several episodes, (…, n_moves); rows of an episode are sorted by code."""
        every = dict(zip(MOVE, (state, action, next_state, step), strict=True))
        wanted = self._codes(*(every[name] for name in self.columns))
        charged = np.empty((len(rows_of_episodes), len(wanted)))
        for k, rows in enumerate(rows_of_episodes):
            found = rows[np.minimum(np.searchsorted(self.codes[rows], wanted), len(rows) - 1)]
            charged[k] = self.values[found]
            lacking = self.codes[found] != wanted
            if lacking.any():
                if self.part.default is None:
                    j = int(np.argmax(lacking))
                    needed = len(np.unique(wanted)) * self.n_episodes
                    raise self._no_row([every[name][j] for name in self.columns], int(self.episodes[rows[0]]), needed)
                charged[k, lacking] = self.part.default
                self._n_defaults += int(lacking.sum())
        return charged

    def _no_row(self, move: list[np.int64], episode: int, needed: int) -> InvalidInputError:
        during = f" in episode {episode}" if self.has_episodes else ""
        remedy = f"add one, or set default in [{'.'.join(self.keys)}] of {self.toml.path.name}"
        if self.has_episodes and 2 * len(self.table) < needed:
            remedy = (
                "this looks like a record of the paths that were played, without other moves: build the problem from "
                f"it with tightrope new NAME --from-log {self.table.path.name}"
            )
        return InvalidInputError(f"{self.table.path}: there is no row for {self._name(move)}{during}; {remedy}")

    def _codes(self, *columns: Indices) -> Indices:
        """Return a code for each row of these columns; different rows have different codes."""
        n_states, n_actions = len(self.dynamics.states), len(self.dynamics.actions)
        sizes = dict(zip(MOVE, (n_states, n_actions, n_states, self.dynamics.n_steps), strict=True))
        if math.prod(sizes[name] for name in self.columns) > LARGEST_WHOLE:
            raise InvalidInputError(
                f"{self.table.path}: {n_states} states, {n_actions} actions and {self.dynamics.n_steps} steps have "
                "more moves than can be numbered; merge states, or lower n_steps"
            )
        codes = np.zeros(len(columns[0]), dtype=np.int64)
        for name, column in zip(self.columns, columns, strict=True):
            codes = codes * sizes[name] + column
        return codes

    def _moves(self) -> Indices:
        """Return the move of each row, (n_rows, n_columns), as numbers."""
        table, dynamics = self.table, self.dynamics
        columns = []
        for name in self.columns:
            if name == "step":
                columns.append(dynamics.step_column(table))
                continue
            known = dynamics.actions if name == "action" else dynamics.states
            names = table.names(name)
            numbers = np.array([known.get(cell, -1) for cell in names])
            for row in np.flatnonzero(numbers < 0)[:1].tolist():
                raise not_known(
                    f"{table.where(row, name)}: there is no {name.removeprefix('next_')}", names[row], known
                )
            columns.append(numbers)
        return np.stack([column for column in columns if column is not None], axis=1)

    def _check_moves(self) -> None:
        """Refuse a move that is not in the table of transitions."""
        width = 3 if "next_state" in self.columns else 2
        sizes = (len(self.dynamics.states), len(self.dynamics.actions), len(self.dynamics.states))[:width]
        given, possible = (np.ravel_multi_index(m[:, :width].T, sizes) for m in (self.moves, self.dynamics.rows))
        for row in np.flatnonzero(~np.isin(given, possible))[:1].tolist():
            raise InvalidInputError(
                f"{self.table.where(row)}: {self._name(self.moves[row, :width])} cannot happen; "
                f"{self.dynamics.table.path.name} has no such row"
            )

    def _name(self, move: NDArray[np.int64] | list[np.int64]) -> str:
        names = {"state": list(self.dynamics.states), "action": list(self.dynamics.actions)}
        names["next_state"] = names["state"]
        shown = (
            f"{column} {names[column][number]!r}" if column in names else f"{column} {number}"
            for column, number in zip(self.columns, move, strict=False)
        )
        return ", ".join(shown)

    def _check_bounds(self) -> None:
        bounds = self.toml.bounds(self.part, *self.keys)
        if bounds is None:
            return
        low, high = bounds
        default = self.part.default
        if default is not None and not low <= default <= high:
            raise InvalidInputError(f"{self.toml.where(*self.keys, 'default')}: {default:g} lies outside the bounds")
        for row in np.flatnonzero(~((low <= self.values) & (self.values <= high)))[:1].tolist():
            raise InvalidInputError(
                f"{self.table.where(row, self.column)}: {self.values[row]:g} lies outside the bounds {low:g} to "
                f"{high:g} ({self.toml.where(*self.keys, 'bounds')})"
            )

    def _check_episodes(self) -> None:
        """Refuse a gap between episodes, and two values for one move."""
        there = np.unique(self.episodes)
        for k in np.flatnonzero(there != np.arange(1, len(there) + 1))[:1].tolist():
            row = int(np.argmax(self.episodes > k + 1))
            raise InvalidInputError(
                f"{self.table.where(row, 'episode')}: episode {self.episodes[row]}, but there is no episode "
                f"{k + 1}; number them 1, 2, 3, … without gaps"
            )
        order = np.lexsort((self.codes, self.episodes))
        same = (np.diff(self.codes[order]) == 0) & (np.diff(self.episodes[order]) == 0)
        for i in np.flatnonzero(same)[:1].tolist():
            before, row = sorted(order[i : i + 2].tolist())
            raise InvalidInputError(
                f"{self.table.where(row)}: a second value for {self._name(self.moves[row])} "
                f"(the first is in {self.table.place(before)})"
            )


# --------------------------------------------------------------------------------------------- forms
#
# A form is an expression of named tables, indexed by the names of states and actions. A table of a form is a file with
# a column for each of its axes and one for its value, which has the name of the table unless `{ file = …, column = …
# }` gives another; or its numbers are in problem.toml, by name for an axis of states or actions, as a list for steps
# or episodes.

#: Axes whose entries have names, and those that are counted.
NAMED, COUNTED = ("state", "action", "next_state"), ("episode", "step")


def parsed(toml: Toml, part: Charged, *keys: str) -> Form:
    """Parse the form of this part of the declaration, and check that its tables are declared."""
    with toml.blaming(*keys, "form"):
        form = parse(part.form or "")
    for name, axes in form.factors.items():
        if name not in toml.whole.tables:
            raise unknown(f"{toml.where(*keys, 'form')}: [tables] has no table", name, toml.whole.tables)
        given = toml.whole.tables[name]
        if not isinstance(given, str) and toml.file_table(name) is None:
            kind, right = ("numbers by name", NAMED) if isinstance(given, dict) else ("a list of numbers", COUNTED)
            if len(axes) != 1 or axes[0] not in right:
                raise InvalidInputError(
                    f"{toml.where('tables', name)}: {kind} for a table over {', '.join(axes)}; {kind} are for one axis "
                    f"of {', '.join(right)}; put any other table into a file"
                )
    return form


def columns(toml: Toml, name: str, axes: tuple[str, ...]) -> tuple[str, list[str]] | None:
    """Return the file of a table of a form and the columns that it needs; None if it is in problem.toml itself."""
    file = toml.file_table(name)
    return None if file is None else (file.file, [*axes, file.column or name])


class FormCharges:
    """The losses or uses of a form for every move; it has the interface of `Charges`."""

    def __init__(self, toml: Toml, tables: dict[str, Table], dynamics: Dynamics, part: Charged, *keys: str) -> None:
        self.toml, self.dynamics, self.part, self.keys = toml, dynamics, part, keys
        self.form = parsed(toml, part, *keys)
        arrays = {name: self._array(name, axes, tables.get(name)) for name, axes in self.form.factors.items()}
        self._check_whole(arrays)
        with toml.blaming(*keys, "form"):
            self.factors = Factors(self.form, **{name: np.nan_to_num(array) for name, array in arrays.items()})
        self.n_episodes = self.factors.n_episodes or 1

    @property
    def what(self) -> str:
        """The form and its place, for errors."""
        return f"{self.toml.where(*self.keys, 'form')}: {self.form.text}"

    def lay_out(self) -> FloatArray:
        """Return the values, (n_episodes, n_tuples), in the units of the form."""
        layout = self.dynamics.layout
        self.check_size(self.n_episodes * layout.space.n_tuples)
        laid_out = np.empty((self.n_episodes, layout.space.n_tuples))
        many = max(1, AT_ONCE // len(layout.row_of_move))
        for k in range(0, self.n_episodes, many):
            laid_out[k : k + many] = layout.lay_out(partial(self.factors.during, slice(k, k + many)))
        self._check_bounds(laid_out)
        self.largest = float(np.abs(laid_out).max(initial=0.0))
        return laid_out

    def warnings(self) -> list[str]:
        """Return no warnings: a form has no default."""
        return []

    def check_size(self, n_numbers: int) -> None:
        """Raise InvalidInputError if the layout has more numbers than fit into memory."""
        if n_numbers > MOST_NUMBERS:
            raise InvalidInputError(
                f"{self.what}: laid out, {self.n_episodes} episodes make {n_numbers} numbers, and at most "
                f"{MOST_NUMBERS} fit; record fewer episodes, or lower n_steps"
            )

    def _size(self, axis: str) -> int:
        dynamics = self.dynamics
        return {"action": len(dynamics.actions), "step": dynamics.n_steps}.get(axis, len(dynamics.states))

    def _array(self, name: str, axes: tuple[str, ...], table: Table | None) -> FloatArray:
        """Return the table as an array over its axes, with nan for missing entries."""
        if table is None:
            return self._inline(name, axes[0])
        file = self.toml.file_table(name)
        values = table.numbers((file and file.column) or name)
        index = [self._numbers(table, axis) for axis in axes]
        shape = [
            int(where.max()) + 1 if axis == "episode" else self._size(axis)
            for axis, where in zip(axes, index, strict=True)
        ]
        if np.prod(shape, dtype=np.float64) > MOST_NUMBERS:
            raise InvalidInputError(
                f"{table.path}: a table over {', '.join(axes)} has {' x '.join(map(str, shape))} entries here, and at "
                f"most {MOST_NUMBERS} fit; use fewer axes, or `table` in place of `form`"
            )
        flat = np.ravel_multi_index(index, shape)
        order = np.argsort(flat, kind="stable")
        for i in np.flatnonzero(np.diff(flat[order]) == 0)[:1].tolist():
            before, row = order[i : i + 2].tolist()
            raise InvalidInputError(
                f"{table.where(row)}: a second value for the same {', '.join(axes)} (the first is in "
                f"{table.place(before)})"
            )
        array = np.full(shape, np.nan)
        array[tuple(index)] = values
        return array

    def _numbers(self, table: Table, axis: str) -> Indices:
        """Return the cells of an axis as numbers from 0."""
        if axis == "episode":
            return table.whole_numbers("episode", at_least=1) - 1
        if axis == "step":
            steps = self.dynamics.step_column(table)
            assert steps is not None  # the column is required and was checked
            return steps
        known = self.dynamics.actions if axis == "action" else self.dynamics.states
        names = table.names(axis)
        numbers = np.array([known.get(cell, -1) for cell in names])
        for row in np.flatnonzero(numbers < 0)[:1].tolist():
            raise not_known(f"{table.where(row, axis)}: there is no {axis.removeprefix('next_')}", names[row], known)
        return numbers

    def _inline(self, name: str, axis: str) -> FloatArray:
        given: Any = self.toml.whole.tables[name]
        if isinstance(given, list):
            if axis == "step" and len(given) != self.dynamics.n_steps:
                raise InvalidInputError(
                    f"{self.toml.where('tables', name)}: {len(given)} numbers for {self.dynamics.n_steps} steps"
                )
            return np.array([self._number(name, value) for value in given], dtype=np.float64)
        known = self.dynamics.actions if axis == "action" else self.dynamics.states
        array = np.full(len(known), np.nan)
        for entry, value in given.items():
            if entry not in known:
                raise not_known(
                    f"{self.toml.where('tables', name)}: there is no {axis.removeprefix('next_')}", entry, known
                )
            array[known[entry]] = self._number(name, value)
        return array

    def _number(self, name: str, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InvalidInputError(f"{self.toml.where('tables', name)}: {value!r} where a number should be")
        return float(value)

    def _check_whole(self, arrays: dict[str, FloatArray]) -> None:
        """Refuse a table without a value for a possible move."""
        layout = self.dynamics.layout
        state, action, next_state = layout.rows[layout.row_of_move].T
        step = layout.step[layout.space.tuples[layout.tuple_of_move, 0]]
        at = {"state": state, "action": action, "next_state": next_state, "step": step}
        for name, axes in self.form.factors.items():
            needed = np.moveaxis(arrays[name], axes.index("episode"), 0) if "episode" in axes else arrays[name][None]
            index: tuple[Any, ...] = tuple(at[axis] for axis in axes if axis != "episode") or (None,)
            lacking = np.isnan(needed[(slice(None), *index)])
            if lacking.any():
                episode, move = np.argwhere(lacking)[0].tolist()
                named = [self._name(axis, episode if axis == "episode" else int(at[axis][move])) for axis in axes]
                raise InvalidInputError(
                    f"{self.toml.where('tables', name)}: {name} has no value for {', '.join(named)}; add it"
                )

    def _name(self, axis: str, number: int) -> str:
        if axis in COUNTED:
            return f"{axis} {number + (axis == 'episode')}"
        return f"{axis} {list(self.dynamics.actions if axis == 'action' else self.dynamics.states)[number]!r}"

    def _check_bounds(self, laid_out: FloatArray) -> None:
        bounds = self.toml.bounds(self.part, *self.keys)
        if bounds is None:
            return
        low, high = bounds
        moves = laid_out[:, self.dynamics.layout.tuple_of_move]  # waiting has the loss 0
        outside = ~((low <= moves) & (moves <= high))
        if outside.any():
            episode, j = np.argwhere(outside)[0].tolist()
            row = self.dynamics.layout.rows[self.dynamics.layout.row_of_move[j]]
            names = [self._name(axis, int(number)) for axis, number in zip(NAMED[:2], row, strict=False)]
            during = f" in episode {episode + 1}" if self.factors.n_episodes else ""
            raise InvalidInputError(
                f"{self.what} is {moves[episode, j]:g} at {', '.join(names)}{during}, outside the bounds {low:g} to "
                f"{high:g} ({self.toml.where(*self.keys, 'bounds')})"
            )
