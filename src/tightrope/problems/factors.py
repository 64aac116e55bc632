"""Losses and constraints as sums of products of small tables: "price[episode, step] * energy[action] + wear[action]".

A form is a sum of terms, a term a product of factors, and a factor a number or a table with its axes, any of `AXES`.
There are no parentheses and no functions. A form is parsed here and never evaluated as code.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tightrope.arguments import shown, text, unknown
from tightrope.arguments.arrays import finite, floats
from tightrope.errors import InvalidInputError
from tightrope.problems.layout import Indices
from tightrope.space import FloatArray

#: The possible axes of a table.
AXES = ("episode", "step", "state", "action", "next_state")

#: The most characters of a form.
MOST_CHARACTERS = 10_000

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)|(?P<name>[A-Za-z_]\w*)|(?P<sign>[-+*,\[\]]))"
)


@dataclass(frozen=True)
class Factor:
    """A table, by its name and its axes, in the order of its dimensions."""

    table: str
    axes: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.table}[{', '.join(self.axes)}]"


@dataclass(frozen=True)
class Term:
    """A term of a form: a number times tables."""

    coefficient: float
    factors: tuple[Factor, ...]


@dataclass(frozen=True)
class Form:
    """A sum of terms, and the text that it was parsed from."""

    text: str
    terms: tuple[Term, ...]

    @property
    def factors(self) -> dict[str, tuple[str, ...]]:
        """The axes of each table."""
        return {factor.table: factor.axes for term in self.terms for factor in term.factors}


def parse(form: str) -> Form:
    """Parse a form such as "price[episode, step] * energy[action] - 0.5 * subsidy[action]".

    Raises
    ------
    InvalidInputError : with the column, if the text is not a form, if an axis is unknown or occurs twice, or if a table
        is used with different axes.
    """
    return _Parser(text(form, "form")).form()


class _Parser:
    """Parses a form from left to right, token by token."""

    def __init__(self, form: str) -> None:
        if len(form) > MOST_CHARACTERS:
            raise InvalidInputError(f"the form has {len(form)} characters; at most {MOST_CHARACTERS} are read")
        self.text, self.tokens, self.next = form, list[tuple[str, str, int]](), 0
        at, end = 0, len(form.rstrip())
        while at < end:
            found = _TOKEN.match(form, at)
            if found is None:
                column = at + len(form[at:]) - len(form[at:].lstrip())
                raise self._error(f"{form[column]!r} is not expected", column)
            kind = str(found.lastgroup)
            self.tokens.append((kind, found[kind], found.start(kind)))
            at = found.end()

    def form(self) -> Form:
        terms = [self._term(-1.0 if self._take("-") else 1.0)]
        while not self._done:
            if self._take("+"):
                terms.append(self._term(1.0))
            elif self._take("-"):
                terms.append(self._term(-1.0))
            else:
                raise self._unexpected("+, - or *")
        axes: dict[str, tuple[str, ...]] = {}
        for factor in (factor for term in terms for factor in term.factors):
            if axes.setdefault(factor.table, factor.axes) != factor.axes:
                raise InvalidInputError(
                    f"the form {self.text!r} uses {factor.table} with the axes {list(axes[factor.table])} and "
                    f"{list(factor.axes)}; give one of the two another name"
                )
        return Form(self.text, tuple(terms))

    def _term(self, coefficient: float) -> Term:
        factors: list[Factor] = []
        while True:
            kind, word, at = self.tokens[self.next] if not self._done else ("end", "", len(self.text))
            self.next += 1
            if kind == "number":
                coefficient *= float(word)
            elif kind == "name":
                factors.append(self._factor(word, at))
            else:
                self.next -= 1
                raise self._unexpected("a number or a table such as price[episode, step]")
            if not self._take("*"):
                return Term(coefficient, tuple(factors))

    def _factor(self, table: str, at: int) -> Factor:
        if table in AXES:
            raise self._error(f"{table} is an axis, and a table needs another name", at)
        if not self._take("["):
            raise self._unexpected(f"the axes of {table}, such as {table}[step, action]")
        axes: list[str] = []
        while True:
            kind, word, at = self.tokens[self.next] if not self._done else ("end", "", len(self.text))
            if kind != "name":
                raise self._unexpected("an axis")
            if word not in AXES:
                raise self._error(str(unknown(f"{table} has no axis", word, AXES)), at)
            if word in axes:
                raise self._error(f"{table} has the axis {word} twice", at)
            axes.append(word)
            self.next += 1
            if self._take("]"):
                return Factor(table, tuple(axes))
            if not self._take(","):
                raise self._unexpected("a comma or ]")

    @property
    def _done(self) -> bool:
        return self.next >= len(self.tokens)

    def _take(self, sign: str) -> bool:
        if self._done or self.tokens[self.next][:2] != ("sign", sign):
            return False
        self.next += 1
        return True

    def _unexpected(self, expected: str) -> InvalidInputError:
        if self._done:
            return self._error(f"{expected} is expected", len(self.text))
        _, word, at = self.tokens[self.next]
        return self._error(f"{word!r} where {expected} is expected", at)

    def _error(self, complaint: str, at: int) -> InvalidInputError:
        return InvalidInputError(f"the form {shown(self.text)}, column {at + 1}: {complaint}")


class Factors:
    """A loss or a constraint as a sum of products of tables, for `Layout.lay_out`.

    Parameters
    ----------
    form : the loss or use of a move, such as "price[episode, step] * energy[action]".
    tables : one array for each table of the form, with a dimension for each of its axes, in that order. States, actions
        and steps have the numbers of `unroll`; episodes count from 0 here. All tables with an axis episode have equally
        many episodes.

    Examples
    --------
    >>> from tightrope.problems.unroll import unroll
    >>> layout = unroll([(0, 0, 0), (0, 1, 0)], [1.0, 1.0], n_steps=2)
    >>> charge = Factors("price[episode, step] * energy[action]", price=[[30, 20], [10, 50]], energy=[0, 2])
    >>> layout.lay_out(charge).tolist()
    [[0.0, 60.0, 0.0, 40.0], [0.0, 20.0, 0.0, 100.0]]
    """

    def __init__(self, form: str | Form, /, **tables: ArrayLike) -> None:
        self.form = form if isinstance(form, Form) else parse(form)
        self.tables = _checked(self.form, tables)
        self.n_episodes = _n_episodes(self.form, self.tables)

    def __call__(self, state: Indices, action: Indices, next_state: Indices, step: Indices) -> FloatArray:
        """Return the values of moves, (n_moves,), or (n_episodes, n_moves) if the form has the axis episode."""
        return self.during(slice(None), state, action, next_state, step)

    def during(
        self, episodes: slice, state: Indices, action: Indices, next_state: Indices, step: Indices
    ) -> FloatArray:
        """Return the values of moves for a slice of the episodes."""
        at = {"step": step, "state": state, "action": action, "next_state": next_state}
        self._check_range(at)
        many = () if self.n_episodes is None else (len(range(self.n_episodes)[episodes]),)
        total = np.zeros((*many, len(state)))
        for term in self.form.terms:
            value: FloatArray = np.full(len(state), term.coefficient)
            for factor in term.factors:
                value = value * self._looked_up(factor, episodes, at)
            total += value
        return total

    def _looked_up(self, factor: Factor, episodes: slice, at: Mapping[str, Indices]) -> FloatArray:
        table = self.tables[factor.table]
        index = tuple(at[axis] for axis in factor.axes if axis != "episode")
        if "episode" not in factor.axes:
            return table[index]
        by_episode = np.moveaxis(table, factor.axes.index("episode"), 0)[episodes]
        moves: tuple[Any, ...] = index or (None,)
        values: FloatArray = by_episode[(slice(None), *moves)]
        return values

    def _check_range(self, at: Mapping[str, Indices]) -> None:
        for name, axes in self.form.factors.items():
            for size, axis in zip(self.tables[name].shape, axes, strict=True):
                if axis != "episode" and len(at[axis]) and int(at[axis].max()) >= size:
                    raise InvalidInputError(
                        f"{name} has {size} entries along {axis}, and none for {axis} {int(at[axis].max())}"
                    )

    def __repr__(self) -> str:
        return f"Factors({self.form.text!r})"


def _checked(form: Form, tables: Mapping[str, ArrayLike]) -> dict[str, FloatArray]:
    for name in tables:
        if name not in form.factors:
            raise unknown(f"the form {shown(form.text)} has no table", name, form.factors)
    checked = {}
    for name, axes in form.factors.items():
        if name not in tables:
            raise InvalidInputError(f"the form {shown(form.text)} needs a table {name}, over {_listed(axes)}")
        table = finite(floats(tables[name], name, None), name)
        if table.ndim != len(axes) or not table.size:
            raise InvalidInputError(f"{name} has shape {table.shape}; expected a dimension for each of {_listed(axes)}")
        checked[name] = table
    return checked


def _n_episodes(form: Form, tables: Mapping[str, FloatArray]) -> int | None:
    """Return the number of episodes of the tables; None if none has the axis episode."""
    counts = {
        name: tables[name].shape[axes.index("episode")] for name, axes in form.factors.items() if "episode" in axes
    }
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{name} {count}" for name, count in counts.items())
        raise InvalidInputError(
            f"the tables of the form {shown(form.text)} have different numbers of episodes: {listed}"
        )
    return next(iter(counts.values()), None)


def _listed(axes: Sequence[str]) -> str:
    return ", ".join(axes)
