"""A problem from a log: the moves that were seen, how often, and what they cost on average.

Nothing is made up. A pair of a state and an action that was never tried is not in the problem, since nothing is known
of where it leads or what it costs; how many there are is a warning of the problem. What is in it is estimated: the law
of a pair by its frequencies, its loss and uses by their means. `check`, `run` and everything else then speak of the
estimated problem; `evaluate` says how far that may be from the truth.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tightrope.arguments import number as checked_number
from tightrope.arguments import unknown
from tightrope.errors import InvalidInputError
from tightrope.problems.base import Problem
from tightrope.problems.files.reading import LARGEST_NUMBER
from tightrope.problems.layout import Indices, Layout
from tightrope.problems.logs.log import END, OVER, Column, Log, Names, read_log
from tightrope.problems.unroll import unroll
from tightrope.space import FloatArray

#: Moves that differ between steps more than chance makes them in so many of all logs are worth a note.
SIGNIFICANT = 1e-3


@dataclass(frozen=True, kw_only=True, eq=False)
class Estimated:
    """What a log says of a problem."""

    log: Log
    by_step: bool
    states: tuple[str, ...]
    actions: tuple[str, ...]
    rows: Indices  # (n_rows, 3) state, action, next_state
    steps: Indices | None  # (n_rows,) by step
    counts: Indices  # (n_rows,) how often each was seen
    pairs: Indices  # (n_pairs, 2) state, action; by step (n_pairs, 3), the step first
    loss: FloatArray  # (n_pairs,) means
    uses: FloatArray  # (n_budgets, n_pairs)
    start: dict[int, float]
    terminal: tuple[int, ...]
    notes: tuple[str, ...]

    @property
    def probabilities(self) -> FloatArray:
        """(n_rows,) the frequencies."""
        at = np.zeros(len(self.rows), dtype=np.int64) if self.steps is None else self.steps
        _, pair = np.unique(np.column_stack([at, self.rows[:, :2]]), axis=0, return_inverse=True)
        pair = pair.reshape(-1)
        frequencies: FloatArray = self.counts / np.bincount(pair, self.counts)[pair]
        return frequencies

    def layout(self) -> Layout:
        """The moves in layers."""
        start = next(iter(self.start)) if len(self.start) == 1 else self.start
        return unroll(
            self.rows,
            self.probabilities,
            n_steps=self.log.n_steps,
            start=start,
            steps=self.steps,
            terminal=self.terminal,
        )

    def lay_out(self, layout: Layout, values: FloatArray) -> FloatArray:
        """(n_tuples,) the means of pairs, by tuple."""
        keys = {tuple(pair): i for i, pair in enumerate(self.pairs.tolist())}

        def charged(state: Indices, action: Indices, next_state: Indices, step: Indices) -> FloatArray:
            moves = zip(*([step, state, action] if self.by_step else [state, action]), strict=True)
            return values[[keys[tuple(map(int, move))] for move in moves]]

        return layout.lay_out(charged)


def estimated(log: Log, *, by_step: bool = False, terminal: Sequence[str] = ()) -> Estimated:
    """What `log` says of a problem; `by_step`: whether every step has laws and means of its own.

    Raises InvalidInputError, with the row, where a state can be met of which only the arrival was recorded.
    """
    states = tuple(dict.fromkeys(name for pair in zip(log.state, log.next_state, strict=True) for name in pair))
    actions = tuple(dict.fromkeys(log.action.tolist()))
    s, a, then = _index(states, log.state), _index(actions, log.action), _index(states, log.next_state)
    for name in terminal:
        if name not in states:
            raise unknown("terminal names a state that the log does not have,", name, states)
        for row in np.flatnonzero(log.state == name)[:1].tolist():
            raise InvalidInputError(
                f"{log.place[row]}: a step begins in {name!r}, which is to be terminal; end episodes there, or do not "
                "name it"
            )
    begins = set(s.tolist())
    last = np.append(np.diff(log.episode) != 0, True)
    # no episode goes on there, and some were over there before the last step
    ended = set(then[last & (log.step < log.n_steps - 1)].tolist())
    over = {k for k in ended if k not in begins} | {states.index(name) for name in terminal}
    for row in np.flatnonzero(log.state == OVER)[:1].tolist() if over else ():
        raise InvalidInputError(
            f"{log.place[row]}: episodes that are over wait in a state called {OVER!r}, and here a step begins in one; "
            "rename that state"
        )
    known = np.ones(len(s), dtype=bool) if log.ends_known or by_step else ~last | np.isin(then, list(over))
    key = [log.step, s, a] if by_step else [s, a]
    pairs, pair = np.unique(np.stack(key, axis=1), axis=0, return_inverse=True)
    pair = pair.reshape(-1)
    visits = np.bincount(pair)
    moves, count = np.unique(np.column_stack([*key, then])[known], axis=0, return_counts=True)
    rows = moves[:, -3:]
    steps = moves[:, 0].copy() if by_step else None
    if not by_step:
        _refuse_unknown(log, states, actions, s, a, then, pairs, rows, over)
    chances = np.bincount(s[np.flatnonzero(np.diff(log.episode, prepend=-1))], minlength=len(states))
    made = Estimated(
        log=log,
        by_step=by_step,
        states=states,
        actions=actions,
        rows=rows,
        steps=steps,
        counts=count.astype(np.int64),
        pairs=pairs,
        loss=np.bincount(pair, log.loss) / visits,
        uses=np.array([np.bincount(pair, use) / visits for use in log.uses]).reshape(-1, len(pairs)),
        start={int(k): float(chances[k] / chances.sum()) for k in np.flatnonzero(chances)},
        terminal=tuple(sorted(over)),
        notes=(),
    )
    return _noted(made, s, a, then, pair)


def _index(names: tuple[str, ...], column: Names) -> Indices:
    numbers = {name: k for k, name in enumerate(names)}
    return np.array([numbers[name] for name in column.tolist()], dtype=np.int64)


def _refuse_unknown(
    log: Log,
    states: tuple[str, ...],
    actions: tuple[str, ...],
    s: Indices,
    a: Indices,
    then: Indices,
    pairs: Indices,
    rows: Indices,
    over: set[int],
) -> None:
    """Refuse what can be met, with one law for all steps, and of which nothing is known."""
    remedy = "use by_step (--by-step), so that every step stands for itself, or record longer episodes"
    seen = {tuple(row) for row in rows[:, :2].tolist()}
    for state, action in pairs.tolist():
        if (state, action) not in seen:
            row = int(np.flatnonzero((s == state) & (a == action))[0])
            raise InvalidInputError(
                f"{log.place[row]}: {actions[action]!r} in {states[state]!r} was only seen at the end of episodes, and "
                f"where it leads was not recorded; {remedy}, or record next_state"
            )
    layer, begins = {int(k) for k in s[log.step == 0]}, set(s.tolist())
    successors: dict[int, set[int]] = {}
    for state, _, successor in rows.tolist():
        successors.setdefault(state, set()).add(successor)
    for step in range(1, log.n_steps):
        layer = {successor for state in layer if state not in over for successor in successors[state]} | (layer & over)
        for state in sorted(layer - over - begins):
            row = int(np.flatnonzero(then == state)[0])
            raise InvalidInputError(
                f"{log.place[row]}: {states[state]!r} was only seen at the end of episodes: nothing is known of what "
                f"can be done there, and it can be met at step {step}; {remedy}, or, if an episode is over there, name "
                f"it as terminal"
            )


def _noted(made: Estimated, s: Indices, a: Indices, then: Indices, pair: Indices) -> Estimated:
    """What whoever uses the estimate should know."""
    log, notes = made.log, list(made.log.notes)
    if log.n_left_out:
        total = log.n_episodes + log.n_left_out
        notes.append(f"{log.n_left_out} of {total} episodes ({log.n_left_out / total:.1%}) are left out.")
    notes += [f"An episode is over in {made.states[k]!r}." for k in made.terminal if made.states[k] != END]
    begins, tried = np.unique(s), {(int(x), int(y)) for x, y in zip(s, a, strict=True)}
    untried = [(int(x), y) for x in begins for y in range(len(made.actions)) if (int(x), y) not in tried]
    if untried:
        n = len(begins) * len(made.actions)
        shown = ", ".join(f"{made.actions[y]!r} in {made.states[x]!r}" for x, y in untried[:5])
        more = f" and {len(untried) - 5} more" if len(untried) > 5 else ""
        notes.append(
            f"{len(untried)} of {n} pairs of a state and an action ({len(untried) / n:.0%}) were never tried and are "
            f"unknown; the problem leaves them out: {shown}{more}."
        )
    few = np.bincount(pair)
    if (few < 5).any():
        notes.append(
            f"{int((few < 5).sum())} of {len(few)} pairs that were tried were tried fewer than 5 times: their means "
            "and frequencies are little more than guesses."
        )
    layers = _layers_note(log, made.states, s)
    if layers:
        notes.append(layers)
    if not made.by_step and _differ_between_steps(log, pair, then):
        notes.append(
            "Where moves lead differs between steps by more than chance, and here one law stands for all steps; "
            "use by_step (--by-step) to keep steps apart."
        )
    if not made.by_step and _costs_differ(log, pair):
        notes.append(
            "The losses of a pair differ between steps by more than chance, and here their mean stands for all steps; "
            "use by_step (--by-step) to keep steps apart."
        )
    return Estimated(**{**vars(made), "notes": tuple(notes)})


def _layers_note(log: Log, states: tuple[str, ...], s: Indices) -> str:
    """Where nearly all states belong to one step, those that do not may be mistakes."""
    seen = np.unique(np.column_stack([s, log.step]), axis=0)
    at, times = np.unique(seen[:, 0], return_counts=True)
    double = at[times > 1]
    if not len(double) or len(double) > 0.2 * len(at):
        return ""
    rows = [np.flatnonzero((s == k) & (log.step == seen[seen[:, 0] == k, 1].max()))[0] for k in double[:5]]
    shown = ", ".join(f"{states[k]!r} ({log.place[int(row)]})" for k, row in zip(double[:5], rows, strict=True))
    return f"Most states belong to one step, but these are in several: {shown}. If they are different, rename them."


def _differ_between_steps(log: Log, pair: Indices, then: Indices) -> bool:
    """A G-test: whether the frequencies of successors of pairs depend on the step. The last step has none."""
    inner = log.step < log.n_steps - 1
    G, freedom = 0.0, 0
    for p in np.unique(pair[inner]).tolist():
        here = inner & (pair == p)
        table = np.zeros((log.n_steps, int(then[here].max()) + 1))
        np.add.at(table, (log.step[here], then[here]), 1)
        table = table[table.sum(axis=1) >= 5]
        rare = table.sum(axis=0) < 2 * len(table)  # too seldom for a test: counted together, or not at all
        table = np.column_stack([table[:, ~rare], table[:, rare].sum(axis=1)])
        table = table[:, table.sum(axis=0) >= 2 * len(table)]
        table = table[table.sum(axis=1) > 0]
        expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / max(table.sum(), 1)
        if min(table.shape) > 1:
            seen = table > 0
            G += 2 * float((table[seen] * np.log(table[seen] / expected[seen])).sum())
            freedom += (table.shape[0] - 1) * (table.shape[1] - 1)
    return freedom > 0 and chi_squared_tail(G, freedom) < SIGNIFICANT


def _costs_differ(log: Log, pair: Indices) -> bool:
    """An analysis of variance: whether the mean loss of pairs depends on the step."""
    group = pair * log.n_steps + log.step
    n = np.bincount(group)
    mean = np.bincount(group, log.loss) / np.maximum(n, 1)
    overall = np.bincount(pair, log.loss) / np.maximum(np.bincount(pair), 1)
    between = float((np.bincount(group) * (mean - overall[np.arange(len(n)) // log.n_steps]) ** 2)[n > 0].sum())
    within = float(((log.loss - mean[group]) ** 2).sum())
    freedom = int((n > 0).sum()) - int((np.bincount(pair) > 0).sum())
    spare = len(pair) - int((n > 0).sum())
    if freedom <= 0 or between <= 1e-12 * float((log.loss**2).sum()):
        return False
    if spare <= 0 or within <= 1e-12 * between:
        return spare > 0
    return chi_squared_tail(between / (within / spare), freedom) < SIGNIFICANT


def problem_from_log(
    log: Any,
    *,
    budgets: Mapping[str, float],
    name: str = "log",
    columns: Mapping[str, Column] | None = None,
    bins: Mapping[str, Sequence[float]] | None = None,
    by_step: bool = False,
    terminal: Sequence[str] = (),
    units: Mapping[str, str] | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
) -> Problem:
    """The problem that a log of recorded episodes says there is: `Problem.from_log`.

    Parameters
    ----------
    log : a file (CSV or Parquet), a data frame, a dict of columns, or a `Log`: see `read_log`, as for `columns` and
        `bins`.
    budgets : for each budget its limit for an episode, by the name of its column.
    by_step : whether every step has laws and losses of its own; else a state and an action have one law at all steps.
    terminal : states in which an episode is over, besides those in which episodes were seen to be.
    units : what "loss" and the budgets are measured in, for headings.
    bounds : the least and the largest value that a step can ever have, for "loss" and the budgets; else what was
        recorded.

    Returns
    -------
    Problem
        On the pairs that were tried; its `warnings` say what is missing. Its losses are fixed: the means.
    """
    units, bounds = dict(units or {}), dict(bounds or {})
    limits = checked_limits(budgets, units, bounds)
    made = estimated(
        read_log(log, budgets=tuple(limits), columns=columns, bins=bins), by_step=by_step, terminal=terminal
    )
    layout = made.layout()
    low, high = loss_bounds(made.log, bounds.get("loss"))
    if layout.waiting[:-1].any() or layout.step[0] < 0:  # there nothing is charged, and that is a loss too
        low, high = min(low, 0.0), max(high, 0.0)
    return Problem.from_units(
        name=name,
        mdp=layout.mdp,
        ties=layout.ties,
        scenarios=[made.lay_out(layout, made.loss)],
        losses="fixed",
        loss_bounds=(low, high),
        loss_unit=units.get("loss", ""),
        uses=np.array([made.lay_out(layout, use) for use in made.uses]).reshape(-1, layout.space.n_tuples),
        use_bounds=[largest_use(made.log, budget, bounds.get(budget)) for budget in limits],
        budgets=list(limits.values()),
        constraint_names=tuple(limits),
        constraint_units=tuple(units.get(budget, "") for budget in limits),
        state_names=layout.state_names(list(made.states)),
        action_names=made.actions,
        warnings=made.notes,
    )


def checked_limits(
    budgets: Mapping[str, float], units: Mapping[str, str], bounds: Mapping[str, tuple[float, float]]
) -> dict[str, float]:
    """The limits of budgets; raises InvalidInputError for one that is no number, and for units and bounds of others."""
    limits = {
        budget: checked_number(limit, f"the budget of {budget}", -LARGEST_NUMBER, LARGEST_NUMBER)
        for budget, limit in budgets.items()
    }
    for key in (*units, *bounds):
        if key not in ("loss", *limits):
            raise unknown("there is no budget", key, ("loss", *limits))
    return limits


def loss_bounds(log: Log, given: tuple[float, float] | None) -> tuple[float, float]:
    """The least and the largest loss: as given, which must hold what was recorded, or what was recorded."""
    least, most = float(log.loss.min()), float(log.loss.max())
    if given is None:
        return (least, most) if least < most else (min(least, 0.0), max(most, 1.0))
    low, high = given
    outside = ~((low <= log.loss) & (log.loss <= high))
    for row in np.flatnonzero(outside)[:1].tolist():
        raise InvalidInputError(
            f"{log.place[row]}: a loss of {log.loss[row]:g} is outside the bounds {low:g} to {high:g}"
        )
    return low, high


def largest_use(log: Log, budget: str, given: tuple[float, float] | None) -> float:
    """The largest |use| of a budget in a step."""
    used = log.uses[log.budgets.index(budget)]
    if given is None:
        most = float(np.abs(used).max())
        if most == 0:
            raise InvalidInputError(f"the log uses nothing of {budget!r}; drop it")
        return most
    low, high = given
    for row in np.flatnonzero(~((low <= used) & (used <= high)))[:1].tolist():
        raise InvalidInputError(f"{log.place[row]}: a use of {used[row]:g} is outside the bounds {low:g} to {high:g}")
    return max(abs(low), abs(high))


def chi_squared_tail(x: float, freedom: int) -> float:
    """P(X >= x) for X chi-squared with `freedom` >= 1 degrees of freedom, as a finite sum.

    References
    ----------
    Abramowitz & Stegun, Handbook of Mathematical Functions, 26.4.4 and 26.4.5.
    """
    if x <= 0:
        return 1.0
    half, odd = x / 2, freedom % 2
    # e^(−h) h^k / Γ(k+1) at k = 0, 1, … or, if odd, at k = 1/2, 3/2, …, by their logarithms
    k = np.arange(freedom // 2) + odd / 2
    first = k[0] * math.log(half) - half - math.lgamma(k[0] + 1) if len(k) else 0.0
    terms = np.exp(first + np.append(0.0, np.cumsum(math.log(half) - np.log(k[1:])))[: len(k)])
    return min(1.0, float(terms.sum()) + (math.erfc(math.sqrt(half)) if odd else 0.0))
