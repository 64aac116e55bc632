"""A user's table of transitions, by name: numbered, checked with the line of whatever is wrong, and laid out in layers.

Columns state, action, next_state, probability; with a column step (0..n_steps-1) the rows hold at that step only.
"""

import difflib
from collections import defaultdict
from collections.abc import Iterable, Mapping

import numpy as np

from tightrope.arguments import unknown
from tightrope.errors import InvalidInputError
from tightrope.problems.files.declaration import Toml
from tightrope.problems.files.tables import Table
from tightrope.problems.tabular.rows import Start
from tightrope.problems.tabular.unroll import unroll
from tightrope.space import FloatArray

#: How far probabilities may be from summing to one: they may have been written with six digits.
ROUNDING = 1e-5

#: Steps times rows; more would not fit.
LARGEST = 50_000_000

#: How many names an error lists.
SHOWN = 12


class Dynamics:
    """The states and actions of a problem, in the order in which the table brings them up, and their layout."""

    def __init__(self, toml: Toml, table: Table) -> None:
        self.toml, self.table, self.n_steps = toml, table, toml.whole.n_steps
        if self.n_steps * len(table) > LARGEST:
            raise InvalidInputError(
                f"{toml.where('n_steps')}: {self.n_steps} steps of {len(table)} rows do not fit; "
                f"{LARGEST} rows in all can be laid out"
            )
        columns = [table.names(name) for name in ("state", "action", "next_state")]
        self.states = _numbered(name for pair in zip(columns[0], columns[2], strict=True) for name in pair)
        self.actions = _numbered(columns[1])
        vocabularies = (self.states, self.actions, self.states)
        self.rows: list[tuple[int, ...]] = list(
            zip(*([v[name] for name in names] for v, names in zip(vocabularies, columns, strict=True)), strict=True)
        )
        self.steps = self.step_column(table)
        self.terminal = {self._declared("terminal", name) for name in toml.whole.terminal}
        probabilities = self._probabilities()
        self._check_reachable(probabilities)
        self.layout = unroll(
            self.rows,
            probabilities,
            n_steps=self.n_steps,
            start=self._start(),
            steps=self.steps,
            terminal=self.terminal,
        )

    def step_column(self, table: Table) -> list[int] | None:
        """The cells of the column step, if there is one, each from 0 to n_steps - 1."""
        if "step" not in table.columns:
            return None
        steps = table.whole_numbers("step", at_least=0)
        for row, step in enumerate(steps):
            if step >= self.n_steps:
                raise InvalidInputError(
                    f"{table.where(row, 'step')}: step {step}, but with n_steps = {self.n_steps} "
                    f"the last step is {self.n_steps - 1}"
                )
        return steps

    def _declared(self, key: str, name: str) -> int:
        if name not in self.states:
            raise not_known(f"{self.toml.where(key)}: {key} names a state that no row has,", name, self.states)
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
        """The column of probabilities, those of every pair scaled to sum to exactly one."""
        table = self.table
        p = np.array(table.numbers("probability"))
        first: dict[tuple[int, ...], int] = {}
        rows_of_pair: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for row, (key, chance) in enumerate(zip(self.rows, p.tolist(), strict=True)):
            if not 0 <= chance <= 1:
                raise InvalidInputError(f"{table.where(row, 'probability')}: {chance:g} lies outside 0 to 1")
            at = () if self.steps is None else (self.steps[row],)
            if (before := first.setdefault((*at, *key), row)) != row:
                raise InvalidInputError(
                    f"{table.where(row)}: the same state, action and next_state as in {table.place(before)}"
                )
            if key[0] in self.terminal:
                raise InvalidInputError(
                    f"{table.where(row, 'state')}: a row starts in {self._state(key[0])}, which is terminal "
                    f"({self.toml.where('terminal')})"
                )
            rows_of_pair[(*at, *key[:2])].append(row)
        for rows in rows_of_pair.values():
            total = p[rows].sum()
            if abs(total - 1) > ROUNDING:
                state, action, _ = self.rows[rows[0]]
                raise InvalidInputError(
                    f"{table.where(rows[0], 'probability')}: the probabilities of {self._state(state)}, action "
                    f"{list(self.actions)[action]!r} sum to {total:.6g} over {len(rows)} rows; they should sum to 1"
                )
            p[rows] /= total
        return p

    def _check_reachable(self, p: FloatArray) -> None:
        """Refuse a state that can be met where no row starts, and, unless allowed, one that cannot be met at all."""
        starting: dict[tuple[int, int], list[int]] = defaultdict(list)  # (step or 0, state) -> rows
        for row, (state, _, _) in enumerate(self.rows):
            starting[0 if self.steps is None else self.steps[row], state].append(row)
        start = self._start()
        layer = dict.fromkeys(start if isinstance(start, Mapping) else [start], -1)  # state -> a row that leads there
        if over := self.terminal & layer.keys():
            raise InvalidInputError(
                f"{self.toml.where('start')}: the start {self._state(min(over))} is terminal; the episode would be over"
            )
        met: set[tuple[int, int]] = set()
        for k in range(self.n_steps):
            next_layer: dict[int, int] = {}
            for state, led in layer.items():
                here = (0 if self.steps is None else k, state)
                if state in self.terminal or here in met:  # without steps, a state leads where it led before
                    continue
                if here not in starting:
                    where = self.toml.where("start") if led < 0 else self.table.where(led, "next_state")
                    then = "" if self.steps is None else f" at step {k}"
                    raise InvalidInputError(
                        f"{where}: {self._state(state)} can be met at step {k}, but no row starts there{then}; "
                        f"add one, or list it as terminal in {self.toml.path.name}"
                    )
                met.add(here)
                next_layer |= {self.rows[row][2]: row for row in starting[here] if p[row] > 0}
            layer = next_layer
        if not self.toml.whole.allow_unreachable:
            for here, rows in starting.items():
                if here not in met:
                    then = f"in {self.n_steps} steps" if self.steps is None else f"at step {here[0]}"
                    raise InvalidInputError(
                        f"{self.table.where(rows[0], 'state')}: {self._state(here[1])} cannot be reached from the "
                        f"start {then}; drop its rows, mend those that should lead there, or set allow_unreachable = "
                        f"true in {self.toml.path.name}"
                    )

    def _state(self, number: int) -> str:
        return f"state {list(self.states)[number]!r}"


def not_known(complaint: str, name: str, known: Mapping[str, int]) -> InvalidInputError:
    """As `unknown`, but a long list is cut short."""
    if len(known) <= SHOWN:
        return unknown(complaint, name, known)
    near = difflib.get_close_matches(name, known, n=1)
    return InvalidInputError(f"{complaint} {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))


def _numbered(names: Iterable[str]) -> dict[str, int]:
    return {name: number for number, name in enumerate(dict.fromkeys(names))}
