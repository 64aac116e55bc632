"""A user's table of losses or of what a budget is used for, by name, looked up for every move of a layout.

Columns state, action and the value; with next_state or step the value depends on it; with episode (1, 2, … without
gaps) the table holds one recorded function after another.
"""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from tightrope.errors import InvalidInputError
from tightrope.problems.files.declaration import Charged, Toml
from tightrope.problems.files.dynamics import Dynamics, not_known
from tightrope.problems.files.tables import Table
from tightrope.problems.tabular.rows import Indices
from tightrope.space import FloatArray

#: The columns that say which move a row is about; the first two are needed.
MOVE = ("state", "action", "next_state", "step")


class Charges:
    """What a table charges for every move; `part` of the declaration, under `keys`, says how to read it."""

    def __init__(self, toml: Toml, table: Table, dynamics: Dynamics, part: Charged, *keys: str) -> None:
        self.toml, self.table, self.dynamics, self.part, self.keys = toml, table, dynamics, part, keys
        self.column = part.column or keys[-1]
        self.values = np.array(table.numbers(self.column))
        self._check_bounds()
        self.columns = [name for name in MOVE if name in table.columns]
        self.moves = self._moves()
        self.codes = self._codes(*self.moves.T)
        self.has_episodes = "episode" in table.columns
        listed = table.whole_numbers("episode", at_least=1) if self.has_episodes else [1] * len(table)
        self.episodes = np.array(listed)
        self._check_episodes()

    def lay_out(self) -> FloatArray:
        """(n_episodes, n_tuples) in the table's own units."""
        rows = []
        for episode in range(1, int(self.episodes.max()) + 1):
            of_episode = np.flatnonzero(self.episodes == episode)
            of_episode = of_episode[np.argsort(self.codes[of_episode])]
            rows.append(self.dynamics.layout.lay_out(partial(self._charged, of_episode)))
        return np.array(rows)

    def _charged(
        self, rows: Indices, state: Indices, action: Indices, next_state: Indices, step: Indices
    ) -> FloatArray:
        """The values of many moves, among `rows`, which are sorted by their codes."""
        every = dict(zip(MOVE, (state, action, next_state, step), strict=True))
        wanted = self._codes(*(every[name] for name in self.columns))
        found = rows[np.minimum(np.searchsorted(self.codes[rows], wanted), len(rows) - 1)]
        lacking = self.codes[found] != wanted
        if self.part.default is not None:
            return np.where(lacking, self.part.default, self.values[found])
        if lacking.any():
            j = int(np.argmax(lacking))
            during = f" in episode {self.episodes[rows[0]]}" if self.has_episodes else ""
            raise InvalidInputError(
                f"{self.table.path}: there is no row for {self._name([every[name][j] for name in self.columns])}"
                f"{during}; add one, or set default in [{'.'.join(self.keys)}] of {self.toml.path.name}"
            )
        charged: FloatArray = self.values[found]
        return charged

    def _codes(self, *columns: Indices) -> Indices:
        """One number for each row of these columns, another for each other one."""
        n_states, n_actions = len(self.dynamics.states), len(self.dynamics.actions)
        sizes = dict(zip(MOVE, (n_states, n_actions, n_states, self.dynamics.n_steps), strict=True))
        codes = np.zeros(len(columns[0]), dtype=np.int64)
        for name, column in zip(self.columns, columns, strict=True):
            codes = codes * sizes[name] + column
        return codes

    def _moves(self) -> Indices:
        """(n_rows, n_columns) the moves that the rows are about, in numbers; all of them can happen."""
        table, dynamics = self.table, self.dynamics
        columns = []
        for name in self.columns:
            if name == "step":
                columns.append(dynamics.step_column(table))
                continue
            known = dynamics.actions if name == "action" else dynamics.states
            for row, cell in enumerate(table.names(name)):
                if cell not in known:
                    raise not_known(f"{table.where(row, name)}: there is no {name.removeprefix('next_')}", cell, known)
            columns.append([known[cell] for cell in table.names(name)])
        moves: NDArray[np.int64] = np.array(columns).T
        width = 3 if "next_state" in self.columns else 2
        possible = {move[:width] for move in dynamics.rows}
        for row, move in enumerate(moves[:, :width].tolist()):
            if tuple(move) not in possible:
                raise InvalidInputError(
                    f"{table.where(row)}: {self._name(moves[row, :width])} cannot happen; "
                    f"{dynamics.table.path.name} has no such row"
                )
        return moves

    def _name(self, move: NDArray[np.int64] | list[np.int64]) -> str:
        names = {"state": list(self.dynamics.states), "action": list(self.dynamics.actions)}
        names["next_state"] = names["state"]
        shown = (
            f"{column} {names[column][number]!r}" if column in names else f"{column} {number}"
            for column, number in zip(self.columns, move, strict=False)
        )
        return ", ".join(shown)

    def _check_bounds(self) -> None:
        if self.part.bounds is None:
            return
        low, high = self.part.bounds
        where = self.toml.where(*self.keys, "bounds")
        if not low < high:
            raise InvalidInputError(f"{where}: bounds are {low:g} and {high:g}; the second should be larger")
        default = self.part.default
        if default is not None and not low <= default <= high:
            raise InvalidInputError(f"{self.toml.where(*self.keys, 'default')}: {default:g} lies outside the bounds")
        for row in np.flatnonzero(~((low <= self.values) & (self.values <= high)))[:1].tolist():
            raise InvalidInputError(
                f"{self.table.where(row, self.column)}: {self.values[row]:g} lies outside the bounds {low:g} to "
                f"{high:g} ({where})"
            )

    def _check_episodes(self) -> None:
        """Refuse a gap, and two values for one move."""
        for episode in range(1, int(self.episodes.max()) + 1):
            if not (self.episodes == episode).any():
                row = int(np.argmax(self.episodes > episode))
                raise InvalidInputError(
                    f"{self.table.where(row, 'episode')}: episode {self.episodes[row]}, but there is no episode "
                    f"{episode}; they count 1, 2, 3, … without gaps"
                )
        order = np.lexsort((self.codes, self.episodes))
        same = (np.diff(self.codes[order]) == 0) & (np.diff(self.episodes[order]) == 0)
        for i in np.flatnonzero(same)[:1].tolist():
            before, row = sorted(order[i : i + 2].tolist())
            raise InvalidInputError(
                f"{self.table.where(row)}: a second value for {self._name(self.moves[row])} "
                f"(the first is in {self.table.place(before)})"
            )
