"""Several learners in one table: a line each, mean ± standard error over the seeds."""

from collections.abc import Mapping, Sequence

import numpy as np

from tightrope.learners import LEARNERS
from tightrope.space import FloatArray

#: Heading and column of the history.
COLUMNS = {
    "loss": "loss",
    "LP value": "hindsight",
    "regret": "regret",
    "violation": "violation",
    "strong violation": "strong_violation",
}

#: What stands for a scale where there is no confidence term to scale.
NONE = "–"


def comparison(
    histories: Mapping[str, Sequence[Mapping[str, FloatArray]]],
    settings: Mapping[str, Mapping[str, float | str]],
) -> list[str]:
    """The last records of every learner (one history per seed), and by how much its confidence terms were scaled."""
    last = np.array(
        [[[run[column][-1] for column in COLUMNS.values()] for run in runs] for runs in histories.values()],
        dtype=np.float64,
    )  # (learners, seeds, columns)
    mean = last.mean(axis=1)
    error = last.std(axis=1, ddof=1) / np.sqrt(last.shape[1]) if last.shape[1] > 1 else None
    largest = np.nan_to_num(np.abs(last)).max(axis=(0, 1))
    decimals = np.clip(4 - np.floor(np.log10(np.maximum(largest, 1))), 0, 4).astype(int)
    cells = [["learner", "confidence scale", *COLUMNS]]
    for i, name in enumerate(histories):
        scale = settings[name].get("radius_scale", NONE)
        row = [name, scale if isinstance(scale, str) else f"{scale:g}"]
        for k, places in enumerate(decimals):
            spread = "" if error is None else f" ± {error[i, k]:.{places}f}"
            row.append(f"{mean[i, k]:.{places}f}{spread}")
        cells.append(row)
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(
            [f"{row[0]:<{widths[0]}}", *(f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True))]
        )
        for row in cells
    ]


def conditions(names: Sequence[str]) -> list[str]:
    """Which learners were shown less than others, and which were told more; by name, for those of the registry."""
    known = [LEARNERS[name] for name in names if name in LEARNERS]
    bandit = [learner.name for learner in known if learner.feedback == "bandit"]
    told = {learner.name: learner.needs for learner in known if set(learner.needs) - {"rng"}}
    lines = []
    if bandit:
        lines.append(f"bandit feedback: {', '.join(bandit)}; all others see whole loss and constraint functions")
    if told:
        words = (f"{name} ({', '.join(need.replace('_', ' ') for need in needs)})" for name, needs in told.items())
        lines.append(f"told more than space and budgets: {', '.join(words)}")
    return lines
