"""Tables of results as text, and the statistics over seeds in them: means, bootstrap intervals, fitted powers of T.

A table has a line for each seed of one learner, or a line for each of several learners. The same values give the same
interval.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from io import StringIO
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from tightrope.lab.history import Budget
from tightrope.lab.metrics import ALWAYS, COLUMNS
from tightrope.learners import LEARNERS
from tightrope.space import FloatArray, IntArray

#: One history for each seed, by learner; and the parameters of each learner.
Histories = Mapping[str, Sequence[Mapping[str, FloatArray]]]
Settings = Mapping[str, Mapping[str, float | str]]

#: The columns of the history that are shown, and those that are explained below them.
SHOWN = tuple(name for name, column in COLUMNS.items() if column.shown)
EXPLAINED = (("hindsight", "regret"), ("violation", "strong_violation"))
HEADINGS = COLUMNS | ALWAYS

#: Shown for a learner without a confidence term.
NONE = "–"

#: The share by which rounding may exceed a budget.
WITHIN = 1e-9

#: Wider than any line, so that none is wrapped.
WIDTH = 10_000


def aligned(headings: Sequence[str], rows: Iterable[Sequence[str]], text: Collection[str] = ()) -> list[str]:
    """Align cells in columns: text (the headings in `text`) to the left, numbers to the right."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
    for heading in headings:
        table.add_column(heading, justify="left" if heading in text else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    written = StringIO()
    Console(file=written, width=WIDTH, color_system=None, markup=False, emoji=False, highlight=False).print(table)
    return [line.rstrip() for line in written.getvalue().splitlines()]


def results(episodes: int, seeds: Sequence[int], histories: Histories, settings: Settings) -> list[str]:
    """Return the table of the last records with an explanation of its columns; `seeds` are those of all learners."""
    explained = (*EXPLAINED, *([tuple(ALWAYS)] if set(ALWAYS) <= set(shown_columns(histories)) else []))
    meanings = ["; ".join(f"{HEADINGS[name].heading}: {HEADINGS[name].meaning}" for name in line) for line in explained]
    if len(histories) == 1:
        [of_seeds] = histories.values()
        interval = [] if len(seeds) == 1 else [f"from, to: {SPREAD}"]
        return [*by_seed(seeds, of_seeds), "", *interval, *meanings]
    spread = "" if len(seeds) == 1 else f"mean over {len(seeds)} seeds [{SPREAD}]; "
    fewer = [f"{name} over {len(runs)} of them" for name, runs in histories.items() if len(runs) < len(seeds)]
    learners = list(dict.fromkeys(str(values.get("learner", name)) for name, values in settings.items()))
    notes = ["; ".join([f"{spread}after {episodes} episodes", *fewer]), *conditions(learners)]
    return [*comparison(histories, settings), "", *notes, *meanings]


def spending(budgets: Sequence[Budget], histories: Histories) -> list[str]:
    """Mean use of each budget per episode, over all episodes and seeds: a line for each learner."""
    rows = [[name, *used(budgets, runs)] for name, runs in histories.items()]
    return aligned(["used per episode", *map(str, budgets)], rows, text=["used per episode"]) if budgets else []


def used(budgets: Sequence[Budget], runs: Sequence[Mapping[str, FloatArray]]) -> list[str]:
    """Mean use of each budget per episode, its share of the limit, and whether it is within."""
    cells = []
    for budget in budgets:
        use = float(np.mean([run[budget.column][-1] / run["episode"][-1] for run in runs]))
        share = f" ({use / budget.limit:.1%})" if budget.limit > 0 else ""
        cells.append(f"{use:.4g}{share} {'OVER' if use > budget.limit + WITHIN * abs(budget.limit) else 'within'}")
    return cells


def by_seed(seeds: Iterable[int], histories: Sequence[Mapping[str, FloatArray]]) -> list[str]:
    """The last records of one learner: a line for each seed, then the mean and its interval."""
    shown = ("episode", *shown_columns({"": histories}))
    last = np.array([[history[column][-1] for column in shown] for history in histories])
    decimals = _decimals(last)
    decimals[0] = 0

    def row(name: str, values: FloatArray) -> list[str]:
        return [name, *map("{:.{}f}".format, values, decimals)]

    rows = [row(str(seed), values) for seed, values in zip(seeds, last, strict=True)]
    if len(last) > 1:
        rows += [row(name, values) for name, values in zip(("mean", "from", "to"), band(last), strict=True)]
    return aligned(["seed", *(HEADINGS[name].heading for name in shown)], rows)


def shown_columns(histories: Histories) -> tuple[str, ...]:
    """The columns of the tables; both comparators if the constraints of all runs change."""
    runs = [run for of_learner in histories.values() for run in of_learner]
    shown = tuple(name for name in SHOWN if all(name in run for run in runs))  # not in results of earlier versions
    return (*shown, *ALWAYS) if all(set(ALWAYS) <= set(run) for run in runs) else shown


def comparison(histories: Histories, settings: Settings) -> list[str]:
    """The table of `compared` as text."""
    headings, rows = compared(histories, settings)
    return aligned(headings, rows, text=["learner"])


def compared(histories: Histories, settings: Settings) -> tuple[list[str], list[list[str]]]:
    """Headings and a row for each learner: the last record, means over seeds with intervals.

    The scale of the confidence sets is shown only where one of them is not 1.
    """
    shown = shown_columns(histories)
    last = [
        np.array([[run[column][-1] for column in shown] for run in runs], dtype=np.float64)
        for runs in histories.values()
    ]  # (seeds, columns) for each learner
    decimals = _decimals(np.concatenate(last))
    scales = [settings[name].get("radius_scale", NONE) for name in histories]
    scaled = any(scale not in (NONE, 1.0) for scale in scales)
    rows = []
    for name, scale, of_seeds in zip(histories, scales, last, strict=True):
        row = [name, *[scale if isinstance(scale, str) else f"{scale:g}"] * scaled]
        for mean, low, high, places in zip(*band(of_seeds), decimals, strict=True):
            spread = "" if len(of_seeds) == 1 else f" [{low:.{places}f}, {high:.{places}f}]"
            row.append(f"{mean:.{places}f}{spread}")
        rows.append(row)
    return ["learner", *["confidence scale"] * scaled, *(HEADINGS[name].heading for name in shown)], rows


def _decimals(values: FloatArray) -> IntArray:
    """Return the decimals of each column (n_columns,) with which its largest value has about five digits."""
    largest = np.nan_to_num(np.abs(values)).max(axis=0)
    decimals: IntArray = np.clip(4 - np.floor(np.log10(np.maximum(largest, 1))), 0, 4).astype(np.int64)
    return decimals


def conditions(names: Sequence[str]) -> list[str]:
    """Describe which learners have bandit feedback, and which know more than the space and the budgets."""
    known = [LEARNERS[name] for name in names if name in LEARNERS]
    bandit = [learner.name for learner in known if learner.feedback == "bandit"]
    knowing = {learner.name: learner.needs for learner in known if set(learner.needs) - {"rng"}}
    lines = []
    if bandit:
        lines.append(f"bandit feedback: {', '.join(bandit)}; all others see whole loss and constraint functions")
    if knowing:
        words = (f"{name} ({', '.join(need.replace('_', ' ') for need in needs)})" for name, needs in knowing.items())
        lines.append(f"needs more than space and budgets: {', '.join(words)}")
    return lines


def describe_settings(settings: Settings) -> list[str]:
    """The parameters of each learner: a line each."""
    lines = []
    for learner, values in settings.items():
        own = {name: value for name, value in values.items() if name not in ("learner", "episodes")}
        shown = ", ".join(f"{n} {value if isinstance(value, str) else f'{value:.6g}'}" for n, value in own.items())
        lines.append(f"settings{'' if len(settings) == 1 else f' of {learner}'}: {shown or 'none'}")
    return lines


#: How many times the seeds are resampled, and the share of the means inside the band.
RESAMPLES, LEVEL = 1000, 0.95

#: The description of the band.
SPREAD = f"{100 * LEVEL:.0f} % bootstrap interval of the mean over seeds"

#: A power of T is fitted to the last factor of ten in episodes, and to this many records at least.
DECADE, FEWEST = 10.0, 3


class Band(NamedTuple):
    """A mean over seeds and the interval around it, (n,) each; the interval is NaN with fewer than two seeds."""

    mean: FloatArray
    low: FloatArray
    high: FloatArray


class Power(NamedTuple):
    """factor · t^exponent, fitted to the mean from episode `first` on; [low, high] is the interval of the exponent."""

    exponent: float
    low: float
    high: float
    factor: float
    first: float


def band(values: FloatArray) -> Band:
    """Mean over seeds of (n_seeds, n) values, and its interval; NaN marks values that a seed does not have."""
    mean, resampled = _mean(values), _resampled(values)
    low, high = np.nanquantile(np.where(np.isnan(mean), 0.0, resampled), _tails(), axis=0)
    unknown = np.isfinite(values).sum(axis=0) < 2
    return Band(mean, np.where(unknown, np.nan, low), np.where(unknown, np.nan, high))


def power(episodes: FloatArray, values: FloatArray) -> Power | None:
    """Fit a power of t to the mean of (n_seeds, n) values, by least squares in the logarithms.

    Returns None where the mean is not positive, or there are too few records.
    """
    mean = _mean(values)
    known = np.isfinite(mean)
    if not known.any():
        return None
    used = known & (episodes >= episodes[known][-1] / DECADE)
    if used.sum() < FEWEST or (mean[used] <= 0).any():
        return None
    x = np.log(episodes[used])
    centred = x - x.mean()
    slope = centred / (centred @ centred)
    exponent = float(slope @ np.log(mean[used]))
    factor = float(np.exp(np.log(mean[used]).mean() - exponent * x.mean()))
    low = high = np.nan
    resampled = _resampled(values[:, used])
    if len(values) > 1 and (resampled > 0).all():
        low, high = np.quantile(np.log(resampled) @ slope, _tails())
    return Power(exponent, float(low), float(high), factor, float(episodes[used][0]))


def _tails() -> list[float]:
    return [(1 - LEVEL) / 2, (1 + LEVEL) / 2]


def _mean(values: FloatArray) -> FloatArray:
    """(n,) the mean over the seeds that have a value."""
    known = np.isfinite(values)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(known, values, 0.0).sum(axis=0) / known.sum(axis=0))


def _resampled(values: FloatArray) -> FloatArray:
    """(RESAMPLES, n) means over seeds drawn with replacement; NaN where none of them has a value."""
    n_seeds, known = len(values), np.isfinite(values)
    drawn = np.random.default_rng(0).multinomial(n_seeds, np.full(n_seeds, 1 / n_seeds), RESAMPLES).astype(np.float64)
    with np.errstate(invalid="ignore"):
        return np.asarray(drawn @ np.where(known, values, 0.0) / (drawn @ known))
