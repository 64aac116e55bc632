"""A table of transitions by name: states and actions are numbered, rows are checked, and moves laid out in layers.

The columns are state, action, next_state and probability (or count). With a column step (0..n_steps-1), a row holds at
that step only. With a column outcome, rows of the same name are the same outcome of a tied transition distribution.
"""

import difflib
from collections.abc import Collection, Iterable, Mapping

import numpy as np

from tightrope.arguments import unknown
from tightrope.errors import InvalidInputError
from tightrope.problems.files.declaration import Toml
from tightrope.problems.files.tables import SHOWN, Table
from tightrope.problems.layout import Indices, Layout, Start, tied
from tightrope.problems.unroll import unroll
from tightrope.space import FloatArray

#: The largest distance of a sum of probabilities from one: they may be rounded to six digits.
ROUNDING = 1e-5

#: The most steps of an episode, and the most moves, counted at every step where they are possible: these are laid out
#: in seconds and fit into a gigabyte.
MOST_STEPS = 10_000
MOST_MOVES = 2_000_000


class Dynamics:
    """The states and actions of a problem, in the order of the table, and their layout."""

    def __init__(self, toml: Toml, table: Table) -> None:
        self.toml, self.table, self.n_steps = toml, table, toml.whole.n_steps
        if self.n_steps > MOST_STEPS:
            raise InvalidInputError(
                f"{toml.where('n_steps')}: {self.n_steps} steps, and an episode has at most {MOST_STEPS}; "
                "use longer steps"
            )
        columns = [table.names(name) for name in ("state", "action", "next_state")]
        self.states = _numbered(name for pair in zip(columns[0], columns[2], strict=True) for name in pair)
        self.actions = _numbered(columns[1])
        vocabularies = (self.states, self.actions, self.states)
        self.rows: Indices = np.array(
            [[v[name] for name in names] for v, names in zip(vocabularies, columns, strict=True)]
        ).T
        self.steps = self.step_column(table)
        self.terminal = {self._declared("terminal", name) for name in toml.whole.terminal}
        probabilities = self._probabilities()
        self._check_moves(probabilities)
        self.layout = unroll(
            self.rows,
            probabilities,
            n_steps=self.n_steps,
            start=self._start(),
            steps=self.steps,
            terminal=self.terminal,
        )
        if "outcome" in table.columns:
            self.layout = self._tied(self.layout)

    def step_column(self, table: Table) -> Indices | None:
        """Return the column `step` of a table, with values from 0 to n_steps - 1; None if there is no such column."""
        if "step" not in table.columns:
            return None
        steps = table.whole_numbers("step", at_least=0)
        for row in np.flatnonzero(steps >= self.n_steps)[:1].tolist():
            raise InvalidInputError(
                f"{table.where(row, 'step')}: step {steps[row]}, but with n_steps = {self.n_steps} "
                f"the last step is {self.n_steps - 1}"
            )
        return steps

    def _tied(self, layout: Layout) -> Layout:
        """Return the layout with the ties of the column outcome; a row without a name has its own outcome."""
        names = self.table.names("outcome", optional=True)
        numbers = _numbered(name for name in names if name)
        labels = np.array([numbers[name] if name else len(numbers) + row for row, name in enumerate(names)])
        try:
            return tied(layout, labels, self._move)
        except InvalidInputError as error:
            column = list(self.table.columns).index("outcome") + 1
            raise InvalidInputError(f"{self.table.path}, column {column} (outcome): {error}") from error

    def _declared(self, key: str, name: str) -> int:
        if name not in self.states:
            raise not_known(f"{self.toml.where(key)}: {key} is a state that is in no row,", name, self.states)
        return self.states[name]

    def _start(self) -> Start:
        start = self.toml.whole.start
        if isinstance(start, str):
            return self._declared("start", start)
        total = sum(start.values())
        if not start or min(start.values()) < 0 or abs(total - 1) > ROUNDING:
            raise InvalidInputError(
                f"{self.toml.where('start')}: the probabilities of start are {start}; they should sum to 1"
            )
        numbers = {self._declared("start", name): p / total for name, p in start.items()}
        return {number: p for number, p in numbers.items() if p > 0}

    def _probabilities(self) -> FloatArray:
        """Return the probability of each row, (n_rows,); those of a pair are scaled to sum to exactly one."""
        table, counted = self.table, "count" in self.table.columns
        if counted == ("probability" in table.columns):
            both = (
                "are both columns probability and count; drop one" if counted else "is no column probability or count"
            )
            raise InvalidInputError(f"{table.heading}: there {both}")
        p = table.whole_numbers("count", at_least=0).astype(np.float64) if counted else table.numbers("probability")
        for row in np.flatnonzero(~((p >= 0) & ((p <= 1) | counted)))[:1].tolist():
            raise InvalidInputError(f"{table.where(row, 'probability')}: {p[row]:g} lies outside 0 to 1")
        for row in np.flatnonzero(np.isin(self.rows[:, 0], list(self.terminal)))[:1].tolist():
            raise InvalidInputError(
                f"{table.where(row, 'state')}: a row starts in {self._state(self.rows[row, 0])}, which is terminal "
                f"({self.toml.where('terminal')})"
            )
        at = np.zeros(len(p), dtype=np.int64) if self.steps is None else self.steps
        state, action, next_state = self.rows.T
        order = np.lexsort((next_state, action, state, at))  # a stable sort: equal rows keep their order
        changes = np.diff(np.stack([at, state, action, next_state])[:, order]) != 0
        for i in np.flatnonzero(~changes.any(axis=0))[:1].tolist():
            raise InvalidInputError(
                f"{table.where(order[i + 1])}: the same state, action and next_state as in {table.place(order[i])}"
            )
        pair = np.empty(len(p), dtype=np.int64)
        pair[order] = np.append(0, np.cumsum(changes[:3].any(axis=0)))
        totals = np.bincount(pair, p)
        if counted:
            for row in np.flatnonzero(totals[pair] == 0)[:1].tolist():
                raise InvalidInputError(f"{table.where(row, 'count')}: nothing was counted for this state and action")
            return p / totals[pair]
        for row in np.flatnonzero((np.abs(totals - 1) > ROUNDING)[pair])[:1].tolist():
            raise InvalidInputError(
                f"{table.where(row, 'probability')}: the probabilities of {self._state(state[row])}, action "
                f"{list(self.actions)[action[row]]!r} sum to {totals[pair[row]]:.6g} over {(pair == pair[row]).sum()} "
                "rows; they should sum to 1"
            )
        return p / totals[pair]

    def _check_moves(self, p: FloatArray) -> None:
        """Refuse reachable states without rows, unreachable states, and too many moves.

        The moves of every step are counted here, before arrays of that size are allocated.
        """
        start = self._start()
        layer = np.array(sorted(start) if isinstance(start, Mapping) else [start])
        for state in self.terminal.intersection(layer.tolist()):
            raise InvalidInputError(
                f"{self.toml.where('start')}: the start {self._state(state)} is terminal; the episode would be over"
            )
        rows = np.flatnonzero(p > 0)
        place = self._place(self.rows[:, 0], self.steps)
        rows = rows[np.argsort(place[rows], kind="stable")]
        over, met, n_moves, here = np.array(sorted(self.terminal), dtype=np.int64), [], 0, rows[:0]
        for k in range(self.n_steps):
            going = np.setdiff1d(layer, over)
            met.append(self._place(going, k))
            first, last = (np.searchsorted(place[rows], met[-1], side=side) for side in ("left", "right"))
            for state in going[first == last][:1].tolist():
                raise self._stuck(state, k, here)
            count = last - first
            here = rows[np.repeat(first - (np.cumsum(count) - count), count) + np.arange(count.sum())]
            next_layer = np.union1d(self.rows[here, 2], np.intersect1d(layer, over))
            # the states no longer change: the other steps are equal to this one
            settled = self.steps is None and np.array_equal(next_layer, layer)
            n_moves += (len(here) + (len(going) < len(layer))) * (self.n_steps - k if settled else 1)
            if n_moves > MOST_MOVES:
                raise InvalidInputError(
                    f"{self.toml.where('n_steps')}: {self.n_steps if settled else k + 1} steps have {n_moves} moves, "
                    f"and at most {MOST_MOVES} are possible; lower n_steps, or merge states"
                )
            if settled:
                break
            layer = next_layer
        if not self.toml.whole.allow_unreachable:
            for row in np.flatnonzero(~np.isin(place, np.concatenate(met)))[:1].tolist():
                then = f"in {self.n_steps} steps" if self.steps is None else f"at step {self.steps[row]}"
                raise InvalidInputError(
                    f"{self.table.where(row, 'state')}: {self._state(self.rows[row, 0])} cannot be reached from the "
                    f"start {then}; drop its rows, correct those that should lead there, or set allow_unreachable = "
                    f"true in {self.toml.path.name}"
                )

    def _place(self, state: Indices, step: Indices | int | None) -> Indices:
        """Return one number for a state and a step; without a column step, for the state alone."""
        return state if self.steps is None or step is None else state + np.multiply(step, len(self.states))

    def _stuck(self, state: int, k: int, before: Indices) -> InvalidInputError:
        """Return the error for a state that is reached at step k, by some of the rows `before`, and has no rows."""
        led = before[self.rows[before, 2] == state]
        where = self.table.where(led[0], "next_state") if len(led) else self.toml.where("start")
        then = "" if self.steps is None else f" at step {k}"
        return InvalidInputError(
            f"{where}: {self._state(state)} can be reached at step {k}, but no row starts there{then}; "
            f"add one, or list it as terminal in {self.toml.path.name}"
        )

    def _move(self, row: int) -> str:
        state, action, _ = self.rows[row]
        return f"{self._state(state)}, action {list(self.actions)[action]!r} ({self.table.place(row)})"

    def _state(self, number: int) -> str:
        return f"state {list(self.states)[number]!r}"


def not_known(complaint: str, name: str, known: Collection[str]) -> InvalidInputError:
    """Return the error of `unknown`; of a long list it names only the nearest entry."""
    if len(known) <= SHOWN:
        return unknown(complaint, name, known)
    near = difflib.get_close_matches(name, known, n=1)
    return InvalidInputError(f"{complaint} {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))


def _numbered(names: Iterable[str]) -> dict[str, int]:
    return {name: number for number, name in enumerate(dict.fromkeys(names))}
