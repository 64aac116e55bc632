"""A problem estimated from a log, as an object or as a folder: observed moves, their frequencies, mean losses and uses.

A pair of a state and an action that was never tried is not in the problem, since nothing is known about it; a warning
of the problem gives the number of such pairs. Transition distributions are estimated by frequencies, losses and uses by
means. `check`, `run` and all other commands use the estimated problem; `evaluate` bounds the error of the estimate.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from tightrope.arguments import number as checked_number
from tightrope.arguments import unknown
from tightrope.errors import InvalidInputError
from tightrope.model import Policy
from tightrope.planning.hindsight import solve_cmdp
from tightrope.problems.base import Problem
from tightrope.problems.files.declaration import FILE, Toml
from tightrope.problems.files.folder import new_folder
from tightrope.problems.files.reading import LARGEST_NUMBER, read_regular
from tightrope.problems.files.tables import MOST_BYTES, read_table
from tightrope.problems.layout import Indices, Layout
from tightrope.problems.logs.log import END, OVER, Column, Log, Names, read_log
from tightrope.problems.unroll import unroll
from tightrope.space import FloatArray
from tightrope.storage.files import write_bytes, write_csv

#: Significance level of the tests whether moves and losses differ between steps.
SIGNIFICANT = 1e-3


@dataclass(frozen=True, kw_only=True, eq=False)
class Estimated:
    """The estimate of a problem from a log."""

    log: Log
    by_step: bool
    states: tuple[str, ...]
    actions: tuple[str, ...]
    rows: Indices  # (n_rows, 3) state, action, next_state
    steps: Indices | None  # (n_rows,) by step
    counts: Indices  # (n_rows,) the number of times that each was seen
    pairs: Indices  # (n_pairs, 2) state, action; by step (n_pairs, 3), the step first
    loss: FloatArray  # (n_pairs,) means
    uses: FloatArray  # (n_budgets, n_pairs)
    start: dict[int, float]
    terminal: tuple[int, ...]
    notes: tuple[str, ...]

    @property
    def probabilities(self) -> FloatArray:
        """(n_rows,) the frequencies of the rows of each pair."""
        at = np.zeros(len(self.rows), dtype=np.int64) if self.steps is None else self.steps
        _, pair = np.unique(np.column_stack([at, self.rows[:, :2]]), axis=0, return_inverse=True)
        pair = pair.reshape(-1)
        frequencies: FloatArray = self.counts / np.bincount(pair, self.counts)[pair]
        return frequencies

    def layout(self) -> Layout:
        """Return the moves in layers."""
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
        """Return the means of pairs, (n_pairs,), as an array over tuples, (n_tuples,)."""
        keys = {tuple(pair): i for i, pair in enumerate(self.pairs.tolist())}

        def charged(state: Indices, action: Indices, next_state: Indices, step: Indices) -> FloatArray:
            moves = zip(*([step, state, action] if self.by_step else [state, action]), strict=True)
            return values[[keys[tuple(map(int, move))] for move in moves]]

        return layout.lay_out(charged)


def estimated(log: Log, *, by_step: bool = False, terminal: Sequence[str] = ()) -> Estimated:
    """Estimate a problem from `log`; with `by_step`, every step has its own distributions and means.

    Raises
    ------
    InvalidInputError : with the row, if a state can be reached in which no action was recorded.
    """
    states = tuple(dict.fromkeys(name for pair in zip(log.state, log.next_state, strict=True) for name in pair))
    actions = tuple(dict.fromkeys(log.action.tolist()))
    s, a, then = _index(states, log.state), _index(actions, log.action), _index(states, log.next_state)
    for name in terminal:
        if name not in states:
            raise unknown("terminal has a state that is not in the log,", name, states)
        for row in np.flatnonzero(log.state == name)[:1].tolist():
            raise InvalidInputError(
                f"{log.place[row]}: a step begins in {name!r}, which is terminal; end episodes there, or leave it out "
                "of terminal"
            )
    begins = set(s.tolist())
    last = np.append(np.diff(log.episode) != 0, True)
    # states where no episode continues, and some ended before the last step
    ended = set(then[last & (log.step < log.n_steps - 1)].tolist())
    over = {k for k in ended if k not in begins} | {states.index(name) for name in terminal}
    for row in np.flatnonzero(log.state == OVER)[:1].tolist() if over else ():
        raise InvalidInputError(
            f"{log.place[row]}: a step begins in the state {OVER!r}, a name that is reserved for episodes that ended "
            "early; rename that state"
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
    """Refuse pairs and states that can be reached if all steps are alike, but without recorded moves."""
    remedy = "use by_step (--by-step) to estimate every step separately, or record longer episodes"
    seen = {tuple(row) for row in rows[:, :2].tolist()}
    for state, action in pairs.tolist():
        if (state, action) not in seen:
            row = int(np.flatnonzero((s == state) & (a == action))[0])
            raise InvalidInputError(
                f"{log.place[row]}: {actions[action]!r} in {states[state]!r} was only seen at the end of episodes, and "
                f"its next state was not recorded; {remedy}, or record next_state"
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
                f"{log.place[row]}: {states[state]!r} was only seen at the end of episodes, so its actions are "
                f"unknown, but it can be reached at step {step}; {remedy}, or, if episodes end there, name it in "
                "terminal"
            )


def _noted(made: Estimated, s: Indices, a: Indices, then: Indices, pair: Indices) -> Estimated:
    """Return the estimate with notes on its limitations."""
    log, notes = made.log, list(made.log.notes)
    if log.n_left_out:
        total = log.n_episodes + log.n_left_out
        notes.append(f"{log.n_left_out} of {total} episodes ({log.n_left_out / total:.1%}) are left out.")
    notes += [f"An episode ends in {made.states[k]!r}." for k in made.terminal if made.states[k] != END]
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
            "and frequencies are very inaccurate."
        )
    layers = _layers_note(log, made.states, s)
    if layers:
        notes.append(layers)
    if not made.by_step and _differ_between_steps(log, pair, then):
        notes.append(
            "The next states of a pair differ between steps by more than chance, and here all steps have the same "
            "distribution; use by_step (--by-step) to estimate every step separately."
        )
    if not made.by_step and _costs_differ(log, pair):
        notes.append(
            "The losses of a pair differ between steps by more than chance, and here all steps have the same mean; "
            "use by_step (--by-step) to estimate every step separately."
        )
    return Estimated(**{**vars(made), "notes": tuple(notes)})


def _layers_note(log: Log, states: tuple[str, ...], s: Indices) -> str:
    """Return a note on states that occur at several steps, if nearly all others occur at one: they may be mistakes."""
    seen = np.unique(np.column_stack([s, log.step]), axis=0)
    at, times = np.unique(seen[:, 0], return_counts=True)
    double = at[times > 1]
    if not len(double) or len(double) > 0.2 * len(at):
        return ""
    rows = [np.flatnonzero((s == k) & (log.step == seen[seen[:, 0] == k, 1].max()))[0] for k in double[:5]]
    shown = ", ".join(f"{states[k]!r} ({log.place[int(row)]})" for k, row in zip(double[:5], rows, strict=True))
    return f"Most states belong to one step, but these are in several: {shown}. If they are different, rename them."


def _differ_between_steps(log: Log, pair: Indices, then: Indices) -> bool:
    """Test by a G-test whether the frequencies of successors depend on the step (the last step is left out)."""
    inner = log.step < log.n_steps - 1
    G, freedom = 0.0, 0
    for p in np.unique(pair[inner]).tolist():
        here = inner & (pair == p)
        table = np.zeros((log.n_steps, int(then[here].max()) + 1))
        np.add.at(table, (log.step[here], then[here]), 1)
        table = table[table.sum(axis=1) >= 5]
        rare = table.sum(axis=0) < 2 * len(table)  # too rare for a test: pool or omit them
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
    """Test by an analysis of variance whether the mean loss of a pair depends on the step."""
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
    """Estimate a problem from a log of recorded episodes; also available as `Problem.from_log`.

    Parameters
    ----------
    log, columns, bins : a log, and how to read it: see `read_log`.
    budgets : from the column of each budget to its limit per episode.
    by_step : estimate every step separately; otherwise a (state, action) has the same distribution and loss at all
        steps.
    terminal : states in which episodes end, besides those in which recorded episodes ended.
    units : the units of "loss" and of the budgets, for headings.
    bounds : the least and the largest possible value of a step, for "loss" and the budgets; by default the recorded
        ones.

    Returns
    -------
    Problem : with the pairs that were tried and fixed losses, the means; its `warnings` list the limitations.

    Raises
    ------
    InvalidInputError : with the row, if the log cannot be read, exceeds the bounds, or does not determine the problem.
    """
    units, bounds = dict(units or {}), dict(bounds or {})
    limits = checked_limits(budgets, units, bounds)
    made = estimated(
        read_log(log, budgets=tuple(limits), columns=columns, bins=bins), by_step=by_step, terminal=terminal
    )
    layout = made.layout()
    low, high = loss_bounds(made.log, bounds.get("loss"))
    if layout.waiting[:-1].any() or layout.step[0] < 0:  # waiting and a random start have the loss 0
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
    """Return the limits of budgets; refuse one that is not a number, and units and bounds of unknown budgets."""
    limits = {
        budget: checked_number(limit, f"the budget of {budget}", -LARGEST_NUMBER, LARGEST_NUMBER)
        for budget, limit in budgets.items()
    }
    for key in (*units, *bounds):
        if key not in ("loss", *limits):
            raise unknown("there is no budget", key, ("loss", *limits))
    return limits


def loss_bounds(log: Log, given: tuple[float, float] | None) -> tuple[float, float]:
    """Return the least and the largest loss: the given bounds, which must contain the log, or those of the log."""
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
    """Return the largest |use| of a budget in a step: by the given bounds, or by the log."""
    used = log.uses[log.budgets.index(budget)]
    if given is None:
        most = float(np.abs(used).max())
        if most == 0:
            raise InvalidInputError(f"the uses of {budget!r} are all 0 in the log; drop this budget")
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


LOG = "log.csv"

TOML = """\
# Made from a log of {episodes} episodes: {source}
# `tightrope check {folder}` says what can be had, `tightrope learn {folder} FILE` makes a learner that knows the log,
# and `tightrope evaluate {folder} best` says what the best policy would cost. Every key is explained in
# docs/how-to/your-own-problem.md.

n_steps = {n_steps}
start = {start}
terminal = {terminal}
transitions = "transitions.csv"   # state, action, next_state and how often that was seen
allow_unreachable = true
log = "{log}"                   # the recorded episodes
warnings = {warnings}

[loss]
table = "costs.csv"               # means over the log
unit = {loss_unit}
bounds = [{low:.17g}, {high:.17g}]{guessed}
"""

CONSTRAINT = """
[constraints.{key}]
table = "costs.csv"
column = {column}
unit = {unit}
budget = {budget:.17g}
bounds = [{low:.17g}, {high:.17g}]
"""


def write_from_log(
    folder: Path,
    source: str | PathLike[str] | Log | Any,
    *,
    budgets: Mapping[str, float],
    columns: Mapping[str, Column] | None = None,
    bins: Mapping[str, Sequence[float]] | None = None,
    by_step: bool = False,
    terminal: Sequence[str] = (),
    units: Mapping[str, str] | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
) -> tuple[list[Path], Estimated]:
    """Write the problem of a log to a new folder; return its files and the estimate.

    Parameters are those of `problem_from_log`; `folder` must not exist. Nothing is written if an error is raised.
    """
    named, given = dict(units or {}), dict(bounds or {})
    limits = checked_limits(budgets, named, given)
    log = read_log(source, budgets=tuple(limits), columns=columns, bins=bins)
    made = estimated(log, by_step=by_step, terminal=terminal)
    low, high = loss_bounds(log, given.get("loss"))
    text = TOML.format(
        episodes=log.n_episodes,
        source=json.dumps(Path(source).name if isinstance(source, str | PathLike) else "a table", ensure_ascii=False),
        folder=folder if str(folder).isprintable() else "FOLDER",
        n_steps=log.n_steps,
        start=_start(made),
        terminal=json.dumps([made.states[k] for k in made.terminal], ensure_ascii=False),
        log=LOG,
        warnings=json.dumps(list(made.notes), ensure_ascii=False, indent=4),
        loss_unit=json.dumps(named.get("loss", ""), ensure_ascii=False),
        low=low,
        high=high,
        guessed="" if "loss" in given else "   # what was recorded; make them wider if more can happen",
    )
    for budget, limit in limits.items():
        least, most = given.get(budget) or (-(largest := largest_use(log, budget, None)), largest)
        largest_use(log, budget, given.get(budget))
        text += CONSTRAINT.format(
            key=json.dumps(budget, ensure_ascii=False),
            column=json.dumps(budget, ensure_ascii=False),
            unit=json.dumps(named.get(budget, ""), ensure_ascii=False),
            budget=limit,
            low=least,
            high=most,
        )
    new_folder(folder)
    write_csv(folder / "transitions.csv", _transitions(made))
    write_csv(folder / "costs.csv", _costs(made))
    write_csv(folder / LOG, _columns(log))
    write_bytes(folder / FILE, text.encode())
    return [folder / name for name in (FILE, "transitions.csv", "costs.csv", LOG)], made


def log_of(folder: Path) -> Log:
    """Return the log that `problem.toml` names."""
    toml = Toml(folder / FILE)
    if toml.whole.log is None:
        raise InvalidInputError(f'{toml.path} names no log; add log = "FILE", or make the folder with --from-log')
    return read_log(folder / toml.whole.log, budgets=tuple(toml.constraints))


def has_steps(folder: Path) -> bool:
    """Return whether the transitions of a problem folder have a column step."""
    path = folder / Toml(folder / FILE).whole.transitions
    return "step" in read_table(path, read_regular(path, MOST_BYTES), (), None).columns


def best_within(problem: Problem) -> Policy:
    """Return the best policy within the budgets of an estimated problem, whose losses are the same in all episodes."""
    loss = problem.losses.begin(np.random.default_rng(0)).loss(1)
    return solve_cmdp(problem.mdp, loss, problem.constraints.mean, problem.budgets).policy


def _start(made: Estimated) -> str:
    names = {made.states[k]: chance for k, chance in made.start.items()}
    if len(names) == 1:
        return json.dumps(next(iter(names)), ensure_ascii=False)
    return "{ " + ", ".join(f"{json.dumps(n, ensure_ascii=False)} = {p:.17g}" for n, p in names.items()) + " }"


def _transitions(made: Estimated) -> dict[str, Sequence[object]]:
    state, action, then = made.rows.T.tolist()
    steps = {} if made.steps is None else {"step": made.steps.tolist()}
    return {
        **steps,
        "state": [made.states[k] for k in state],
        "action": [made.actions[k] for k in action],
        "next_state": [made.states[k] for k in then],
        "count": made.counts.tolist(),
    }


def _costs(made: Estimated) -> dict[str, Sequence[object]]:
    state, action = made.pairs[:, -2:].T.tolist()
    return {
        **({"step": made.pairs[:, 0].tolist()} if made.by_step else {}),
        "state": [made.states[k] for k in state],
        "action": [made.actions[k] for k in action],
        "loss": made.loss.tolist(),
        **dict(zip(made.log.budgets, made.uses.tolist(), strict=True)),
    }


def _columns(log: Log) -> dict[str, Sequence[object]]:
    return {
        "episode": (log.episode + 1).tolist(),
        "step": log.step.tolist(),
        "state": log.state.tolist(),
        "action": log.action.tolist(),
        **({"next_state": log.next_state.tolist()} if log.ends_known else {}),
        "loss": log.loss.tolist(),
        **dict(zip(log.budgets, log.uses.tolist(), strict=True)),
        **({} if log.probability is None else {"probability": log.probability.tolist()}),
    }
