"""A user's tabular MDP as it is given: rows (state, action, next_state), their probabilities, and where to start."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope.arguments import whole
from tightrope.errors import InvalidInputError
from tightrope.model import SUM_TOLERANCE, flat
from tightrope.space import FloatArray

Indices = NDArray[np.int64]

#: The state where episodes start, or {state: probability}.
Start = int | Mapping[int, float]


def checked_start(start: Start) -> tuple[Indices, FloatArray | None]:
    """The states of the first layer, ascending, and with which chances they are drawn (None: there is just one)."""
    if not isinstance(start, Mapping):
        return np.array([whole(start, "start", at_least=0)]), None
    chances = {whole(s, "a state of start", at_least=0): float(p) for s, p in start.items() if p != 0}
    total = sum(chances.values())
    if not (chances and min(chances.values()) > 0 and abs(total - 1) <= SUM_TOLERANCE):
        raise InvalidInputError(f"the probabilities of start are {dict(start)}; they must be positive and sum to 1")
    states = sorted(chances)
    return np.array(states), np.array([chances[s] for s in states])


def checked_rows(
    rows: ArrayLike, probabilities: ArrayLike, steps: ArrayLike | None
) -> tuple[Indices, FloatArray, Indices]:
    """Rows, probabilities and steps as arrays; none may be given twice, those of a pair sum to one at every step."""
    table = np.asarray(rows)
    if table.ndim != 2 or table.shape[1] != 3 or len(table) == 0:
        raise InvalidInputError(f"rows has shape {table.shape}; expected (n_rows, 3): state, action, next_state")
    at = np.zeros(len(table), dtype=np.int64) if steps is None else np.asarray(steps)
    if at.shape != (len(table),):
        raise InvalidInputError(f"steps has shape {at.shape}; expected ({len(table)},)")
    for what, numbers in (("rows", table), ("steps", at)):
        if not np.issubdtype(numbers.dtype, np.integer):
            raise InvalidInputError(f"{what} holds {numbers.dtype}; states, actions and steps are whole numbers")
        if (numbers < 0).any():
            j = int(np.argmax((numbers.reshape(len(table), -1) < 0).any(axis=1)))
            raise InvalidInputError(f"row {j} of {what} is {numbers[j]}; states, actions and steps count from 0")
    P = flat(np.array(probabilities, dtype=np.float64), len(table), "probabilities")
    if (P < 0).any():
        raise InvalidInputError(f"row {np.argmax(P < 0)} has probability {P.min()}; it cannot be negative")
    table, at = table.astype(np.int64), at.astype(np.int64)
    order = np.lexsort((table[:, 2], table[:, 1], table[:, 0], at))
    _check_distributions(table[order], P[order], at[order])
    return table, P, at


def _check_distributions(table: Indices, P: FloatArray, at: Indices) -> None:
    """Sorted rows: none may be given twice, and those of a pair must sum to one at every step."""
    new_pair = np.ones(len(table), dtype=bool)
    new_pair[1:] = (np.diff(table[:, :2], axis=0) != 0).any(axis=1) | (np.diff(at) != 0)
    twice = np.flatnonzero(~new_pair[1:] & (np.diff(table[:, 2]) == 0))
    if len(twice):
        s, a, s_next = table[twice[0]]
        raise InvalidInputError(f"row ({s}, {a}, {s_next}) is given twice; add up its probabilities")
    totals = np.add.reduceat(P, np.flatnonzero(new_pair))
    wrong = np.abs(totals - 1) > SUM_TOLERANCE
    if wrong.any():
        i = int(np.argmax(wrong))
        s, a, _ = table[new_pair][i]
        raise InvalidInputError(f"probabilities from state {s} under action {a} sum to {totals[i]:.12g}, not 1")
