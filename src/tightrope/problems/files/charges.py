"""A table of losses or uses by the names of states and actions, looked up for every move of a layout.

The columns are state, action and the value. With a column next_state or step, the value depends on it. With a column
episode (1, 2, … without gaps), the table has one recorded function for each episode.
"""

import math
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tightrope.errors import InvalidInputError
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

#: So many are laid out at once, to keep intermediate arrays small.
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
